//! Stemming: a word without its endings, by the programs of the Snowball project that the server is built with.
//!
//! `symbols.rs`, `program.rs` and `steps.rs` read such a program, `machine.rs` runs it on a word of `word.rs`. The programs are
//! those of the server: PostgreSQL 18 has them of the project's commit d19326ac6c1b (2025), PostgreSQL 14 to 17 of 2021;
//! `programs_until_17/` has those whose words are not the same.
//!
//! Invariant: every program that is here was held against the servers of all versions, word by word (the tests keep a part of
//! these words). Words are those of UTF-8.
//!
//! Source: https://github.com/snowballstem/snowball (its license is in `COPYING`), `dict_snowball.c`, PostgreSQL 14 to 18.

mod machine;
mod program;
mod steps;
mod symbols;
#[cfg(test)]
mod tests;
mod word;

use std::sync::{Arc, Mutex, PoisonError};

use machine::Machine;
use program::Program;
use word::Word;

/// The first version with the newer programs.
const NEWER: u32 = 18;

/// A program by the name of its language.
macro_rules! programs {
    ($wanted:expr, $folder:literal: $($language:literal)*) => {
        match $wanted {
            $($language => Some(include_str!(concat!($folder, "/", $language, ".sbl"))),)*
            _ => None,
        }
    };
}

fn program_of(language: &str, major: u32) -> Option<&'static str> {
    let older = programs!(language, "programs_until_17":
        "dutch" "english" "french" "german" "greek" "italian" "romanian" "swedish" "turkish");
    let newer = programs!(language, "programs":
        "arabic" "armenian" "basque" "catalan" "danish" "dutch" "english" "estonian" "finnish"
        "french" "german" "greek" "hindi" "hungarian" "indonesian" "irish" "italian" "lithuanian"
        "nepali" "norwegian" "porter" "portuguese" "romanian" "russian" "serbian" "spanish"
        "swedish" "tamil" "turkish" "yiddish");
    match major >= NEWER {
        true => newer,
        false if language == "estonian" => None,
        false => older.or(newer),
    }
}

/// Those that were made before, by their programs.
static MADE: Mutex<Vec<(&'static str, Arc<Stemmer>)>> = Mutex::new(Vec::new());

/// The stemmer of a language, as the server of this version has it. None if it has none.
pub(crate) fn stemmer(language: &str, major: u32) -> Option<Arc<Stemmer>> {
    let text = program_of(&language.to_ascii_lowercase(), major)?;
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, known)) = made.iter().find(|(known, _)| std::ptr::eq(*known, text)) {
        return Some(known.clone());
    }
    // infallible: the tests read every program.
    let stemmer = Arc::new(Stemmer(Program::read(text).ok()?));
    made.push((text, stemmer.clone()));
    Some(stemmer)
}

/// What is done to words of a language.
#[derive(Debug)]
pub(crate) struct Stemmer(Program);

impl Stemmer {
    /// The stem of a word in small letters. None where it is not known what a server does with such a word.
    pub(crate) fn stem(&self, word: &str) -> Option<String> {
        let done = Machine::new(&self.0, Word::new(word)).run();
        let (is_too_deep, mut word_after) = (done.is_too_deep, done.word);
        word_after.bytes.truncate(word_after.end);
        match (is_too_deep, word_after.bytes.is_empty()) {
            (true, _) => None,
            // The server takes nothing for no answer.
            (false, true) => Some(word.to_owned()),
            (false, false) => String::from_utf8(word_after.bytes).ok(),
        }
    }
}
