//! `convert_from`, `convert_to`, `convert` and lengths in an encoding: bytes as texts, and texts as bytes.
//!
//! Invariant: what is no text in the encoding that it is said to be in is an error in the server's words. Only conversions from and to
//! UTF8 are known.
//!
//! Source: `pg_convert`, `length_in_encoding`, `report_invalid_encoding`, `report_untranslatable_char` in
//! `src/backend/utils/mb/mbutils.c`, PostgreSQL 14 to 18.

use arrow::array::ArrayRef;
use pagemill_types::encoding::{EncodingError, Transcoder, encoding_id, encoding_name};

use super::rows::{Outcome, three, two};
use super::{Implementation, KernelCall};
use crate::error::{SqlState, StatementError};

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "pg_convert_from" => of_bytes,
        "pg_convert_to" => to_bytes,
        "pg_convert" => converted,
        "length_in_encoding" => lengths,
        _ => return None,
    }))
}

/// The numbers of encodings.
const SQL_ASCII: i32 = 0;
const UTF8: i32 = 6;

fn of_bytes(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let own = call.catalog.database().row().encoding;
    let mut last = None;
    two(arguments, |bytes: &[u8], name: &str| {
        let of = (numbered(name, "source encoding")?, own);
        text(Conversion::same_or(&mut last, of)?.of(bytes)?)
    })
}

fn to_bytes(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let own = call.catalog.database().row().encoding;
    let mut last = None;
    two(arguments, |text: &str, name: &str| {
        let of = (own, numbered(name, "destination encoding")?);
        Conversion::same_or(&mut last, of)?.of(text.as_bytes())
    })
}

fn converted(_: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let mut last = None;
    three(arguments, |bytes: &[u8], from: &str, to: &str| {
        let of = (numbered(from, "source encoding")?, numbered(to, "destination encoding")?);
        Conversion::same_or(&mut last, of)?.of(bytes)
    })
}

/// In characters, of which each is a byte where there is no encoding.
fn lengths(_: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let mut last = None;
    two(arguments, |bytes: &[u8], name: &str| {
        let encoding = numbered(name, "encoding")?;
        let to = if encoding == SQL_ASCII { SQL_ASCII } else { UTF8 };
        let made = Conversion::same_or(&mut last, (encoding, to))?.of(bytes)?;
        let characters = if to == UTF8 { text(made)?.chars().count() } else { made.len() };
        Ok(characters as i32)
    })
}

/// Bytes that are said to be in UTF8, as a text.
pub(super) fn text_of_utf8(bytes: &[u8]) -> Outcome<String> {
    text(Conversion::between((UTF8, UTF8))?.of(bytes)?)
}

fn text(bytes: Vec<u8>) -> Outcome<String> {
    String::from_utf8(bytes).map_err(|_| StatementError::unsupported("a text that is not in UTF8"))
}

fn numbered(name: &str, role: &str) -> Outcome<i32> {
    encoding_id(name).ok_or_else(|| {
        let message = format!("invalid {role} name \"{name}\"");
        StatementError::new(SqlState::INVALID_PARAMETER, message)
    })
}

/// How bytes of one encoding become those of another, and are checked in the first.
struct Conversion {
    /// The numbers of both.
    of: (i32, i32),
    /// What changes nothing, and says what is wrong.
    check: Option<Transcoder>,
    transcoder: Option<Transcoder>,
}

impl Conversion {
    fn between(of: (i32, i32)) -> Outcome<Self> {
        let (from, to) = of;
        let name = |encoding| encoding_name(encoding).unwrap_or_default();
        let made = |from, to| Transcoder::new(from, name(to)).map_err(|error| told(&error));
        let transcoder = made(from, to)?;
        // From no encoding, a conversion checks what it is given.
        let check = match from == UTF8 || transcoder.is_none() {
            true => made(SQL_ASCII, from)?,
            false => None,
        };
        Ok(Self { of, check, transcoder })
    }

    /// The conversion that was asked for last, as most often one serves a whole column.
    fn same_or(last: &mut Option<Self>, of: (i32, i32)) -> Outcome<&Self> {
        match last.take().filter(|last| last.of == of) {
            Some(same) => Ok(last.insert(same)),
            None => Ok(last.insert(Self::between(of)?)),
        }
    }

    fn of(&self, bytes: &[u8]) -> Outcome<Vec<u8>> {
        // No other byte is wrong where there is no encoding.
        if self.of.0 == SQL_ASCII && bytes.contains(&0) {
            let (encoding, bytes) = ("SQL_ASCII", "0x00".to_owned());
            return Err(told(&EncodingError::InvalidSequence { encoding, bytes }));
        }
        if let Some(check) = &self.check {
            check.convert(bytes, &mut Vec::new()).map_err(|error| told(&error))?;
        }
        let Some(transcoder) = &self.transcoder else { return Ok(bytes.to_vec()) };
        let mut made = Vec::with_capacity(bytes.len());
        transcoder.convert(bytes, &mut made).map_err(|error| told(&error))?;
        Ok(made)
    }
}

#[cold]
fn told(error: &EncodingError) -> StatementError {
    match error {
        EncodingError::InvalidSequence { encoding, bytes } => {
            let message = format!("invalid byte sequence for encoding \"{encoding}\": {bytes}");
            StatementError::new(SqlState("22021"), message)
        }
        EncodingError::NoEquivalent { from, to, bytes } => {
            let message = format!(
                "character with byte sequence {bytes} in encoding \"{from}\" has no equivalent in encoding \"{to}\""
            );
            StatementError::new(SqlState("22P05"), message)
        }
        EncodingError::Unsupported { from, to } | EncodingError::UnsupportedInput { from, to } => {
            StatementError::unsupported(format!("a conversion from {from} to {to}"))
        }
        other => StatementError::unsupported(other.to_string()),
    }
}
