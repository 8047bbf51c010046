//! Stems held against those that servers gave, and programs that are none.
//!
//! Each line of the table: the language, the word, its stem in PostgreSQL 14 to 17 (`=` for the same; none where they have no
//! such language) and that in PostgreSQL 18. It is a part of the words that were compared, about 120,000 of each language.

use super::program::Program;
use super::{Stemmer, program_of, stemmer};

const STEMS: &str = include_str!("server_stems.tsv");

#[test]
fn stems_are_those_of_servers() {
    let mut wrong = Vec::new();
    for line in STEMS.lines() {
        let [language, word, older, newer] =
            <[&str; 4]>::try_from(line.split('\t').collect::<Vec<_>>()).unwrap();
        let older = if older == "=" { newer } else { older };
        for (major, expected) in [(14, older), (17, older), (18, newer)] {
            let found = stemmer(language, major).map(|stemmer| stemmer.stem(word).unwrap());
            if found.as_deref().unwrap_or_default() != expected {
                wrong.push(format!("{major} {line}: {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_program_is_read() {
    let mut languages: Vec<&str> =
        STEMS.lines().filter_map(|line| line.split('\t').next()).collect();
    languages.dedup();
    assert_eq!(languages.len(), 30);
    for (language, major) in languages.iter().flat_map(|language| [(language, 17), (language, 18)])
    {
        if let Some(text) = program_of(language, major) {
            assert_eq!(Program::read(text).err(), None, "{language} {major}");
        }
    }
    assert!(stemmer("ESTONIAN", 18).is_some());
    assert!(stemmer("estonian", 17).is_none());
    assert!(stemmer("klingon", 18).is_none());
}

#[test]
fn what_is_no_program_is_told() {
    for text in [
        "define x as 'a'",
        "routines ( a ) define a as ( 'x",
        "routines ( a",
        "externals (a) define a as hop",
    ] {
        assert!(Program::read(text).is_err(), "{text}");
    }
}

#[test]
fn a_word_that_takes_too_many_routines_is_refused() {
    let program = "externals ( stem ) define stem as ( next stem )";
    let endless = Stemmer(Program::read(program).unwrap());
    assert_eq!(endless.stem(&"x".repeat(500)), None);
    assert_eq!(endless.stem("xx"), Some("xx".to_owned()));
}

#[test]
fn long_words_and_others_end() {
    for language in ["turkish", "german", "french", "arabic", "tamil", "yiddish"] {
        let stemmer = stemmer(language, 18).unwrap();
        for word in ["", "x", "ı", "\u{10FFFF}", "'"] {
            assert!(stemmer.stem(word).is_some(), "{language} {word}");
            let _ = stemmer.stem(&word.repeat(200));
        }
    }
}
