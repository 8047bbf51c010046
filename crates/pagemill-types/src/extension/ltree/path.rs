//! `ltree`: labels with dots between them.
//!
//! ```text
//! labels, u16 | 2 bytes | { length u16 | text, up to a multiple of 8 from the length word } …
//! ```
//!
//! Invariants: bytes that the extension made have zeros for padding, so values of the same bytes are equal. Equal values mostly have the
//! same bytes, but not always: a path without labels that `subpath` or `subltree` made keeps labels it does not count, and what is
//! appended to it takes those in. [`order_key`] is the same for equal values.
//!
//! Sources: `contrib/ltree/ltree.h`, `ltree_out` in `contrib/ltree/ltree_io.c`, `contrib/ltree/ltree_op.c`, PostgreSQL 14 to 18.

use pagemill_format::error::{Error, Result};
use pagemill_format::reader::Reader;

const LTREE: &str = "ltree";
/// Bytes before the first label.
pub(super) const HEADER_BYTES: usize = 4;
/// The header of a path without labels.
pub(super) const HEADER: [u8; HEADER_BYTES] = [0; HEADER_BYTES];
const LENGTH_BYTES: usize = 2;

/// Bytes that a label of this length takes.
fn label_bytes(length: usize) -> usize {
    (length + LENGTH_BYTES).next_multiple_of(8)
}

/// Appends a label, whose length the parser checked.
pub(super) fn push_label(label: &[u8], payload: &mut Vec<u8>) {
    let end = payload.len() + label_bytes(label.len());
    payload.extend_from_slice(&(label.len() as u16).to_le_bytes());
    payload.extend_from_slice(label);
    payload.resize(end, 0);
}

/// A path whose labels were found.
#[derive(Debug, Clone)]
pub(super) struct Path<'a> {
    payload: &'a [u8],
    pub(super) labels: Vec<&'a [u8]>,
}

impl<'a> Path<'a> {
    /// # Errors
    /// When the payload is cut off.
    pub(super) fn parse(payload: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(LTREE, payload);
        let count = reader.u16()?;
        let mut labels = Vec::with_capacity(usize::from(count).min(payload.len() / 8));
        for _ in 0..count {
            // Labels lie at multiples of 8 from the length word, which is 4 bytes before the payload.
            let at = (reader.pos() + 4).next_multiple_of(8) - 4;
            reader.seek(at)?;
            let length = reader.u16()?;
            labels.push(reader.bytes(length.into())?);
        }
        Ok(Self { payload, labels })
    }

    /// The bytes of the labels before this one, from where the first begins.
    pub(super) fn bytes_before(&self, label: usize) -> usize {
        self.labels.iter().take(label).map(|one| label_bytes(one.len())).sum()
    }

    /// These bytes of the labels' part.
    ///
    /// # Errors
    /// When the payload is cut off.
    pub(super) fn label_part(&self, from: usize, to: usize) -> Result<&'a [u8]> {
        let found = self.payload.get(HEADER_BYTES + from..HEADER_BYTES + to);
        found.ok_or_else(|| Error::corrupt(LTREE, self.payload.len(), "labels that are cut off"))
    }

    /// What `ltree_cmp` gives: the sign tells the order.
    ///
    /// Minor versions before those of late 2026 multiply the number by ten times the labels left, which overflowed for long paths.
    pub(super) fn compare(&self, other: &Self) -> i32 {
        let pairs = self.labels.iter().zip(&other.labels);
        let mut differences = pairs.map(|(one, another)| difference(one, another));
        let by_count = || self.labels.len() as i32 - other.labels.len() as i32;
        differences.find(|found| *found != 0).unwrap_or_else(by_count)
    }

    /// True where this path begins with all labels of the other one.
    pub(super) fn is_below(&self, ancestor: &Self) -> bool {
        self.labels.starts_with(&ancestor.labels)
    }
}

/// How two labels differ: as C's `memcmp` does it by the first bytes that are not the same, else by how many bytes one is longer.
fn difference(one: &[u8], another: &[u8]) -> i32 {
    let pairs = one.iter().zip(another);
    let mut differences = pairs.map(|(one, another)| i32::from(*one) - i32::from(*another));
    let by_length = || one.len() as i32 - another.len() as i32;
    differences.find(|found| *found != 0).unwrap_or_else(by_length)
}

/// Bytes that compare as the values do, in the order of `ltree`'s btree operator class, and are the same for equal values.
///
/// Minor versions before those of late 2026 overflow where paths differ by more than about 14,000 labels; the order here is the later ones'.
///
/// # Errors
/// When the payload is cut off.
pub fn order_key(payload: &[u8]) -> Result<Vec<u8>> {
    let path = Path::parse(payload)?;
    let mut key = Vec::with_capacity(payload.len());
    for label in &path.labels {
        for byte in *label {
            key.push(*byte);
            if *byte == 0 {
                key.push(u8::MAX);
            }
        }
        key.extend_from_slice(&[0, 1]);
    }
    Ok(key)
}

/// `ltree`: `Top.Science.Astronomy`.
///
/// # Errors
/// When the payload is cut off.
pub fn write_ltree(payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    for (number, label) in Path::parse(payload)?.labels.iter().enumerate() {
        if number > 0 {
            out.push(b'.');
        }
        out.extend_from_slice(label);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed;

    #[test]
    fn labels_print_with_dots() {
        let payload = *b"\x02\0\0\0\x03\0Top\0\0\0\x07\0Science";
        assert_eq!(printed(write_ltree, &payload), "Top.Science");
        assert_eq!(printed(write_ltree, b"\0\0\0\0"), "");
        assert!(write_ltree(&payload[..16], &mut Vec::new()).is_err());
    }
}
