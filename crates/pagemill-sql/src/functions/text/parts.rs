//! Parts of texts and texts of parts: `substring`, `left`, `right`, `reverse`, `repeat`, `||`, lengths.
//!
//! Source: `text_substring`, `text_left`, `text_right`, `text_reverse`, `textcat` in `src/backend/utils/adt/varlena.c`, `repeat` in
//! `oracle_compat.c`, `bpcharlen` in `varchar.c`, PostgreSQL 14 to 18.

use super::super::rows::{Outcome, Plain, one, three, two};
use super::{LENGTH_WORD, MOST_BYTES, length, offset, too_large};
use crate::error::{SqlState, StatementError};

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "textcat" => |a| two(a, |x: &str, y: &str| Ok([x, y].concat())),
        "textlen" => |a| one(a, |text: &str| Ok(length(text))),
        "bpcharlen" => |a| one(a, |text: &str| Ok(length(text.trim_end_matches(' ')))),
        "textoctetlen" | "bpcharoctetlen" => |a| one(a, |text: &str| Ok(text.len() as i32)),
        // bit_length is written in SQL.
        "bit_length(text)" => |a| one(a, bit_length),
        "text_substr" => {
            |a| three(a, |t: &str, from: i32, count: i32| substring(t, from, Some(count)))
        }
        "text_substr_no_len" => |a| two(a, |text: &str, from: i32| substring(text, from, None)),
        "text_left" => |a| two(a, |text: &str, n: i32| Ok(left(text, n))),
        "text_right" => |a| two(a, |text: &str, n: i32| Ok(right(text, n))),
        "text_reverse" => |a| one(a, |text: &str| Ok(text.chars().rev().collect::<String>())),
        "repeat" => |a| two(a, repeat),
        "name_text" | "name_bpchar" => |a| one(a, |text: &str| Ok(text.to_owned())),
        "rtrim1" => |a| one(a, |text: &str| Ok(text.trim_end_matches(' ').to_owned())),
        "text_name" => |a| one(a, |text: &str| Ok(as_name(text))),
        "bpchar_name" => {
            |a| one(a, |text: &str| Ok(as_name(text).trim_end_matches(' ').to_owned()))
        }
        "overlay(text,text,int4,int4)" | "textoverlay" => |a| {
            super::super::rows::four(a, |t: &str, new: &str, from: i32, n: i32| {
                overlay(t, new, from, n)
            })
        },
        "overlay(text,text,int4)" | "textoverlay_no_len" => {
            |a| three(a, |t: &str, new: &str, from: i32| overlay(t, new, from, length(new)))
        }
        _ => return None,
    })
}

fn bit_length(text: &str) -> Outcome<i32> {
    let bits = i32::try_from(text.len()).ok().and_then(|bytes| bytes.checked_mul(8));
    bits.ok_or_else(|| StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, "integer out of range"))
}

/// The characters from a position counted from 1; positions before the text count too.
fn substring(text: &str, from: i32, count: Option<i32>) -> Outcome<String> {
    let start = from.max(1);
    let end = match count {
        Some(..0) => return Err(negative_length()),
        // Beyond all integers is beyond the text.
        Some(count) => from.checked_add(count),
        None => None,
    };
    let first = offset(text, (start - 1) as usize);
    let rest = text.get(first..).unwrap_or_default();
    Ok(match end {
        None => rest,
        Some(end) => &rest[..offset(rest, end.saturating_sub(start).max(0) as usize)],
    }
    .to_owned())
}

#[cold]
fn negative_length() -> StatementError {
    StatementError::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed")
}

fn overlay(text: &str, new: &str, from: i32, count: i32) -> Outcome<String> {
    if from <= 0 {
        return Err(negative_length());
    }
    let end = from.checked_add(count).ok_or_else(|| {
        StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, "integer out of range")
    })?;
    let before = substring(text, 1, Some(from - 1))?;
    Ok(before + new + &substring(text, end, None)?)
}

/// So many characters from the start; of a negative number, all but so many at the end.
fn left(text: &str, count: i32) -> String {
    let count = match count {
        ..0 => length(text).wrapping_add(count).max(0),
        count => count,
    };
    text[..offset(text, count as usize)].to_owned()
}

/// So many characters from the end; of a negative number, all but so many at the start.
fn right(text: &str, count: i32) -> String {
    let skipped = match count {
        ..0 => count.wrapping_neg(),
        count => length(text) - count,
    };
    text[offset(text, skipped.max(0) as usize)..].to_owned()
}

fn repeat(text: &str, count: i32) -> Outcome<String> {
    let count = usize::try_from(count).unwrap_or(0);
    match text.len().checked_mul(count) {
        Some(bytes) if bytes <= MOST_BYTES - LENGTH_WORD => Ok(text.repeat(count)),
        _ => Err(too_large()),
    }
}

/// The bytes that a name has room for, cut between characters.
pub(crate) fn as_name(text: &str) -> String {
    const MOST: usize = 63;
    text[..text.floor_char_boundary(MOST)].to_owned()
}
