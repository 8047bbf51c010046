//! Texts as queries: `to_tsquery`, `plainto_tsquery` and `phraseto_tsquery`; `web.rs` has the fourth of them.
//!
//! A text becomes items in the order in which an evaluation takes them, operands before their operator. What stands for a
//! word without lexemes goes away at the end, and phrases around it grow by what it took.
//!
//! Source: `pushval_morph` in `src/backend/tsearch/to_tsany.c`, `clean_stopword_intree` in
//! `src/backend/utils/adt/tsquery_cleanup.c`, `pushValue_internal` in `tsquery.c`, PostgreSQL 14 to 18.

use pagemill_types::input::tsquery::operand_checksum;

use super::super::rows::Outcome;
use super::documents::{Configuration, Document, Lexeme};
use super::query::{Kind, Node, Operand, Operator, Query, damaged, payload};
use super::vector::{LAST_POSITION, MOST_BYTES};
use crate::error::{SqlState, StatementError};

/// A step of an evaluation.
pub(super) enum Item {
    Word {
        text: String,
        weights: u8,
        prefix: bool,
    },
    /// A word that is nothing.
    Nothing,
    Operator {
        kind: Kind,
        distance: i16,
    },
}

/// What is made of words.
pub(super) struct Reading<'c> {
    pub(super) configuration: &'c Configuration,
    /// What stands between the lexemes of one word: AND or a phrase.
    pub(super) between: Kind,
}

impl Reading<'_> {
    /// Appends the lexemes of a word, or of many.
    pub(super) fn word(
        &self,
        text: &str,
        (weights, prefix): (u8, bool),
        items: &mut Vec<Item>,
    ) -> Outcome<()> {
        let found = Document::of(text, self.configuration)?.lexemes;
        if found.last().is_some_and(|last| last.place >= usize::from(LAST_POSITION)) {
            return Err(StatementError::unsupported("a query of so many words"));
        }
        if found.is_empty() {
            items.push(Item::Nothing);
        }
        let distance = if self.between == Kind::Phrase { 1 } else { 0 };
        let mut before = None;
        for Lexeme { text, place } in found {
            let from = before.map_or(place, |before| before + 1);
            // Words between these two that were left out.
            let left_out = (from..place).map(|_| Item::Nothing);
            for item in left_out.chain([Item::Word { text, weights, prefix }]) {
                items.push(item);
                if before.replace(place).is_some() {
                    items.push(Item::Operator { kind: self.between, distance });
                }
            }
        }
        Ok(())
    }

    /// A text of words alone.
    pub(super) fn plain(&self, text: &str) -> Outcome<Vec<u8>> {
        let mut items = Vec::new();
        if !text.is_empty() {
            self.word(text, (0, false), &mut items)?;
        }
        query_of(&items, text)
    }

    /// The words of a query, which was read as it stands.
    pub(super) fn query(&self, read: &[u8], text: &str) -> Outcome<Vec<u8>> {
        self.configuration.letters.check_query(text)?;
        let mut items = Vec::new();
        for node in Query::read(read)?.nodes.iter().rev() {
            match node {
                Node::Operator(Operator { kind, distance, .. }) => {
                    items.push(Item::Operator { kind: *kind, distance: *distance });
                }
                Node::Operand(Operand { text, weights, prefix, .. }) => {
                    let text = std::str::from_utf8(text).map_err(|_| damaged())?;
                    self.word(text, (*weights, *prefix), &mut items)?;
                }
            }
        }
        query_of(&items, text)
    }
}

/// A part of a query. Its nodes come the other way round.
#[derive(Default)]
struct Part<'a> {
    /// None where nothing is left of it.
    nodes: Vec<Node<'a>>,
    /// What phrases to the left and to the right of it grow by.
    left: i32,
    right: i32,
}

impl<'a> Part<'a> {
    /// Both parts under an operator.
    fn under(self, kind: Kind, distance: i16, right: Self) -> Self {
        let left = self;
        let is_phrase = kind == Kind::Phrase;
        let own = if is_phrase { i32::from(distance) } else { 0 };
        match (left.nodes.is_empty(), right.nodes.is_empty()) {
            (true, true) => {
                let sum = if is_phrase {
                    left.left + own + right.left
                } else {
                    left.left.max(right.left)
                };
                Self { nodes: Vec::new(), left: sum, right: sum }
            }
            (true, false) if is_phrase => Self { left: left.left + own + right.left, ..right },
            (true, false) => right,
            (false, true) if is_phrase => Self { right: left.right + own + right.right, ..left },
            (false, true) => left,
            (false, false) => {
                let grown = if is_phrase { own + left.right + right.left } else { 0 };
                let sides = if is_phrase { (left.left, right.right) } else { (0, 0) };
                let to_left = 1 + right.nodes.len() as u32;
                let mut nodes = left.nodes;
                nodes.extend(right.nodes);
                nodes.push(Node::Operator(Operator { kind, distance: grown as i16, to_left }));
                Self { nodes, left: sides.0, right: sides.1 }
            }
        }
    }
}

/// The payload of what the items make.
///
/// # Errors
/// When its words are too long together; `text` is what was read.
pub(super) fn query_of(items: &[Item], text: &str) -> Outcome<Vec<u8>> {
    let (mut parts, mut place): (Vec<Part<'_>>, usize) = (Vec::new(), 0);
    for item in items {
        let part = match item {
            Item::Nothing => Part::default(),
            Item::Word { text: word, weights, prefix } => {
                if place >= MOST_BYTES {
                    let message = format!("value is too big in tsquery: \"{text}\"");
                    return Err(StatementError::new(SqlState("54000"), message));
                }
                place += word.len() + 1;
                let (text, checksum) = (word.as_bytes(), operand_checksum(word.as_bytes()) as i32);
                let word = Operand { weights: *weights, prefix: *prefix, checksum, text };
                Part { nodes: vec![Node::Operand(word)], ..Part::default() }
            }
            Item::Operator { kind: Kind::Not, .. } => {
                let mut part = parts.pop().ok_or_else(damaged)?;
                if !part.nodes.is_empty() {
                    let not = Operator { kind: Kind::Not, distance: 0, to_left: 1 };
                    part.nodes.push(Node::Operator(not));
                }
                part
            }
            Item::Operator { kind, distance } => {
                let (right, left) = (parts.pop(), parts.pop());
                let (left, right) = left.zip(right).ok_or_else(damaged)?;
                left.under(*kind, *distance, right)
            }
        };
        parts.push(part);
    }
    let nodes = parts.pop().unwrap_or_default().nodes;
    payload(nodes.into_iter().rev())
}
