//! `ts_rank`: how often the words of a query are in a vector, and how near to each other.
//!
//! Invariant: every step is rounded as the server rounds it, most of them to 32 bits.
//!
//! Source: `calc_rank`, `calc_rank_and`, `calc_rank_or`, `find_wordentry`, `SortAndUniqItems` and `getWeights` in
//! `src/backend/utils/adt/tsrank.c`, PostgreSQL 14 to 18.

use super::super::rows::Outcome;
use super::query::{Kind, Node, Operand, Query};
use super::sorting::sort;
use super::vector::{Entry, LAST_POSITION, Vector, place, weight};
use super::vector_changes::NULL_NOT_ALLOWED;
use crate::error::{SqlState, StatementError};

/// What a word of each weight counts, D first.
pub(super) type Weights = [f32; 4];

pub(super) const WEIGHTS: Weights = [0.1, 0.2, 0.4, 1.0];

/// Bits that say by what a rank is divided.
pub(super) const BY_LOGARITHM_OF_LENGTH: i32 = 1;
pub(super) const BY_LENGTH: i32 = 2;
pub(super) const BY_DISTANCE: i32 = 4;
pub(super) const BY_WORDS: i32 = 8;
pub(super) const BY_LOGARITHM_OF_WORDS: i32 = 16;
pub(super) const BY_ITSELF: i32 = 32;

/// The sum of the squares' reciprocals.
const SQUARES: f64 = 1.644_934_066_85;
/// As far from each other as no two positions are.
const FAR: i32 = LAST_POSITION as i32 + 1;

/// Weights that a statement gives; negative ones stand for those that there are without them.
///
/// # Errors
/// When they are no weights.
pub(super) fn weights(dimensions: i32, given: &[Option<f32>]) -> Outcome<Weights> {
    let subscript = |message: &str| Err(StatementError::new(SqlState("2202E"), message));
    if dimensions != 1 {
        return subscript("array of weight must be one-dimensional");
    }
    if given.len() < WEIGHTS.len() {
        return subscript("array of weight is too short");
    }
    if given.contains(&None) {
        let message = "array of weight must not contain nulls";
        return Err(StatementError::new(NULL_NOT_ALLOWED, message));
    }
    let mut weights = WEIGHTS;
    for (weight, given) in weights.iter_mut().zip(given.iter().flatten()) {
        if *given >= 0.0 {
            *weight = *given;
        }
        if *weight > 1.0 {
            return Err(StatementError::new(SqlState::INVALID_PARAMETER, "weight out of range"));
        }
    }
    Ok(weights)
}

/// How many positions a vector has, a lexeme without any counted once.
pub(super) fn length(vector: Vector<'_>) -> Outcome<usize> {
    let mut length = 0;
    for entry in vector.entries() {
        length += entry?.positions.map_or(1, |positions| positions.len().max(1));
    }
    Ok(length)
}

/// The lexemes that a word is, or begins.
pub(super) fn entries_of<'a>(
    vector: Vector<'a>,
    operand: &Operand<'_>,
) -> Outcome<Vec<(usize, Entry<'a>)>> {
    let (first, is_there) = vector.search(operand.text)?;
    let mut found = Vec::new();
    for number in first..vector.len() {
        let entry = vector.entry(number)?;
        let is_of_it = match operand.prefix {
            true => entry.text.starts_with(operand.text),
            false => is_there && number == first,
        };
        if !is_of_it {
            break;
        }
        found.push((number, entry));
    }
    Ok(found)
}

/// The words of a query in order, each once.
fn words<'a>(query: &Query<'a>) -> Vec<Operand<'a>> {
    let mut words: Vec<Operand<'a>> = query.operands().map(|(_, operand)| operand).collect();
    sort(&mut words, &|a, b| a.text.cmp(b.text));
    words.dedup_by_key(|operand| operand.text);
    words
}

/// What a pair of words counts that are so far from each other.
fn nearness(distance: i32) -> f32 {
    if distance > 100 {
        return 1e-30;
    }
    (1.0 / (1.005 + 0.05 * (f64::from(distance as f32) / 1.5 - 2.0).exp())) as f32
}

/// A lexeme's positions as pairs are counted.
struct Places {
    positions: Vec<u16>,
    are_unknown: bool,
}

