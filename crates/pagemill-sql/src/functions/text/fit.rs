//! Texts brought to the length of their type: `varchar(n)` and `character(n)`.
//!
//! Source: `varchar` and `bpchar` in `src/backend/utils/adt/varchar.c`, PostgreSQL 14 to 18.

use super::super::rows::{Outcome, Plain, three};
use super::{length, offset};
use crate::error::{SqlState, StatementError};

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "varchar" => |a| three(a, varchar),
        "bpchar" => |a| three(a, bpchar),
        _ => return None,
    })
}

/// No type is longer.
///
/// Source: `MaxAttrSize` in `src/include/access/htup_details.h`, PostgreSQL 14 to 18.
const MOST_CHARACTERS: usize = 10 << 20;

/// The characters that a modifier leaves room for.
fn room(modifier: i32) -> Option<usize> {
    usize::try_from(modifier.checked_sub(4)?).ok()
}

fn varchar(text: &str, modifier: i32, is_explicit: bool) -> Outcome<String> {
    match room(modifier) {
        Some(room) => cut(text, room, is_explicit, "character varying").map(str::to_owned),
        None => Ok(text.to_owned()),
    }
}

fn bpchar(text: &str, modifier: i32, is_explicit: bool) -> Outcome<String> {
    let Some(room) = room(modifier) else { return Ok(text.to_owned()) };
    if room > MOST_CHARACTERS {
        let message = format!("length for type char cannot exceed {MOST_CHARACTERS}");
        return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
    }
    let kept = cut(text, room, is_explicit, "character")?;
    let blanks = room - length(kept) as usize;
    Ok(kept.to_owned() + &" ".repeat(blanks))
}

/// The first characters; what is cut off must be blanks unless the cast was asked for.
fn cut<'t>(text: &'t str, room: usize, is_explicit: bool, name: &str) -> Outcome<&'t str> {
    let (kept, rest) = text.split_at(offset(text, room));
    if !is_explicit && rest.bytes().any(|byte| byte != b' ') {
        let message = format!("value too long for type {name}({room})");
        return Err(StatementError::new(SqlState::STRING_TOO_LONG, message));
    }
    Ok(kept)
}
