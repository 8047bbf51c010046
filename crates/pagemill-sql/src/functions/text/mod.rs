//! Texts: their parts, lengths, case, patterns and codes.
//!
//! Lengths and positions count characters, as in a database whose encoding is UTF-8.
//!
//! Source: `src/backend/utils/adt/varlena.c`, `oracle_compat.c`, `varchar.c`, `like.c`, `quote.c`, `name.c`, PostgreSQL 14 to 18.

pub(super) mod cases;
mod codes;
mod concat;
mod fit;
mod format;
mod identifiers;
mod initials;
pub(super) mod like;
mod normalized;
pub(crate) mod parts;
mod patterns;
mod positions;
pub(super) mod regular;
mod trim;
mod unicode_escapes;

use arrow::array::{ArrayRef, StringArray};

use super::rows::{Outcome, Plain, run};
use super::{Implementation, KernelCall};
use crate::error::StatementError;

pub(super) use codes::hexadecimal;
pub(crate) use codes::quote_literal;

pub(crate) fn find(key: &str) -> Option<Implementation> {
    if plain(key).is_some() {
        return Some(Implementation::Kernel(kernel));
    }
    concat::find(key)
        .or_else(|| format::find(key))
        .or_else(|| cases::find(key))
        .or_else(|| patterns::find(key))
        .or_else(|| identifiers::find(key))
        .or_else(|| normalized::find(key))
}

/// Functions that depend on their arguments alone.
pub(super) fn plain(key: &str) -> Option<Plain> {
    parts::plain(key)
        .or_else(|| positions::plain(key))
        .or_else(|| trim::plain(key))
        .or_else(|| codes::plain(key))
        .or_else(|| fit::plain(key))
}

fn kernel(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    require_known(call, arguments)?;
    let found = run(plain, call, arguments)?;
    require_characters(call, std::slice::from_ref(&found))?;
    Ok(found)
}

/// Refuses texts in which characters or places are otherwise than is computed here.
fn require_known(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<()> {
    require_deterministic(call)?;
    require_characters(call, arguments)
}

/// Where a database has no encoding, each byte is a character; only texts of ASCII are the same then.
fn require_characters(call: &KernelCall, texts: &[ArrayRef]) -> Outcome<()> {
    if !has_no_encoding(call) {
        return Ok(());
    }
    let columns = texts.iter().filter_map(|array| array.as_any().downcast_ref::<StringArray>());
    match columns.flatten().flatten().all(str::is_ascii) {
        true => Ok(()),
        false => Err(StatementError::unsupported("a function of a text beyond ASCII in SQL_ASCII")),
    }
}

/// True in a database of `SQL_ASCII`.
pub(super) fn has_no_encoding(call: &KernelCall) -> bool {
    call.catalog.database().row().encoding == 0
}

/// A collation that holds different texts for equal finds other places in them.
fn require_deterministic(call: &KernelCall) -> Outcome<()> {
    for argument in call.arguments.iter() {
        let row = call.catalog.collation(argument.collation);
        if let Some(row) = row.filter(|row| !row.is_deterministic) {
            let what = format!("a search in the nondeterministic collation \"{}\"", row.name);
            return Err(StatementError::unsupported(what));
        }
    }
    Ok(())
}

/// The most bytes that a value has room for.
///
/// Source: `MaxAllocSize` in `src/include/utils/memutils.h`, PostgreSQL 18.
pub(super) const MOST_BYTES: usize = 0x3FFF_FFFF;
/// The length word of a value.
const LENGTH_WORD: usize = 4;

/// The error of a text that has no room.
#[cold]
fn too_large() -> StatementError {
    StatementError::new(crate::error::SqlState("54000"), "requested length too large")
}

/// The byte at which the character with this number begins, counted from 0; the length where there is none.
fn offset(text: &str, character: usize) -> usize {
    match text.is_ascii() {
        true => character.min(text.len()),
        false => text.char_indices().nth(character).map_or(text.len(), |(at, _)| at),
    }
}

/// The number of characters.
fn length(text: &str) -> i32 {
    // No value has 2^31 characters.
    text.chars().count() as i32
}
