//! `jsonpath` from its text.
//!
//! The text is parsed by the precedence of its operators, and the items are written one behind
//! another (see [`crate::jsonpath`] for the layout). What is an expression and what a
//! predicate is kept apart as in the server's grammar, so that each may stand only where it may there.
//!
//! One thing differs: nesting is limited to [`MAX_NESTING`], where the server's limit is its stack, some thousands of
//! levels. The pattern of `like_regex` is checked as the server does it, and refused where only a server can judge it.
//!
//! Source: `src/backend/utils/adt/jsonpath_gram.y`, `flattenJsonPathParseItem` in `jsonpath.c`,
//! PostgreSQL 14 to 18.

mod accessors;
mod item;
mod keyword;
mod lexer;
mod number;
mod parser;
mod pattern;
mod pattern_lexer;
mod pattern_size;
mod writer;

use super::InputError;
use super::tree::InputContext;

/// Deepest nesting of brackets, signs and filters.
pub const MAX_NESTING: usize = 300;

const VERSION: u32 = 1;
const LAX: u32 = 0x8000_0000;

/// Appends the payload of a `jsonpath`.
///
/// # Errors
/// When the text is none.
pub fn read_jsonpath(
    text: &[u8],
    context: &InputContext,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let path = parser::parse(text, context)?;
    let path = path.ok_or_else(|| InputError::syntax("jsonpath", text))?;
    let start = out.len();
    out.extend_from_slice(&(VERSION | if path.lax { LAX } else { 0 }).to_le_bytes());
    writer::write(&path.items, start, out)
}
