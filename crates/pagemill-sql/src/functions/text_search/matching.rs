//! Whether a query is met: AND, OR and NOT of words that are there or not, and phrases of words that are at the right
//! places.
//!
//! Under a phrase each node has the places where it is met, or those where it is not. Where a vector tells no places, a
//! phrase is not met.
//!
//! Invariant: nodes are gone through from the last to the first, each once, so that no depth of a query takes the stack.
//!
//! Source: `TS_execute_recurse`, `TS_phrase_execute` and `TS_phrase_output` in `src/backend/utils/adt/tsvector_op.c`,
//! PostgreSQL 14 to 18.

use super::super::rows::Outcome;
use super::query::{Kind, Node, Operand, Operator, Query, damaged};
use super::vector::place;
use crate::error::StatementError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    No,
    Yes,
    /// It is there, but nobody knows where.
    Maybe,
}

/// What is known of a word, or of what is under a phrase.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) answer: Answer,
    /// In order, each once.
    pub(super) places: Vec<u16>,
    /// True where it is met at all places but those.
    pub(super) elsewhere: bool,
    /// How many places it takes, less one; those above are the last ones of each.
    pub(super) width: i32,
}

impl Found {
    pub(super) fn new(answer: Answer) -> Self {
        Self { answer, places: Vec::new(), elsewhere: false, width: 0 }
    }

    pub(super) fn at(places: Vec<u16>) -> Self {
        let answer = if places.is_empty() { Answer::No } else { Answer::Yes };
        Self { places, ..Self::new(answer) }
    }
}

/// What knows which words are there, and where.
pub(super) trait Words {
    /// The word of this node; with its places where they are wanted.
    fn find(&self, number: usize, operand: &Operand<'_>, wants_places: bool) -> Outcome<Found>;
}

/// True where the query has words, and they are met.
pub(super) fn is_met(query: &Query<'_>, words: &(impl Words + ?Sized)) -> Outcome<bool> {
    let in_phrase = under_phrases(query)?;
    // What is known of the operands that follow, the next one last.
    let mut known: Vec<Found> = Vec::new();
    for (number, node) in query.nodes.iter().enumerate().rev() {
        let is_inside = in_phrase[number];
        let found = match node {
            Node::Operand(operand) => words.find(number, operand, is_inside)?,
            Node::Operator(Operator { kind: Kind::Not, .. }) => {
                opposite(known.pop().ok_or_else(damaged)?)
            }
            Node::Operator(operator) => {
                let (right, left) = (known.pop(), known.pop());
                let (left, right) = left.zip(right).ok_or_else(damaged)?;
                combined(*operator, left, right, is_inside)
            }
        };
        known.push(found);
    }
    Ok(known.pop().is_some_and(|found| found.answer != Answer::No))
}

/// Most lists of places that [`located`] makes.
const MOST_LISTS: usize = 10_000;

/// What is known outside of phrases: whether it is met, and by which places.
struct Located {
    is_met: bool,
    lists: Vec<Found>,
    /// Where it is an operand of a phrase.
    inside: Option<Found>,
}

impl Located {
    fn at(found: Found) -> Self {
        let is_met = found.answer == Answer::Yes;
        let lists = if is_met && !found.elsewhere { vec![found] } else { Vec::new() };
        Self { is_met, lists, inside: None }
    }