impl Places {
    fn of(entry: Entry<'_>) -> Self {
        match entry.positions {
            Some(positions) => Self { positions: positions.iter().collect(), are_unknown: false },
            None => Self { positions: vec![LAST_POSITION], are_unknown: true },
        }
    }
}

/// The rank by how near to each other the words are.
fn by_pairs(weights: &Weights, vector: Vector<'_>, query: &Query<'_>) -> Outcome<f32> {
    let words = words(query);
    if words.len() < 2 {
        return by_words(weights, vector, query);
    }
    let mut rank = -1.0;
    // Of each word before this one, its last lexeme's.
    let mut before: Vec<Places> = Vec::new();
    for word in &words {
        let mut last = None;
        for (_, entry) in entries_of(vector, word)? {
            let places = Places::of(entry);
            for other in &before {
                rank = with_pairs(rank, weights, &places, other);
            }
            last = Some(places);
        }
        before.extend(last);
    }
    Ok(rank)
}

fn with_pairs(mut rank: f32, weights: &Weights, a: &Places, b: &Places) -> f32 {
    let counted = |position: u16| weights[usize::from(weight(position))];
    for (one, other) in a.positions.iter().flat_map(|a| b.positions.iter().map(move |b| (*a, *b))) {
        let distance = match (i32::from(place(one)) - i32::from(place(other))).abs() {
            0 if a.are_unknown || b.are_unknown => FAR,
            0 => continue,
            distance => distance,
        };
        let product = counted(one) * counted(other) * nearness(distance);
        let pair = f64::from(product).sqrt() as f32;
        rank = match rank < 0.0 {
            true => pair,
            false => (1.0 - (1.0 - f64::from(rank)) * (1.0 - f64::from(pair))) as f32,
        };
    }
    rank
}

/// The rank by how often each word is there.
fn by_words(weights: &Weights, vector: Vector<'_>, query: &Query<'_>) -> Outcome<f32> {
    let words = words(query);
    let mut rank = 0.0_f32;
    for word in &words {
        for (_, entry) in entries_of(vector, word)? {
            let positions = match entry.positions {
                Some(positions) => positions.iter().collect(),
                None => vec![0],
            };
            rank = (f64::from(rank) + f64::from(often(weights, &positions)) / SQUARES) as f32;
        }
    }
    match words.len() {
        0 => Ok(rank),
        count => Ok(rank / count as f32),
    }
}

/// The more a position counts the earlier it stands, the heaviest one as if it stood first.
fn often(weights: &Weights, positions: &[u16]) -> f32 {
    let square = |at: usize| ((at + 1) * (at + 1)) as f32;
    let (mut sum, mut heaviest, mut heaviest_at) = (0.0_f32, -1.0_f32, 0);
    for (at, position) in positions.iter().enumerate() {
        let weight = weights[usize::from(weight(*position))];
        sum += weight / square(at);
        if weight > heaviest {
            (heaviest, heaviest_at) = (weight, at);
        }
    }
    heaviest + sum - heaviest / square(heaviest_at)
}

/// `ts_rank`.
pub(super) fn rank(
    weights: &Weights,
    vector: Vector<'_>,
    query: &Query<'_>,
    divided: i32,
) -> Outcome<f32> {
    let Some(root) = query.nodes.first().filter(|_| vector.len() > 0) else { return Ok(0.0) };
    let is_of_pairs = match root {
        Node::Operator(operator) => matches!(operator.kind, Kind::And | Kind::Phrase),
        Node::Operand(_) => false,
    };
    let mut rank = match is_of_pairs {
        true => by_pairs(weights, vector, query)?,
        false => by_words(weights, vector, query)?,
    };
    if rank < 0.0 {
        rank = 1e-20;
    }
    let logarithm = |count: usize| (count as f64 + 1.0).ln() / 2.0_f64.ln();
    if divided & BY_LOGARITHM_OF_LENGTH != 0 {
        rank = (f64::from(rank) / logarithm(length(vector)?)) as f32;
    }
    if divided & BY_LENGTH != 0 {
        rank /= length(vector)? as f32;
    }
    if divided & BY_WORDS != 0 {
        rank /= vector.len() as f32;
    }
    if divided & BY_LOGARITHM_OF_WORDS != 0 {
        rank = (f64::from(rank) / logarithm(vector.len())) as f32;
    }
    if divided & BY_ITSELF != 0 {
        rank /= rank + 1.0;
    }
    Ok(rank)
}
