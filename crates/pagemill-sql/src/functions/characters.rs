//! What characters are to a collation: their classes, and their cases.
//!
//! | collation | as |
//! | --- | --- |
//! | of the C library | that library has them in the locale |
//! | `C.UTF-8` of the provider `builtin`, from 17 on | Unicode has them, in the version that the server was made with |
//!
//! Invariant: a character that Unicode has had only since a later version than the server's has no class and no other case, and is
//! no other one's.
//!
//! Source: `src/common/unicode_category.c`, `unicode_case.c`, `src/backend/regex/regc_pg_locale.c`, PostgreSQL 17 and 18; the
//! chapter on compatibility properties of Unicode Technical Standard 18.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pagemill_sys::LocaleCollation;
use regex_syntax::hir::{Class, HirKind};

use super::locale_order::LocaleOrder;

/// Ranges of characters, in order.
pub(crate) type Ranges = Arc<[(char, char)]>;

/// The characters of a collation.
#[derive(Debug, Clone)]
pub(crate) enum Characters {
    Library(Arc<LocaleOrder>),
    Unicode(&'static Unicode),
}

impl Characters {
    pub(crate) fn lower(&self, letter: char) -> char {
        match self {
            Self::Library(locale) => locale.collation().lower(letter),
            Self::Unicode(unicode) => unicode.lower(letter),
        }
    }

    pub(crate) fn upper(&self, letter: char) -> char {
        match self {
            Self::Library(locale) => locale.collation().upper(letter),
            Self::Unicode(unicode) => unicode.upper(letter),
        }
    }

    /// The first letter of a word, if that is known.
    pub(crate) fn initial(&self, letter: char) -> Option<char> {
        match self {
            Self::Library(locale) => Some(locale.collation().upper(letter)),
            Self::Unicode(_) if has_title_case(letter) => None,
            Self::Unicode(unicode) => Some(unicode.upper(letter)),
        }
    }

    /// True for letters and digits.
    pub(crate) fn is_alphanumeric(&self, letter: char) -> bool {
        match self {
            Self::Library(locale) => locale.collation().is_alphanumeric(letter),
            Self::Unicode(unicode) => has(&unicode.class(c"alnum"), letter),
        }
    }

