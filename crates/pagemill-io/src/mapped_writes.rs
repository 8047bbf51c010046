//! Blocks of a fork written by copies to a mapping.
//!
//! One stretch of 64 MiB is mapped at a time, which is what keeps a load's memory small: what was
//! left behind belongs to the page cache alone.
//!
//! Whoever writes extends the file first. A page that cannot be had all the same (the file was cut, there is no space
//! for it where each block is written to a new place, the device failed) is a fault, which does not tell why: then
//! the bytes are written by a call, which either does or has a reason.
//!
//! Invariant: bytes that were taken are in the page cache of the file, or the outcome is an error that names the
//! block.

use std::sync::Arc;

use pagemill_format::{BLOCK_SIZE, BlockNumber, SEGMENT_BYTES};
use pagemill_sys::WritableMapping;

use crate::error::{Error, Result};
use crate::fork_files::position;
use crate::seam::Caching;
use crate::writable_file::WritableFile;
use crate::writable_fork::WritableFork;

/// Bytes mapped at once (64 MiB); segments are made of whole ones.
const CHUNK: u64 = 64 << 20;
const _: () = assert!(SEGMENT_BYTES.is_multiple_of(CHUNK));

/// One thread's way to write through a mapping.
#[derive(Debug)]
pub struct MappedWrites {
    fork: Arc<WritableFork>,
    current: Option<Chunk>,
}

#[derive(Debug)]
struct Chunk {
    segment: u32,
    start: u64,
    file: WritableFile,
    mapping: WritableMapping,
}

impl MappedWrites {
    /// Nothing is mapped yet.
    ///
    /// # Errors
    /// When the fork's files are opened past the page cache.
    pub fn new(fork: Arc<WritableFork>) -> Result<Self> {
        if fork.how().caching == Caching::Direct {
            return Err(Error::new(crate::Refusal::MappedDirectIo, fork.path()));
        }
        Ok(Self { fork, current: None })
    }

    /// Copies whole blocks to the file from `first` on.
    ///
    /// # Errors
    /// Names the block that could not be written or mapped.
    pub fn write_blocks(&mut self, first: BlockNumber, bytes: &[u8]) -> Result<()> {
        let (mut block, mut rest) = (first, bytes);
        while !rest.is_empty() {
            let (segment, offset) = position(block);
            let left = CHUNK - offset % CHUNK;
            let count = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let (now, later) = rest.split_at(count);
            self.write_within_chunk(segment, offset, block, now)?;
            let written = u32::try_from(count.div_ceil(BLOCK_SIZE)).unwrap_or(u32::MAX);
            block = BlockNumber(block.0.saturating_add(written));
            rest = later;
        }
        Ok(())
    }

    fn write_within_chunk(
        &mut self,
        segment: u32,
        offset: u64,
        block: BlockNumber,
        bytes: &[u8],
    ) -> Result<()> {
        let chunk = self.chunk(segment, offset - offset % CHUNK, block)?;
        let at = usize::try_from(offset - chunk.start).unwrap_or(usize::MAX);
        match chunk.mapping.write(at, bytes) {
            Ok(()) => Ok(()),
            Err(_) => self.fork.write_blocks(block, bytes),
        }
    }

    fn chunk(&mut self, segment: u32, start: u64, block: BlockNumber) -> Result<&mut Chunk> {
        let is_current = self
            .current
            .as_ref()
            .is_some_and(|chunk| (chunk.segment, chunk.start) == (segment, start));
        if !is_current {
            self.current = None;
            let (file, _) = self.fork.file(block)?;
            file.storage().counters().record_map();
            let mapping = file.file().map_for_write(start..start + CHUNK);
            let mapping = mapping.map_err(|error| self.fork.failure(error, block))?;
            self.current = Some(Chunk { segment, start, file, mapping });
        }
        let gone = || self.fork.failure(std::io::ErrorKind::NotFound.into(), block);
        self.current.as_mut().ok_or_else(gone)
    }

    /// Waits until the device holds what is mapped now (`msync`), and lets go of it.
    ///
    /// # Errors
    /// Names the file; counts as a failed sync.
    pub fn sync(&mut self) -> Result<()> {
        let Some(chunk) = self.current.take() else { return Ok(()) };
        let file = &chunk.file;
        let len = file.len()?.saturating_sub(chunk.start).min(CHUNK);
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(chunk.mapping.len());
        file.storage().sync_call(file.path(), || chunk.mapping.sync(0..len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_extension::{FileExtendMethod, FileExtension};
    use crate::seam::{Create, OpenForWrite};
    use crate::storage::Storage;
    use pagemill_format::Fork;

    #[test]
    fn blocks_of_several_chunks_come_to_the_file_and_so_do_those_behind_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let (storage, base) = (Storage::real(), dir.path().join("16384"));
        let how = OpenForWrite { create: Create::New, ..OpenForWrite::default() };
        let fork = Arc::new(WritableFork::open(&storage, &base, Fork::Main, how).unwrap());
        let method = Some(FileExtendMethod::PosixFallocate);
        let space = FileExtension::new(fork.clone(), 0, method);
        space.ensure(8195).unwrap();
        space.cut_back().unwrap();
        let mut writes = MappedWrites::new(fork).unwrap();
        writes.write_blocks(BlockNumber(8190), &[5; 5 * BLOCK_SIZE]).unwrap();
        writes.write_blocks(BlockNumber(3), &[6; BLOCK_SIZE]).unwrap();
        writes.sync().unwrap();
        writes.write_blocks(BlockNumber(8193), &[7; BLOCK_SIZE]).unwrap();
        assert_eq!(storage.counters().snapshot().write_calls, 0);
        writes.write_blocks(BlockNumber(8194), &[8; 3 * BLOCK_SIZE]).unwrap();
        writes.write_blocks(BlockNumber(8195), &[9; BLOCK_SIZE]).unwrap();
        assert_eq!(storage.counters().snapshot().write_calls, 2);
        drop(writes);
        let file = std::fs::read(&base).unwrap();
        let first_bytes: Vec<u8> = [3, 4, 8189, 8190, 8192, 8193, 8194, 8195, 8196]
            .iter()
            .map(|block| file[block * BLOCK_SIZE])
            .collect();
        assert_eq!(first_bytes, [6, 0, 0, 5, 5, 7, 8, 9, 8]);
        assert_eq!(storage.counters().snapshot().map_calls, 4);
    }
}
