//! JSON texts: where their members are.
//!
//! Texts are those of the type, so they are well formed.
//!
//! Source: `src/common/jsonapi.c`, RFC 8259.

use crate::error::{SqlState, StatementError};

use super::super::rows::Outcome;

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    Array,
    String,
    Number,
    Boolean,
    Null,
}

impl Kind {
    pub(super) fn of(text: &str) -> Self {
        match trimmed(text).bytes().next() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::String,
            Some(b't' | b'f') => Self::Boolean,
            Some(b'n') => Self::Null,
            _ => Self::Number,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Null => "null",
        }
    }
}

pub(super) fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

pub(super) fn trimmed(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// The value that a text begins with, and what is behind it.
fn value(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches(is_space);
    let (mut depth, mut is_quoted, mut is_escaped) = (0usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        if is_quoted {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => is_quoted = false,
                _ => {}
            }
            if !is_quoted && depth == 0 {
                return text.split_at(at + 1);
            }
            continue;
        }
        match byte {
            b'"' => is_quoted = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return text.split_at(at + depth),
            b'}' | b']' => depth -= 1,
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return text.split_at(at),
            _ => {}
        }
    }
    (text, "")
}

/// What is between the brackets of a container.
fn inside(text: &str) -> &str {
    let text = trimmed(text);
    text.get(1..text.len().saturating_sub(1)).unwrap_or_default()
}

fn behind(text: &str, mark: char) -> &str {
    let text = text.trim_start_matches(is_space);
    text.strip_prefix(mark).unwrap_or(text)
}

/// The elements of an array.
pub(super) fn elements(text: &str) -> Vec<&str> {
    let (mut rest, mut found) = (inside(text), Vec::new());
    while !trimmed(rest).is_empty() {
        let (element, more) = value(rest);
        found.push(element);
        rest = behind(more, ',');
    }
    found
}

/// The names of an object's members, without escapes, and their values.
pub(super) fn members(text: &str) -> Outcome<Vec<(String, &str)>> {
    let (mut rest, mut found) = (inside(text), Vec::new());
    while !trimmed(rest).is_empty() {
        let (name, more) = value(rest);
        let (member, more) = value(behind(more, ':'));
        found.push((unescaped(name)?, member));
        rest = behind(more, ',');
    }
    Ok(found)
}

/// The value of a member: the last of that name.
pub(super) fn member<'t>(text: &'t str, name: &str) -> Outcome<Option<&'t str>> {
    let found = members(text)?;
    Ok(found.into_iter().rev().find(|(other, _)| other == name).map(|(_, value)| value))
}

/// An element counted from 0, or from the end.
pub(super) fn element(text: &str, number: i32) -> Option<&str> {
    let found = elements(text);
    let place = match usize::try_from(number) {
        Ok(place) => Some(place),
        Err(_) => found.len().checked_sub(number.unsigned_abs() as usize),
    };
    place.and_then(|place| found.get(place).copied())
}

/// A value as a text: a string without quotes and escapes, and nothing for `null`.
pub(super) fn as_text(value: &str) -> Outcome<Option<String>> {
    match Kind::of(value) {
        Kind::Null => Ok(None),
        Kind::String => unescaped(value).map(Some),
        _ => Ok(Some(value.to_owned())),
    }
}

/// What a string in quotes says.
pub(in super::super) fn unescaped(quoted: &str) -> Outcome<String> {
    let mut rest = inside(quoted).chars();
    let mut text = String::with_capacity(quoted.len());
    while let Some(character) = rest.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        text.push(match rest.next() {
            Some('b') => '\u{8}',
            Some('f') => '\u{C}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => unicode(&mut rest)?,
            Some(other) => other,
            None => break,
        });
    }
    Ok(text)
}

fn unicode(rest: &mut std::str::Chars<'_>) -> Outcome<char> {
    let high = unit(rest).ok_or_else(half_of_pair)?;
    let code = match high {
        0 => return Err(unsupported_escape()),
        0xD800..=0xDBFF => {
            let is_pair = rest.next() == Some('\\') && rest.next() == Some('u');
            let low = unit(rest).filter(|low| is_pair && (0xDC00..=0xDFFF).contains(low));
            0x1_0000 + ((high - 0xD800) << 10) + (low.ok_or_else(half_of_pair)? - 0xDC00)
        }
        other => other,
    };
    char::from_u32(code).ok_or_else(half_of_pair)
}

fn unit(rest: &mut std::str::Chars<'_>) -> Option<u32> {
    let mut code = 0;
    for _ in 0..4 {
        code = code * 16 + rest.next()?.to_digit(16)?;
    }
    Some(code)
}

#[cold]
fn unsupported_escape() -> StatementError {
    StatementError::new(SqlState("22P05"), "unsupported Unicode escape sequence")
}

#[cold]
fn half_of_pair() -> StatementError {
    StatementError::new(SqlState::INVALID_TEXT, "invalid input syntax for type json")
}

/// The server reads all strings of a text, and stops at what no text can hold.
pub(super) fn require_characters(text: &str) -> Outcome<()> {
    // Backslashes stand in strings only.
    let mut rest = text.chars();
    while rest.any(|character| character == '\\') {
        if rest.next() == Some('u') {
            unicode(&mut rest)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_as_they_were_written() {
        let text = r#" {"a" : {"b":[1, "x]"] } ,"a" : 2.50 , "\u0061b":"q\"\u20ac\ud83d\ude00", "n":null}"#;
        assert_eq!(member(text, "a").unwrap(), Some("2.50"));
        assert_eq!(as_text(member(text, "ab").unwrap().unwrap()).unwrap().unwrap(), "q\"€😀");
        assert_eq!(as_text(member(text, "n").unwrap().unwrap()).unwrap(), None);
        assert_eq!(member(text, "b").unwrap(), None);
        assert_eq!(member(r#"{"a":{"b" : [1 ,2]}}"#, "a").unwrap(), Some(r#"{"b" : [1 ,2]}"#));
    }

    #[test]
    fn elements_count_from_both_ends() {
        let text = r#"[1, [2,3] , {"a":"]"} ,null]"#;
        assert_eq!(elements(text), ["1", "[2,3]", r#"{"a":"]"}"#, "null"]);
        assert_eq!(element(text, -4), Some("1"));
        assert_eq!(element(text, -5), None);
        assert_eq!(element(text, i32::MIN), None);
        assert!(elements(" [ ] ").is_empty());
    }

    #[test]
    fn halves_of_pairs_and_zeros_are_errors() {
        assert!(require_characters(r#"["\\u0000", "\ud83d\ude00"]"#).is_ok());
        assert!(require_characters(r#"["\u0000"]"#).is_err());
        for half in [r#"["\ud83d"]"#, r#"["\ud83d\ud83d"]"#, r#"["\udc00"]"#] {
            assert_eq!(require_characters(half).unwrap_err().state, SqlState::INVALID_TEXT);
        }
    }
}
