//! What may be a label: letters, digits and underscores of the database's locale, since version 16 hyphens too; and what else of texts
//! depends on the server's version.
//!
//! Where no locale is at hand ([`UnicodeLetters`]), letters and digits are those that Unicode has, without the numbers that are no
//! decimal digits, as superscripts and fractions; so glibc sees them in every locale of UTF-8 but `C`.
//!
//! Queries keep a checksum beside each label, for GiST indexes. Before version 18 it is of the label with each byte's capital made small,
//! in a database of one byte per character that of the locale, which is not done here.
//!
//! Invariant: characters of ASCII are told without asking a locale.
//!
//! Sources: `ISALNUM` (14, 15), `ISLABEL` and `LTREE_LABEL_MAX_CHARS` in `contrib/ltree/ltree.h`, `contrib/ltree/crc32.c`,
//! `src/backend/tsearch/ts_locale.c`, PostgreSQL 14 to 18.

use crate::extension::call::{CallError, Letters};

/// The usual CRC-32.
const POLYNOMIAL: u32 = 0xEDB8_8320;
/// The most labels of a path, items of a query, and repetitions.
pub(super) const MAX_LEVELS: u16 = u16::MAX;

/// What the server's version says of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabelRules {
    /// True where a hyphen is part of a label.
    pub has_hyphens: bool,
    /// The most characters of a label.
    pub max_characters: usize,
    /// True where spaces of several bytes are spaces.
    pub has_wide_spaces: bool,
    /// True where characters of several bytes are passed over that stand where an operator of an `ltxtquery` is expected; else they are
    /// an error.
    pub passes_wide: bool,
    /// True where checksums are of labels in the locale's small letters, not only in those of ASCII.
    pub folds_checksums: bool,
}

impl LabelRules {
    /// Those of versions 14 and 15.
    pub const BEFORE_16: Self = Self {
        has_hyphens: false,
        max_characters: 255,
        has_wide_spaces: true,
        passes_wide: true,
        folds_checksums: false,
    };
    /// Those of versions 16 and 17.
    pub const BEFORE_18: Self =
        Self { has_hyphens: true, max_characters: 1000, passes_wide: false, ..Self::BEFORE_16 };
    /// Those of version 18.
    pub const SINCE_18: Self =
        Self { has_wide_spaces: false, folds_checksums: true, ..Self::BEFORE_18 };

    /// Those of a major version.
    pub const fn of_major(major: u32) -> Self {
        match major {
            ..16 => Self::BEFORE_16,
            16 | 17 => Self::BEFORE_18,
            _ => Self::SINCE_18,
        }
    }
}

/// What is a label in a database.
#[derive(Clone, Copy)]
pub struct Labels<'a> {
    /// The database's locale.
    pub letters: &'a dyn Letters,
    /// The server's version.
    pub rules: LabelRules,
}

impl Labels<'_> {
    /// True for a character that labels may have.
    pub(super) fn allow(&self, one: char) -> bool {
        match one {
            '_' => true,
            '-' => self.rules.has_hyphens,
            _ if one.is_ascii() => one.is_ascii_alphanumeric(),
            _ => self.letters.is_alphanumeric(one),
        }
    }

    /// A label's checksum.
    pub(super) fn checksum(&self, label: &[u8]) -> u32 {
        if self.rules.folds_checksums {
            checksum(&folded(self.letters, label))
        } else {
            checksum(label)
        }
    }

    /// Checks a label's length, which ends at this character.
    pub(super) fn check_length(&self, characters: usize, position: usize) -> Result<(), CallError> {
        let most = self.rules.max_characters;
        if characters <= most {
            return Ok(());
        }
        let detail = format!(
            "Label length is {characters}, must be at most {most}, at character {position}."
        );
        Err(with_detail("42622", "label string is too long", detail))
    }
}

/// The checksum of a label, with the capitals of ASCII made small.
fn checksum(label: &[u8]) -> u32 {
    let bit = |sum: u32| if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 };
    let byte = |sum: u32, byte: &u8| {
        (0..8).fold(sum ^ u32::from(byte.to_ascii_lowercase()), |sum, _| bit(sum))
    };
    !label.iter().fold(u32::MAX, byte)
}

/// A label in small letters; what is no text stays, but for ASCII.
pub(super) fn folded(letters: &dyn Letters, label: &[u8]) -> Vec<u8> {
    match str::from_utf8(label) {
        Ok(text) => letters.lower(text).into_bytes(),
        Err(_) => label.to_ascii_lowercase(),
    }
}

/// An error with a detail.
#[cold]
pub(super) fn with_detail(
    state: &'static str,
    message: impl Into<String>,
    detail: impl Into<String>,
) -> CallError {
    CallError { detail: Some(detail.into()), ..CallError::new(state, message) }
}

/// Letters where no locale is known: Unicode's.
pub struct UnicodeLetters;

/// Numbers that are no decimal digits, those likely to be met.
const OTHER_NUMBERS: [(char, char); 16] = [
    ('\u{B2}', '\u{B3}'),
    ('\u{B9}', '\u{B9}'),
    ('\u{BC}', '\u{BE}'),
    ('\u{9F4}', '\u{9F9}'),
    ('\u{1369}', '\u{137C}'),
    ('\u{2070}', '\u{2070}'),
    ('\u{2074}', '\u{2079}'),
    ('\u{2080}', '\u{2089}'),
    ('\u{2150}', '\u{215F}'),
    ('\u{2189}', '\u{2189}'),
    ('\u{2460}', '\u{249B}'),
    ('\u{24EA}', '\u{24FF}'),
    ('\u{2776}', '\u{2793}'),
    ('\u{3192}', '\u{3195}'),
    ('\u{3220}', '\u{325F}'),
    ('\u{3280}', '\u{32BF}'),
];

impl Letters for UnicodeLetters {
    /// Not asked: what differs by version stands beside it.
    fn major(&self) -> u32 {
        17
    }

    fn lower(&self, text: &str) -> String {
        text.to_lowercase()
    }

    fn is_alphanumeric(&self, one: char) -> bool {
        let is_other = || OTHER_NUMBERS.iter().any(|(from, to)| (*from..=*to).contains(&one));
        one.is_alphanumeric() && !is_other()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hyphens_are_of_version_16() {
        let before = Labels { letters: &UnicodeLetters, rules: LabelRules::BEFORE_16 };
        let since = Labels { letters: &UnicodeLetters, rules: LabelRules::BEFORE_18 };
        assert!(!before.allow('-') && since.allow('-'));
        for one in ['a', 'Z', '0', '_', 'é', '中', '٣'] {
            assert!(before.allow(one), "{one}");
        }
        for one in ['.', ' ', '²', '½', '①', '\u{FFFD}', '\u{A0}'] {
            assert!(!since.allow(one), "{one}");
        }
        assert!(before.check_length(255, 1).is_ok() && since.check_length(1000, 1).is_ok());
        let error = before.check_length(256, 257).unwrap_err();
        let detail = "Label length is 256, must be at most 255, at character 257.";
        assert_eq!((error.state, error.detail.as_deref()), ("42622", Some(detail)));
    }

    #[test]
    fn the_check_value_of_the_algorithm() {
        assert_eq!(checksum(b"123456789"), 0xCBF4_3926);
        assert_eq!(checksum(b"Top"), checksum(b"tOP"));
        assert_eq!(checksum(b""), 0);
    }
}
