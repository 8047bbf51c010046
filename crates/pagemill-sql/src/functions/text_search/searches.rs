//! A query held against a vector: `@@`.
//!
//! Source: `ts_match_vq`, `checkcondition_str` and `checkclass_str` in `src/backend/utils/adt/tsvector_op.c`,
//! PostgreSQL 14 to 18.

use super::super::rows::Outcome;
use super::matching::{Answer, Found, Words, is_met};
use super::query::{Operand, Query};
use super::vector::{Entry, Vector, place, weight};

/// True where the vector is what the query looks for.
pub(super) fn matches(vector: Vector<'_>, query: &Query<'_>) -> Outcome<bool> {
    is_met(query, &vector)
}

impl Words for Vector<'_> {
    fn find(&self, _: usize, operand: &Operand<'_>, wants_places: bool) -> Outcome<Found> {
        let (first, is_there) = self.search(operand.text)?;
        if !operand.prefix {
            return match is_there {
                true => Ok(found(self.entry(first)?, operand, wants_places)),
                false => Ok(Found::new(Answer::No)),
            };
        }
        let mut places = Vec::new();
        for number in first..self.len() {
            let entry = self.entry(number)?;
            if !entry.text.starts_with(operand.text) {
                break;
            }
            let found = found(entry, operand, wants_places);
            match found.answer {
                Answer::No => {}
                Answer::Maybe => return Ok(found),
                Answer::Yes if !wants_places => return Ok(found),
                Answer::Yes => places.extend(found.places),
            }
        }
        places.sort_unstable();
        places.dedup();
        Ok(Found::at(places))
    }
}

/// What a lexeme says to a word that it is, or begins with. One without positions has any weight.
fn found(entry: Entry<'_>, operand: &Operand<'_>, wants_places: bool) -> Found {
    let Some(positions) = entry.positions else {
        return Found::new(if wants_places { Answer::Maybe } else { Answer::Yes });
    };
    let counts = |at: &u16| operand.weights == 0 || operand.weights & 1 << weight(*at) != 0;
    let mut counting = positions.iter().filter(counts).map(place);
    match wants_places {
        true => Found::at(counting.collect()),
        false if operand.weights == 0 || counting.next().is_some() => Found::new(Answer::Yes),
        false => Found::new(Answer::No),
    }
}
