//! A filter of values, as a BRIN index keeps one of a range of blocks: whether a value can be among those that it was made of.
//!
//! ```text
//! flags 2 | hash functions 1 | gap 1 | bits 4 | bits that are set 4 | the bits, lowest of each byte first
//! ```
//!
//! Of a value's hash two more are made; the place of the n-th bit is the first of them and n times the second.
//!
//! Invariant: no is said only where a bit of the value is not set, and whatever the bytes, none outside of them is asked for.
//!
//! Source: `BloomFilter`, `bloom_add_value` and `bloom_contains_value` in `src/backend/access/brin/brin_bloom.c`, PostgreSQL 14 to 18.

use pagemill_format::error::Result;
use pagemill_format::reader::Reader;

use crate::jenkins_hash::hash_bytes;

const STRUCTURE: &str = "pg_brin_bloom_summary";
/// What the two hashes of a hash are made with.
const SEEDS: [u64; 2] = [0x71d9_24af, 0xba48_b314];

/// Such a filter.
#[derive(Debug, Clone, Copy)]
pub struct ValueFilter<'f> {
    hashes: u8,
    /// At least one.
    bit_count: u32,
    /// All of them are there.
    bits: &'f [u8],
}

impl<'f> ValueFilter<'f> {
    /// The filter that a `pg_brin_bloom_summary` without its length word is.
    ///
    /// # Errors
    /// Corrupt when it has no bits, or fewer than it says.
    pub fn parse(payload: &'f [u8]) -> Result<Self> {
        let mut reader = Reader::new(STRUCTURE, payload);
        reader.u16()?;
        let hashes = reader.u8()?;
        reader.align(4);
        let bit_count = reader.u32()?;
        reader.u32()?;
        let bits = reader.rest();
        if bit_count == 0 || bits.len() < bit_count.div_ceil(8) as usize {
            return Err(reader.corrupt(format!("{bit_count} bits in {} bytes", bits.len())));
        }
        Ok(Self { hashes, bit_count, bits })
    }

    /// Whether a value with this hash can be among those of the filter.
    pub fn may_have(&self, hash: u32) -> bool {
        let [start, step] =
            SEEDS.map(|seed| hash_bytes(&hash.to_le_bytes(), seed) % u64::from(self.bit_count));
        (0..u64::from(self.hashes)).all(|turn| {
            let at = (start + turn * step) % u64::from(self.bit_count);
            self.bits.get((at / 8) as usize).is_some_and(|byte| byte & 1 << (at % 8) != 0)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::builtin::oid;
    use crate::known_value_tests::payload;
    use crate::value_hash::ValueHash;

    /// Of the numbers 1 to 40, with `n_distinct_per_range = 40, false_positive_rate = 0.05`, in version 15.
    const OF_NUMBERS: &str = "000004000001000072000000\
        59a33082e29283c95aaf9f24ae21db50f6df1058a18f82c82222209f880d758e";

    #[test]
    fn a_filter_of_a_real_index_has_the_values_it_was_made_of() {
        let filter = payload(OF_NUMBERS);
        let filter = ValueFilter::parse(&filter).unwrap();
        let hash = ValueHash::of_type(oid::INT4).unwrap();
        let has = |value: i32| filter.may_have(hash.short_hash(&value.to_le_bytes()));
        assert!((1..=40).all(has));
        let others = (41..=1040).filter(|value| has(*value)).count();
        assert!((10..100).contains(&others), "{others} of 1000");
    }

    #[test]
    fn a_filter_without_bits_is_damaged() {
        assert!(ValueFilter::parse(&payload("000003000000000000000000ff")).is_err());
        assert!(ValueFilter::parse(&payload("000003001000000000000000ff")).is_err());
        assert!(ValueFilter::parse(&payload("000003001000000000000000ffff")).is_ok());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(value: Vec<u8>, hash: u32) {
            if let Ok(filter) = ValueFilter::parse(&value) {
                filter.may_have(hash);
            }
        }
    }
}
