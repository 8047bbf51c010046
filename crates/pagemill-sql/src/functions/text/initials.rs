//! Upper and lower case of ASCII.
//!
//! Source: `asc_toupper`, `asc_tolower`, `asc_initcap` in `src/backend/utils/adt/formatting.c`, PostgreSQL 18.

/// Each word with a capital first and small letters behind it; words are letters and digits.
pub(super) fn initcap(text: &str) -> String {
    let mut is_within = false;
    let one = |character: char| {
        let made = match is_within {
            true => character.to_ascii_lowercase(),
            false => character.to_ascii_uppercase(),
        };
        is_within = character.is_ascii_alphanumeric();
        made
    };
    text.chars().map(one).collect()
}
