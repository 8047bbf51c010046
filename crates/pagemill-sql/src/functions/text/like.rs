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
        if self.pattern.is_none() || self.text != pattern {
            // The server says so once it gets there; here it is said for every text.
            let made = LikePattern::new(pattern, self.characters).ok_or_else(|| {
                let message = "LIKE pattern must not end with escape character";
                StatementError::new(INVALID_ESCAPE, message)
            })?;
            self.pattern = Some(made);
            self.text = pattern.to_vec();
        }
        Ok(self.pattern.as_ref().is_some_and(|made| made.matches(text)))
    }
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
