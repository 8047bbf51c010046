//! What is asked of a headline.
//!
//! Source: `prsd_headline` in `src/backend/tsearch/wparser_def.c`, PostgreSQL 14 to 18.

use super::super::super::rows::Outcome;
use crate::error::{SqlState, StatementError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Options {
    pub(super) least_words: i32,
    pub(super) most_words: i32,
    /// Words up to this length are no good ends.
    pub(super) longest_short: i32,
    pub(super) most_fragments: i32,
    pub(super) is_all: bool,
    pub(super) start: String,
    pub(super) stop: String,
    /// What separates fragments.
    pub(super) between: String,
    /// The server's version.
    pub(super) major: u32,
}

impl Options {
    /// Those that are written, and the rest as it is by itself.
    ///
    /// # Errors
    /// When they are none.
    pub(in super::super) fn new(written: &[(String, String)], major: u32) -> Outcome<Self> {
        let mut options = Self {
            least_words: 15,
            most_words: 35,
            longest_short: 3,
            most_fragments: 0,
            is_all: false,
            start: "<b>".to_owned(),
            stop: "</b>".to_owned(),
            between: " ... ".to_owned(),
            major,
        };
        for (name, value) in written {
            options.set(name, value.clone())?;
        }
        match options.is_all {
            true => Ok(options),
            false => options.checked(),
        }
    }

    fn set(&mut self, name: &str, value: String) -> Outcome<()> {
        // Only some minor versions have an error for it.
        if value.len() > LONGEST_VALUE {
            return Err(StatementError::unsupported(format!("so long a value of \"{name}\"")));
        }
        match name.to_ascii_lowercase().as_str() {
            "maxwords" => self.most_words = number(&value)?,
            "minwords" => self.least_words = number(&value)?,
            "shortword" => self.longest_short = number(&value)?,
            "maxfragments" => self.most_fragments = number(&value)?,
            "startsel" => self.start = value,
            "stopsel" => self.stop = value,
            "fragmentdelimiter" => self.between = value,
            "highlightall" => {
                let value = value.to_ascii_lowercase();
                self.is_all = matches!(value.as_str(), "1" | "on" | "true" | "t" | "y" | "yes");
            }
            _ => {
                let message = format!("unrecognized headline parameter: \"{name}\"");
                return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
            }
        }
        Ok(())
    }

    fn checked(self) -> Outcome<Self> {
        let must = if self.major >= FIRST_THAT_SAYS_MUST { "must" } else { "should" };
        let wrong = match () {
            () if self.least_words >= self.most_words => {
                format!("MinWords {must} be less than MaxWords")
            }
            () if self.least_words <= 0 => format!("MinWords {must} be positive"),
            () if self.longest_short < 0 => format!("ShortWord {must} be >= 0"),
            () if self.most_fragments < 0 => format!("MaxFragments {must} be >= 0"),
            () => return Ok(self),
        };
        Err(StatementError::new(SqlState::INVALID_PARAMETER, wrong))
    }
}

/// Bytes of a value whose length a server keeps.
const LONGEST_VALUE: usize = i16::MAX as usize;

/// The version in whose words options must be something; to those before they should be.
const FIRST_THAT_SAYS_MUST: u32 = 17;

fn number(text: &str) -> Outcome<i32> {
    let is_none = |c: char| c.is_ascii_alphabetic();
    text.trim_ascii().parse().map_err(|_| match text.starts_with(is_none) {
        true => {
            let message = format!("invalid input syntax for type integer: \"{text}\"");
            StatementError::new(SqlState::INVALID_TEXT, message)
        }
        // Integers of other forms.
        false => StatementError::unsupported(format!("the number of words \"{text}\"")),
    })
}
