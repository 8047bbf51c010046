//! `parse_ident`: the parts of a name as a statement has it.
//!
//! Source: `parse_ident` in `src/backend/utils/adt/misc.c`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef, AsArray as _};

use super::super::arrays::value::{ArrayParts, ElementType};
use super::super::keys::strings;
use super::super::rows::{Made, Outcome};
use super::super::{Implementation, KernelCall};
use crate::error::{SqlState, StatementError};

pub(super) fn find(key: &str) -> Option<Implementation> {
    (key == "parse_ident").then_some(Implementation::Kernel(parse))
}

fn parse(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let elements = ElementType::of_array(&call.catalog, call.result)?;
    let (texts, strict) = (strings(&arguments[0]), arguments[1].as_boolean());
    let one = |row: usize| -> Outcome<Option<Vec<u8>>> {
        if texts.is_null(row) || strict.is_null(row) {
            return Ok(None);
        }
        let text = texts.value(row);
        let parts = parts(text, strict.value(row)).ok_or_else(|| invalid(text))?;
        let parts = parts.into_iter().map(|part| Some(part.into_bytes())).collect();
        ArrayParts::of(parts).payload(&elements).map(Some)
    };
    Made::column((0..texts.len()).map(one).collect::<Outcome<Vec<Option<Vec<u8>>>>>()?)
}

/// The parts between the dots; `None` for no name, as also where something follows the last part and it is read strictly.
fn parts(text: &str, strict: bool) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = without_spaces(text);
    loop {
        let (part, behind) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_part(quoted)?,
            None => plain_part(rest)?,
        };
        parts.push(part);
        rest = without_spaces(behind);
        match rest.strip_prefix('.') {
            Some(behind) => rest = without_spaces(behind),
            None if rest.is_empty() || !strict => return Some(parts),
            None => return None,
        }
    }
}

/// What scanners of the server take for space.
fn without_spaces(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r', '\x0c', '\x0b'])
}

/// A part in quotes, of which the first is gone, and what is behind the last; `None` where there is none, or nothing in them.
fn quoted_part(text: &str) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut rest = text;
    loop {
        let (before, behind) = rest.split_once('"')?;
        part.push_str(before);
        match behind.strip_prefix('"') {
            Some(behind) => {
                part.push('"');
                rest = behind;
            }
            None => return (!part.is_empty()).then_some((part, behind)),
        }
    }
}

/// A part without quotes, folded, and what is behind it.
fn plain_part(text: &str) -> Option<(String, &str)> {
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    text.chars().next().filter(|c| begins(*c))?;
    let goes_on = |c: char| begins(c) || c.is_ascii_digit() || c == '$';
    let end = text.find(|c| !goes_on(c)).unwrap_or(text.len());
    Some((text[..end].to_ascii_lowercase(), &text[end..]))
}

#[cold]
fn invalid(text: &str) -> StatementError {
    let message = format!("string is not a valid identifier: \"{text}\"");
    StatementError::new(SqlState("22023"), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_parts_that_the_server_finds() {
        let found = |text, strict| parts(text, strict).map(|parts| parts.join("|"));
        assert_eq!(found(" Shop . \"Order \"\"s\"\"\" ", true).unwrap(), "shop|Order \"s\"");
        assert_eq!(found("a.b.c$1", true).unwrap(), "a|b|c$1");
        assert_eq!(found("Ünder_9", true).unwrap(), "Ünder_9");
        assert_eq!(found("foo()", false).unwrap(), "foo");
        for text in ["", ".a", "a.", "a..b", "1a", "\"\"", "\"a", "foo()", "a b"] {
            assert_eq!(found(text, true), None, "{text}");
        }
    }
}
