//! A `tsquery` taken apart, and one that is made. See `pagemill_types::tsquery` for the layout.
//!
//! Nodes stay in the order in which they are stored: an operator before its operands, the right one first. So whatever an
//! operator needs of its operands is there when the nodes are gone through from the last to the first, and nothing recurses.
//!
//! Invariant: the right operand of an operator begins behind it, and the left one where the right one ends.
//!
//! Source: `src/include/tsearch/ts_type.h`, `QT2QTN`, `QTN2QT` and `fillQT` in `src/backend/utils/adt/tsquery_util.c`,
//! PostgreSQL 14 to 18.

use super::super::rows::Outcome;
use super::vector::MOST_BYTES;
use crate::error::{SqlState, StatementError};

const NODE_BYTES: usize = 12;
/// `QI_VAL` and `QI_OPR`.
const OPERAND: u8 = 1;
const OPERATOR: u8 = 2;

/// What a node does with its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Not = 1,
    And,
    Or,
    Phrase,
}

impl Kind {
    fn of(number: u8) -> Option<Self> {
        [Self::Not, Self::And, Self::Or, Self::Phrase]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }
}

/// A word that is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operand<'a> {
    /// A bit for each weight that counts, the lowest one for D; 0 where all do.
    pub(super) weights: u8,
    pub(super) prefix: bool,
    pub(super) checksum: i32,
    pub(super) text: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operator {
    pub(super) kind: Kind,
    /// Of a phrase, how far behind the left operand the right one is.
    pub(super) distance: i16,
    /// Nodes to the left operand. Of NOT, which has none, it means nothing.
    pub(super) to_left: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node<'a> {
    Operand(Operand<'a>),
    Operator(Operator),
}

/// A `tsquery`.
#[derive(Debug, Clone)]
pub(super) struct Query<'a> {
    pub(super) nodes: Vec<Node<'a>>,
}

#[cold]
pub(super) fn damaged() -> StatementError {
    StatementError::new(SqlState::DATA_CORRUPTED, "corrupt tsquery")
}

impl<'a> Query<'a> {
    pub(super) fn read(payload: &'a [u8]) -> Outcome<Self> {
        let (count, rest) = payload.split_first_chunk::<4>().ok_or_else(damaged)?;
        let count = u32::from_le_bytes(*count) as usize;
        let bytes = count.checked_mul(NODE_BYTES).ok_or_else(damaged)?;
        let (nodes, texts) = rest.split_at_checked(bytes).ok_or_else(damaged)?;
        let nodes = nodes.as_chunks().0.iter().map(|node| read_node(node, texts));
        let query = Self { nodes: nodes.collect::<Outcome<_>>()? };
        query.check()?;
        Ok(query)
    }

    /// Refuses nodes that make no tree.
    fn check(&self) -> Outcome<()> {
        // How many nodes the operands have that follow, the next one last.
        let mut sizes: Vec<u32> = Vec::new();
        for node in self.nodes.iter().rev() {
            let size = match node {
                Node::Operand(_) => 1,
                Node::Operator(operator) => {
                    let right = 1 + sizes.pop().ok_or_else(damaged)?;
                    let left = match operator.kind {
                        Kind::Not => 0,
                        _ if operator.to_left != right => return Err(damaged()),
                        _ => sizes.pop().ok_or_else(damaged)?,
                    };
                    right + left
                }
            };
            sizes.push(size);
        }
        match sizes.len() {
            0 | 1 => Ok(()),
            _ => Err(damaged()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The words in it.
    pub(super) fn operands(&self) -> impl Iterator<Item = (usize, Operand<'a>)> + '_ {
        self.nodes.iter().enumerate().filter_map(|(number, node)| match node {
            Node::Operand(operand) => Some((number, *operand)),
            Node::Operator(_) => None,
        })
    }
}

fn read_node<'a>(node: &[u8; NODE_BYTES], texts: &'a [u8]) -> Outcome<Node<'a>> {
    let [kind, first, second, third, a, b, c, d, place @ ..] = *node;
    let word = [a, b, c, d];
    if kind == OPERATOR {
        let kind = Kind::of(first).ok_or_else(damaged)?;
        let distance = i16::from_le_bytes([second, third]);
        let to_left = u32::from_le_bytes(word);
        return Ok(Node::Operator(Operator { kind, distance, to_left }));
    }
    if kind != OPERAND {
        return Err(damaged());
    }
    let place = u32::from_le_bytes(place);
    let (length, start) = ((place & 0xFFF) as usize, (place >> 12) as usize);
    let text = texts.get(start..start + length).ok_or_else(damaged)?;
    let checksum = i32::from_le_bytes(word);
    Ok(Node::Operand(Operand { weights: first, prefix: second != 0, checksum, text }))
}

/// The payload of these nodes, with the words in their order.
///
/// # Errors
/// When they are too long.
pub(super) fn payload<'a>(nodes: impl ExactSizeIterator<Item = Node<'a>>) -> Outcome<Vec<u8>> {
    let mut out = Vec::with_capacity(4 + 2 * NODE_BYTES * nodes.len());
    let mut texts = Vec::new();
    out.extend((nodes.len() as u32).to_le_bytes());
    for node in nodes {
        match node {
            Node::Operator(Operator { kind, distance, to_left }) => {
                out.extend([OPERATOR, kind as u8]);
                out.extend(distance.to_le_bytes());
                out.extend(to_left.to_le_bytes());
                out.extend([0; 4]);
            }
            Node::Operand(Operand { weights, prefix, checksum, text }) => {
                if texts.len() > MOST_BYTES {
                    return Err(too_large());
                }
                let place = (texts.len() as u32) << 12 | (text.len() as u32 & 0xFFF);
                out.extend([OPERAND, weights, u8::from(prefix), 0]);
                out.extend(checksum.to_le_bytes());
                out.extend(place.to_le_bytes());
                texts.extend_from_slice(text);
                texts.push(0);
            }
        }
    }
    out.extend(texts);
    Ok(out)
}

#[cold]
fn too_large() -> StatementError {
    StatementError::new(SqlState("54000"), "tsquery is too large")
}
