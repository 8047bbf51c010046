//! Words that are left out of texts: the lists that a server is installed with.
//!
//! They are not among a cluster's files; those that are here are the same, byte by byte, in PostgreSQL 14 to 18. They come from
//! the Snowball project (its license is in `snowball/COPYING`). Whether an administrator changed them is not known here.
//!
//! Source: `src/backend/snowball/stopwords`, `readstoplist` in `src/backend/tsearch/ts_utils.c`, PostgreSQL 14 to 18.

use std::collections::HashSet;

/// A list.
#[derive(Debug, Default)]
pub(crate) struct StopWords(HashSet<&'static str>);

macro_rules! lists {
    ($wanted:expr, $($language:literal)*) => {
        match $wanted {
            $($language => Some(include_str!(concat!("stop_words/", $language, ".stop"))),)*
            _ => None,
        }
    };
}

impl StopWords {
    /// The list of this name. None where the server's own file is not known here.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let list: &'static str = lists!(name,
            "danish" "dutch" "english" "finnish" "french" "german" "hungarian" "italian" "nepali"
            "norwegian" "portuguese" "russian" "spanish" "swedish" "turkish")?;
        Some(Self(list.lines().filter_map(|line| line.split_whitespace().next()).collect()))
    }

    /// True for a word in small letters that is left out.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.0.contains(word)
    }

    /// True if each of them is the same in all encodings.
    pub(crate) fn are_ascii(&self) -> bool {
        self.0.iter().all(|word| word.is_ascii())
    }
}
