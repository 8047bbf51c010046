//! Which rows TABLESAMPLE takes: those whose place has a hash below a border.
//!
//! ```text
//! SYSTEM      hash(block, seed)                  one answer for all rows of a block
//! BERNOULLI   hash(block, line pointer, seed)    one for each
//! ```
//!
//! Invariant: with a seed of REPEATABLE the rows are the server's.
//!
//! Source: `src/backend/access/tablesample/{system,bernoulli}.c`, `tablesample_init` in `nodeSamplescan.c`, `hashfloat8` in
//! `hashfunc.c`, `hash_bytes` in `src/common/hashfn.c`, PostgreSQL 14 to 18.

use arrow::array::ArrayRef;
use pagemill_types::jenkins_hash::hash_bytes;

use super::rows::{Outcome, three};
use super::{Implementation, KernelCall};

/// Of `ctid`, the border and the seed; no function of C's has such a name.
pub(crate) const OF_BLOCKS: &str = "sample of blocks";
/// The same for single rows.
pub(crate) const OF_ROWS: &str = "sample of rows";

pub(crate) fn find(key: &str) -> Option<Implementation> {
    match key {
        OF_BLOCKS => Some(Implementation::Kernel(of_blocks)),
        OF_ROWS => Some(Implementation::Kernel(of_rows)),
        _ => None,
    }
}

fn of_blocks(_: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    three(arguments, |tid: &[u8], border: i64, seed: i64| {
        let (block, _) = place(tid);
        Ok(i64::from(hash(&[block, seed as u32])) < border)
    })
}

fn of_rows(_: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    three(arguments, |tid: &[u8], border: i64, seed: i64| {
        let (block, line_pointer) = place(tid);
        Ok(i64::from(hash(&[block, line_pointer, seed as u32])) < border)
    })
}

/// The block and the line pointer of a TID, which a scan has made.
fn place(tid: &[u8]) -> (u32, u32) {
    let half = |at: usize| match tid.get(at..at + 2) {
        Some([low, high]) => u32::from(u16::from_le_bytes([*low, *high])),
        _ => 0,
    };
    (half(0) << 16 | half(2), half(4))
}

/// The hash below which a share of all hashes is, in percent; `None` of what is no share.
pub(crate) fn border(percent: f32) -> Option<i64> {
    let percent = f64::from(percent);
    let all = f64::from(u32::MAX) + 1.0;
    // A number of 33 bits at most.
    (0.0..=100.0).contains(&percent).then(|| (all * percent / 100.0).round_ties_even() as i64)
}

/// The seed that the number of REPEATABLE makes.
pub(crate) fn seed(repeatable: f64) -> u32 {
    if repeatable == 0.0 {
        return 0;
    }
    let bits = if repeatable.is_nan() { f64::NAN.to_bits() } else { repeatable.to_bits() };
    hash(&[bits as u32, (bits >> 32) as u32])
}

/// The hash of 32 bits of two words or three.
fn hash(words: &[u32]) -> u32 {
    let mut bytes = [[0; 4]; 3];
    for (bytes, word) in bytes.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    hash_bytes(bytes[..words.len()].as_flattened(), 0) as u32
}
