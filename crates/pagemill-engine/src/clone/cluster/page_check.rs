//! The pages of a relation's file, checked while they are copied.
//!
//! Invariant: a page of zeros is sound, as it was allocated and never written.

use std::path::Path;

use pagemill_cluster::error::Damage;
use pagemill_cluster::{Error, Result, page_check};
use pagemill_format::{BLOCK_SIZE, BlockNumber, Fork};
use pagemill_io::Storage;
use pagemill_sys::AlignedBuffer;

/// Bytes read at once.
const PIECE: usize = 1 << 20;

/// Checks the pages of one file.
pub(super) struct PageCheck<'a> {
    pub(super) file: &'a Path,
    pub(super) fork: Fork,
    /// The number of the file's first block in its fork.
    pub(super) first: BlockNumber,
    /// Whether pages carry checksums.
    pub(super) checksums: bool,
}

impl PageCheck<'_> {
    /// Checks bytes of the file that begin at `offset`.
    ///
    /// # Errors
    /// Damage, with file, fork and block.
    pub(super) fn check(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let (pages, rest) = bytes.as_chunks::<BLOCK_SIZE>();
        let first = offset / BLOCK_SIZE as u64;
        for (number, page) in (first..).zip(pages) {
            let block = self.block(number);
            if let Some(what) = page_check::find_fault(self.checksums, block, page) {
                return Err(Damage::in_block(self.file, self.fork, block, what).into());
            }
        }
        if rest.is_empty() {
            return Ok(());
        }
        let what = "the file ends within the page";
        let block = self.block(first + pages.len() as u64);
        Err(Damage::in_block(self.file, self.fork, block, what).into())
    }

    fn block(&self, number: u64) -> BlockNumber {
        BlockNumber(self.first.0.saturating_add(u32::try_from(number).unwrap_or(u32::MAX)))
    }

    /// Reads and checks the whole file.
    ///
    /// # Errors
    /// As [`check`](Self::check); and when it cannot be read.
    pub(super) fn check_all(&self, storage: &Storage) -> Result<()> {
        let file = storage.open(self.file)?;
        let mut buffer = AlignedBuffer::zeroed(PIECE);
        let mut offset = 0;
        loop {
            let got = storage.read_fully_at(&*file, &mut buffer, offset);
            let got =
                got.map_err(|error| Error::from(pagemill_io::Error::new(error, self.file)))?;
            let read = buffer.get(..got).expect("a read fills no more than its buffer"); // infallible: it says what it filled
            self.check(offset, read)?;
            offset += got as u64;
            if got < buffer.len() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8]) -> Result<()> {
        let file = Path::new("base/5/16384.1");
        let first = BlockNumber(131_072);
        PageCheck { file, fork: Fork::Main, first, checksums: true }.check(8192, bytes)
    }

    #[test]
    fn a_page_of_zeros_is_sound_and_damage_names_its_block_of_all_segments() {
        check(&[0; 3 * BLOCK_SIZE]).unwrap();
        let mut bytes = vec![0; 3 * BLOCK_SIZE];
        bytes[BLOCK_SIZE + 14] = 1;
        let message = check(&bytes).unwrap_err().to_string();
        assert!(message.contains("base/5/16384.1: fork main, block 131074: "), "{message}");
        assert!(message.ends_with(" computed"), "{message}");
        let message = check(&[0; BLOCK_SIZE + 1]).unwrap_err().to_string();
        assert!(message.contains("block 131074: the file ends within the page"), "{message}");
    }
}
