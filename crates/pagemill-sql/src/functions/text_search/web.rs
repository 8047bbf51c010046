//! `websearch_to_tsquery`: words as people type them into a search field, with quotes, `or` and `-`.
//!
//! Source: `gettoken_query_websearch`, `parse_or_operator` and `makepol` in `src/backend/utils/adt/tsquery.c`,
//! `gettoken_tsvector` in `tsvector_parser.c`, PostgreSQL 14 to 18.

use super::super::rows::Outcome;
use super::letters::Letters;
use super::phrases::{Item, Reading, query_of};
use super::query::Kind;
use crate::error::{SqlState, StatementError};

/// Operators that wait for their right operand (`STACKDEPTH`).
const MOST_WAITING: usize = 32;

struct Field<'t> {
    rest: &'t str,
    letters: &'t Letters,
    items: Vec<Item>,
    waiting: Vec<Kind>,
}

/// The query that such a text means.
pub(super) fn query(text: &str, reading: &Reading<'_>) -> Outcome<Vec<u8>> {
    let letters = &reading.configuration.letters;
    letters.check_query(text)?;
    let mut field = Field { rest: text, letters, items: Vec::new(), waiting: Vec::new() };
    field.read(reading)?;
    while let Some(kind) = field.waiting.pop() {
        field.items.push(operator(kind));
    }
    query_of(&field.items, text)
}

fn operator(kind: Kind) -> Item {
    Item::Operator { kind, distance: 0 }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// True for a byte within a character.
fn is_inside(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// What means something in other queries, and nothing here.
fn is_ignored(byte: u8) -> bool {
    matches!(byte, b'!' | b'&' | b'|' | b'(' | b')' | b'<')
}

impl<'t> Field<'t> {
    fn read(&mut self, reading: &Reading<'_>) -> Outcome<()> {
        let mut is_first = true;
        loop {
            // An operand, with what comes before it.
            let word = loop {
                match self.rest.bytes().next() {
                    None if is_first => return Ok(()),
                    None => {
                        self.items.push(Item::Nothing);
                        return Ok(());
                    }
                    Some(byte) if is_space(byte) => self.skip(1),
                    Some(b'-') => {
                        self.skip(1);
                        self.wait(Kind::Not)?;
                        is_first = false;
                    }
                    Some(byte) if is_ignored(byte) => {
                        self.skip(1);
                        is_first = false;
                    }
                    Some(b'"') => break self.quoted(),
                    Some(_) => break self.bare(),
                }
            };
            reading.word(word, (0, false), &mut self.items)?;
            is_first = false;
            match self.between() {
                Some(kind) => self.wait(kind)?,
                None => return Ok(()),
            }
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Up to the next quote, or to the end.
    fn quoted(&mut self) -> &'t str {
        self.skip(1);
        let (word, rest) = self.rest.split_once('"').unwrap_or((self.rest, ""));
        self.rest = rest;
        word
    }

    fn bare(&mut self) -> &'t str {
        let ends = |(at, byte): &(usize, u8)| {
            is_space(*byte) || is_ignored(*byte) || *byte == b'"' || (*byte == b':' && *at > 0)
        };
        let end = self.rest.bytes().enumerate().find(ends).map_or(self.rest.len(), |(at, _)| at);
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// What stands between two operands: AND, if nothing does. None at the end.
    fn between(&mut self) -> Option<Kind> {
        loop {
            let byte = self.rest.bytes().next()?;
            if self.takes_or() {
                return Some(Kind::Or);
            }
            if !is_space(byte) && !is_ignored(byte) {
                return Some(Kind::And);
            }
            self.skip(1);
        }
    }

    /// Takes `or` where it is a word by itself and something follows it.
    fn takes_or(&mut self) -> bool {
        let bytes = self.rest.as_bytes();
        let Some((b"or" | b"Or" | b"oR" | b"OR", behind)) = bytes.split_at_checked(2) else {
            return false;
        };
        let is_of_word = |next: char| match (next, self.letters) {
            ('-' | '_', _) => true,
            (next, Letters::Locale(_)) => self.letters.is_letter_or_digit(next),
            (next, _) => next.is_ascii_alphanumeric(),
        };
        let is_word = self.rest[2..].chars().next().is_some_and(|next| !is_of_word(next));
        let mut following = behind.iter().skip(1);
        let is_or = is_word && following.any(|byte| !is_space(*byte) && !is_inside(*byte));
        if is_or {
            self.skip(2);
        }
        is_or
    }

    /// Has an operator wait for its right operand; those that bind stronger need wait no more.
    fn wait(&mut self, kind: Kind) -> Outcome<()> {
        let strength = |kind: Kind| match kind {
            Kind::Or => 1,
            Kind::And => 2,
            Kind::Phrase => 3,
            Kind::Not => 4,
        };
        let goes_first = |last: &mut Kind| match kind {
            Kind::Not => strength(kind) < strength(*last),
            _ => strength(kind) <= strength(*last),
        };
        while let Some(last) = self.waiting.pop_if(goes_first) {
            self.items.push(operator(last));
        }
        if self.waiting.len() >= MOST_WAITING {
            return Err(StatementError::new(SqlState("XX000"), "tsquery stack too small"));
        }
        self.waiting.push(kind);
        Ok(())
    }
}
