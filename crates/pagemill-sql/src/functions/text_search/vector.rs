//! A `tsvector` taken apart, and one that is made. See `pagemill_types::tsvector` for the layout.
//!
//! Lexemes are found by halves, so that of a long vector only a few are looked at.
//!
//! Invariant: nothing is read past the end of a payload, whatever its words say: that is an error. What is made has its
//! lexemes one behind the other in the order in which they came, which has to be the order of their bytes.
//!
//! Source: `src/include/tsearch/ts_type.h`, `tsvector_bsearch` and `tsCompareString` in
//! `src/backend/utils/adt/tsvector_op.c`, PostgreSQL 14 to 18.

use std::ops::Range;

use super::super::rows::Outcome;
use crate::error::{SqlState, StatementError};

/// Longest lexeme in bytes (`MAXSTRLEN` less one).
pub(super) const LONGEST_LEXEME: usize = (1 << 11) - 2;
/// Most bytes of lexemes and positions (`MAXSTRPOS`).
pub(super) const MOST_BYTES: usize = (1 << 20) - 1;
/// The highest position there is.
pub(super) const LAST_POSITION: u16 = (1 << 14) - 1;
/// Most positions of a lexeme (`MAXNUMPOS`).
pub(super) const MOST_POSITIONS: usize = 256;

/// A position without its weight.
pub(super) fn place(position: u16) -> u16 {
    position & LAST_POSITION
}

/// The weight of a position: 3 is A.
pub(super) fn weight(position: u16) -> u8 {
    (position >> 14) as u8
}

#[cold]
pub(super) fn damaged() -> StatementError {
    StatementError::new(SqlState::DATA_CORRUPTED, "corrupt tsvector")
}

/// The positions of a lexeme with their weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct Positions<'a>(&'a [[u8; 2]]);

impl<'a> Positions<'a> {
    pub(super) fn len(self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(self) -> impl ExactSizeIterator<Item = u16> + 'a {
        self.0.iter().map(|bytes| u16::from_le_bytes(*bytes))
    }
}

/// A lexeme, and its positions if it has any.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) text: &'a [u8],
    pub(super) positions: Option<Positions<'a>>,
}

impl<'a> Entry<'a> {
    /// Its positions, none of them where it has none.
    pub(super) fn positions(self) -> impl Iterator<Item = u16> + 'a {
        self.positions.into_iter().flat_map(Positions::iter)
    }
}

/// A `tsvector` as it is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vector<'a> {
    words: &'a [[u8; 4]],
    data: &'a [u8],
}

impl<'a> Vector<'a> {
    pub(super) fn read(payload: &'a [u8]) -> Outcome<Self> {
        let (count, rest) = payload.split_first_chunk::<4>().ok_or_else(damaged)?;
        let bytes = (u32::from_le_bytes(*count) as usize).checked_mul(4).ok_or_else(damaged)?;
        let (words, data) = rest.split_at_checked(bytes).ok_or_else(damaged)?;
        Ok(Self { words: words.as_chunks().0, data })
    }

    /// How many lexemes it has.
    pub(super) fn len(self) -> usize {
        self.words.len()
    }

    pub(super) fn entry(self, number: usize) -> Outcome<Entry<'a>> {
        let word = u32::from_le_bytes(*self.words.get(number).ok_or_else(damaged)?);
        let start = (word >> 12) as usize;
        let end = start + (word >> 1 & 0x7FF) as usize;
        let text = self.data.get(start..end).ok_or_else(damaged)?;
        let positions = match word & 1 {
            0 => None,
            _ => {
                let bytes = self.data.get(self.behind(end)?).ok_or_else(damaged)?;
                Some(Positions(bytes.as_chunks().0))
            }
        };
        Ok(Entry { text, positions })
    }

    /// Where the positions lie of a lexeme that ends there.
    fn behind(self, end: usize) -> Outcome<Range<usize>> {
        let start = end.next_multiple_of(2);
        let count = self.data.get(start..).and_then(|data| data.first_chunk::<2>());
        let count = usize::from(u16::from_le_bytes(*count.ok_or_else(damaged)?));
        Ok(start + 2..start + 2 + 2 * count)
    }

    pub(super) fn entries(self) -> impl Iterator<Item = Outcome<Entry<'a>>> {
        (0..self.len()).map(move |number| self.entry(number))
    }

    /// Where in the payload the positions of a lexeme lie.
    pub(super) fn position_bytes(self, number: usize) -> Outcome<Range<usize>> {
        let word = u32::from_le_bytes(*self.words.get(number).ok_or_else(damaged)?);
        if word & 1 == 0 {
            return Ok(0..0);
        }
        let end = (word >> 12) as usize + (word >> 1 & 0x7FF) as usize;
        let range = self.behind(end)?;
        let header = 4 + 4 * self.words.len();
        match range.end <= self.data.len() {
            true => Ok(header + range.start..header + range.end),
            false => Err(damaged()),
        }
    }

    /// The number of the first lexeme that is not below a text, and whether it is that text.
    pub(super) fn search(self, text: &[u8]) -> Outcome<(usize, bool)> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.entry(middle)?.text.cmp(text) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok((middle, true)),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok((low, false))
    }

    /// The number of a lexeme.
    pub(super) fn number_of(self, text: &[u8]) -> Outcome<Option<usize>> {
        let (number, is_there) = self.search(text)?;
        Ok(is_there.then_some(number))
    }
}

/// A `tsvector` in the making.
#[derive(Default)]
pub(super) struct VectorBuilder {
    /// Length, place and whether there are positions, of each lexeme.
    words: Vec<(usize, usize, bool)>,
    data: Vec<u8>,
}

impl VectorBuilder {
    /// Appends a lexeme, which is above all that are there.
    pub(super) fn push(&mut self, text: &[u8], positions: impl IntoIterator<Item = u16>) {
        let place = self.data.len();
        self.data.extend_from_slice(text);
        let mut positions = positions.into_iter().peekable();
        let has_positions = positions.peek().is_some();
        if has_positions {
            self.data.resize(self.data.len().next_multiple_of(2), 0);
            let start = self.data.len();
            self.data.extend([0; 2]);
            self.data.extend(positions.flat_map(u16::to_le_bytes));
            let count = ((self.data.len() - start) / 2 - 1) as u16;
            self.data[start..start + 2].copy_from_slice(&count.to_le_bytes());
        }
        self.words.push((text.len(), place, has_positions));
    }

    /// The payload.
    ///
    /// # Errors
    /// When it is too long.
    pub(super) fn finish(self) -> Outcome<Vec<u8>> {
        let bytes = self.data.len();
        if bytes > MOST_BYTES {
            let message =
                format!("string is too long for tsvector ({bytes} bytes, max {MOST_BYTES} bytes)");
            return Err(StatementError::new(SqlState("54000"), message));
        }
        let mut out = Vec::with_capacity(4 + 4 * self.words.len() + bytes);
        out.extend((self.words.len() as u32).to_le_bytes());
        for (len, place, has_positions) in self.words {
            let word = u32::from(has_positions) | (len as u32 & 0x7FF) << 1 | (place as u32) << 12;
            out.extend(word.to_le_bytes());
        }
        out.extend(self.data);
        Ok(out)
    }
}
