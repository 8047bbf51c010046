//! The rows of tables that are made up: those of the experiments that this project began with.
//!
//! | table | columns | row `i`, counted from 1 |
//! | --- | --- | --- |
//! | `t` | `filler text` | 100 times `a`, `i`, 500 times `b` |
//! | `bigtable` | `a int, b int, c int` | three random numbers from 0 to 2147483647 |
//!
//! Invariant: a row depends on its number and the seed alone, not on the rows before it; so whoever makes it, it is
//! the same.

use std::io::Write as _;

use pagemill_format::tuple::{AttributeLayout, Span};
use pagemill_format::tuple_data_builder::{AttributeStorage, ColumnLayout, SpannedRow};
use pagemill_format::varlena::Compression;

/// Columns of `bigtable`.
const INTEGERS: u64 = 3;

/// A table that can be made up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GeneratedTable {
    /// One wide text column, about 600 bytes a row.
    T,
    /// Three random integers.
    Bigtable,
}

impl GeneratedTable {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::T => "t",
            Self::Bigtable => "bigtable",
        }
    }

    pub(crate) fn columns(self) -> Vec<ColumnLayout> {
        let column = |len, storage| ColumnLayout {
            layout: AttributeLayout { len, align: 4 },
            storage,
            compression: Compression::Pglz,
            dropped: false,
        };
        match self {
            Self::T => vec![column(-1, AttributeStorage::Extended)],
            Self::Bigtable => vec![column(4, AttributeStorage::Plain); INTEGERS as usize],
        }
    }
}

/// One row after the other, in one piece of memory.
#[derive(Debug)]
pub(crate) struct GeneratedRows {
    table: GeneratedTable,
    seed: u64,
    payloads: Vec<u8>,
    spans: Vec<Span>,
}

impl GeneratedRows {
    pub(crate) fn new(table: GeneratedTable, seed: u64) -> Self {
        Self { table, seed, payloads: Vec::new(), spans: Vec::new() }
    }

    /// The row of this number, counted from 1.
    pub(crate) fn row(&mut self, number: u64) -> SpannedRow<'_> {
        self.payloads.clear();
        self.spans.clear();
        match self.table {
            GeneratedTable::T => self.set_filler(number),
            GeneratedTable::Bigtable => self.set_integers(number),
        }
        SpannedRow { bytes: &self.payloads, spans: &self.spans }
    }

    fn set_filler(&mut self, number: u64) {
        self.payloads.resize(100, b'a');
        // Writing to memory does not fail.
        let _ = write!(self.payloads, "{number}");
        self.payloads.resize(self.payloads.len() + 500, b'b');
        self.spans.push(Span::new(0, self.payloads.len() as u32));
    }

    fn set_integers(&mut self, number: u64) {
        let first = number.wrapping_mul(INTEGERS);
        for place in 0..INTEGERS {
            let start = self.payloads.len() as u32;
            let value = random(self.seed, first.wrapping_add(place));
            self.payloads.extend_from_slice(&value.to_le_bytes());
            self.spans.push(Span::new(start, start + 4));
        }
    }
}

/// A number of 31 bits for a place in a sequence (SplitMix64, after Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", 2014).
fn random(seed: u64, place: u64) -> u32 {
    let mixed = seed.wrapping_add(place.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((mixed ^ (mixed >> 31)) >> 33) as u32
}

#[cfg(test)]
mod tests {
    use pagemill_format::tuple_data_builder::{Row, Value};

    use super::*;

    #[test]
    fn a_filler_has_its_number_in_the_middle() {
        let mut rows = GeneratedRows::new(GeneratedTable::T, 0);
        let expected = format!("{}42{}", "a".repeat(100), "b".repeat(500));
        assert_eq!(rows.row(42).value(0), Value::Plain(expected.as_bytes()));
    }

    #[test]
    fn random_numbers_are_those_of_the_published_generator() {
        // Its first two outputs for the seed 0, of which the upper 31 bits are taken.
        let outputs = [0xE220_A839_7B1D_CDAF_u64, 0x6E78_9E6A_A1B9_65F4];
        let expected = outputs.map(|output| (output >> 33) as u32);
        assert_eq!([random(0, 1), random(0, 2)], expected);
    }

    #[test]
    fn a_row_does_not_depend_on_the_one_before() {
        let mut rows = GeneratedRows::new(GeneratedTable::Bigtable, 7);
        let alone = rows.row(1000).bytes.to_vec();
        rows.row(999);
        assert_eq!(rows.row(1000).bytes, alone);
        assert_ne!(GeneratedRows::new(GeneratedTable::Bigtable, 8).row(1000).bytes, alone);
    }
}
