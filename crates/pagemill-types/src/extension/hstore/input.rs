//! `hstore` from its text: `key=>value, "other key"=>NULL`.
//!
//! Words are bare or quoted. A backslash takes the next byte as it is, in both. A bare key ends at a space or `=`, a bare value at a space
//! or a comma that is not its first byte. A value of the letters `null` without quotes is NULL. A comma may stand at the end.
//!
//! Invariant: what is accepted, and every message, is as on the server; its words changed in PostgreSQL 16, as did the spaces: from then
//! on a vertical tab is one.
//! Source: `hstore_in`, `parse_hstore` and `get_val` in `contrib/hstore/hstore_io.c`, `scanner_isspace` in
//! `src/backend/parser/scansup.c`, PostgreSQL 14 to 18.

use crate::input::InputError;

use super::layout::{Pair, payload_of, unique};

/// Appends the payload of an `hstore`, as PostgreSQL 14 and 15 read it. Their errors of syntax have SQLSTATE XX000.
///
/// # Errors
/// When the text is no hstore.
pub fn read_hstore(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    read(Words { text, at: 0, is_16: false }, out)
}

/// Appends the payload of an `hstore`, as PostgreSQL 16 and later read it. Their errors of syntax have SQLSTATE 42601.
///
/// # Errors
/// When the text is no hstore.
pub fn read_hstore_16(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    read(Words { text, at: 0, is_16: true }, out)
}

fn read(mut words: Words<'_>, out: &mut Vec<u8>) -> Result<(), InputError> {
    let mut owned = Vec::new();
    while let Some(pair) = words.pair()? {
        owned.push(pair);
    }
    let pairs: Vec<Pair<'_>> =
        owned.iter().map(|(key, value)| (key.as_slice(), value.as_deref())).collect();
    let payload = payload_of(&unique(pairs))?;
    out.extend_from_slice(&payload);
    Ok(())
}

type OwnedPair = (Vec<u8>, Option<Vec<u8>>);

struct Words<'t> {
    text: &'t [u8],
    at: usize,
    is_16: bool,
}

impl Words<'_> {
    /// The next pair and the comma behind it; `None` at the end.
    fn pair(&mut self) -> Result<Option<OwnedPair>, InputError> {
        let Some((key, _)) = self.word(false)? else { return Ok(None) };
        self.skip_space();
        self.require(b'=')?;
        self.require(b'>')?;
        let Some((value, is_quoted)) = self.word(true)? else { return Err(self.end_of_string()) };
        let is_null = !is_quoted && value.eq_ignore_ascii_case(b"null");
        self.skip_space();
        if self.next() != 0 {
            self.require(b',')?;
        }
        Ok(Some((key, (!is_null).then_some(value))))
    }

    /// A word and whether it is quoted; `None` at the end.
    fn word(&mut self, is_value: bool) -> Result<Option<(Vec<u8>, bool)>, InputError> {
        self.skip_space();
        match self.next() {
            0 => Ok(None),
            b'"' => Ok(Some((self.quoted()?, true))),
            b'=' if !is_value => Err(self.near()),
            _ => Ok(Some((self.bare(is_value)?, false))),
        }
    }

    fn quoted(&mut self) -> Result<Vec<u8>, InputError> {
        let mut word = Vec::new();
        self.at += 1;
        loop {
            match self.next() {
                0 => return Err(self.end_of_string()),
                b'"' => break,
                b'\\' => word.push(self.escaped()?),
                byte => word.push(byte),
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(word)
    }

    fn bare(&mut self, is_value: bool) -> Result<Vec<u8>, InputError> {
        let mut word = Vec::new();
        loop {
            match self.next() {
                0 => break,
                b'=' if !is_value => break,
                b',' if is_value && !word.is_empty() => break,
                b'\\' => word.push(self.escaped()?),
                byte if self.is_space(byte) => break,
                byte => word.push(byte),
            }
            self.at += 1;
        }
        Ok(word)
    }

    /// The byte behind a backslash, which is passed.
    fn escaped(&mut self) -> Result<u8, InputError> {
        self.at += 1;
        match self.next() {
            0 => Err(self.end_of_string()),
            byte => Ok(byte),
        }
    }

    fn require(&mut self, byte: u8) -> Result<(), InputError> {
        match self.next() {
            0 => Err(self.end_of_string()),
            found if found == byte => {
                self.at += 1;
                Ok(())
            }
            _ => Err(self.near()),
        }
    }

    /// The byte at this place, 0 at the end.
    fn next(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or_default()
    }

    fn skip_space(&mut self) {
        while self.is_space(self.next()) {
            self.at += 1;
        }
    }

    fn is_space(&self, byte: u8) -> bool {
        matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0C) || byte == 0x0B && self.is_16
    }

    #[cold]
    fn near(&self) -> InputError {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let character = rest.utf8_chunks().next().map(|chunk| match chunk.valid().chars().next() {
            Some(character) => character.to_string(),
            None => String::from_utf8_lossy(chunk.invalid()).into_owned(),
        });
        let start = if self.is_16 { "syntax error in hstore," } else { "Syntax error" };
        let character = character.unwrap_or_default();
        self.error(format!("{start} near \"{character}\" at position {}", self.at))
    }

    #[cold]
    fn end_of_string(&self) -> InputError {
        let message = match self.is_16 {
            true => "syntax error in hstore: unexpected end of string",
            false => "Unexpected end of string",
        };
        self.error(message.to_owned())
    }

    fn error(&self, message: String) -> InputError {
        let state = if self.is_16 { "42601" } else { "XX000" };
        InputError { state: Some(state), ..InputError::new(message) }
    }
}
