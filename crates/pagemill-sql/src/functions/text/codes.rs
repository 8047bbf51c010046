//! Texts that stand for other things: code points, hexadecimal numbers, MD5, quoted literals and identifiers.
//!
//! Source: `ascii` and `chr` in `src/backend/utils/adt/oracle_compat.c`, `to_hex32` in `varlena.c`, `quote.c`, `quote_identifier` in
//! `ruleutils.c`, `md5_text` in `cryptohashfuncs.c`, PostgreSQL 14 to 18.

use std::fmt::Write as _;

use super::super::logic::digest;
use super::super::rows::{Made, Outcome, Plain, one};
use super::unicode_escapes;
use crate::error::{SqlState, StatementError};

/// What exceeds a limit of the server's.
const LIMIT_EXCEEDED: SqlState = SqlState("54000");

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "ascii" => |a| one(a, |text: &str| Ok(text.chars().next().map_or(0, |first| first as i32))),
        "chr" => |a| one(a, chr),
        "unistr" => |a| one(a, unicode_escapes::unescaped),
        "to_hex32" => |a| one(a, |number: i32| Ok(format!("{number:x}"))),
        "to_hex64" => |a| one(a, |number: i64| Ok(format!("{number:x}"))),
        "to_bin32" => |a| one(a, |number: i32| Ok(format!("{number:b}"))),
        "to_bin64" => |a| one(a, |number: i64| Ok(format!("{number:b}"))),
        "to_oct32" => |a| one(a, |number: i32| Ok(format!("{number:o}"))),
        "to_oct64" => |a| one(a, |number: i64| Ok(format!("{number:o}"))),
        "md5_text" => |a| one(a, |text: &str| Ok(hexadecimal(&digest::md5(text.as_bytes())))),
        "md5_bytea" => |a| one(a, |bytes: &[u8]| Ok(hexadecimal(&digest::md5(bytes)))),
        "booltext" => |a| one(a, |truth: bool| Ok(truth.to_string())),
        "quote_nullable" => |a| {
            let column = super::super::keys::strings(&a[0]);
            let quoted =
                column.iter().map(|text| Some(text.map_or("NULL".to_owned(), quote_literal)));
            Made::column(quoted.collect::<Vec<Option<String>>>())
        },
        "quote_literal" => |a| one(a, |text: &str| Ok(quote_literal(text))),
        _ => return None,
    })
}

/// Bytes in hexadecimal.
pub(in super::super) fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn chr(code: i32) -> Outcome<String> {
    let Ok(code) = u32::try_from(code) else {
        let message = "character number must be positive";
        return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
    };
    if code == 0 {
        return Err(StatementError::new(LIMIT_EXCEEDED, "null character not permitted"));
    }
    let character = char::from_u32(code).ok_or_else(|| {
        let what = match code {
            0x11_0000.. => "requested character too large for encoding",
            _ => "requested character not valid for encoding",
        };
        StatementError::new(LIMIT_EXCEEDED, format!("{what}: {code}"))
    })?;
    Ok(character.to_string())
}

/// A text as a constant.
pub(crate) fn quote_literal(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    if text.contains('\\') {
        quoted.push('E');
    }
    quoted.push('\'');
    for character in text.chars() {
        if matches!(character, '\'' | '\\') {
            quoted.push(character);
        }
        quoted.push(character);
    }
    quoted.push('\'');
    quoted
}
