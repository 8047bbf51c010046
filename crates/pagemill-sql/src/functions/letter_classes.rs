//! The characters of the classes of a locale: letters, digits, spaces, as the C library tells them apart.
//!
//! Invariant: a class is asked for character by character, once: it has whatever the library says of each.
//!
//! Source: `pg_ctype_get_cache` in `src/backend/regex/regc_pg_locale.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

use pagemill_sys::LocaleCollation;

/// Ranges of characters, in order.
pub(crate) type Ranges = Arc<[(char, char)]>;

/// Those that were asked for.
#[derive(Debug, Default)]
pub(crate) struct LetterClasses(Mutex<HashMap<&'static CStr, Ranges>>);

impl LetterClasses {
    /// A class by its name in POSIX.
    pub(crate) fn ranges(&self, locale: &LocaleCollation, name: &'static CStr) -> Ranges {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(name).or_insert_with(|| ranges_of(locale, name)).clone()
    }
}

fn ranges_of(locale: &LocaleCollation, name: &CStr) -> Ranges {
    let class = locale.class(name);
    let mut ranges: Vec<(char, char)> = Vec::new();
    for letter in ('\0'..=char::MAX).filter(|letter| class.has(*letter)) {
        match ranges.last_mut() {
            Some(last) if u32::from(last.1) + 1 == u32::from(letter) => last.1 = letter,
            _ => ranges.push((letter, letter)),
        }
    }
    ranges.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_of_c_are_those_of_ascii() {
        let (classes, c) = (LetterClasses::default(), LocaleCollation::new(b"C").unwrap());
        assert_eq!(*classes.ranges(&c, c"alpha"), [('A', 'Z'), ('a', 'z')]);
        assert_eq!(*classes.ranges(&c, c"space"), [('\t', '\r'), (' ', ' ')]);
        assert_eq!(*classes.ranges(&c, c"alpha"), [('A', 'Z'), ('a', 'z')]);
    }
}
