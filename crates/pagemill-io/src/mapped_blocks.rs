//! Blocks of one segment lent out of a mapping: no read call and no copy.
//!
//! ```text
//!   map_blocks ──► fetched: every page looked at, faults met here ──► use ──► check: none since
//! ```
//!
//! A file that was cut, or a device that cannot read, shows as a fault when the bytes are first looked
//! at. The process survives it and the bytes read as zeros, so whoever uses them asks
//! [`check`](MappedBlocks::check) afterwards, before it believes what it saw.
//!
//! Invariant: the blocks lie in the mapping, whole and at a multiple of the block size.

use std::sync::Arc;

use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber};
use pagemill_sys::{MapAdvice, Mapping};

use crate::error::{Error, ErrorKind, Result};
use crate::fork_files::{ForkFiles, position};
use crate::seam::{File, Residency};

/// What one page fault maps, if the page cache holds it (`fault_around_bytes` of Linux, `mm/memory.c`, by default).
const FAULT_AROUND: usize = 64 << 10;

/// Consecutive blocks in memory that belongs to the kernel's page cache.
#[derive(Debug)]
pub struct MappedBlocks {
    mapping: Arc<Mapping>,
    /// What is mapped.
    file: Arc<dyn File>,
    first: BlockNumber,
    /// Where they start in the mapping, in bytes.
    start: usize,
    count: u32,
}

impl MappedBlocks {
    /// So many blocks, from `first` on, of the segment that is mapped from its beginning.
    pub(crate) fn new(
        mapping: Arc<Mapping>,
        file: Arc<dyn File>,
        first: BlockNumber,
        count: u32,
    ) -> Self {
        let start = usize::try_from(position(first).1).unwrap_or(usize::MAX);
        Self { mapping, file, first, start, count }
    }

    /// The first block's number.
    pub fn first(&self) -> BlockNumber {
        self.first
    }

    /// How many blocks they are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The pages, fetched as the settings say, so that what cannot be read is known.
    ///
    /// # Errors
    /// Names the first block that cannot be read.
    pub fn fetched(&self, files: &ForkFiles) -> Result<&[BlockBytes]> {
        if self.advise(files) { Ok(self.pages()) } else { self.touched(files) }
    }

    /// The pages, fetched as by a scan in order: the kernel is told so, and reads ahead of the faults.
    ///
    /// # Errors
    /// Names the first block that cannot be read.
    pub fn fetched_in_order(&self, files: &ForkFiles) -> Result<&[BlockBytes]> {
        files.storage().counters().record_advice();
        // Advice is never needed for a right result.
        let _ = self.mapping.advise(0..self.mapping.len(), MapAdvice::Sequential);
        self.touched(files)
    }

    /// Maps what the page cache holds of the blocks, by as few page faults as there can be. Whether they can be read
    /// is not asked.
    pub fn fault_around(&self) {
        let _ = self.mapping.touch(self.range(), FAULT_AROUND);
    }

    /// The pages, each looked at once.
    fn touched(&self, files: &ForkFiles) -> Result<&[BlockBytes]> {
        // Not by the block: half of one may be on a page that cannot be read.
        match self.mapping.touch(self.range(), rustix::param::page_size()) {
            Ok(()) => Ok(self.pages()),
            Err(fault) => Err(self.fault(files, fault.offset)),
        }
    }

    /// Does what the settings say is to be done for each stretch of a mapping before it is used. True when
    /// every page was fetched by that.
    fn advise(&self, files: &ForkFiles) -> bool {
        let advice = files.storage().settings().madvise;
        if !matches!(advice, MapAdvice::WillNeed | MapAdvice::PopulateRead) {
            return false;
        }
        files.storage().counters().record_advice();
        let advised = self.mapping.advise(self.range(), advice);
        advised.is_ok() && advice == MapAdvice::PopulateRead
    }

    /// The pages, whether or not they can be read: zeros where they cannot.
    pub fn pages(&self) -> &[BlockBytes] {
        self.mapping.bytes(self.range()).as_chunks().0
    }

    /// Makes sure that the pages were the file's: that nothing met a fault meanwhile, and that the file was
    /// not cut. A cut within a machine page raises no fault; what is behind it just reads as zeros.
    ///
    /// # Errors
    /// Names the first block that cannot be read.
    pub fn check(&self, files: &ForkFiles) -> Result<()> {
        if let Some(offset) = self.mapping.faulted(self.range()) {
            return Err(self.fault(files, offset));
        }
        match self.file.len() {
            Ok(len) if len < self.range().end as u64 => Err(self.fault(files, len)),
            Ok(_) => Ok(()),
            Err(error) => Err(files.error(ErrorKind::from(error), self.first)),
        }
    }

    /// Lets go of the memory that the blocks take in this process; they stay readable.
    pub fn release(&self, files: &ForkFiles) {
        files.storage().counters().record_advice();
        // What is not let go now is at the end.
        let _ = self.mapping.release(self.range());
    }

    /// How much of the blocks is in the page cache.
    ///
    /// # Errors
    /// What the operating system reports.
    pub(crate) fn residency(&self) -> std::io::Result<Residency> {
        let pages = self.mapping.resident(self.range())?;
        let resident = pages.iter().filter(|resident| **resident).count();
        let bytes = self.range().len() as u64;
        let cached = resident as u64 * rustix::param::page_size() as u64;
        Ok(Residency { cached: cached.min(bytes), bytes })
    }

    fn range(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.count as usize * BLOCK_SIZE
    }

    /// The error of a fault: the file ends before it, or the device failed.
    #[cold]
    fn fault(&self, files: &ForkFiles, offset: u64) -> Error {
        let offset = offset.max(self.start as u64);
        let index = offset.saturating_sub(self.start as u64) / BLOCK_SIZE as u64;
        let block = BlockNumber(self.first.0 + u32::try_from(index).unwrap_or(u32::MAX));
        let start = self.start as u64 + index * BLOCK_SIZE as u64;
        let len = self.file.len().map_err(|error| files.error(ErrorKind::from(error), block));
        let block_bytes = BLOCK_SIZE as u64;
        match len {
            Err(error) => error,
            Ok(len) if len < start + block_bytes => {
                let got = len.saturating_sub(start);
                files.error(ErrorKind::ShortRead { expected: block_bytes, got }, block)
            }
            Ok(_) => {
                files.error(ErrorKind::from(std::io::Error::from(rustix::io::Errno::IO)), block)
            }
        }
    }
}