    fn within(found: Found) -> Self {
        Self { is_met: false, lists: Vec::new(), inside: Some(found) }
    }
}

/// Lists of places, of each of which one has to be in what meets the query; none if nothing does.
///
/// # Errors
/// When there are too many of them.
pub(super) fn located(query: &Query<'_>, words: &(impl Words + ?Sized)) -> Outcome<Vec<Found>> {
    let in_phrase = under_phrases(query)?;
    let mut known: Vec<Located> = Vec::new();
    for (number, node) in query.nodes.iter().enumerate().rev() {
        let is_inside = in_phrase[number];
        let mut next = || known.pop().ok_or_else(damaged);
        let found = match node {
            Node::Operand(operand) => {
                let found = words.find(number, operand, true)?;
                if is_inside { Located::within(found) } else { Located::at(found) }
            }
            Node::Operator(operator) => {
                let (first, second) = match operator.kind {
                    Kind::Not => (next()?, None),
                    _ => {
                        // The right one was read last.
                        let right = next()?;
                        (next()?, Some(right))
                    }
                };
                located_operator(*operator, (first, second), is_inside)?
            }
        };
        known.push(found);
    }
    let found = known.pop().filter(|found| found.is_met);
    Ok(found.map(|found| found.lists).unwrap_or_default())
}

fn located_operator(
    operator: Operator,
    (left, right): (Located, Option<Located>),
    is_inside: bool,
) -> Outcome<Located> {
    let Some(right) = right else {
        return Ok(match left.inside {
            Some(found) => Located::within(opposite(found)),
            None => Located { is_met: !left.is_met, lists: Vec::new(), inside: None },
        });
    };
    if let (Some(left), Some(right)) = (&left.inside, &right.inside) {
        let found = match is_inside {
            true => {
                return Ok(Located::within(combined(operator, left.clone(), right.clone(), true)));
            }
            false => both(left, right, Some(operator.distance)),
        };
        return Ok(Located::at(found));
    }
    let mut lists = left.lists;
    let is_met = match operator.kind {
        Kind::Or => {
            lists = alternatives(lists, right.lists)?;
            left.is_met || right.is_met
        }
        _ => {
            lists.extend(right.lists);
            left.is_met && right.is_met
        }
    };
    if !is_met {
        lists.clear();
    }
    Ok(Located { is_met, lists, inside: None })
}

/// Each list of one side together with each of the other.
fn alternatives(left: Vec<Found>, right: Vec<Found>) -> Outcome<Vec<Found>> {
    if left.is_empty() || right.is_empty() {
        return Ok(if left.is_empty() { right } else { left });
    }
    if left.len().saturating_mul(right.len()) > MOST_LISTS {
        return Err(StatementError::unsupported("a headline of so many alternatives"));
    }
    let mut lists = Vec::with_capacity(left.len() * right.len());
    for left in &left {
        for right in &right {
            let places = merged((left, 0), (right, 0), EITHER);
            lists.push(Found { width: left.width.max(right.width), ..Found::at(places) });
        }
    }
    Ok(lists)
}

/// Of each node, whether it is an operand of a phrase, or of something that is.
fn under_phrases(query: &Query<'_>) -> Outcome<Vec<bool>> {
    let mut inside = vec![false; query.nodes.len()];
    for (number, node) in query.nodes.iter().enumerate() {
        let Node::Operator(operator) = node else { continue };
        if operator.kind != Kind::Phrase && !inside[number] {
            continue;
        }
        *inside.get_mut(number + 1).ok_or_else(damaged)? = true;
        if operator.kind != Kind::Not {
            *inside.get_mut(number + operator.to_left as usize).ok_or_else(damaged)? = true;
        }
    }
    Ok(inside)
}

/// NOT. Outside of phrases nothing has places, and what is met nowhere is met everywhere.
fn opposite(found: Found) -> Found {
    match found.answer {
        Answer::Maybe => Found::new(Answer::Maybe),
        Answer::No => Found { elsewhere: true, width: found.width, ..Found::new(Answer::Yes) },
        Answer::Yes if found.places.is_empty() => {
            Found { width: found.width, ..Found::new(Answer::No) }
        }
        Answer::Yes => Found { elsewhere: !found.elsewhere, ..found },
    }
}

fn combined(operator: Operator, left: Found, right: Found, is_inside: bool) -> Found {
    match operator.kind {
        Kind::Phrase if is_inside => both(&left, &right, Some(operator.distance)),
        // Nobody above asks for its places.
        Kind::Phrase => match both(&left, &right, Some(operator.distance)).answer {
            Answer::Yes => Found::new(Answer::Yes),
            _ => Found::new(Answer::No),
        },
        Kind::Or if is_inside => either(left, right),
        _ if is_inside => both(&left, &right, None),
        Kind::Or => match (left.answer, right.answer) {
            (Answer::No, answer) | (answer, Answer::No) => Found::new(answer),
            _ => Found::new(Answer::Yes),
        },
        _ => match (left.answer, right.answer) {
            (Answer::Yes, answer) | (answer, Answer::Yes) => Found::new(answer),
            _ => Found::new(Answer::No),
        },
    }
}

/// Which places of two lists are wanted.
#[derive(Clone, Copy)]
struct Wanted {
    left_only: bool,
    right_only: bool,
    both: bool,
}

const EITHER: Wanted = Wanted { left_only: true, right_only: true, both: true };
const BOTH: Wanted = Wanted { left_only: false, right_only: false, both: true };
const LEFT_ONLY: Wanted = Wanted { left_only: true, right_only: false, both: false };
const RIGHT_ONLY: Wanted = Wanted { left_only: false, right_only: true, both: false };

/// AND, or a phrase, of which the second part is so far behind the first.
fn both(left: &Found, right: &Found, distance: Option<i16>) -> Found {
    if left.answer == Answer::No || right.answer == Answer::No {
        return Found::new(Answer::No);
    }
    if left.answer == Answer::Maybe || right.answer == Answer::Maybe {
        return Found::new(Answer::Maybe);
    }
    let (by, width) = match distance.map(i32::from) {
        Some(distance) => {
            let by = distance.wrapping_add(right.width);
            ((by, 0), by.wrapping_add(left.width))
        }
        None => aligned(left, right),
    };
    let (wanted, elsewhere) = match (left.elsewhere, right.elsewhere) {
        (true, true) => (EITHER, true),
        (true, false) => (RIGHT_ONLY, false),
        (false, true) => (LEFT_ONLY, false),
        (false, false) => (BOTH, false),
    };
    let places = merged((left, by.0), (right, by.1), wanted);
    let found = Found { width, ..Found::at(places) };
    match elsewhere {
        true => Found { answer: Answer::Yes, elsewhere, ..found },
        false => found,
    }
}

/// OR.
fn either(mut left: Found, mut right: Found) -> Found {
    if left.answer == Answer::No && right.answer == Answer::No {
        return Found::new(Answer::No);
    }
    if left.answer == Answer::Maybe || right.answer == Answer::Maybe {
        return Found::new(Answer::Maybe);
    }
    for side in [&mut left, &mut right] {
        if side.answer == Answer::No {
            side.width = 0;
        }
    }
    let (by, width) = aligned(&left, &right);
    let (wanted, elsewhere) = match (left.elsewhere, right.elsewhere) {
        (true, true) => (BOTH, true),
        (true, false) => (LEFT_ONLY, true),
        (false, true) => (RIGHT_ONLY, true),
        (false, false) => (EITHER, false),
    };
    let places = merged((&left, by.0), (&right, by.1), wanted);
    let found = Found { width, ..Found::at(places) };
    match elsewhere {
        true => Found { answer: Answer::Yes, elsewhere, ..found },
        false => found,
    }
}

/// How far the places of each side move so that both end where the wider one does, and how wide that is.
fn aligned(left: &Found, right: &Found) -> ((i32, i32), i32) {
    let width = left.width.max(right.width);
    ((width.wrapping_sub(left.width), width.wrapping_sub(right.width)), width)
}

/// The wanted ones of two lists of places, each moved before it is compared. A place is kept in 16 bits, of which 14 count.
fn merged(
    (left, left_by): (&Found, i32),
    (right, right_by): (&Found, i32),
    wanted: Wanted,
) -> Vec<u16> {
    let moved = |at: &u16, by: i32| i32::from(place(*at)).wrapping_add(by);
    let mut left = left.places.iter().map(|at| moved(at, left_by)).peekable();
    let mut right = right.places.iter().map(|at| moved(at, right_by)).peekable();
    let mut places = Vec::new();
    loop {
        let (is_wanted, at) = match (left.peek().copied(), right.peek().copied()) {
            (None, None) => return places,
            (Some(a), Some(b)) if a == b => (wanted.both, a),
            (Some(a), b) if b.is_none_or(|b| a < b) => (wanted.left_only, a),
            (_, Some(b)) => (wanted.right_only, b),
            (Some(a), None) => (wanted.left_only, a),
        };
        left.next_if_eq(&at);
        right.next_if_eq(&at);
        if is_wanted && at > 0 {
            places.push(at as u16);
        }
    }
}
