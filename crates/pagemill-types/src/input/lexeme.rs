//! Words of `tsvector` and `tsquery` texts: bare or in single quotes, with backslashes as escapes.
//!
//! Source: `gettoken_tsvector` in `src/backend/utils/adt/tsvector_parser.c`, PostgreSQL 14 to 18.

use super::InputError;
use super::datum::is_space;
use super::tree::InputContext;

/// Longest lexeme, in bytes, plus one (`MAXSTRLEN`).
pub(super) const MAX_LEXEME: usize = (1 << 11) - 1;
/// Most bytes of lexemes (`MAXSTRPOS`).
pub(super) const MAX_PLACE: usize = (1 << 20) - 1;

/// Largest position, plus one (`MAXENTRYPOS`).
const MAX_POSITION: i32 = 1 << 14;

/// What the words are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Vector,
    /// Operators end a word, and positions do not follow it.
    Query,
}

/// Finds words in a text.
pub(super) struct Words<'a> {
    pub(super) text: &'a [u8],
    pub(super) rest: &'a [u8],
    context: &'a InputContext,
    language: Language,
}

/// What was found besides the word's text.
pub(super) enum NextWord {
    /// No word: the text is at its end.
    End,
    /// A word, and its positions with their weights.
    Word(Vec<u16>),
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a [u8], context: &'a InputContext, language: Language) -> Self {
        Self { text, rest: text, context, language }
    }

    #[cold]
    pub(super) fn syntax_error(&self) -> InputError {
        let kind = if self.language == Language::Query { "tsquery" } else { "tsvector" };
        self.about(&format!("syntax error in {kind}"))
    }

    /// `WHAT: "TEXT"`.
    #[cold]
    pub(super) fn about(&self, what: &str) -> InputError {
        InputError::new(format!("{what}: \"{}\"", String::from_utf8_lossy(self.text)))
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Goes on behind the next `count` bytes.
    pub(super) fn skip(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default();
    }

    /// Goes on behind spaces.
    pub(super) fn skip_spaces(&mut self) {
        loop {
            match self.space_bytes() {
                0 => return,
                count => self.skip(count),
            }
        }
    }

    /// How many bytes the space has that comes next: 0 when there is none.
    fn space_bytes(&self) -> usize {
        match self.peek() {
            Some(byte) if byte.is_ascii() => usize::from(is_space(byte)),
            Some(_) if self.context.unicode_spaces => unicode_space_bytes(self.rest),
            _ => 0,
        }
    }

    fn ends_word(&self) -> bool {
        self.rest.is_empty() || self.space_bytes() > 0 || self.at_operator()
    }

    fn at_operator(&self) -> bool {
        let operator = matches!(self.peek(), Some(b'!' | b'&' | b'|' | b'(' | b')' | b'<'));
        operator && self.language == Language::Query
    }

    /// Reads the next word into `word`.
    pub(super) fn next(&mut self, word: &mut Vec<u8>) -> Result<NextWord, InputError> {
        word.clear();
        self.skip_spaces();
        match self.peek() {
            None => return Ok(NextWord::End),
            Some(b'\'') => {
                self.skip(1);
                self.quoted(word)?;
                if word.is_empty() {
                    return Err(self.syntax_error());
                }
            }
            Some(_) if self.at_operator() => return Err(self.syntax_error()),
            Some(_) => self.bare(word)?,
        }
        if self.language == Language::Query || self.peek() != Some(b':') {
            return Ok(NextWord::Word(Vec::new()));
        }
        self.skip(1);
        Ok(NextWord::Word(self.positions()?))
    }

    fn bare(&mut self, word: &mut Vec<u8>) -> Result<(), InputError> {
        loop {
            // The first byte is part of the word even if it is a colon.
            let colon = self.peek() == Some(b':') && !word.is_empty();
            if colon || self.ends_word() {
                return if word.is_empty() { Err(self.syntax_error()) } else { Ok(()) };
            }
            self.byte(word)?;
        }
    }

    fn quoted(&mut self, word: &mut Vec<u8>) -> Result<(), InputError> {
        loop {
            match self.rest {
                [] => return Err(self.syntax_error()),
                [b'\'', b'\'', ..] => {
                    word.push(b'\'');
                    self.skip(2);
                }
                [b'\'', ..] => {
                    self.skip(1);
                    return Ok(());
                }
                _ => self.byte(word)?,
            }
        }
    }

    /// Takes one byte, or the one that a backslash escapes.
    fn byte(&mut self, word: &mut Vec<u8>) -> Result<(), InputError> {
        if self.peek() == Some(b'\\') {
            self.skip(1);
            if self.rest.is_empty() {
                return Err(self.about("there is no escaped character"));
            }
        }
        word.extend(self.peek());
        self.skip(1);
        Ok(())
    }

    fn positions(&mut self) -> Result<Vec<u16>, InputError> {
        let mut positions = Vec::new();
        loop {
            positions.push(self.position()?);
            match self.peek() {
                Some(b',') => self.skip(1),
                _ => return Ok(positions),
            }
        }
    }

    /// A number with its weight: what follows may have digits in it again, which mean nothing.
    fn position(&mut self) -> Result<u16, InputError> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Err(self.syntax_error());
        }
        let number = limited(self.rest.get(..digits).unwrap_or_default());
        if number == 0 {
            return Err(self.about("wrong position info in tsvector"));
        }
        self.skip(digits);
        let mut weight = 0;
        loop {
            let given = match self.peek() {
                Some(b'a' | b'A' | b'*') => 3,
                Some(b'b' | b'B') => 2,
                Some(b'c' | b'C') => 1,
                Some(b'd' | b'D') => 0,
                Some(byte) if byte.is_ascii_digit() => {
                    self.skip(1);
                    continue;
                }
                Some(b',') | None => break,
                Some(_) if self.space_bytes() > 0 => break,
                Some(_) => return Err(self.syntax_error()),
            };
            if weight != 0 {
                return Err(self.syntax_error());
            }
            weight = given;
            self.skip(1);
        }
        Ok(number | weight << 14)
    }
}

/// A position as the server keeps it: read by `atoi`, cut off at the largest one, kept in 14 bits.
fn limited(digits: &[u8]) -> u16 {
    let number = digits.iter().fold(0_i64, |number, digit| {
        number.saturating_mul(10).saturating_add(i64::from(digit - b'0'))
    });
    ((number as i32).min(MAX_POSITION - 1) & (MAX_POSITION - 1)) as u16
}

/// How many bytes a space of Unicode has that begins a text in UTF-8 (those that do not forbid a
/// line break, as in the C library's tables).
fn unicode_space_bytes(text: &[u8]) -> usize {
    match text {
        [0xE1, 0x9A, 0x80, ..] | [0xE2, 0x81, 0x9F, ..] | [0xE3, 0x80, 0x80, ..] => 3,
        [0xE2, 0x80, 0x80..=0x86 | 0x88..=0x8A | 0xA8 | 0xA9, ..] => 3,
        _ => 0,
    }
}