    /// The characters of a class, by its name in POSIX.
    pub(crate) fn class(&self, name: &'static CStr) -> Ranges {
        match self {
            Self::Library(locale) => locale.class(name),
            Self::Unicode(unicode) => unicode.class(name),
        }
    }
}

/// Those that were asked for, by their names in POSIX.
#[derive(Debug, Default)]
pub(crate) struct LetterClasses(Mutex<HashMap<&'static CStr, Ranges>>);

impl LetterClasses {
    /// A class of a locale of the C library, which is asked character by character.
    pub(crate) fn of_locale(&self, locale: &LocaleCollation, name: &'static CStr) -> Ranges {
        self.known(name, || {
            let class = locale.class(name);
            ranges_of(|letter| class.has(letter))
        })
    }

    fn known(&self, name: &'static CStr, make: impl FnOnce() -> Ranges) -> Ranges {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(name).or_insert_with(make).clone()
    }
}

fn ranges_of(has: impl Fn(char) -> bool) -> Ranges {
    let mut ranges: Vec<(char, char)> = Vec::new();
    for letter in ('\0'..=char::MAX).filter(|letter| has(*letter)) {
        match ranges.last_mut() {
            Some(last) if u32::from(last.1) + 1 == u32::from(letter) => last.1 = letter,
            _ => ranges.push((letter, letter)),
        }
    }
    ranges.into()
}

/// True for a character in ranges.
pub(crate) fn has(ranges: &[(char, char)], letter: char) -> bool {
    let at = ranges.partition_point(|range| range.1 < letter);
    ranges.get(at).is_some_and(|range| range.0 <= letter)
}

/// Unicode of a version.
#[derive(Debug)]
pub(crate) struct Unicode {
    age: &'static str,
    /// What only a later version holds for letters, of characters that this one has.
    not_yet_alphabetic: &'static str,
    known: OnceLock<Ranges>,
    classes: OnceLock<LetterClasses>,
}

impl Unicode {
    const fn of(age: &'static str, not_yet_alphabetic: &'static str) -> Self {
        Self { age, not_yet_alphabetic, known: OnceLock::new(), classes: OnceLock::new() }
    }

    /// That of a server.
    pub(crate) fn of_server(major: u32) -> Option<&'static Self> {
        // The tables here are those of 16.0.
        static OF_17: Unicode = Unicode::of("15.1", r"\u{363}-\u{36F}\u{1DD3}-\u{1DE6}");
        static OF_18: Unicode = Unicode::of("16.0", "");
        match major {
            17 => Some(&OF_17),
            18 => Some(&OF_18),
            _ => None,
        }
    }

    /// The characters that it has.
    fn known(&self) -> &Ranges {
        self.known.get_or_init(|| set(&format!(r"\p{{age={}}}", self.age)))
    }

    fn class(&self, name: &'static CStr) -> Ranges {
        let classes = self.classes.get_or_init(LetterClasses::default);
        classes.known(name, || {
            let alphabetic = match self.not_yet_alphabetic {
                "" => r"\p{Alphabetic}".to_owned(),
                not_yet => format!(r"[\p{{Alphabetic}}--[{not_yet}]]"),
            };
            let own = match name.to_bytes() {
                b"alnum" => format!("{alphabetic}0-9"),
                b"alpha" => alphabetic,
                b"digit" => "0-9".to_owned(),
                b"graph" => r"[^\p{Cc}\p{Cn}\p{White_Space}]".to_owned(),
                b"lower" => r"\p{Lowercase}".to_owned(),
                b"print" => r"[^\p{Cc}\p{Cn}\p{White_Space}]\p{Zs}".to_owned(),
                b"punct" => format!(r"[\p{{P}}\p{{S}}--{alphabetic}]"),
                b"space" => r"\p{White_Space}".to_owned(),
                b"upper" => r"\p{Uppercase}".to_owned(),
                other => unreachable!("{other:?} is no class of POSIX"),
            };
            set(&format!(r"[[{own}]&&\p{{age={}}}]", self.age))
        })
    }

    fn lower(&self, letter: char) -> char {
        match letter {
            // Alone without what Unicode makes of it with a dot.
            '\u{130}' => 'i',
            _ => self.only(letter, letter.to_lowercase()).unwrap_or(letter), // default: it has none
        }
    }

    fn upper(&self, letter: char) -> char {
        let number = u32::from(letter);
        // Of those that are two letters as capitals only these are one, too.
        let beside = match number {
            0x1F80..=0x1F87 | 0x1F90..=0x1F97 | 0x1FA0..=0x1FA7 => Some(number + 8),
            0x1FB3 | 0x1FC3 | 0x1FF3 => Some(number + 9),
            _ => None,
        };
        let beside = beside.and_then(char::from_u32);
        beside.or_else(|| self.only(letter, letter.to_uppercase())).unwrap_or(letter) // default: it has none
    }

    /// The one letter of another case, where both are known.
    fn only(&self, letter: char, mut other: impl Iterator<Item = char>) -> Option<char> {
        let (first, None) = (other.next()?, other.next()) else { return None };
        (has(self.known(), letter) && has(self.known(), first)).then_some(first)
    }
}

/// Letters that begin a word as neither capitals nor small ones.
fn has_title_case(letter: char) -> bool {
    matches!(u32::from(letter), 0x1C4..=0x1CC | 0x1F1..=0x1F3 | 0x10D0..=0x10FF)
}

/// The characters of a set of Unicode, by what it is written as.
fn set(pattern: &str) -> Ranges {
    let parsed = regex_syntax::parse(pattern).expect("its properties are built in"); // infallible: by the features of the library
    match parsed.into_kind() {
        HirKind::Class(Class::Unicode(class)) => {
            class.iter().map(|range| (range.start(), range.end())).collect()
        }
        other => unreachable!("{pattern} is a set, and no {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_of_c_are_those_of_ascii() {
        let (classes, c) = (LetterClasses::default(), LocaleCollation::new(b"C").unwrap());
        assert_eq!(*classes.of_locale(&c, c"alpha"), [('A', 'Z'), ('a', 'z')]);
        assert_eq!(*classes.of_locale(&c, c"space"), [('\t', '\r'), (' ', ' ')]);
        assert_eq!(*classes.of_locale(&c, c"alpha"), [('A', 'Z'), ('a', 'z')]);
    }

    #[test]
    fn a_letter_that_came_later_is_none_and_no_case_of_another() {
        let [of_17, of_18] =
            [17, 18].map(|major| Characters::Unicode(Unicode::of_server(major).unwrap()));
        // Garay, and a capital of an old letter, both of 16.0.
        assert!(
            has(&of_18.class(c"alpha"), '\u{10D50}') && !has(&of_17.class(c"alpha"), '\u{10D50}')
        );
        assert_eq!((of_17.upper('\u{264}'), of_18.upper('\u{264}')), ('\u{264}', '\u{A7CB}'));
        // Small letters above others, which are letters from 16.0 on.
        assert!(has(&of_18.class(c"alpha"), '\u{363}') && !has(&of_17.class(c"alpha"), '\u{363}'));
        assert!(Unicode::of_server(16).is_none());
    }

    #[test]
    fn all_classes_can_be_asked_for() {
        for name in [
            c"alnum", c"alpha", c"digit", c"graph", c"lower", c"print", c"punct", c"space",
            c"upper",
        ] {
            for major in [17, 18] {
                let ranges = Characters::Unicode(Unicode::of_server(major).unwrap()).class(name);
                assert!(!ranges.is_empty() && !has(&ranges, '\u{0}'), "{name:?}");
            }
        }
    }

    #[test]
    fn cases_are_single_letters() {
        let characters = Characters::Unicode(Unicode::of_server(18).unwrap());
        for (letter, upper) in
            [('ß', 'ß'), ('é', 'É'), ('ᾳ', 'ᾼ'), ('ᾀ', 'ᾈ'), ('ŉ', 'ŉ'), ('ſ', 'S')]
        {
            assert_eq!(characters.upper(letter), upper, "{letter}");
        }
        assert_eq!(
            (characters.lower('İ'), characters.lower('ẞ'), characters.lower('Σ')),
            ('i', 'ß', 'σ')
        );
        assert_eq!((characters.initial('ǆ'), characters.initial('é')), (None, Some('É')));
    }
}
