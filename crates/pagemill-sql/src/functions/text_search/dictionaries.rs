//! Dictionaries of text search: what one makes of a word.
//!
//! Those of the templates `simple` and `snowball` are known, by their options; what any other does follows from files that are
//! not among a cluster's.
//!
//! Invariant: words come here only where their letters are known.
//!
//! Source: `dsimple_lexize` in `src/backend/tsearch/dict_simple.c`, `dsnowball_lexize` in
//! `src/backend/snowball/dict_snowball.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use super::super::rows::Outcome;
use super::letters::Letters;
use super::options::options_of;
use super::snowball::{Stemmer, stemmer};
use super::stop_words::StopWords;
use crate::error::StatementError;

/// Longer words are none to Snowball's dictionaries, and stay as they are.
const LONGEST_STEMMED: usize = 1000;

#[derive(Debug)]
pub(crate) enum Dictionary {
    /// It takes words as they are, or none but those that it leaves out.
    Simple {
        left_out: StopWords,
        accepts: bool,
    },
    Snowball {
        left_out: StopWords,
        stemmer: Arc<Stemmer>,
    },
    /// One of this name that is not known here.
    Unknown(String),
}

/// What a dictionary makes of a word.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// It does not know it.
    Nothing,
    /// It is left out.
    LeftOut,
    Lexeme(String),
}

/// The template of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Template {
    Simple,
    Snowball,
}

/// The server that a dictionary is of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Server {
    pub(crate) major: u32,
    pub(crate) is_utf8: bool,
}

impl Dictionary {
    /// The dictionary of these options. None where it is not known what it does.
    pub(crate) fn new(template: Template, options: &str, server: Server) -> Option<Self> {
        let (mut left_out, mut accepts, mut language) = (StopWords::default(), true, None);
        for (name, value) in options_of(options).ok()? {
            match (name.as_str(), template) {
                ("stopwords", _) => left_out = StopWords::named(&value)?,
                ("accept", Template::Simple) => accepts = truth(&value)?,
                ("language", Template::Snowball) => language = Some(value),
                _ => return None,
            }
        }
        // The server makes lists and stems of its own encoding, or does not get so far.
        if !(server.is_utf8 || left_out.are_ascii()) {
            return None;
        }
        match template {
            Template::Simple => Some(Self::Simple { left_out, accepts }),
            Template::Snowball => {
                let language = language?;
                let is_known = server.is_utf8 || language.eq_ignore_ascii_case("english");
                let stemmer = stemmer(&language, server.major).filter(|_| is_known)?;
                Some(Self::Snowball { left_out, stemmer })
            }
        }
    }

    /// What it makes of a word.
    ///
    /// # Errors
    /// When that is not known here.
    pub(super) fn made(&self, word: &str, letters: &Letters) -> Outcome<Made> {
        let small = letters.small(word);
        match self {
            Self::Unknown(name) => {
                let what = format!("the text search dictionary {name}");
                Err(StatementError::unsupported(what))
            }
            Self::Simple { left_out, .. } if small.is_empty() || left_out.has(&small) => {
                Ok(Made::LeftOut)
            }
            Self::Simple { accepts: false, .. } => Ok(Made::Nothing),
            Self::Simple { .. } => Ok(Made::Lexeme(small)),
            Self::Snowball { .. } if small.len() > LONGEST_STEMMED => Ok(Made::Lexeme(small)),
            Self::Snowball { left_out, .. } if small.is_empty() || left_out.has(&small) => {
                Ok(Made::LeftOut)
            }
            Self::Snowball { stemmer, .. } => {
                let refused = || StatementError::unsupported(format!("the stem of \"{small}\""));
                stemmer.stem(&small).map(Made::Lexeme).ok_or_else(refused)
            }
        }
    }
}

fn truth(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Some(true),
        "false" | "off" | "0" => Some(false),
        _ => None,
    }
}
