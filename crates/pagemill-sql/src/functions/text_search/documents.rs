//! Texts as vectors: tokens, of which a configuration makes lexemes, with their places.
//!
//! The one dictionary that is known here takes every token that it is given, in small letters.
//!
//! Source: `parsetext` in `src/backend/tsearch/ts_parse.c`, `uniqueWORD` and `make_tsvector` in `to_tsany.c`,
//! `dsimple_lexize` in `dict_simple.c`, PostgreSQL 14 to 18.

use super::super::rows::Outcome;
use super::parser::tokens;
use super::vector::{LAST_POSITION, LONGEST_LEXEME, MOST_POSITIONS, VectorBuilder};
use crate::error::StatementError;

/// How many kinds of tokens there are, and 0, which is none.
pub(crate) const KINDS: usize = 24;

/// What becomes of tokens of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// They are left out.
    Skipped,
    /// By a dictionary that takes them as they are.
    Simple,
    /// By a dictionary of this name, which is not known here.
    Unknown(String),
}

/// A configuration: what becomes of tokens, by the number of their kind.
pub(crate) type Configuration = [Treatment; KINDS];

/// The lexemes of a text in their order.
///
/// # Errors
/// When one is for a dictionary that is not known here.
pub(super) fn lexemes(text: &str, configuration: &Configuration) -> Outcome<Vec<String>> {
    let mut found = Vec::new();
    for token in tokens(text)? {
        if token.text.len() > LONGEST_LEXEME {
            continue;
        }
        match &configuration[token.kind as usize] {
            Treatment::Skipped => {}
            Treatment::Simple => found.push(token.text.to_ascii_lowercase()),
            Treatment::Unknown(name) => {
                let what = format!("the text search dictionary {name}");
                return Err(StatementError::unsupported(what));
            }
        }
    }
    Ok(found)
}

/// `to_tsvector`.
pub(super) fn vector(text: &str, configuration: &Configuration) -> Outcome<Vec<u8>> {
    let lexemes = lexemes(text, configuration)?;
    let place = |number: usize| (number + 1).min(usize::from(LAST_POSITION)) as u16;
    let mut placed: Vec<(&str, u16)> = lexemes
        .iter()
        .enumerate()
        .map(|(number, lexeme)| (lexeme.as_str(), place(number)))
        .collect();
    placed.sort_unstable();
    placed.dedup();
    let mut out = VectorBuilder::default();
    for one in placed.chunk_by(|a, b| a.0 == b.0) {
        // The server keeps one less than a lexeme may have.
        let places = one.iter().take(MOST_POSITIONS - 1).map(|(_, place)| *place);
        out.push(one[0].0.as_bytes(), places);
    }
    out.finish()
}
