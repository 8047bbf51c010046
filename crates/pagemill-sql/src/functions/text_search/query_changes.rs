//! Queries made of queries: `&&`, `||`, `<->`, `!!`, `querytree`, and whether the words of one are those of another.
//!
//! Source: `join_tsqueries`, `tsquery_not` and `tsq_mcontains` in `src/backend/utils/adt/tsquery_op.c`, `tsquerytree` in
//! `tsquery.c`, `clean_NOT` in `tsquery_cleanup.c`, PostgreSQL 14 to 18.

use std::collections::BTreeSet;

use pagemill_types::tsquery::write_tsquery;

use super::super::rows::Outcome;
use super::query::{Kind, Node, Operator, Query, damaged, payload};
use crate::error::{SqlState, StatementError};

/// The farthest that the parts of a phrase may be from each other (`MAXENTRYPOS`).
const MOST_DISTANCE: i32 = 1 << 14;

/// Both queries under one operator. One without words leaves the other as it is.
pub(super) fn joined(a: &[u8], b: &[u8], kind: Kind, distance: i16) -> Outcome<Vec<u8>> {
    let (left, right) = (Query::read(a)?, Query::read(b)?);
    if left.is_empty() {
        return Ok(b.to_vec());
    }
    if right.is_empty() {
        return Ok(a.to_vec());
    }
    let to_left = 1 + right.nodes.len() as u32;
    let mut nodes = vec![Node::Operator(Operator { kind, distance, to_left })];
    nodes.extend(right.nodes);
    nodes.extend(left.nodes);
    payload(nodes.into_iter())
}

/// One query behind the other, so far.
///
/// # Errors
/// When that is no distance.
pub(super) fn phrase(a: &[u8], b: &[u8], distance: i32) -> Outcome<Vec<u8>> {
    let short = i16::try_from(distance).ok();
    let known = short.filter(|_| (0..=MOST_DISTANCE).contains(&distance));
    let Some(distance) = known else {
        let message = format!(
            "distance in phrase operator must be an integer value between zero and {MOST_DISTANCE} inclusive"
        );
        return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
    };
    joined(a, b, Kind::Phrase, distance)
}

/// The opposite of a query that has words.
pub(super) fn negated(query: &[u8]) -> Outcome<Vec<u8>> {
    let inner = Query::read(query)?;
    if inner.is_empty() {
        return Ok(query.to_vec());
    }
    let not = Operator { kind: Kind::Not, distance: 0, to_left: 0 };
    let mut nodes = vec![Node::Operator(not)];
    nodes.extend(inner.nodes);
    payload(nodes.into_iter())
}

/// True where all words of one query are words of the other, whatever the operators.
pub(super) fn contains(query: &[u8], example: &[u8]) -> Outcome<bool> {
    let (query, example) = (Query::read(query)?, Query::read(example)?);
    let known: BTreeSet<&[u8]> = query.operands().map(|(_, operand)| operand.text).collect();
    Ok(example.operands().all(|(_, operand)| known.contains(operand.text)))
}

/// What an index can be searched for: the text of a query without what is under NOT, `T` where that leaves nothing.
pub(super) fn searchable(query: &[u8]) -> Outcome<Vec<u8>> {
    let query = Query::read(query)?;
    if query.is_empty() {
        return Ok(Vec::new());
    }
    let stands_for = survivors(&query)?;
    let Some(root) = stands_for[0] else { return Ok(b"T".to_vec()) };
    let payload = payload(left_nodes(&query, &stands_for, root)?.into_iter())?;
    let mut text = Vec::new();
    write_tsquery(&payload, &mut text).map_err(|_| damaged())?;
    Ok(text)
}

/// Of each node the one that takes its place: itself, the one operand that is left of it, or none.
fn survivors(query: &Query<'_>) -> Outcome<Vec<Option<usize>>> {
    let mut found = vec![None; query.nodes.len()];
    for (number, node) in query.nodes.iter().enumerate().rev() {
        let Node::Operator(operator) = node else {
            found[number] = Some(number);
            continue;
        };
        let operand = |at: usize| found.get(at).copied().ok_or_else(damaged);
        let right = operand(number + 1)?;
        found[number] = match operator.kind {
            Kind::Not => None,
            Kind::Or => {
                let left = operand(number + operator.to_left as usize)?;
                left.and(right).map(|_| number)
            }
            Kind::And | Kind::Phrase => match (operand(number + operator.to_left as usize)?, right)
            {
                (Some(_), Some(_)) => Some(number),
                (left, right) => left.or(right),
            },
        };
    }
    Ok(found)
}

/// What is left of a tree, in the order of nodes.
fn left_nodes<'a>(
    query: &Query<'a>,
    stands_for: &[Option<usize>],
    root: usize,
) -> Outcome<Vec<Node<'a>>> {
    let survivor = |at: usize| stands_for.get(at).copied().flatten().ok_or_else(damaged);
    let mut nodes: Vec<Node<'a>> = Vec::new();
    let mut tasks = vec![Task::Node(root)];
    while let Some(task) = tasks.pop() {
        match task {
            Task::Left { of, at } => {
                let behind = (nodes.len() - of) as u32;
                if let Some(Node::Operator(operator)) = nodes.get_mut(of) {
                    operator.to_left = behind;
                }
                tasks.push(Task::Node(survivor(at)?));
            }
            Task::Node(number) => {
                if let Node::Operator(operator) = query.nodes[number] {
                    let at = number + operator.to_left as usize;
                    tasks.push(Task::Left { of: nodes.len(), at });
                    tasks.push(Task::Node(survivor(number + 1)?));
                }
                nodes.push(query.nodes[number]);
            }
        }
    }
    Ok(nodes)
}

/// What is still to be put behind the nodes that are there.
enum Task {
    Node(usize),
    /// The left operand of the operator that became the node `of`.
    Left {
        of: usize,
        at: usize,
    },
}
