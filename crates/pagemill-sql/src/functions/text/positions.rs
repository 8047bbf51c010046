//! Where a text occurs in another: `position`, `strpos`, `replace`, `split_part`, `starts_with`.
//!
//! Bytes are compared; of UTF-8 a character's are found nowhere within another.
//!
//! Source: `text_position`, `replace_text`, `split_part`, `text_starts_with` in `src/backend/utils/adt/varlena.c`, PostgreSQL 14 to 18.

use super::super::rows::{Outcome, Plain, three, two};
use super::{MOST_BYTES, length, too_large};
use crate::error::{SqlState, StatementError};

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "textpos" => |a| two(a, |text: &str, wanted: &str| Ok(position(text, wanted))),
        "text_starts_with" => |a| two(a, |text: &str, start: &str| Ok(text.starts_with(start))),
        "replace_text" => |a| three(a, replace),
        "split_part" => |a| three(a, |t: &str, mark: &str, field: i32| split_part(t, mark, field)),
        _ => return None,
    })
}

fn position(text: &str, wanted: &str) -> i32 {
    text.find(wanted).map_or(0, |at| length(&text[..at]) + 1)
}

fn replace(text: &str, from: &str, to: &str) -> Outcome<String> {
    if text.is_empty() || from.is_empty() {
        return Ok(text.to_owned());
    }
    if to.len() > from.len() {
        let found = text.matches(from).count();
        if found.saturating_mul(to.len() - from.len()).saturating_add(text.len()) > MOST_BYTES - 4 {
            return Err(too_large());
        }
    }
    Ok(text.replace(from, to))
}

/// The field with this number, counted from the end when it is negative.
fn split_part(text: &str, mark: &str, field: i32) -> Outcome<String> {
    if field == 0 {
        let message = "field position must not be zero";
        return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
    }
    if mark.is_empty() {
        return Ok(if matches!(field, 1 | -1) { text.to_owned() } else { String::new() });
    }
    let fields = || text.split(mark);
    let number = match usize::try_from(field) {
        Ok(number) => Some(number - 1),
        Err(_) => fields().count().checked_sub(field.unsigned_abs() as usize),
    };
    Ok(number.and_then(|number| fields().nth(number)).unwrap_or_default().to_owned())
}
