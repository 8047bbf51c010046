//! `like_regex`: which options its flags stand for, and who does the matching.
//!
//! By default a dot and the complement of a set leave out line breaks, which the flag `s` changes; with `m`, `^` and `$` are
//! at the ends of lines as well; with `q` the pattern is no pattern but the text itself, and only `i` counts beside it.
//!
//! Source: `jspConvertRegexFlags` in `src/backend/utils/adt/jsonpath_gram.y`, PostgreSQL 14 to 18.

use crate::error::{SqlState, StatementError};
use crate::functions::rows::Outcome;

const IGNORE_CASE: u32 = 0x01;
const DOT_ALL: u32 = 0x02;
const LINES: u32 = 0x04;
const EXPANDED: u32 = 0x08;
const QUOTED: u32 = 0x10;

/// How a pattern is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PatternFlags {
    /// `REG_ICASE`
    pub(crate) ignores_case: bool,
    /// `REG_NLSTOP`: `.` and `[^…]` take no line break.
    pub(crate) stops_at_lines: bool,
    /// `REG_NLANCH`: `^` and `$` match at line breaks.
    pub(crate) anchors_at_lines: bool,
    /// `REG_QUOTE`: it is no pattern.
    pub(crate) is_quoted: bool,
}

impl PatternFlags {
    /// # Errors
    /// When they have no meaning.
    pub(super) fn of(flags: u32) -> Outcome<Self> {
        let has = |flag: u32| flags & flag != 0;
        let is_quoted = has(QUOTED);
        if !is_quoted && has(EXPANDED) {
            let message = "XQuery \"x\" flag (expanded regular expressions) is not implemented";
            return Err(StatementError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        Ok(Self {
            ignores_case: has(IGNORE_CASE),
            stops_at_lines: !is_quoted && !has(DOT_ALL),
            anchors_at_lines: !is_quoted && has(LINES),
            is_quoted,
        })
    }
}

/// Matches texts with patterns, in the collation of the database. It keeps what it made of the patterns it has seen.
pub(crate) trait LikeRegex {
    /// Whether some part of the text matches.
    ///
    /// # Errors
    /// When the pattern is wrong, or its meaning is not known.
    fn is_match(&self, pattern: &str, flags: PatternFlags, text: &str) -> Outcome<bool>;
}

/// A text as a regular expression that matches nothing else.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(character);
    }
    out
}
