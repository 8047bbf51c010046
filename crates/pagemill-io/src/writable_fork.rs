//! One fork of a relation as numbered blocks that are written, whatever segment files they lie in.
//!
//! ```text
//! block    0 … 131071   131072 … 262143   262144 …
//! file     16384        16384.1           16384.2      each full one 1 GiB
//! ```
//! (`src/backend/storage/smgr/md.c`, PostgreSQL 14 to 18.)
//!
//! Invariants: a write call never crosses a segment; a segment that was opened stays open until the fork is
//! closed, so that a failure to write it back is told to [`WritableFork::sync`]; every file made here is
//! known to [`WritableFork::remove_made`].

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pagemill_format::{BLOCK_SIZE, BlockNumber, Fork, SEGMENT_BLOCKS};

use crate::error::{Error, Result};
use crate::fork_files::{position, segment_path};
use crate::seam::{Create, OpenForWrite};
use crate::storage::Storage;
use crate::writable_file::WritableFile;

/// The most blocks a fork can have: the last block number means "none" (`InvalidBlockNumber`,
/// `storage/block.h`).
pub const MAX_BLOCKS: u32 = u32::MAX;

/// The files of one fork, open for writing by any number of threads.
#[derive(Debug)]
pub struct WritableFork {
    storage: Storage,
    fork: Fork,
    /// The path of segment 0.
    path: PathBuf,
    how: OpenForWrite,
    segments: Mutex<Segments>,
}

#[derive(Debug, Default)]
struct Segments {
    /// By number; `None` where not opened yet.
    open: Vec<Option<WritableFile>>,
    /// Those that were not there before.
    made: Vec<PathBuf>,
}

impl WritableFork {
    /// The fork of the relation whose main fork starts in the file `base`. Segment 0 is opened as
    /// `how` says; a further one is when it is first written to, and is made unless it is there.
    ///
    /// # Errors
    /// When segment 0 cannot be opened or made.
    pub fn open(storage: &Storage, base: &Path, fork: Fork, how: OpenForWrite) -> Result<Self> {
        let mut name = base.as_os_str().to_owned();
        name.push(fork.suffix());
        let (storage, path, segments) = (storage.clone(), PathBuf::from(name), Mutex::default());
        let this = Self { storage, fork, path, how, segments };
        this.segment(0)?;
        Ok(this)
    }

    /// What it was opened through.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Which fork this is.
    pub fn fork(&self) -> Fork {
        self.fork
    }

    /// The path of segment 0.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How its files were opened.
    pub fn how(&self) -> OpenForWrite {
        self.how
    }

    /// The file of a block, and the offset in it, in bytes. The file is made if need be.
    ///
    /// # Errors
    /// When it cannot be opened or made. Names the block.
    pub fn file(&self, block: BlockNumber) -> Result<(WritableFile, u64)> {
        let (segment, offset) = position(block);
        let file = self.segment(segment);
        Ok((file.map_err(|error| self.at(error, block))?, offset))
    }

    /// A segment file, made if need be.
    pub(crate) fn segment(&self, segment: u32) -> Result<WritableFile> {
        let mut segments = self.segments();
        let place = segment as usize;
        if segments.open.len() <= place {
            segments.open.resize(place + 1, None);
        }
        if let Some(Some(file)) = segments.open.get(place) {
            return Ok(file.clone());
        }
        let path = segment_path(&self.path, segment);
        let (file, made) = self.open_or_make(&path, segment)?;
        if made {
            segments.made.push(path);
        }
        segments.open[place] = Some(file.clone());
        Ok(file)
    }

    /// A file and whether it is new.
    fn open_or_make(&self, path: &Path, segment: u32) -> Result<(WritableFile, bool)> {
        let open = |create| self.storage.open_for_write(path, OpenForWrite { create, ..self.how });
        match self.how.create {
            Create::New => Ok((open(Create::New)?, true)),
            Create::Existing if segment == 0 => Ok((open(Create::Existing)?, false)),
            Create::Existing | Create::OrNew => match open(Create::Existing) {
                Err(error) if error.is_not_found() => Ok((open(Create::New)?, true)),
                opened => Ok((opened?, false)),
            },
        }
    }

    /// How many blocks from `first` on, at most `limit`, lie in the same segment.
    pub fn within_segment(first: BlockNumber, limit: u32) -> u32 {
        (SEGMENT_BLOCKS - first.0 % SEGMENT_BLOCKS).min(limit)
    }

    /// Writes whole blocks from `first` on: one call for each segment they lie in, and more only after a
    /// short or interrupted one.
    ///
    /// # Errors
    /// Names the block that was not written.
    pub fn write_blocks(&self, first: BlockNumber, bytes: &[u8]) -> Result<()> {
        let (mut block, mut rest) = (first, bytes);
        while !rest.is_empty() {
            let limit = u32::try_from(rest.len().div_ceil(BLOCK_SIZE)).unwrap_or(u32::MAX);
            let count = Self::within_segment(block, limit);
            let (now, later) = rest.split_at(rest.len().min(count as usize * BLOCK_SIZE));
            let (file, offset) = self.file(block)?;
            file.write_all_at(now, offset).map_err(|error| self.at(error, block))?;
            block = BlockNumber(block.0.saturating_add(count));
            rest = later;
        }
        Ok(())
    }

    /// As [`write_blocks`](Self::write_blocks), with a buffer for each block in one call (`pwritev`).
    ///
    /// # Errors
    /// As [`write_blocks`](Self::write_blocks).
    pub fn write_vectored(&self, first: BlockNumber, pages: &[&[u8]]) -> Result<()> {
        let (mut block, mut rest) = (first, pages);
        while !rest.is_empty() {
            let limit = u32::try_from(rest.len()).unwrap_or(u32::MAX);
            let count = Self::within_segment(block, limit);
            let (now, later) = rest.split_at(count as usize);
            let (file, offset) = self.file(block)?;
            file.write_all_vectored_at(now, offset).map_err(|error| self.at(error, block))?;
            block = BlockNumber(block.0.saturating_add(count));
            rest = later;
        }
        Ok(())
    }

