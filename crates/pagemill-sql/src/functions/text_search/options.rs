//! Options as they are written for dictionaries and headlines: `language = 'english', stopwords = 'english'`.
//!
//! Invariant: a value without quotes that is an integer is written as one, `007` as `7`; any other stays as it is.
//!
//! Source: `deserialize_deflist`, `buildDefItem` in `src/backend/commands/tsearchcmds.c`, PostgreSQL 14 to 18.

use super::super::rows::Outcome;
use crate::error::{SqlState, StatementError};

/// Names and values in their order.
///
/// # Errors
/// When they are not written as options are.
pub(super) fn options_of(text: &str) -> Outcome<Vec<(String, String)>> {
    read(text).ok_or_else(|| {
        let message = format!("invalid parameter list format: \"{text}\"");
        StatementError::new(SqlState::SYNTAX_ERROR, message)
    })
}

fn read(text: &str) -> Option<Vec<(String, String)>> {
    let is_between = |c: char| c == ',' || is_space(c);
    let (mut rest, mut found) = (text.trim_start_matches(is_between), Vec::new());
    while !rest.is_empty() {
        let (name, behind) = name_of(rest)?;
        let (value, behind) = value_of(behind.trim_start_matches(is_space))?;
        found.push((name, value));
        rest = behind.trim_start_matches(is_between);
    }
    Some(found)
}

fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\u{b}'
}

/// A name, and what is behind its sign of equality.
fn name_of(text: &str) -> Option<(String, &str)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let (name, behind) = quoted_by('"', quoted)?;
        return Some((name, behind.trim_start_matches(is_space).strip_prefix('=')?));
    }
    // Its first character may be any.
    let first = text.chars().next()?.len_utf8();
    let end = text[first..].find(|c: char| c == '=' || is_space(c))?;
    let (name, behind) = text.split_at(first + end);
    Some((name.to_owned(), behind.trim_start_matches(is_space).strip_prefix('=')?))
}

/// A value, in quotes or not, and what is behind it.
fn value_of(text: &str) -> Option<(String, &str)> {
    if let Some(quoted) = text.strip_prefix('\'').or_else(|| text.strip_prefix("E'")) {
        return quoted_by('\'', quoted);
    }
    if let Some(quoted) = text.strip_prefix('"') {
        return quoted_by('"', quoted);
    }
    // Its first character may be any.
    let first = text.chars().next()?.len_utf8();
    let end = text[first..].find(|c: char| c == ',' || is_space(c));
    let (value, behind) = text.split_at(end.map_or(text.len(), |end| first + end));
    let number = value.parse::<i32>().map(|number| number.to_string());
    Some((number.unwrap_or_else(|_| value.to_owned()), behind)) // default: it is no integer
}

/// What is before a quote, of which two stand for one, and what is behind it. Between single quotes two backslashes stand for one,
/// too.
fn quoted_by(quote: char, text: &str) -> Option<(String, &str)> {
    let mut found = String::new();
    let mut places = text.char_indices().peekable();
    while let Some((place, c)) = places.next() {
        let is_doubled = places.peek().is_some_and(|(_, next)| *next == c);
        if c == quote && !is_doubled {
            return Some((found, &text[place + c.len_utf8()..]));
        }
        if is_doubled && (c == quote || (c == '\\' && quote == '\'')) {
            places.next();
        }
        found.push(c);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_they_are_written() {
        let one = |text: &str| match read(text) {
            Some(found) => {
                let shown = found.iter().map(|(name, value)| format!("{name}={value}"));
                shown.collect::<Vec<_>>().join(";")
            }
            None => "none".to_owned(),
        };
        assert_eq!(
            one(" , A = 007,b='x''y\\\\z\\' \"c \"\"\" = \"\\\\\"\"\""),
            "A=7;b=x'y\\z\\;c \"=\\\\\""
        );
        assert_eq!(one("a=E'x',=b==c"), "a=x;=b==c");
        assert_eq!(one("a=,, b=TRUE"), "a=,;b=TRUE");
        for wrong in
            ["a", "a b=1", "a=", "a= ", "a='x", "\"a=1", "StartSel='[ ', StopSel=\"\" ]\"\""]
        {
            assert_eq!(one(wrong), "none", "{wrong}");
        }
    }
}
