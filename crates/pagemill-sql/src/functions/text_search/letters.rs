//! What letters, digits and spaces are to a database's text search: to its parser, and to its dictionaries, which make them small.
//!
//! | database | letters beyond ASCII |
//! | --- | --- |
//! | of the C locale | all characters, and none has a case |
//! | of another locale of the C library, which is known to be the server's | as that library has it |
//! | of any other | not known: texts with any are refused |
//!
//! Invariant: a text is asked about before it is cut or made small; one with characters that take no room, or are among the signs that the
//! server's parser has a list of, is refused, as which they are is another matter for each version.
//!
//! Source: `p_iswhat` and `p_isspecial` in `src/backend/tsearch/wparser_def.c`, `lowerstr` in `ts_locale.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use unicode_normalization::char::is_combining_mark;
use unicode_width::UnicodeWidthChar as _;

use super::super::characters::Characters;
use super::super::collations;
use super::super::locale_order::LocaleOrder;
use super::super::rows::Outcome;
use super::super::text::cases::has_other_i;
use super::UTF8;
use crate::catalog::Catalog;
use crate::error::StatementError;
use crate::types::DEFAULT_COLLATION;

/// The letters of a database.
#[derive(Debug, Clone)]
pub(crate) enum Letters {
    /// Those of ASCII, and all beyond.
    C,
    Locale(Arc<LocaleOrder>),
    /// Those beyond ASCII are not known, for a reason.
    OnlyAscii(String),
    /// Not even those of ASCII are known, of this locale.
    Unknown(String),
}

impl Letters {
    pub(super) fn of(catalog: &Catalog) -> Outcome<Self> {
        let Some(default) = catalog.collation(DEFAULT_COLLATION) else {
            return Err(StatementError::unsupported("a text in a database of an unknown locale"));
        };
        if has_other_i(&default.letters) && !matches!(default.letters.as_str(), "C" | "POSIX") {
            return Ok(Self::Unknown(default.letters.clone()));
        }
        let is_c = matches!(default.letters.as_str(), "C" | "POSIX")
            && matches!(
                (default.provider, default.locale.as_str()),
                (b'c', _) | (b'b', "C" | "POSIX")
            );
        if is_c {
            return Ok(match catalog.database().row().encoding {
                UTF8 => Self::C,
                _ => Self::OnlyAscii("the database is not in UTF-8".to_owned()),
            });
        }
        Ok(match collations::letters(catalog, DEFAULT_COLLATION) {
            Ok(Characters::Library(locale)) => Self::Locale(locale),
            // Its parser goes by the C library all the same.
            Ok(Characters::Unicode(_)) => Self::OnlyAscii("its provider is builtin".to_owned()),
            Err(why) => Self::OnlyAscii(why),
        })
    }

    /// Refuses a text of which it is not known what its letters are.
    pub(super) fn check(&self, text: &str) -> Outcome<()> {
        match self {
            Self::Unknown(locale) => {
                Err(StatementError::unsupported(format!("text search in locale \"{locale}\"")))
            }
            _ if text.is_ascii() => Ok(()),
            Self::C => Ok(()),
            Self::OnlyAscii(why) => Err(StatementError::unsupported(format!(
                "text search of what is no ASCII in this locale ({why})"
            ))),
            Self::Locale(_) => match text.chars().find(|letter| is_special(*letter)) {
                None => Ok(()),
                Some(found) => {
                    let what = format!("text search of U+{:04X} in this locale", u32::from(found));
                    Err(StatementError::unsupported(what))
                }
            },
        }
    }

    /// The same of a query, between whose words older servers take other spaces than newer ones.
    pub(super) fn check_query(&self, text: &str) -> Outcome<()> {
        self.check(text)?;
        match text.chars().any(|letter| !letter.is_ascii() && self.is_space(letter)) {
            true => {
                Err(StatementError::unsupported("a text search query with spaces beyond ASCII"))
            }
            false => Ok(()),
        }
    }

    pub(super) fn is_letter(&self, letter: char) -> bool {
        match self {
            Self::Locale(locale) => locale.collation().is_letter(letter),
            _ => letter.is_ascii_alphabetic() || !letter.is_ascii(),
        }
    }

    pub(super) fn is_digit(&self, letter: char) -> bool {
        match self {
            Self::Locale(locale) => locale.collation().is_digit(letter),
            _ => letter.is_ascii_digit(),
        }
    }

    pub(super) fn is_letter_or_digit(&self, letter: char) -> bool {
        match self {
            Self::Locale(locale) => locale.collation().is_alphanumeric(letter),
            _ => letter.is_ascii_alphanumeric() || !letter.is_ascii(),
        }
    }

    pub(super) fn is_space(&self, letter: char) -> bool {
        match self {
            Self::Locale(locale) => locale.collation().is_space(letter),
            _ => matches!(letter, ' ' | '\t'..='\r'),
        }
    }

    /// A word in small letters.
    pub(super) fn small(&self, word: &str) -> String {
        match self {
            Self::Locale(locale) if !word.is_ascii() => {
                word.chars().map(|letter| locale.collation().lower(letter)).collect()
            }
            _ => word.to_ascii_lowercase(),
        }
    }
}

/// What takes no room, or may be in the server's list of signs that are part of words.
fn is_special(letter: char) -> bool {
    !letter.is_ascii()
        && (letter == '\u{AD}' || is_combining_mark(letter) || letter.width() == Some(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_that_take_no_room_are_special_and_letters_are_not() {
        for special in
            ['\u{301}', '\u{AD}', '\u{200D}', '\u{FE0F}', '\u{93F}', '\u{1160}', '\u{FEFF}']
        {
            assert!(is_special(special), "U+{:04X}", u32::from(special));
        }
        assert!(!['é', '漢', '—', '🙂', 'a', '\u{a0}'].into_iter().any(is_special));
    }

    #[test]
    fn in_the_c_locale_what_is_beyond_ascii_is_a_letter_without_a_case() {
        let c = Letters::C;
        assert!(c.is_letter('—') && !c.is_digit('٣') && !c.is_space('\u{3000}'));
        assert_eq!(c.small("ÉTÉ A"), "ÉtÉ a");
        assert!(c.check("e\u{301}").is_ok());
        assert!(Letters::OnlyAscii(String::new()).check("é").is_err());
        assert!(Letters::Unknown("tr_TR".to_owned()).check("i").is_err());
    }
}
