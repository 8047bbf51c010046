//! `SELECT, INSERT WITH GRANT OPTION`: the words of privileges, and the rights that they ask for.
//!
//! Invariant: an error for a word that is no privilege of its kind, in the version that wrote the files.
//!
//! Source: `convert_any_priv_string` and the lists before its callers in `src/backend/utils/adt/acl.c`, PostgreSQL 14 to 18.

use super::super::super::rows::Outcome;
use crate::error::{SqlState, StatementError};
use crate::rights::{Wanted, bits};

/// Words with the letters of what they ask for.
pub(in super::super) type Words = &'static [(&'static str, &'static str)];

pub(super) const OF_COLUMNS: Words =
    &[("SELECT", "r"), ("INSERT", "a"), ("UPDATE", "w"), ("REFERENCES", "x")];
pub(super) const OF_DATABASES: Words =
    &[("CREATE", "C"), ("TEMPORARY", "T"), ("TEMP", "T"), ("CONNECT", "c")];
pub(super) const OF_FUNCTIONS: Words = &[("EXECUTE", "X")];
pub(super) const OF_LARGE_OBJECTS: Words = &[("SELECT", "r"), ("UPDATE", "w")];
pub(super) const OF_PARAMETERS: Words = &[("SET", "s"), ("ALTER SYSTEM", "A")];
pub(super) const OF_SCHEMAS: Words = &[("CREATE", "C"), ("USAGE", "U")];
pub(super) const OF_SEQUENCES: Words = &[("USAGE", "U"), ("SELECT", "r"), ("UPDATE", "w")];
pub(super) const OF_TABLESPACES: Words = &[("CREATE", "C")];
pub(super) const USAGE: Words = &[("USAGE", "U")];

/// `MAINTAIN` is one from 17 on, and `RULE`, which is never given, one up to 17.
pub(super) fn of_tables(major: u32) -> Words {
    const ALL: Words = &[
        ("MAINTAIN", "m"),
        ("SELECT", "r"),
        ("INSERT", "a"),
        ("UPDATE", "w"),
        ("DELETE", "d"),
        ("TRUNCATE", "D"),
        ("REFERENCES", "x"),
        ("TRIGGER", "t"),
        ("RULE", ""),
    ];
    match major {
        ..17 => &ALL[1..],
        17 => ALL,
        _ => &ALL[..ALL.len() - 1],
    }
}

/// What a list of words asks for.
///
/// # Errors
/// For any other word.
pub(super) fn wanted(list: &str, known: Words) -> Outcome<Wanted> {
    let mut wanted = Wanted::default();
    for word in split(list) {
        let plain = word.to_ascii_uppercase();
        let (plain, is_grantable) = match plain.strip_suffix(" WITH GRANT OPTION") {
            Some(plain) => (plain, true),
            None => (plain.as_str(), false),
        };
        let found = known.iter().find(|(known, _)| *known == plain);
        let (_, letters) = found.ok_or_else(|| unknown(word))?;
        match is_grantable {
            true => wanted.grantable |= bits(letters),
            false => wanted.rights |= bits(letters),
        }
    }
    Ok(wanted)
}

/// The words between commas.
pub(in super::super) fn split(list: &str) -> impl Iterator<Item = &str> {
    let is_space = |letter: char| letter.is_ascii_whitespace() || letter == '\u{b}';
    list.split(',').map(move |word| word.trim_matches(is_space))
}

pub(in super::super) fn unknown(word: &str) -> StatementError {
    let message = format!("unrecognized privilege type: \"{word}\"");
    StatementError::new(SqlState::INVALID_PARAMETER, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_any_case_and_with_spaces_around() {
        let found = wanted(" select ,\tInsert with grant option", of_tables(15)).unwrap();
        assert_eq!(found, Wanted { rights: bits("r"), grantable: bits("a") });
        for wrong in ["", "select,", "select  with grant option", "usage"] {
            assert!(wanted(wrong, of_tables(15)).is_err(), "{wrong}");
        }
        let is_known = |word, major| wanted(word, of_tables(major)).is_ok();
        assert_eq!([14, 17, 18].map(|major| is_known("maintain", major)), [false, true, true]);
        assert_eq!([14, 17, 18].map(|major| is_known("rule", major)), [true, true, false]);
        assert!(wanted("rule", of_tables(14)).unwrap().is_none());
    }
}
