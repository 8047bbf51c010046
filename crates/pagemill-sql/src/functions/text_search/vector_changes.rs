//! Vectors made of vectors: `||`, `strip`, `setweight`, `ts_delete`, `ts_filter`, and those made of lexemes.
//!
//! Source: `tsvector_concat`, `tsvector_strip`, `tsvector_setweight`, `tsvector_delete_by_indices`, `tsvector_filter` and
//! `array_to_tsvector` in `src/backend/utils/adt/tsvector_op.c`, PostgreSQL 14 to 18. About weights and lexemes that are too long
//! minor versions before 15.20 and 18.6, and those of their time, have other words or none.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::super::rows::Outcome;
use super::vector::{
    Entry, LAST_POSITION, LONGEST_LEXEME, MOST_POSITIONS, Vector, VectorBuilder, place, weight,
};
use crate::error::{SqlState, StatementError};

/// `ERRCODE_NULL_VALUE_NOT_ALLOWED`.
pub(super) const NULL_NOT_ALLOWED: SqlState = SqlState("22004");

/// The weight that a letter stands for.
///
/// # Errors
/// When it stands for none.
pub(super) fn weight_of(letter: u8) -> Outcome<u8> {
    match letter {
        b'A' | b'a' => Ok(3),
        b'B' | b'b' => Ok(2),
        b'C' | b'c' => Ok(1),
        b'D' | b'd' => Ok(0),
        b' '..=b'~' => Err(unknown_weight(&char::from(letter).to_string())),
        _ => Err(unknown_weight(&format!("\\{letter:03o}"))),
    }
}

#[cold]
fn unknown_weight(letter: &str) -> StatementError {
    let message = format!("unrecognized weight: \"{letter}\"");
    StatementError::new(SqlState::INVALID_PARAMETER, message)
}

/// The highest position of a vector, 0 where none has any.
fn last_place(vector: Vector<'_>) -> Outcome<u16> {
    let mut last = 0;
    for entry in vector.entries() {
        last = entry?.positions().map(place).fold(last, u16::max);
    }
    Ok(last)
}

/// Appends positions as far behind others as those reach. The last position there is ends them.
fn append(positions: &mut Vec<u16>, more: Entry<'_>, by: u16) {
    for position in more.positions() {
        let is_full = positions.len() >= MOST_POSITIONS;
        if is_full || positions.last().is_some_and(|last| place(*last) == LAST_POSITION) {
            return;
        }
        let moved = (place(position) + by).min(LAST_POSITION);
        positions.push(moved | u16::from(weight(position)) << 14);
    }
}

fn moved(entry: Entry<'_>, by: u16) -> Vec<u16> {
    let mut positions = Vec::new();
    append(&mut positions, entry, by);
    positions
}

/// The lexemes of both, the positions of the second one behind those of the first.
pub(super) fn concatenated(a: Vector<'_>, b: Vector<'_>) -> Outcome<Vec<u8>> {
    let by = last_place(a)?;
    let mut out = VectorBuilder::default();
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let (first, second) = (a.entry(i)?, b.entry(j)?);
        let order = first.text.cmp(second.text);
        match order {
            Ordering::Less => out.push(first.text, first.positions()),
            Ordering::Greater => out.push(second.text, moved(second, by)),
            Ordering::Equal => {
                let mut positions: Vec<u16> = first.positions().collect();
                append(&mut positions, second, by);
                out.push(first.text, positions);
            }
        }
        i += usize::from(order != Ordering::Greater);
        j += usize::from(order != Ordering::Less);
    }
    for i in i..a.len() {
        let entry = a.entry(i)?;
        out.push(entry.text, entry.positions());
    }
    for j in j..b.len() {
        let entry = b.entry(j)?;
        out.push(entry.text, moved(entry, by));
    }
    out.finish()
}

/// The lexemes without their positions.
pub(super) fn stripped(vector: Vector<'_>) -> Outcome<Vec<u8>> {
    let mut out = VectorBuilder::default();
    for entry in vector.entries() {
        out.push(entry?.text, []);
    }
    out.finish()
}

/// Gives the positions of some lexemes, or of all, another weight.
pub(super) fn weighted(
    payload: &[u8],
    letter: u8,
    lexemes: Option<&[Option<Vec<u8>>]>,
) -> Outcome<Vec<u8>> {
    let weight = u16::from(weight_of(letter)?);
    let vector = Vector::read(payload)?;
    let mut out = payload.to_vec();
    let mut weigh = |number: usize| -> Outcome<()> {
        let bytes = &mut out[vector.position_bytes(number)?];
        for position in bytes.as_chunks_mut::<2>().0 {
            *position = (place(u16::from_le_bytes(*position)) | weight << 14).to_le_bytes();
        }
        Ok(())
    };
    match lexemes {
        None => (0..vector.len()).try_for_each(weigh)?,
        Some(lexemes) => {
            for lexeme in lexemes.iter().flatten() {
                vector.number_of(lexeme)?.map_or(Ok(()), &mut weigh)?;
            }
        }
    }
    Ok(out)
}

/// A vector without these lexemes, those of them that it has.
pub(super) fn without<'l>(
    vector: Vector<'_>,
    lexemes: impl Iterator<Item = &'l [u8]>,
) -> Outcome<Vec<u8>> {
    let mut gone = BTreeSet::new();
    for lexeme in lexemes {
        gone.extend(vector.number_of(lexeme)?);
    }
    let mut out = VectorBuilder::default();
    for number in (0..vector.len()).filter(|number| !gone.contains(number)) {
        let entry = vector.entry(number)?;
        out.push(entry.text, entry.positions());
    }
    out.finish()
}

/// The lexemes that have a position of one of these weights, with such positions alone.
pub(super) fn filtered(vector: Vector<'_>, letters: &[Option<Vec<u8>>]) -> Outcome<Vec<u8>> {
    let mut kept = 0;
    for letter in letters {
        let Some([letter, ..]) = letter.as_deref() else {
            let message = "weight array may not contain nulls";
            return Err(StatementError::new(NULL_NOT_ALLOWED, message));
        };
        kept |= 1_u8 << weight_of(*letter)?;
    }
    let mut out = VectorBuilder::default();
    for entry in vector.entries() {
        let entry = entry?;
        let is_kept = |position: &u16| kept & 1 << weight(*position) != 0;
        let mut positions = entry.positions().filter(is_kept).peekable();
        if positions.peek().is_some() {
            out.push(entry.text, positions);
        }
    }
    out.finish()
}

#[cold]
pub(super) fn null_lexeme() -> StatementError {
    StatementError::new(NULL_NOT_ALLOWED, "lexeme array may not contain nulls")
}

/// A vector of lexemes without positions. In version 14 one may be empty.
pub(super) fn of_lexemes(lexemes: &[Option<Vec<u8>>], may_be_empty: bool) -> Outcome<Vec<u8>> {
    let mut sorted = BTreeSet::new();
    for lexeme in lexemes {
        let lexeme = lexeme.as_deref().ok_or_else(null_lexeme)?;
        if lexeme.is_empty() && !may_be_empty {
            let message = "lexeme array may not contain empty strings";
            return Err(StatementError::new(SqlState("2200F"), message));
        }
        if lexeme.len() > LONGEST_LEXEME {
            let bytes = lexeme.len();
            let message = format!("word is too long ({bytes} bytes, max {LONGEST_LEXEME} bytes)");
            return Err(StatementError::new(SqlState("54000"), message));
        }
        sorted.insert(lexeme);
    }
    let mut out = VectorBuilder::default();
    sorted.into_iter().for_each(|lexeme| out.push(lexeme, []));
    out.finish()
}
