//! Unicode's normal forms: `normalize` and `IS NORMALIZED`.
//!
//! A library has the forms of a newer Unicode than any server. The forms of a text whose characters a Unicode has do not change in later
//! ones; a character that a server's Unicode had not yet, and that counts, is refused in servers of versions before.
//!
//! Invariant: which characters those are was found by asking servers of every version for the forms of every character, and is so for the
//! library's version of Unicode that a test pins down.
//!
//! Source: `unicode_normalize_func` in `src/backend/utils/adt/varlena.c`, `src/common/unicode_norm.c`, PostgreSQL 14 to 18.

use pagemill_types::encoding::encoding_id;
use unicode_normalization::UnicodeNormalization as _;

use super::super::rows::{Outcome, two};
use super::super::{Implementation, KernelCall};
use crate::error::{SqlState, StatementError};

/// Characters that earlier servers do not know, in ranges, each with the version that is the first to agree with the library.
const UNKNOWN_BEFORE: &[(u32, u32, u32)] = &[
    (0x0558, 0x0558, 19),
    (0x058B, 0x058C, 19),
    (0x05C8, 0x05C9, 19),
    (0x0897, 0x0897, 18),
    (0x0898, 0x089F, 15),
    (0x08CA, 0x08D2, 15),
    (0x0C3C, 0x0C3C, 15),
    (0x1715, 0x1715, 15),
    (0x1AC1, 0x1ACE, 15),
    (0x1ACF, 0x1AF0, 19),
    (0x1DFA, 0x1DFA, 15),
    (0x209D, 0x209F, 19),
    (0xA7F1, 0xA7F1, 19),
    (0xA7F2, 0xA7F4, 15),
    (0x105C9, 0x105C9, 18),
    (0x105D2, 0x105D2, 18),
    (0x105DA, 0x105DA, 18),
    (0x105E4, 0x105E4, 18),
    (0x10781, 0x10785, 15),
    (0x10787, 0x107B0, 15),
    (0x107B2, 0x107BA, 15),
    (0x107BB, 0x107BF, 19),
    (0x10D69, 0x10D6D, 18),
    (0x10ECB, 0x10ECF, 19),
    (0x10EF0, 0x10EFB, 19),
    (0x10EFD, 0x10EFF, 16),
    (0x10F82, 0x10F85, 15),
    (0x11070, 0x11070, 15),
    (0x11382, 0x11385, 18),
    (0x1138B, 0x1138B, 18),
    (0x1138E, 0x1138E, 18),
    (0x11390, 0x11391, 18),
    (0x113B8, 0x113B8, 18),
    (0x113BB, 0x113BB, 18),
    (0x113C2, 0x113C2, 18),
    (0x113C5, 0x113C5, 18),
    (0x113C7, 0x113C9, 18),
    (0x113CE, 0x113D0, 18),
    (0x11F41, 0x11F42, 16),
    (0x1611E, 0x16129, 18),
    (0x1612F, 0x1612F, 18),
    (0x16D63, 0x16D63, 18),
    (0x16D67, 0x16D6A, 18),
    (0x1B123, 0x1B126, 19),
    (0x1CCD6, 0x1CCF9, 18),
    (0x1D127, 0x1D128, 19),
    (0x1D250, 0x1D252, 19),
    (0x1D25B, 0x1D25C, 19),
    (0x1D25F, 0x1D25F, 19),
    (0x1D280, 0x1D281, 19),
    (0x1D6A6, 0x1D6A6, 19),
    (0x1DF95, 0x1DF95, 19),
    (0x1DFCD, 0x1DFFF, 19),
    (0x1E030, 0x1E06D, 16),
    (0x1E08F, 0x1E08F, 16),
    (0x1E2AE, 0x1E2AE, 15),
    (0x1E4EC, 0x1E4EF, 16),
    (0x1E5EE, 0x1E5EF, 18),
    (0x1E6E3, 0x1E6E3, 19),
    (0x1E6E6, 0x1E6E6, 19),
    (0x1E6EE, 0x1E6EF, 19),
    (0x1E6F5, 0x1E6F5, 19),
];

/// What stands before the final consonants of Hangul, and is none.
///
/// Source: `recompose_code` in `src/common/unicode_norm.c`, PostgreSQL 18.4 and 18.6.
const FINAL_BASE: char = '\u{11A7}';

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "unicode_normalize_func" => |call, a| {
            let context = Context::of(call)?;
            two(a, |text: &str, form: &str| context.normalized(text, form))
        },
        "unicode_is_normalized" => |call, a| {
            let context = Context::of(call)?;
            two(a, |text: &str, form: &str| Ok(context.normalized(text, form)? == text))
        },
        _ => return None,
    }))
}

struct Context {
    major: u32,
}

impl Context {
    fn of(call: &KernelCall) -> Outcome<Self> {
        let database = call.catalog.database();
        if encoding_id("UTF8") != Some(database.row().encoding) {
            let message = "Unicode normalization can only be performed if server encoding is UTF8";
            return Err(StatementError::new(SqlState::SYNTAX_ERROR, message));
        }
        Ok(Self { major: database.cluster().version().major() })
    }

    fn normalized(&self, text: &str, form: &str) -> Outcome<String> {
        let made: fn(&str) -> String = match form.to_ascii_uppercase().as_str() {
            "NFC" => |text| text.nfc().collect(),
            "NFD" => |text| text.nfd().collect(),
            "NFKC" => |text| text.nfkc().collect(),
            "NFKD" => |text| text.nfkd().collect(),
            _ => {
                let message = format!("invalid normalization form: {form}");
                return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
            }
        };
        // Minor releases differ in whether a syllable takes up the mark before the first final consonant.
        let composes = !form.to_ascii_uppercase().ends_with('D');
        let is_open = |character: &char| {
            is_unknown(*character, self.major) || composes && *character == FINAL_BASE
        };
        match text.chars().find(is_open) {
            None => Ok(made(text)),
            Some(character) => {
                let what = format!("the normal form of U+{:04X}", u32::from(character));
                Err(StatementError::unsupported(what))
            }
        }
    }
}

/// Whether a server of the version does not know a character that the library knows.
fn is_unknown(character: char, major: u32) -> bool {
    let code = u32::from(character);
    let at = UNKNOWN_BEFORE.partition_point(|(_, last, _)| *last < code);
    let range = UNKNOWN_BEFORE.get(at).filter(|(first, ..)| *first <= code);
    range.is_some_and(|(.., since)| major < *since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_has_the_unicode_that_servers_were_held_against() {
        assert_eq!(unicode_normalization::UNICODE_VERSION, (18, 0, 0));
        assert!(UNKNOWN_BEFORE.is_sorted_by(|a, b| a.1 < b.0));
    }

    #[test]
    fn forms_are_made_of_characters_that_a_server_knows() {
        let context = Context { major: 15 };
        let form = |text: &str, form: &str| context.normalized(text, form).ok();
        assert_eq!(form("a\u{308}\u{24D1}c", "nfc").as_deref(), Some("\u{E4}\u{24D1}c"));
        assert_eq!(form("\u{E4}\u{24D1}c", "NFKD").as_deref(), Some("a\u{308}bc"));
        assert_eq!(form("\u{16D67}\u{16D67}", "NFC"), None);
        assert_eq!(form("a", "def"), None);
        assert!(is_unknown('\u{897}', 17) && !is_unknown('\u{897}', 18));
    }
}
