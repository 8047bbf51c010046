//! The texts of a JSON document, one after the other: what of it goes into a vector.
//!
//! A `jsonb` comes here as it is printed, in which its parts have the order in which the server goes through them.
//!
//! Invariant: documents are well formed, as values of their types are; of others nothing is read past the end.
//!
//! Source: `iterate_jsonb_values`, `iterate_json_values`, `parse_jsonb_index_flags` in `src/backend/utils/adt/jsonfuncs.c`,
//! PostgreSQL 14 to 18.

use pagemill_types::json::write_json_string;

use super::super::logic::unescaped_string;
use super::super::rows::Outcome;
use crate::error::{SqlState, StatementError};

const POSSIBLE: &str =
    "Possible values are: \"string\", \"numeric\", \"boolean\", \"key\", and \"all\".";

/// What a part of a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Key,
    String,
    Number,
    Boolean,
    Null,
}

/// A part, as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part<'d> {
    pub(super) kind: Kind,
    pub(super) written: &'d str,
}

/// Which parts are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    keys: bool,
    strings: bool,
    numbers: bool,
    booleans: bool,
}

impl Wanted {
    pub(super) const STRINGS: Self =
        Self { strings: true, keys: false, numbers: false, booleans: false };

    /// Those that a `jsonb` names, printed.
    ///
    /// # Errors
    /// When it names something else.
    pub(super) fn read(printed: &str) -> Outcome<Self> {
        let invalid = |message: String| StatementError::new(SqlState::INVALID_PARAMETER, message);
        if printed.starts_with('{') {
            return Err(invalid("wrong flag type, only arrays and scalars are allowed".to_owned()));
        }
        let mut wanted = Self::default();
        let no_string = || invalid("flag array element is not a string".to_owned());
        let is_nested = printed.get(1..).is_some_and(|inner| inner.starts_with(['[', '{']));
        for part in parts(printed) {
            if part.kind != Kind::String {
                return Err(no_string().with_hint(POSSIBLE));
            }
            let name = unescaped_string(part.written)?;
            match name.to_ascii_lowercase().as_str() {
                "all" => {
                    wanted = Self { keys: true, strings: true, numbers: true, booleans: true };
                }
                "key" => wanted.keys = true,
                "string" => wanted.strings = true,
                "numeric" => wanted.numbers = true,
                "boolean" => wanted.booleans = true,
                _ => {
                    let message = format!("wrong flag in flag array: \"{name}\"");
                    return Err(invalid(message).with_hint(POSSIBLE));
                }
            }
            if is_nested {
                break;
            }
        }
        match is_nested || printed.contains(", [") || printed.contains(", {") {
            // The server tells of what is nested in other words than of what is no string.
            true => Err(StatementError::unsupported("flags within flags")),
            false => Ok(wanted),
        }
    }

    fn has(self, kind: Kind) -> bool {
        match kind {
            Kind::Key => self.keys,
            Kind::String => self.strings,
            Kind::Number => self.numbers,
            Kind::Boolean => self.booleans,
            Kind::Null => false,
        }
    }
}

/// The texts of the parts that are wanted.
///
/// # Errors
/// When a string has a character that no text has.
pub(super) fn texts(document: &str, wanted: Wanted) -> Outcome<Vec<String>> {
    let mut found = Vec::new();
    for part in parts(document) {
        let is_quoted = matches!(part.kind, Kind::Key | Kind::String);
        let text = match is_quoted {
            // Also of those that are not wanted, as the server reads all of them.
            true => unescaped_string(part.written)?,
            false => part.written.to_owned(),
        };
        if wanted.has(part.kind) {
            found.push(text);
        }
    }
    Ok(found)
}

/// The document with other strings, without spaces. Keys stay as they are.
///
/// # Errors
/// When a string has a character that no text has, or `of` fails.
pub(super) fn with_strings(
    document: &str,
    mut of: impl FnMut(&str) -> Outcome<String>,
) -> Outcome<String> {
    let (mut out, mut rest) = (Vec::with_capacity(document.len()), document);
    for part in parts(document) {
        let (signs, behind) = rest.split_at(rest.find(|c| !is_sign(c)).unwrap_or(rest.len()));
        push_signs(signs, &mut out);
        rest = behind.get(part.written.len()..).unwrap_or_default();
        match part.kind {
            Kind::Key => write_json_string(unescaped_string(part.written)?.as_bytes(), &mut out),
            Kind::String => {
                let text = of(&unescaped_string(part.written)?)?;
                write_json_string(text.as_bytes(), &mut out);
            }
            _ => out.extend_from_slice(part.written.as_bytes()),
        }
    }
    push_signs(rest, &mut out);
    // infallible: made of texts
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn push_signs(signs: &str, out: &mut Vec<u8>) {
    out.extend(signs.bytes().filter(|byte| !byte.is_ascii_whitespace()));
}

/// All parts of a document but for the signs between them.
pub(super) fn parts(document: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = document;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(is_sign);
        let first = rest.bytes().next()?;
        let end = match first {
            b'"' => end_of_string(rest),
            _ => rest.find(is_sign).unwrap_or(rest.len()),
        };
        let (written, behind) = rest.split_at(end);
        rest = behind;
        let is_key = || behind.trim_start().starts_with(':');
        let kind = match first {
            b'"' if is_key() => Kind::Key,
            b'"' => Kind::String,
            b't' | b'f' => Kind::Boolean,
            b'n' => Kind::Null,
            _ => Kind::Number,
        };
        Some(Part { kind, written })
    })
}

/// What stands between parts.
fn is_sign(c: char) -> bool {
    c.is_ascii_whitespace() || matches!(c, ',' | ':' | '[' | ']' | '{' | '}')
}

/// The length of the string with its quotes.
fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
