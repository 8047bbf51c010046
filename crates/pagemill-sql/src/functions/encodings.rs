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
        "pg_convert" => |_, a| {
            three(a, |bytes: &[u8], from: &str, to: &str| {
                converted(bytes, numbered(from, "source")?, numbered(to, "destination")?)
            })
        },
        "length_in_encoding" => |_, a| two(a, length),
        _ => return None,
    }))
}

/// The numbers of encodings.
const SQL_ASCII: i32 = 0;
const UTF8: i32 = 6;

fn of_bytes(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let own = call.catalog.database().row().encoding;
    two(arguments, |bytes: &[u8], name: &str| {
        let text = converted(bytes, numbered(name, "source")?, own)?;
        let of_others = |_| StatementError::unsupported("a text that is not in UTF8");
        String::from_utf8(text).map_err(of_others)
    })
}

fn to_bytes(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let own = call.catalog.database().row().encoding;
    two(arguments, |text: &str, name: &str| {
        converted(text.as_bytes(), own, numbered(name, "destination")?)
    })
}

fn numbered(name: &str, role: &str) -> Outcome<i32> {
    encoding_id(name).ok_or_else(|| {
        let message = format!("invalid {role} encoding name \"{name}\"");
        StatementError::new(SqlState::INVALID_PARAMETER, message)
    })
}

/// Bytes of one encoding in another, checked in the first.
fn converted(bytes: &[u8], from: i32, to: i32) -> Outcome<Vec<u8>> {
    if from == UTF8 || from == SQL_ASCII {
        check(bytes, from)?;
    }
    let name = encoding_name(to).unwrap_or_default();
    match Transcoder::new(from, name).map_err(|error| told(&error))? {
        None => {
            check(bytes, from)?;
            Ok(bytes.to_vec())
        }
        Some(transcoder) => {
            let mut made = Vec::with_capacity(bytes.len());
            transcoder.convert(bytes, &mut made).map_err(|error| told(&error))?;
            Ok(made)
        }
    }
}

/// Refuses what is no text in an encoding.
fn check(bytes: &[u8], encoding: i32) -> Outcome<()> {
    let name = encoding_name(encoding).unwrap_or_default();
    let checked = match encoding {
        // No byte but zero is wrong there, which the conversion of any of one byte says.
        SQL_ASCII => match bytes.contains(&0) {
            true => Err(EncodingError::InvalidSequence { encoding: name, bytes: "0x00".into() }),
            false => Ok(()),
        },
        // From no encoding, a conversion checks what it is given.
        _ => match Transcoder::new(SQL_ASCII, name) {
            Ok(Some(transcoder)) => transcoder.convert(bytes, &mut Vec::new()),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        },
    };
    checked.map_err(|error| told(&error))
}

fn length(bytes: &[u8], name: &str) -> Outcome<i32> {
    let encoding = encoding_id(name).ok_or_else(|| {
        let message = format!("invalid encoding name \"{name}\"");
        StatementError::new(SqlState::INVALID_PARAMETER, message)
    })?;
    check(bytes, encoding)?;
    let characters = match encoding {
        SQL_ASCII => bytes.len(),
        _ => String::from_utf8_lossy(&converted(bytes, encoding, UTF8)?).chars().count(),
    };
    Ok(characters as i32)
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
