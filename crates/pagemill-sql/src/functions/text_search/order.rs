//! Bytes that sort as vectors and queries do, and are equal where those are.
//!
//! The orders mean nothing but equality: sizes first, and much of the rest with the greater one first, whose bytes are
//! turned over here.
//!
//! Invariant: nothing that a key has for one value is the beginning of what it has for another at the same place.
//!
//! Source: `silly_cmp_tsvector` in `src/backend/utils/adt/tsvector_op.c`, `CompareTSQ` in `tsquery_op.c`, `QTNodeCompare` in
//! `tsquery_util.c`, PostgreSQL 14 to 18.

use super::super::rows::Outcome;
use super::query::{Kind, Node, Query, damaged};
use super::vector::{Vector, place, weight};

/// Ends a text: below every byte of one.
const END: [u8; 2] = [0, 0];

fn push_text(text: &[u8], key: &mut Vec<u8>) {
    for byte in text {
        key.push(*byte);
        if *byte == 0 {
            key.push(1);
        }
    }
    key.extend(END);
}

/// What a vector is sorted and compared by.
pub(super) fn vector_key(payload: &[u8]) -> Outcome<Vec<u8>> {
    let vector = Vector::read(payload)?;
    let mut key = Vec::with_capacity(8 + 2 * payload.len());
    key.extend((payload.len() as u32).to_be_bytes());
    key.extend((vector.len() as u32).to_be_bytes());
    for entry in vector.entries() {
        let entry = entry?;
        key.push(u8::from(entry.positions.is_none()));
        push_text(entry.text, &mut key);
        let Some(positions) = entry.positions else { continue };
        key.extend((!(positions.len() as u16)).to_be_bytes());
        for position in positions.iter() {
            key.extend((!place(position)).to_be_bytes());
            key.push(!weight(position));
        }
    }
    Ok(key)
}

/// What a query is sorted and compared by. Weights and stars do not count.
pub(super) fn query_key(payload: &[u8]) -> Outcome<Vec<u8>> {
    let query = Query::read(payload)?;
    let mut key = Vec::with_capacity(8 + 2 * payload.len());
    key.extend((query.nodes.len() as u32).to_be_bytes());
    key.extend((payload.len() as u32).to_be_bytes());
    let mut tasks: Vec<Task> = (!query.is_empty()).then_some(Task::Node(0)).into_iter().collect();
    while let Some(task) = tasks.pop() {
        let number = match task {
            Task::Distance(distance) => {
                key.extend((!turned(i32::from(distance))).to_be_bytes());
                continue;
            }
            Task::Node(number) => number,
        };
        match query.nodes.get(number).ok_or_else(damaged)? {
            Node::Operand(operand) => {
                key.push(1);
                key.extend((!turned(operand.checksum)).to_be_bytes());
                push_text(operand.text, &mut key);
            }
            Node::Operator(operator) => {
                key.extend([0, !(operator.kind as u8)]);
                if operator.kind == Kind::Phrase {
                    tasks.push(Task::Distance(operator.distance));
                }
                if operator.kind != Kind::Not {
                    tasks.push(Task::Node(number + operator.to_left as usize));
                }
                tasks.push(Task::Node(number + 1));
            }
        }
    }
    Ok(key)
}

enum Task {
    Node(usize),
    /// Of a phrase, behind both of its parts.
    Distance(i16),
}

/// A number that sorts without its sign as the other does with it.
fn turned(number: i32) -> u32 {
    number as u32 ^ 1 << 31
}
