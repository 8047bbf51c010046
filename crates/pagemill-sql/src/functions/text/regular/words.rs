//! Where words begin and end: the library's own words are a locale's only where both hold the same characters for part of one.
//!
//! Source: `pg_wc_isword` in `src/backend/regex/regc_pg_locale.c`, PostgreSQL 14 to 18.

use super::super::super::characters::Characters;

/// True for a character of the library's words.
pub(super) fn is_word_character(letter: char) -> bool {
    // Its tables are built in.
    regex_syntax::try_is_word_character(letter).expect("the tables of words are built in") // infallible: by its features
}

/// The first character of a text that is part of a word to one of both only.
pub(super) fn other_word_character(locale: &Characters, text: &str) -> Option<char> {
    let is_of_locale = |letter: char| letter == '_' || locale.is_alphanumeric(letter);
    text.chars().find(|letter| is_of_locale(*letter) != is_word_character(*letter))
}
