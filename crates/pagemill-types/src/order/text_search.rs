//! The orders of tsvector and tsquery, which mean nothing but equality: by size first, and much of the rest with the
//! greater one first.
//!
//! Invariant: values are compared as sequences, which damage ends early, so that the orders are total; each node of a
//! query is visited once at most.
//!
//! Sources: `silly_cmp_tsvector` and `tsCompareString` in `src/backend/utils/adt/tsvector_op.c`, `CompareTSQ` in
//! `tsquery_op.c`, `QTNodeCompare` in `tsquery_util.c`, `src/include/tsearch/ts_type.h`, PostgreSQL 14 to 18.

use std::cmp::{Ordering, Reverse};

use pagemill_format::reader::Reader;

const NODE_BYTES: usize = 12;
/// `QI_VAL`, `QI_OPR`.
const OPERAND: u8 = 1;
const OPERATOR: u8 = 2;
/// `OP_NOT` and `OP_PHRASE`.
const NOT: u8 = 1;
const PHRASE: u8 = 4;

/// Nothing short is as ordered as these values are.
pub(super) fn no_abbreviation(_: &[u8]) -> u64 {
    0
}

/// The first word of a value: how many lexemes, or nodes, it has. It is a signed number on the server.
fn count(value: &[u8]) -> i32 {
    value.first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes))
}

pub(super) fn compare_vectors(a: &[u8], b: &[u8]) -> Ordering {
    let sizes = a.len().cmp(&b.len()).then_with(|| count(a).cmp(&count(b)));
    sizes.then_with(|| Lexemes::new(a).cmp(Lexemes::new(b)))
}

/// A lexeme as it is compared: those with positions come first, as do more and higher ones.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Lexeme<'a> {
    has_positions: Reverse<bool>,
    text: &'a [u8],
    position_count: Reverse<usize>,
    /// Position and weight.
    positions: Vec<Reverse<(u16, u16)>>,
}

struct Lexemes<'a> {
    words: &'a [[u8; 4]],
    data: &'a [u8],
}

impl<'a> Lexemes<'a> {
    fn new(value: &'a [u8]) -> Self {
        let rest = value.get(4..).unwrap_or_default();
        let count = usize::try_from(count(value)).unwrap_or(0);
        let (words, data) = rest.split_at(count.saturating_mul(4).min(rest.len()));
        Self { words: words.as_chunks::<4>().0, data }
    }
}

impl<'a> Iterator for Lexemes<'a> {
    type Item = Lexeme<'a>;

    fn next(&mut self) -> Option<Lexeme<'a>> {
        let (word, rest) = self.words.split_first()?;
        self.words = rest;
        let word = u32::from_le_bytes(*word);
        let mut reader = Reader::new("tsvector", self.data);
        reader.seek((word >> 12) as usize).ok()?;
        let text = reader.bytes(((word >> 1) & 0x7FF) as usize).ok()?;
        let mut positions = Vec::new();
        if word & 1 != 0 {
            reader.align(2);
            for _ in 0..reader.u16().ok()? {
                let position = reader.u16().ok()?;
                positions.push(Reverse((position & 0x3FFF, position >> 14)));
            }
        }
        let has_positions = Reverse(word & 1 != 0);
        Some(Lexeme { has_positions, text, position_count: Reverse(positions.len()), positions })
    }
}

pub(super) fn compare_queries(a: &[u8], b: &[u8]) -> Ordering {
    let sizes = count(a).cmp(&count(b)).then_with(|| a.len().cmp(&b.len()));
    sizes.then_with(|| Nodes::new(a).cmp(Nodes::new(b)))
}

/// What a walk through a query meets: operators before operands, the distance of a phrase behind both of its sides.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Step<'a> {
    Operator(Reverse<u8>),
    /// Checksum and text.
    Operand(Reverse<i32>, &'a [u8]),
    Distance(Reverse<i16>),
}

enum Task {
    Node(usize),
    Distance(i16),
}

struct Nodes<'a> {
    nodes: &'a [[u8; NODE_BYTES]],
    texts: &'a [u8],
    tasks: Vec<Task>,
    /// Nodes that may still be visited: damaged ones could lead back.
    left: usize,
}

impl<'a> Nodes<'a> {
    fn new(value: &'a [u8]) -> Self {
        let rest = value.get(4..).unwrap_or_default();
        let count = usize::try_from(count(value)).unwrap_or(0);
        let (nodes, texts) = rest.split_at(count.saturating_mul(NODE_BYTES).min(rest.len()));
        let nodes = nodes.as_chunks::<NODE_BYTES>().0;
        Self { nodes, texts, tasks: vec![Task::Node(0)], left: nodes.len() }
    }

    fn operand(&self, checksum: [u8; 4], place: u32) -> Option<Step<'a>> {
        let (length, start) = ((place & 0xFFF) as usize, (place >> 12) as usize);
        let text = self.texts.get(start..start + length)?;
        Some(Step::Operand(Reverse(i32::from_le_bytes(checksum)), text))
    }
}

impl<'a> Iterator for Nodes<'a> {
    type Item = Step<'a>;

    fn next(&mut self) -> Option<Step<'a>> {
        let at = match self.tasks.pop()? {
            Task::Distance(distance) => return Some(Step::Distance(Reverse(distance))),
            Task::Node(at) => at,
        };
        self.left = self.left.checked_sub(1)?;
        let [kind, operator, d0, d1, b0, b1, b2, b3, place @ ..] = *self.nodes.get(at)?;
        if kind == OPERAND {
            return self.operand([b0, b1, b2, b3], u32::from_le_bytes(place));
        }
        if kind != OPERATOR {
            return None;
        }
        if operator == PHRASE {
            self.tasks.push(Task::Distance(i16::from_le_bytes([d0, d1])));
        }
        if operator != NOT {
            let left = u32::from_le_bytes([b0, b1, b2, b3]) as usize;
            self.tasks.push(Task::Node(at.saturating_add(left)));
        }
        self.tasks.push(Task::Node(at + 1));
        Some(Step::Operator(Reverse(operator)))
    }
}
