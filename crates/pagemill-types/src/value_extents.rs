//! Several extents of values, as a BRIN index keeps them of a range of blocks, and single values beside them.
//!
//! ```text
//! type (OID) 4 | extents 4 | single values 4 | limit 4 | lowest, highest of each extent | the single values
//! ```
//!
//! The values lie back to back, unaligned, each as it is stored in a tuple, a varlena with its length word.
//!
//! Invariants: every value of the range of blocks is in one of the extents; as many are given out as the bytes have, whatever they say; no
//! varlena is given out that is compressed or out of line.
//!
//! Source: `SerializedRanges`, `brin_range_serialize` and `brin_minmax_multi_consistent` in
//! `src/backend/access/brin/brin_minmax_multi.c`, PostgreSQL 14 to 18.

use pagemill_format::error::{Error, Result};
use pagemill_format::reader::Reader;

use crate::embedded::embedded_value;
use crate::value_extent::ValueExtent;

const STRUCTURE: &str = "pg_brin_minmax_multi_summary";

/// The extents that are left to be given out.
#[derive(Debug, Clone)]
pub struct ValueExtents<'e> {
    /// `typlen` of the values.
    len: i16,
    extents: u32,
    singles: u32,
    reader: Reader<'e>,
}

impl<'e> ValueExtents<'e> {
    /// The extents of a `pg_brin_minmax_multi_summary` without its length word, whose values are of a type of this `typlen`.
    ///
    /// # Errors
    /// Corrupt when it ends before, or has less than none.
    pub fn parse(payload: &'e [u8], len: i16) -> Result<Self> {
        let mut reader = Reader::new(STRUCTURE, payload);
        reader.u32()?;
        let (extents, singles) = (reader.i32()?, reader.i32()?);
        reader.i32()?;
        match (u32::try_from(extents), u32::try_from(singles)) {
            (Ok(extents), Ok(singles)) => Ok(Self { len, extents, singles, reader }),
            _ => Err(reader.corrupt(format!("{extents} extents and {singles} values"))),
        }
    }

    /// The next one; that of a single value begins and ends with it.
    ///
    /// # Errors
    /// Corrupt when a value is damaged, or not there.
    pub fn next_extent(&mut self) -> Result<Option<ValueExtent<'e>>> {
        if let Some(left) = self.extents.checked_sub(1) {
            self.extents = left;
            return Ok(Some(ValueExtent { lowest: self.value()?, highest: self.value()? }));
        }
        let Some(left) = self.singles.checked_sub(1) else { return Ok(None) };
        self.singles = left;
        let value = self.value()?;
        Ok(Some(ValueExtent { lowest: value, highest: value }))
    }

    fn value(&mut self) -> Result<&'e [u8]> {
        match usize::try_from(self.len) {
            Ok(len) if len > 0 => self.reader.bytes(len),
            _ if self.len == -1 => {
                let (_, len) = embedded_value(STRUCTURE, self.reader.clone().rest())?;
                self.reader.bytes(len)
            }
            _ => Err(Error::corrupt(STRUCTURE, 0, format!("a type of length {}", self.len))),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::known_value_tests::payload;

    fn all(value: &[u8], len: i16) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let (mut extents, mut found) = (ValueExtents::parse(value, len)?, Vec::new());
        while let Some(extent) = extents.next_extent()? {
            found.push((extent.lowest.to_vec(), extent.highest.to_vec()));
        }
        Ok(found)
    }

    #[test]
    fn extents_of_a_real_index_are_followed_by_its_single_values() {
        let value = payload(
            "17000000010000000700000010000000400100006806000028000000\
             5000000078000000a0000000c8000000f000000018010000",
        );
        let found = all(&value, 4).unwrap();
        let number = |bytes: &[u8]| i32::from_le_bytes(bytes.try_into().unwrap());
        let numbers: Vec<_> = found.iter().map(|(a, b)| (number(a), number(b))).collect();
        let singles = [40, 80, 120, 160, 200, 240, 280].map(|value| (value, value));
        assert_eq!(numbers, [&[(320, 1640)][..], &singles].concat());
        assert!(all(&value[..value.len() - 1], 4).is_err(), "the last value is cut");
        assert!(all(&value, 0).is_err() && all(&value, -2).is_err());
    }

    #[test]
    fn values_of_any_length_keep_their_length_words() {
        let head = payload("a4060000000000000200000010000000");
        let values = [&head[..], b"\x05a", &[6 << 2, 0, 0, 0, b'x', b'y']].concat();
        let found = all(&values, -1).unwrap();
        assert_eq!(found[0].0, b"\x05a");
        assert_eq!(found[1].1, [6 << 2, 0, 0, 0, b'x', b'y']);
        for bad in [&[1_u8, 18, 0, 0][..], &[6 << 2 | 2, 0, 0, 0, 0, 0], b"\x09a"] {
            assert!(all(&[&head[..], bad].concat(), -1).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(value: Vec<u8>, len in -3_i16..9) {
            let _ = all(&value, len);
        }
    }
}
