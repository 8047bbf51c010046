//! The header of a file of an incremental backup, `INCREMENTAL.<name>`: which blocks of a segment it has.
//!
//! Three numbers of four bytes, then as many block numbers as the second says, within the segment, ascending; if there are
//! any, zeros up to a multiple of 8192; then the blocks, in the order of their numbers.
//!
//! Invariants: block numbers ascend strictly and lie within a segment.
//!
//! Sources: `src/include/backup/basebackup_incremental.h`, `GetFileBackupMethod` in
//! `src/backend/backup/basebackup_incremental.c`, `sendFile` in `src/backend/backup/basebackup.c`, `make_incremental_rfile` and
//! `find_reconstructed_block_length` in `src/bin/pg_combinebackup/reconstruct.c`, PostgreSQL 17 and 18.

use crate::error::{Error, Result};
use crate::ids::{BLOCK_SIZE, SEGMENT_BLOCKS};
use crate::reader::Reader;

const STRUCTURE: &str = "incremental file";
/// `INCREMENTAL_MAGIC`.
const MAGIC: u32 = 0xD3AE_1F0D;

/// Which blocks of a segment a file has, and how long the segment is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncrementalHeader {
    /// Blocks that the file has, numbered within the segment.
    numbers: Vec<u32>,
    /// Blocks below this that the file has not are as in the backup before; those from it on that it has not are zeros.
    truncation_block_length: u32,
}

impl IncrementalHeader {
    /// Bytes that say how long the header is.
    pub const FIXED_BYTES: usize = 12;

    /// How long the header is up to its last block number, in bytes, told from the first
    /// [`FIXED_BYTES`](Self::FIXED_BYTES).
    ///
    /// # Errors
    /// Corrupt: no such header, or numbers that no segment can have.
    pub fn bytes(start: &[u8]) -> Result<usize> {
        let (numbers, _) = fixed(&mut Reader::new(STRUCTURE, start))?;
        Ok(Self::FIXED_BYTES + 4 * numbers as usize)
    }

    /// Reads a header, whole up to its last block number.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes); block numbers that do not ascend, or lie behind the segment.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(STRUCTURE, bytes);
        let (count, truncation_block_length) = fixed(&mut reader)?;
        let mut numbers = Vec::with_capacity((count as usize).min(reader.remaining() / 4));
        for _ in 0..count {
            let (at, number) = (reader.pos(), reader.u32()?);
            if number >= SEGMENT_BLOCKS || numbers.last().is_some_and(|last| *last >= number) {
                let what = format!("block {number} is out of order, or behind the segment");
                return Err(Error::corrupt(STRUCTURE, at, what));
            }
            numbers.push(number);
        }
        Ok(Self { numbers, truncation_block_length })
    }

    /// Blocks of the segment.
    pub fn blocks(&self) -> u32 {
        let behind_last = self.numbers.last().map_or(0, |last| last + 1);
        behind_last.max(self.truncation_block_length)
    }

    /// Blocks of the segment from which on the backups before have none of them.
    pub fn truncation_block_length(&self) -> u32 {
        self.truncation_block_length
    }

    /// Where in the file a block of the segment lies, in blocks of the file; `None` if it has it not.
    pub fn position(&self, block: u32) -> Option<u32> {
        let at = self.numbers.binary_search(&block).ok()?;
        let header = Self::FIXED_BYTES + 4 * self.numbers.len();
        u32::try_from(header.div_ceil(BLOCK_SIZE) + at).ok()
    }

    /// The first block from this one on that the file has.
    pub fn next(&self, block: u32) -> Option<u32> {
        let at = self.numbers.partition_point(|number| *number < block);
        self.numbers.get(at).copied()
    }
}

/// How many block numbers there are, and the length behind which the backups before have nothing.
fn fixed(reader: &mut Reader<'_>) -> Result<(u32, u32)> {
    let magic = reader.u32()?;
    if magic != MAGIC {
        let what = format!("it begins with {magic:#010x}, not {MAGIC:#010x}");
        return Err(Error::corrupt(STRUCTURE, 0, what));
    }
    let (numbers, truncation) = (reader.u32()?, reader.u32()?);
    if numbers > SEGMENT_BLOCKS || truncation > SEGMENT_BLOCKS {
        let what = format!(
            "{numbers} blocks of a file of {truncation}: a segment has {SEGMENT_BLOCKS} at most"
        );
        return Err(Error::corrupt(STRUCTURE, 4, what));
    }
    Ok((numbers, truncation))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header(truncation: u32, numbers: &[u32]) -> Vec<u8> {
        let fixed = [MAGIC, numbers.len() as u32, truncation];
        fixed.iter().chain(numbers).flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn blocks_lie_behind_the_header_in_the_order_of_their_numbers() {
        let bytes = header(10, &[2, 3, 12]);
        assert_eq!(IncrementalHeader::bytes(&bytes[..12]).unwrap(), bytes.len());
        let found = IncrementalHeader::parse(&bytes).unwrap();
        assert_eq!((found.blocks(), found.truncation_block_length()), (13, 10));
        assert_eq!(
            [2, 3, 12, 4].map(|block| found.position(block)),
            [Some(1), Some(2), Some(3), None]
        );
        assert_eq!(
            [0, 3, 4, 13].map(|block| found.next(block)),
            [Some(2), Some(3), Some(12), None]
        );
        let unchanged = IncrementalHeader::parse(&header(7, &[])).unwrap();
        assert_eq!((unchanged.blocks(), unchanged.position(0)), (7, None));
        // 12 bytes and 2045 numbers fill a block exactly.
        let many: Vec<u32> = (0..2046).collect();
        let of = |numbers: &[u32]| IncrementalHeader::parse(&header(0, numbers)).unwrap();
        assert_eq!((of(&many[..2045]).position(0), of(&many).position(0)), (Some(1), Some(2)));
    }

    #[test]
    fn what_no_server_writes_is_refused() {
        for (bytes, says) in [
            (vec![0; 12], "not 0xd3ae1f0d"),
            (header(SEGMENT_BLOCKS + 1, &[]), "a segment has 131072 at most"),
            (header(1, &[3, 3]), "out of order"),
            (header(1, &[SEGMENT_BLOCKS]), "behind the segment"),
            (header(1, &[1, 2])[..16].to_vec(), "byte"),
        ] {
            let error = IncrementalHeader::parse(&bytes).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_an_error(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..64),
            is_marked in any::<bool>(),
            count in 0_u32..20,
        ) {
            if is_marked && bytes.len() >= 12 {
                bytes[..12].copy_from_slice(&header(count, &[])[..12]);
                bytes[4] = count as u8;
            }
            let _ = IncrementalHeader::bytes(&bytes);
            if let Ok(found) = IncrementalHeader::parse(&bytes) {
                prop_assert!(found.blocks() <= SEGMENT_BLOCKS);
                let mut block = 0;
                while let Some(next) = found.next(block) {
                    prop_assert!(found.position(next).is_some() && next < found.blocks());
                    block = next + 1;
                }
            }
        }
    }
}
