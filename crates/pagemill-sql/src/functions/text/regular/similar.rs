//! The pattern of `SIMILAR TO` as a regular expression.
//!
//! Source: `similar_escape_internal` in `src/backend/utils/adt/regexp.c`, PostgreSQL 14 to 18.

use super::super::super::rows::Outcome;
use super::separated::SEPARATORS;
use crate::error::{SqlState, StatementError};

/// The regular expression.
pub(super) fn to_regular(pattern: &str, escape: &str) -> Outcome<String> {
    let mut characters = escape.chars();
    let escape = characters.next();
    if characters.next().is_some() {
        return Err(StatementError::new(SqlState("22025"), "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    let refused = || StatementError::unsupported(format!("the SIMILAR TO pattern \"{pattern}\""));
    let mut separators = SEPARATORS.iter();
    let (mut made, mut is_escaped, mut bracket) = ("^(?:".to_owned(), false, Bracket::Outside);
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        // What they mean in a bracket differs between versions.
        let is_special = is_escaped || escape == Some(character) || matches!(character, '\\' | '"');
        if bracket != Bracket::Outside && is_special {
            return Err(refused());
        }
        if is_escaped && character == '"' {
            let message = "SQL regular expression may not contain more than two escape-double-quote separators";
            let many = || StatementError::new(SqlState("2200C"), message);
            made.push_str(separators.next().ok_or_else(many)?);
            is_escaped = false;
            continue;
        }
        if is_escaped {
            made.push('\\');
            made.push(character);
            is_escaped = false;
            continue;
        }
        if escape == Some(character) {
            is_escaped = true;
            continue;
        }
        if bracket != Bracket::Outside
            && character == '['
            && let Some(length) = class(rest.as_str())
        {
            let (name, behind) = rest.as_str().split_at(length);
            made.push('[');
            made.push_str(name);
            (rest, bracket) = (behind.chars(), Bracket::BehindClass);
            continue;
        }
        let is_unclear = match bracket {
            Bracket::Outside => false,
            Bracket::Start => matches!(character, '[' | ']'),
            Bracket::Inside => character == '[',
            // Up to 17 the bracket has ended there.
            Bracket::BehindClass => !matches!(character, ']' | ' ') && !character.is_alphanumeric(),
        };
        if is_unclear {
            return Err(refused());
        }
        bracket = bracket.behind(character);
        match character {
            _ if bracket != Bracket::Outside => made.push(character),
            '%' => made.push_str(".*"),
            '_' => made.push('.'),
            '(' => made.push_str("(?:"),
            '\\' | '.' | '^' | '$' => {
                made.push('\\');
                made.push(character);
            }
            other => made.push(other),
        }
    }
    if separators.len() == 1 {
        // One alone cuts the pattern in two, of which the second is not a group.
        return Err(refused());
    }
    made.push_str(")$");
    Ok(made)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Outside,
    /// Where a closing bracket stands for itself.
    Start,
    Inside,
    BehindClass,
}

/// The bytes of the rest of a class of characters, behind its first bracket: `:alpha:]`.
fn class(rest: &str) -> Option<usize> {
    let name = rest.strip_prefix(':')?;
    let letters = name.bytes().take_while(u8::is_ascii_lowercase).count();
    name[letters..].starts_with(":]").then_some(letters + 3)
}

impl Bracket {
    /// Where the next character stands.
    fn behind(self, character: char) -> Self {
        match (self, character) {
            (Self::Outside, '[') => Self::Start,
            (Self::Outside, _) => Self::Outside,
            (Self::Start, '^') => Self::Start,
            (Self::Start, _) => Self::Inside,
            (Self::Inside | Self::BehindClass, ']') => Self::Outside,
            (Self::Inside, _) => Self::Inside,
            (Self::BehindClass, _) => Self::BehindClass,
        }
    }
}