    /// Cuts the fork at `blocks` blocks: segments behind them that were made here are removed, those that
    /// were there before are emptied.
    ///
    /// # Errors
    /// Names the file.
    pub fn cut(&self, blocks: u32) -> Result<()> {
        let last = blocks.saturating_sub(1) / SEGMENT_BLOCKS;
        let mut segments = self.segments();
        for (number, file) in (0..).zip(segments.open.clone()) {
            let Some(file) = file.filter(|_| number >= last) else { continue };
            let kept = if number == last { blocks - last * SEGMENT_BLOCKS } else { 0 };
            let len = u64::from(kept) * BLOCK_SIZE as u64;
            if file.len()? > len {
                file.set_len(len)?;
            }
            let made = segments.made.iter().position(|path| path == file.path());
            if let (true, Some(made)) = (number > last, made) {
                self.storage.remove(file.path())?;
                segments.made.swap_remove(made);
                if let Some(slot) = segments.open.get_mut(number as usize) {
                    *slot = None;
                }
            }
        }
        Ok(())
    }

    /// Waits until the device holds all files opened here, and the directory if one was made.
    ///
    /// # Errors
    /// Names the file; no later sync of the storage succeeds.
    pub fn sync(&self) -> Result<()> {
        self.sync_files()?;
        let made = !self.segments().made.is_empty();
        if made { self.storage.sync_dir_of(&self.path) } else { Ok(()) }
    }

    /// Waits until the device holds all files opened here. Their names may be lost: for many forks in one directory,
    /// which is synced once after all of them.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn sync_files(&self) -> Result<()> {
        let files: Vec<_> = self.segments().open.iter().flatten().cloned().collect();
        files.iter().try_for_each(WritableFile::sync_data)
    }

    /// The files made here, in no order.
    pub fn made(&self) -> Vec<PathBuf> {
        self.segments().made.clone()
    }

    /// Removes the files made here: what was begun is not wanted. Syncs nothing.
    ///
    /// # Errors
    /// Names a file that stays; all others are gone.
    pub fn remove_made(&self) -> Result<()> {
        let mut segments = self.segments();
        segments.open.clear();
        let removed = segments.made.iter().map(|path| self.storage.remove_if_there(path));
        // Each is tried, whatever became of those before it.
        let failed: Vec<Error> = removed.filter_map(Result::err).collect();
        segments.made.clear();
        failed.into_iter().next().map_or(Ok(()), Err)
    }

    /// Adds the block to a failure.
    pub fn at(&self, error: Error, block: BlockNumber) -> Error {
        let offset = error.offset().unwrap_or(position(block).1);
        let within = offset.saturating_sub(position(block).1) / BLOCK_SIZE as u64;
        let within = u32::try_from(within).unwrap_or(u32::MAX);
        error.with_block(self.fork, BlockNumber(block.0.saturating_add(within))).with_offset(offset)
    }

    /// A failure to write a block.
    pub fn failure(&self, error: io::Error, block: BlockNumber) -> Error {
        let (segment, _) = position(block);
        self.at(Error::new(error, segment_path(&self.path, segment)), block)
    }

    fn segments(&self) -> MutexGuard<'_, Segments> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: OpenForWrite =
        OpenForWrite { create: Create::New, caching: crate::Caching::Buffered };

    #[test]
    fn blocks_on_both_sides_of_a_segments_end_come_to_their_files() {
        let dir = tempfile::tempdir().unwrap();
        let (storage, base) = (Storage::real(), dir.path().join("16384"));
        let fork = WritableFork::open(&storage, &base, Fork::Vm, NEW).unwrap();
        let mut bytes = vec![1; 3 * BLOCK_SIZE];
        bytes[BLOCK_SIZE..].fill(2);
        fork.write_blocks(BlockNumber(SEGMENT_BLOCKS - 1), &bytes).unwrap();
        let second = std::fs::read(dir.path().join("16384_vm.1")).unwrap();
        assert_eq!(second, [2; 2 * BLOCK_SIZE]);
        assert_eq!(std::fs::metadata(dir.path().join("16384_vm")).unwrap().len(), 1 << 30);
        assert_eq!(storage.counters().snapshot().write_calls, 2);
        fork.sync().unwrap();
        assert_eq!(storage.counters().snapshot().sync_calls, 3);

        fork.cut(7).unwrap();
        assert!(!dir.path().join("16384_vm.1").exists());
        assert_eq!(std::fs::metadata(dir.path().join("16384_vm")).unwrap().len(), 7 * 8192);
        fork.remove_made().unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_is_there_is_neither_taken_for_a_new_one_nor_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (storage, base) = (Storage::real(), dir.path().join("16384"));
        std::fs::write(&base, [7; 2 * BLOCK_SIZE]).unwrap();
        let error = WritableFork::open(&storage, &base, Fork::Main, NEW).unwrap_err();
        assert!(error.is_exists(), "{error}");

        let fork =
            WritableFork::open(&storage, &base, Fork::Main, OpenForWrite::default()).unwrap();
        fork.write_blocks(BlockNumber(2), &[8; BLOCK_SIZE]).unwrap();
        fork.cut(2).unwrap();
        fork.remove_made().unwrap();
        assert_eq!(std::fs::read(&base).unwrap(), [7; 2 * BLOCK_SIZE]);
    }
}
