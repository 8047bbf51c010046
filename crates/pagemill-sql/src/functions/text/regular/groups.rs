//! Which patterns give their groups the same texts wherever alternatives are tried from left to right, each taking as much
//! as it can.
//!
//! The server gives the first part of a row as much as leaves the rest a match, and so on. That is the same if every part
//! of the row is of one length, is one character repeated, or is a group with no more than one such part in it; and if
//! there is no choice.

use super::syntax::Node;

/// True where groups are told.
pub(super) fn are_told(root: &Node) -> bool {
    match root {
        Node::Row(parts) => parts.iter().all(is_simple),
        other => is_simple(other),
    }
}

fn is_simple(part: &Node) -> bool {
    match part {
        Node::Empty | Node::One(_) | Node::Condition(_) => true,
        Node::Either(_) | Node::Row(_) | Node::Look(..) | Node::Same(_) => false,
        Node::Group(_, inner) => variable_parts(inner).is_some_and(|count| count <= 1),
        // A group that may be there or not.
        Node::Repeat { of, least: 0, most: Some(1) } => match &**of {
            Node::Group(_, inner) => {
                variable_parts(inner).is_some_and(|count| count <= 1) && !may_be_empty(inner)
            }
            Node::One(_) => true,
            _ => false,
        },
        Node::Repeat { of, .. } => matches!(**of, Node::One(_)),
    }
}

/// The parts of no fixed length; nothing where there is a choice or a repeated group.
fn variable_parts(node: &Node) -> Option<usize> {
    match node {
        Node::Empty | Node::One(_) | Node::Condition(_) => Some(0),
        Node::Either(_) | Node::Look(..) | Node::Same(_) => None,
        Node::Row(parts) => parts.iter().map(variable_parts).sum(),
        Node::Group(_, inner) => variable_parts(inner),
        Node::Repeat { of, least, most } => {
            let is_character = matches!(**of, Node::One(_));
            is_character.then_some(usize::from(Some(*least) != *most))
        }
    }
}

pub(super) fn may_be_empty(node: &Node) -> bool {
    match node {
        Node::Empty | Node::Condition(_) | Node::Look(..) | Node::Same(_) => true,
        Node::One(_) => false,
        Node::Row(parts) => parts.iter().all(may_be_empty),
        Node::Either(parts) => parts.iter().any(may_be_empty),
        Node::Group(_, inner) => may_be_empty(inner),
        Node::Repeat { of, least, .. } => *least == 0 || may_be_empty(of),
    }
}

/// True of a pattern that looks at what follows it.
pub(super) fn looks_ahead(node: &Node) -> bool {
    match node {
        Node::Empty | Node::One(_) => false,
        Node::Condition(condition) => *condition != "\\A",
        Node::Look(..) | Node::Same(_) => true,
        Node::Row(parts) | Node::Either(parts) => parts.iter().any(looks_ahead),
        Node::Group(_, inner) => looks_ahead(inner),
        Node::Repeat { of, .. } => looks_ahead(of),
    }
}
