//! bytea: lengths, parts, `encode` and `decode`, digests.
//!
//! Source: `src/backend/utils/adt/varlena.c` (`bytea…`), `encode.c`, `cryptohashfuncs.c`, PostgreSQL 14 to 18.

use super::super::rows::{Outcome, Plain, one, three, two};
use super::super::text::hexadecimal;
use super::digest;
use crate::error::{SqlState, StatementError};

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "byteacat" => |a| two(a, |x: &[u8], y: &[u8]| Ok([x, y].concat())),
        "byteaoctetlen" => |a| one(a, |bytes: &[u8]| Ok(bytes.len() as i32)),
        "bytea_substr" => {
            |a| three(a, |x: &[u8], from: i32, count: i32| substring(x, from, Some(count)))
        }
        "bytea_substr_no_len" => |a| two(a, |x: &[u8], from: i32| substring(x, from, None)),
        "byteapos" => |a| two(a, |x: &[u8], wanted: &[u8]| Ok(position(x, wanted))),
        "binary_encode" => |a| two(a, encode),
        "binary_decode" => |a| two(a, decode),
        "sha224_bytea" => |a| one(a, |x: &[u8]| Ok(digest::sha224(x).to_vec())),
        "sha256_bytea" => |a| one(a, |x: &[u8]| Ok(digest::sha256(x).to_vec())),
        "bytea_larger" => |a| two(a, |x: &[u8], y: &[u8]| Ok(x.max(y).to_vec())),
        "bytea_smaller" => |a| two(a, |x: &[u8], y: &[u8]| Ok(x.min(y).to_vec())),
        _ => return None,
    })
}

pub(super) fn substring(bytes: &[u8], from: i32, count: Option<i32>) -> Outcome<Vec<u8>> {
    let start = (from.max(1) - 1) as usize;
    let end = match count {
        Some(..0) => {
            let message = "negative substring length not allowed";
            return Err(StatementError::new(SqlState::SUBSTRING_ERROR, message));
        }
        Some(count) => from.checked_add(count),
        None => None,
    };
    let end = end.map_or(bytes.len(), |end| end.saturating_sub(1).max(0) as usize).min(bytes.len());
    Ok(bytes.get(start..end).unwrap_or_default().to_vec())
}

fn position(bytes: &[u8], wanted: &[u8]) -> i32 {
    if wanted.is_empty() {
        return 1;
    }
    bytes.windows(wanted.len()).position(|part| part == wanted).map_or(0, |at| at as i32 + 1)
}

#[cold]
fn unknown_encoding(name: &str) -> StatementError {
    let message = format!("unrecognized encoding: \"{name}\"");
    StatementError::new(SqlState::INVALID_PARAMETER, message)
}

fn encode(bytes: &[u8], name: &str) -> Outcome<String> {
    match name.to_ascii_lowercase().as_str() {
        "hex" => Ok(hexadecimal(bytes)),
        "base64" => Ok(base64(bytes)),
        "escape" => Ok(escaped(bytes)),
        _ => Err(unknown_encoding(name)),
    }
}

fn decode(text: &str, name: &str) -> Outcome<Vec<u8>> {
    match name.to_ascii_lowercase().as_str() {
        "hex" => of_hexadecimal(text),
        "base64" => of_base64(text),
        "escape" => of_escaped(text),
        _ => Err(unknown_encoding(name)),
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// In lines of 76 characters.
fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 3 / 2);
    for (number, group) in bytes.chunks(3).enumerate() {
        if number > 0 && number % 19 == 0 {
            text.push('\n');
        }
        let mut bits = 0;
        for place in 0..3 {
            bits = bits << 8 | u32::from(group.get(place).copied().unwrap_or(0));
        }
        for place in 0..4 {
            let digit = BASE64[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { digit.into() } else { '=' });
        }
    }
    text
}

#[cold]
fn invalid(message: impl Into<String>) -> StatementError {
    StatementError::new(SqlState::INVALID_PARAMETER, message)
}

fn of_base64(text: &str) -> Outcome<Vec<u8>> {
    let (mut bytes, mut bits, mut place, mut padding) = (Vec::new(), 0u32, 0, 0);
    for character in text.chars().filter(|c| !matches!(c, ' ' | '\t' | '\n' | '\r')) {
        let digit = match character {
            '=' => {
                if padding == 0 {
                    padding = match place {
                        2 => 1,
                        3 => 2,
                        _ => {
                            return Err(invalid("unexpected \"=\" while decoding base64 sequence"));
                        }
                    };
                }
                0
            }
            other => {
                let found = BASE64.iter().position(|digit| char::from(*digit) == other);
                found.ok_or_else(|| {
                    invalid(format!(
                        "invalid symbol \"{other}\" found while decoding base64 sequence"
                    ))
                })?
            }
        };
        (bits, place) = (bits << 6 | digit as u32, place + 1);
        if place == 4 {
            let [_, group @ ..] = bits.to_be_bytes();
            let kept = match padding {
                1 => 1,
                2 => 2,
                _ => 3,
            };
            bytes.extend_from_slice(&group[..kept]);
            (bits, place) = (0, 0);
        }
    }
    match place {
        0 => Ok(bytes),
        _ => Err(invalid("invalid base64 end sequence")
            .with_hint("Input data is missing padding, is truncated, or is otherwise corrupted.")),
    }
}

fn of_hexadecimal(text: &str) -> Outcome<Vec<u8>> {
    let mut digits = text.chars().filter(|c| !matches!(c, ' ' | '\n' | '\t' | '\r'));
    // Spaces may stand between bytes, not within one.
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let value = |character: char| {
        let digit = character.to_digit(16);
        digit.ok_or_else(|| invalid(format!("invalid hexadecimal digit: \"{character}\"")))
    };
    if text.split([' ', '\n', '\t', '\r']).any(|part| part.len() % 2 == 1 && part.is_ascii())
        && text.contains([' ', '\n', '\t', '\r'])
    {
        return Err(StatementError::unsupported("hexadecimal data with spaces within bytes"));
    }
    while let Some(first) = digits.next() {
        let high = value(first)?;
        let second = digits.next();
        let second =
            second.ok_or_else(|| invalid("invalid hexadecimal data: odd number of digits"))?;
        bytes.push((high << 4 | value(second)?) as u8);
    }
    Ok(bytes)
}

/// Bytes beyond ASCII and zero in octal, backslashes doubled.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            0 | 0x80.. => text.push_str(&format!("\\{byte:03o}")),
            b'\\' => text.push_str("\\\\"),
            other => text.push(char::from(*other)),
        }
    }
    text
}

fn of_escaped(text: &str) -> Outcome<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, behind @ ..] = rest {
        if *first != b'\\' {
            bytes.push(*first);
            rest = behind;
            continue;
        }
        match behind {
            [b'\\', behind @ ..] => {
                bytes.push(b'\\');
                rest = behind;
            }
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', behind @ ..] => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = behind;
            }
            _ => {
                let message = "invalid input syntax for type bytea";
                return Err(StatementError::new(SqlState::INVALID_TEXT, message));
            }
        }
    }
    Ok(bytes)
}
