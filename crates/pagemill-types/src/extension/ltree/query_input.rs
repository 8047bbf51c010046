//! `lquery` of a text: items between dots, of variants between bars with flags behind them, repeated as braces say.
//!
//! Invariants: errors are the server's, at the characters where it sees them; a text is read once from left to right, and what is
//! wrong first is told. The bytes are the server's, checksums included.
//!
//! Source: `parse_lquery` and `finish_nodeitem` in `contrib/ltree/ltree_io.c`, PostgreSQL 14 to 18.

use crate::extension::call::CallError;

use super::characters::Characters;
use super::labels::{Labels, MAX_LEVELS, with_detail};
use super::query::{
    ANY_CASE, COUNT, HEADER_BYTES, ITEM_BYTES, NOT, PREFIX, VARIANT_BYTES, Variant, WORDS,
};

const SYNTAX: &str = "42601";
const LIMIT: &str = "54000";
const ERROR: &str = "lquery syntax error";

/// The payload of the `lquery` that a text says.
///
/// # Errors
/// The server's, with their details.
pub fn lquery_input(text: &[u8], labels: Labels<'_>) -> Result<Vec<u8>, CallError> {
    let characters = Characters::new(text);
    let most = characters.count('.') + 1;
    if most > MAX_LEVELS.into() {
        let what =
            format!("number of lquery items ({most}) exceeds the maximum allowed ({MAX_LEVELS})");
        return Err(CallError::new(LIMIT, what));
    }
    let mut parser = Parser { characters, labels };
    let mut items = vec![parser.item()?];
    while parser.characters.peek().is_some() {
        // An item ends only before a dot or at the end.
        parser.characters.advance();
        items.push(parser.item()?);
    }
    payload_of(&items, labels)
}

/// An item as it was read.
#[derive(Default)]
struct ItemText<'a> {
    flags: u16,
    low: u16,
    high: u16,
    variants: Vec<Variant<'a>>,
}

impl ItemText<'_> {
    /// True for a label that is to be as it is.
    fn is_simple(&self) -> bool {
        self.variants.len() == 1 && self.flags == 0
    }

    fn push(&self, labels: Labels<'_>, payload: &mut Vec<u8>) -> Result<(), CallError> {
        let start = payload.len();
        let count = self.variants.len() as u16;
        for field in [0, self.flags, count, self.low, self.high, 0, 0, 0] {
            payload.extend_from_slice(&field.to_le_bytes());
        }
        for variant in &self.variants {
            push_variant(variant, labels.checksum(variant.text), payload);
            let Ok(bytes) = u16::try_from(payload.len() - start) else {
                let most = "Total size of level exceeds the maximum allowed (65535 bytes).";
                return Err(with_detail(LIMIT, "lquery level is too large", most));
            };
            set(payload, start, bytes);
        }
        if self.variants.is_empty() {
            set(payload, start, ITEM_BYTES as u16);
        }
        Ok(())
    }
}

fn push_variant(variant: &Variant<'_>, checksum: u32, payload: &mut Vec<u8>) {
    let length = variant.text.len();
    let end = payload.len() + VARIANT_BYTES + length.next_multiple_of(8);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload.extend_from_slice(&(length as u16).to_le_bytes());
    payload.push(variant.flags);
    payload.extend_from_slice(variant.text);
    payload.resize(end, 0);
}

fn set(payload: &mut [u8], at: usize, number: u16) {
    for (to, from) in payload.iter_mut().skip(at).zip(number.to_le_bytes()) {
        *to = from;
    }
}

fn payload_of(items: &[ItemText<'_>], labels: Labels<'_>) -> Result<Vec<u8>, CallError> {
    let simple = items.iter().take_while(|item| item.is_simple()).count();
    let has_not = items.iter().any(|item| item.flags & NOT != 0);
    let mut payload = vec![0; HEADER_BYTES];
    for (at, field) in [(0, items.len() as u16), (2, simple as u16), (4, u16::from(has_not))] {
        set(&mut payload, at, field);
    }
    for item in items {
        item.push(labels, &mut payload)?;
    }
    Ok(payload)
}

struct Parser<'a> {
    characters: Characters<'a>,
    labels: Labels<'a>,
}

impl<'a> Parser<'a> {
    #[cold]
    fn unexpected(&self) -> CallError {
        match self.characters.peek() {
            None => with_detail(SYNTAX, ERROR, "Unexpected end of input."),
            Some(_) => {
                let at = self.characters.position();
                CallError::new(SYNTAX, format!("{ERROR} at character {at}"))
            }
        }
    }

    fn is_label(&self) -> bool {
        self.characters.peek().is_some_and(|one| self.labels.allow(one))
    }

