//! Texts as vectors: tokens, of which a configuration makes lexemes, with their places.
//!
//! A token goes to the dictionaries of its kind, one behind the other, up to the first that knows it. What that one leaves out
//! takes a place, too; what none of them knows does not.
//!
//! Source: `parsetext` and `LexizeExec` in `src/backend/tsearch/ts_parse.c`, `uniqueWORD`, `make_tsvector` and
//! `add_to_tsvector` in `to_tsany.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use super::super::rows::Outcome;
use super::dictionaries::{Dictionary, Made};
use super::letters::Letters;
use super::parser::{Token, tokens};
use super::vector::{LAST_POSITION, LONGEST_LEXEME, MOST_POSITIONS, VectorBuilder};

/// How many kinds of tokens there are, and 0, which is none.
pub(crate) const KINDS: usize = 24;

/// The dictionaries to which tokens of a kind go. Without any, they are left out.
pub(crate) type Treatment = Vec<Arc<Dictionary>>;

/// A configuration: what becomes of tokens.
#[derive(Debug)]
pub(crate) struct Configuration {
    /// By the number of their kind.
    pub(super) treatments: [Treatment; KINDS],
    /// By which texts are cut and words made small.
    pub(super) letters: Letters,
}

impl Configuration {
    /// What becomes of a token.
    pub(super) fn lexized(&self, token: &Token<'_>) -> Outcome<Made> {
        for dictionary in &self.treatments[token.kind as usize] {
            match dictionary.made(token.text, &self.letters)? {
                Made::Nothing => {}
                made => return Ok(made),
            }
        }
        Ok(Made::Nothing)
    }
}

/// A lexeme, and the place of its token among those of a text, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lexeme {
    pub(super) text: String,
    pub(super) place: usize,
}

/// Lexemes in their order.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) lexemes: Vec<Lexeme>,
    last: usize,
}

impl Document {
    /// One of a text.
    ///
    /// # Errors
    /// When a word is for a dictionary that is not known here.
    pub(super) fn of(text: &str, configuration: &Configuration) -> Outcome<Self> {
        let mut document = Self::default();
        document.add(text, configuration)?;
        Ok(document)
    }

    /// Adds the lexemes of a text.
    pub(super) fn add(&mut self, text: &str, configuration: &Configuration) -> Outcome<()> {
        configuration.letters.check(text)?;
        for token in tokens(text, &configuration.letters)? {
            if token.text.len() > LONGEST_LEXEME {
                continue;
            }
            match configuration.lexized(&token)? {
                Made::Nothing => {}
                Made::LeftOut => self.last += 1,
                Made::Lexeme(text) => {
                    self.last += 1;
                    self.lexemes.push(Lexeme { text, place: self.last });
                }
            }
        }
        Ok(())
    }

    /// Adds a text that no phrase goes into from what was before: one of several in a document.
    pub(super) fn add_apart(&mut self, text: &str, configuration: &Configuration) -> Outcome<()> {
        let before = self.lexemes.len();
        self.add(text, configuration)?;
        self.last += usize::from(self.lexemes.len() > before);
        Ok(())
    }

    pub(super) fn vector(&self) -> Outcome<Vec<u8>> {
        let place = |lexeme: &Lexeme| lexeme.place.min(usize::from(LAST_POSITION)) as u16;
        let mut placed: Vec<(&str, u16)> =
            self.lexemes.iter().map(|lexeme| (lexeme.text.as_str(), place(lexeme))).collect();
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
}

/// `to_tsvector`.
pub(super) fn vector(text: &str, configuration: &Configuration) -> Outcome<Vec<u8>> {
    Document::of(text, configuration)?.vector()
}
