//! Patterns of `SUBSTRING(text SIMILAR pattern ESCAPE letter)`: three parts, of which the one in the middle is wanted.
//!
//! The first takes as little as leaves the others a match, then the second as much.
//!
//! Source: `similar_escape_internal` in `src/backend/utils/adt/regexp.c`, PostgreSQL 14 to 18, which writes them as
//! `^(?:first){1,1}?(second){1,1}(?:third)$`.

use std::ops::Range;

use super::super::super::rows::Outcome;
use super::alphabet::Alphabet;
use super::search::Pattern;
use crate::error::StatementError;

/// Each place is tried as the end of each part.
const MOST_BYTES: usize = 2000;

/// Between the parts.
pub(super) const SEPARATORS: [&str; 2] = ["){1,1}?(", "){1,1}(?:"];

/// The parts, each for a whole text.
pub(super) struct Separated<'c> {
    first: Pattern<'c>,
    second: Pattern<'c>,
    third: Pattern<'c>,
}

impl<'c> Separated<'c> {
    /// Reads a pattern; `None` for one of another form.
    pub(super) fn read(pattern: &str, alphabet: Alphabet<'c>) -> Outcome<Option<Self>> {
        let parts = pattern.strip_prefix("^(?:").and_then(|rest| {
            let (first, rest) = rest.strip_suffix(")$")?.split_once(SEPARATORS[0])?;
            let (second, third) = rest.split_once(SEPARATORS[1])?;
            Some([first, second, third])
        });
        let Some(parts) = parts else { return Ok(None) };
        let whole = |part: &str| Pattern::new(&format!("^(?:{part})$"), alphabet);
        let [first, second, third] = parts;
        let found = Self { first: whole(first)?, second: whole(second)?, third: whole(third)? };
        let groups = [&found.first, &found.second, &found.third].map(|part| part.groups());
        match groups == [0; 3] {
            true => Ok(Some(found)),
            false => {
                Err(StatementError::unsupported(format!("the regular expression \"{pattern}\"")))
            }
        }
    }

    /// What the second part takes.
    pub(super) fn find(&mut self, text: &str) -> Outcome<Option<Range<usize>>> {
        if text.len() > MOST_BYTES {
            return Err(StatementError::unsupported("SUBSTRING … SIMILAR of so long a text"));
        }
        let places: Vec<usize> =
            text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        for (number, start) in places.iter().enumerate() {
            if !self.first.is_match(&text[..*start])? {
                continue;
            }
            for end in places[number..].iter().rev() {
                if self.third.is_match(&text[*end..])?
                    && self.second.is_match(&text[*start..*end])?
                {
                    return Ok(Some(*start..*end));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'t>(pattern: &str, text: &'t str) -> Option<&'t str> {
        let mut read = Separated::read(pattern, Alphabet::ascii()).unwrap().unwrap();
        read.find(text).unwrap().map(|place| &text[place])
    }

    #[test]
    fn the_first_part_takes_little_and_the_second_much() {
        let interval = "^(?:interval[()0-9]* ){1,1}?(.*){1,1}(?:)$";
        assert_eq!(found(interval, "interval day to second(3)"), Some("day to second(3)"));
        assert_eq!(found(interval, "interval"), None);
        assert_eq!(found("^(?:.*){1,1}?(b.*){1,1}(?:c.*)$", "abcbcd"), Some("bcb"));
        assert_eq!(found("^(?:a*){1,1}?(a*){1,1}(?:)$", "aaa"), Some("aaa"));
    }

    #[test]
    fn other_patterns_are_none() {
        assert!(Separated::read("^(?:a)$", Alphabet::ascii()).unwrap().is_none());
    }
}
