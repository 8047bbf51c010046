//! [`Increment`]: which blocks of a segment a file of a delta backup has.
//!
//! `wi1U`, the length of the segment in 8 bytes, the number of blocks in 4, as many block numbers of 4 bytes, then the blocks in
//! this order. A block that it has not is as in the backup before; what lies behind the length was truncated away.
//!
//! Invariant: block numbers ascend strictly, and all lie within the length.
//!
//! Source: `IncrementalPageReader` in `internal/databases/postgres/incremental_page_reader.go`, `ApplyFileIncrement` in
//! `pagefile.go`, WAL-G 3.0.

use crate::error::{Error, Result};
use crate::ids::{BLOCK_SIZE, SEGMENT_BLOCKS};
use crate::reader::Reader;

const STRUCTURE: &str = "increment of a delta backup";
const MAGIC: u32 = u32::from_le_bytes(*b"wi1U");

/// Which blocks of a segment a file has, and how long the segment is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Increment {
    numbers: Vec<u32>,
    blocks: u32,
}

impl Increment {
    /// Bytes that say how long all that comes before the blocks is.
    pub const FIXED_BYTES: usize = 16;

    /// How many bytes come before the blocks, told from the first [`FIXED_BYTES`](Self::FIXED_BYTES).
    ///
    /// # Errors
    /// Corrupt: no such file, or numbers that no segment can have.
    pub fn bytes(start: &[u8]) -> Result<usize> {
        let (_, count) = fixed(&mut Reader::new(STRUCTURE, start))?;
        Ok(Self::FIXED_BYTES + 4 * count as usize)
    }

    /// Reads all that comes before the blocks.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes); block numbers that do not ascend, or lie behind the end.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(STRUCTURE, bytes);
        let (blocks, count) = fixed(&mut reader)?;
        let mut numbers = Vec::with_capacity((count as usize).min(reader.remaining() / 4));
        for _ in 0..count {
            let (at, number) = (reader.pos(), reader.u32()?);
            if number >= blocks || numbers.last().is_some_and(|last| *last >= number) {
                let what = format!("block {number} is out of order, or behind the end");
                return Err(Error::corrupt(STRUCTURE, at, what));
            }
            numbers.push(number);
        }
        Ok(Self { numbers, blocks })
    }

    /// Blocks of the segment.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Where in the file a block of the segment lies, in bytes; `None` if it has it not.
    pub fn offset(&self, block: u32) -> Option<u64> {
        let at = self.numbers.binary_search(&block).ok()?;
        Some((Self::FIXED_BYTES + 4 * self.numbers.len() + at * BLOCK_SIZE) as u64)
    }
}

/// The segment's length in blocks, and how many blocks there are.
fn fixed(reader: &mut Reader<'_>) -> Result<(u32, u32)> {
    if reader.u32()? != MAGIC {
        return Err(Error::corrupt(STRUCTURE, 0, "it does not begin with wi1U"));
    }
    let (low, high) = (reader.u32()?, reader.u32()?);
    let bytes = u64::from(high) << 32 | u64::from(low);
    let block = BLOCK_SIZE as u64;
    let blocks = bytes / block;
    if !bytes.is_multiple_of(block) || blocks > u64::from(SEGMENT_BLOCKS) {
        return Err(Error::corrupt(STRUCTURE, 4, format!("a segment of {bytes} bytes")));
    }
    let (blocks, count) = (blocks as u32, reader.u32()?);
    if count > blocks {
        let what = format!("{count} blocks of a segment that has {blocks}");
        return Err(Error::corrupt(STRUCTURE, 12, what));
    }
    Ok((blocks, count))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(bytes: u64, numbers: &[u32]) -> Vec<u8> {
        let count = (numbers.len() as u32).to_le_bytes();
        let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        [&b"wi1U"[..], &bytes.to_le_bytes(), &count, &numbers].concat()
    }

    #[test]
    fn a_block_lies_behind_the_numbers_in_their_order() {
        let bytes = written(5 * 8192, &[1, 4]);
        assert_eq!(Increment::bytes(&bytes[..16]).unwrap(), bytes.len());
        let found = Increment::parse(&bytes).unwrap();
        assert_eq!(found.blocks(), 5);
        assert_eq!(
            [0, 1, 4, 9].map(|block| found.offset(block)),
            [None, Some(24), Some(24 + 8192), None]
        );
    }

    #[test]
    fn what_no_segment_can_have_is_an_error() {
        for (bytes, says) in [
            (written(8192, &[1]), "behind the end"),
            (written(3 * 8192, &[1, 1]), "out of order"),
            (written(8191, &[]), "a segment of 8191 bytes"),
            (written(u64::MAX / 8192 * 8192, &[]), "a segment of"),
            (written(8192, &[0, 0]), "2 blocks of a segment that has 1"),
            (b"wi2U".repeat(4), "wi1U"),
        ] {
            let said = Increment::parse(&bytes).unwrap_err().to_string();
            assert!(said.contains(says), "{says}: {said}");
        }
        assert!(Increment::parse(&written(8192, &[0])[..18]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_increment_or_an_error(rest in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = Increment::parse(&[b"wi1U", &rest[..]].concat());
        }

        #[test]
        fn what_was_written_is_read(numbers in proptest::collection::btree_set(0_u32..1000, 0..50)) {
            let numbers: Vec<u32> = numbers.into_iter().collect();
            let found = Increment::parse(&written(1000 * 8192, &numbers)).unwrap();
            prop_assert_eq!((found.numbers, found.blocks), (numbers, 1000));
        }
    }
}