    /// An item, up to a dot or the end.
    fn item(&mut self) -> Result<ItemText<'a>, CallError> {
        let mut item = ItemText::default();
        match self.characters.peek() {
            Some('*') => {
                self.characters.advance();
                self.star(&mut item)?;
            }
            Some('!') => {
                self.characters.advance();
                item.flags |= NOT;
                self.variants(&mut item)?;
            }
            _ if self.is_label() => self.variants(&mut item)?,
            _ => return Err(self.unexpected()),
        }
        Ok(item)
    }

    fn star(&mut self, item: &mut ItemText<'a>) -> Result<(), CallError> {
        match self.characters.peek() {
            None | Some('.') => item.high = MAX_LEVELS,
            Some('{') => self.repetitions(item)?,
            Some(_) => return Err(self.unexpected()),
        }
        Ok(())
    }

    fn variants(&mut self, item: &mut ItemText<'a>) -> Result<(), CallError> {
        loop {
            let variant = self.variant()?;
            item.flags |= u16::from(variant.flags);
            item.variants.push(variant);
            match self.characters.peek() {
                Some('|') => self.characters.advance(),
                Some('{') => {
                    item.flags |= COUNT;
                    return self.repetitions(item);
                }
                _ => return Ok(()),
            }
            if !self.is_label() {
                return Err(self.unexpected());
            }
            if item.variants.len() >= usize::from(u16::MAX) {
                let most = "Number of variants exceeds the maximum allowed (65535).";
                return Err(with_detail(LIMIT, "lquery level has too many variants", most));
            }
        }
    }

    /// A label and its flags, up to what may follow them.
    fn variant(&mut self) -> Result<Variant<'a>, CallError> {
        let (start, first) = (self.characters.byte(), self.characters.position());
        while self.is_label() {
            self.characters.advance();
        }
        let (end, position) = (self.characters.byte(), self.characters.position());
        let flags = self.flags();
        if !matches!(self.characters.peek(), None | Some('|' | '{' | '.')) {
            return Err(self.unexpected());
        }
        if start == end {
            let what = format!("{ERROR} at character {position}");
            return Err(with_detail(SYNTAX, what, "Empty labels are not allowed."));
        }
        self.labels.check_length(position - first, position)?;
        Ok(Variant { text: self.characters.slice(start, end), flags })
    }

    fn flags(&mut self) -> u8 {
        let mut flags = 0;
        loop {
            flags |= match self.characters.peek() {
                Some('@') => ANY_CASE,
                Some('*') => PREFIX,
                Some('%') => WORDS,
                _ => return flags,
            };
            self.characters.advance();
        }
    }

    /// `{2}`, `{2,}`, `{,3}`, `{2,3}` or `{,}`, and what may follow it.
    fn repetitions(&mut self, item: &mut ItemText<'a>) -> Result<(), CallError> {
        self.characters.advance();
        let has_low = self.characters.peek() != Some(',');
        if has_low {
            item.low = self.limit("Low")?;
        }
        match self.characters.peek() {
            Some('}') if has_low => item.high = item.low,
            Some(',') => {
                self.characters.advance();
                item.high = self.high(item.low)?;
            }
            _ => return Err(self.unexpected()),
        }
        self.characters.advance();
        match self.characters.peek() {
            None | Some('.') => Ok(()),
            Some(_) => Err(self.unexpected()),
        }
    }

    /// The number behind the comma, or none, before the brace.
    fn high(&mut self, low: u16) -> Result<u16, CallError> {
        if self.characters.peek() == Some('}') {
            return Ok(MAX_LEVELS);
        }
        let at = self.characters.position();
        let high = self.bounded("High")?;
        if low > high {
            let detail = format!(
                "Low limit ({low}) is greater than high limit ({high}), at character {at}."
            );
            return Err(with_detail(SYNTAX, ERROR, detail));
        }
        self.skip_digits();
        match self.characters.peek() {
            Some('}') => Ok(high),
            _ => Err(self.unexpected()),
        }
    }

    fn limit(&mut self, which: &str) -> Result<u16, CallError> {
        let found = self.bounded(which)?;
        self.skip_digits();
        Ok(found)
    }

    /// The number that begins here.
    fn bounded(&self, which: &str) -> Result<u16, CallError> {
        if !self.characters.peek().is_some_and(|one| one.is_ascii_digit()) {
            return Err(self.unexpected());
        }
        let number = self.characters.number();
        u16::try_from(number).map_err(|_| {
            let at = self.characters.position();
            let detail = format!(
                "{which} limit ({number}) exceeds the maximum allowed ({MAX_LEVELS}), at character {at}."
            );
            with_detail(LIMIT, ERROR, detail)
        })
    }

    fn skip_digits(&mut self) {
        while self.characters.peek().is_some_and(|one| one.is_ascii_digit()) {
            self.characters.advance();
        }
    }
}
