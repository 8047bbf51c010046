//! `LIKE`, with a backslash as its escape character, and `ESCAPE` brought to that.
//!
//! Source: `MatchText` and `do_like_escape` in `src/backend/utils/adt/like_match.c`, PostgreSQL 14 to 18.

use pagemill_types::expression::LikePattern;
use pagemill_types::input::Characters;

use super::super::rows::Outcome;
use crate::error::{SqlState, StatementError};

const INVALID_ESCAPE: SqlState = SqlState("22025");

/// The pattern made last, as most often one serves a whole column.
pub(super) struct LikeCache {
    characters: Characters,
    text: Vec<u8>,
    pattern: Option<LikePattern>,
}

impl LikeCache {
    pub(super) fn new(characters: Characters) -> Self {
        Self { characters, text: Vec::new(), pattern: None }
    }

    /// True when the whole text matches the pattern.
    pub(super) fn matches(&mut self, text: &[u8], pattern: &[u8]) -> Outcome<bool> {
        if ends_in_escape(pattern) {
            return reaches_end(text, pattern, self.characters).map(|_| false);
        }
        if self.pattern.is_none() || self.text != pattern {
            self.pattern = LikePattern::new(pattern, self.characters);
            assert!(self.pattern.is_some(), "only an open escape makes no pattern");
            self.text = pattern.to_vec();
        }
        Ok(self.pattern.as_ref().is_some_and(|made| made.matches(text)))
    }
}

/// True where a backslash at the end escapes nothing.
fn ends_in_escape(pattern: &[u8]) -> bool {
    pattern.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Walks a text along a pattern that ends in an open escape, which is an error once the text gets there; it matches nothing.
/// True where the text ended first, so that no later beginning need be tried.
fn reaches_end(mut text: &[u8], mut pattern: &[u8], characters: Characters) -> Outcome<bool> {
    while let [wanted, behind @ ..] = pattern {
        match wanted {
            _ if text.is_empty() => return Ok(true),
            b'%' => return from_any_place(text, behind, characters),
            b'_' => text = after_character(text, characters),
            b'\\' if behind.is_empty() => return Err(open_escape()),
            _ => {
                let is_escape = *wanted == b'\\';
                let wanted = if is_escape { behind[0] } else { *wanted };
                if wanted != text[0] {
                    return Ok(false);
                }
                pattern = &pattern[usize::from(is_escape)..];
                text = &text[1..];
            }
        }
        pattern = &pattern[1..];
    }
    unreachable!("the pattern ends in an escape")
}

/// Behind `%`.
fn from_any_place(mut text: &[u8], mut pattern: &[u8], characters: Characters) -> Outcome<bool> {
    while let [wild @ (b'%' | b'_'), behind @ ..] = pattern {
        if *wild == b'_' {
            if text.is_empty() {
                return Ok(true);
            }
            text = after_character(text, characters);
        }
        pattern = behind;
    }
    if pattern.len() == 1 {
        return Err(open_escape());
    }
    let first = if pattern[0] == b'\\' { pattern[1] } else { pattern[0] };
    while !text.is_empty() {
        if text[0] == first && reaches_end(text, pattern, characters)? {
            return Ok(true);
        }
        text = after_character(text, characters);
    }
    Ok(true)
}

fn after_character(text: &[u8], characters: Characters) -> &[u8] {
    &text[characters.width(text[0]).min(text.len())..]
}

#[cold]
fn open_escape() -> StatementError {
    StatementError::new(INVALID_ESCAPE, "LIKE pattern must not end with escape character")
}

/// The pattern with a backslash where it had another escape character.
pub(super) fn with_backslash(pattern: &str, escape: &str) -> Outcome<String> {
    let mut characters = escape.chars();
    let escape = characters.next();
    if characters.next().is_some() {
        return Err(StatementError::new(INVALID_ESCAPE, "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    if escape == Some('\\') {
        return Ok(pattern.to_owned());
    }
    let mut made = String::with_capacity(pattern.len() * 2);
    let mut is_escaped = false;
    for character in pattern.chars() {
        if escape == Some(character) && !is_escaped {
            made.push('\\');
            is_escaped = true;
            continue;
        }
        if character == '\\' && !is_escaped {
            made.push('\\');
        }
        made.push(character);
        is_escaped = false;
    }
    Ok(made)
}
