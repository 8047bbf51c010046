//! One fork of a relation as numbered blocks, whatever segment files they lie in.
//!
//! ```text
//! block    0 … 131071   131072 … 262143   262144 …
//! file     16384        16384.1           16384.2      each full one 1 GiB
//! ```
//! (`src/backend/storage/smgr/md.c`, PostgreSQL 14 to 18.)
//!
//! Invariants: the sizes are those at the time of opening; `lens` ends with the last segment that
//! had any bytes (or is one empty segment); a block below [`ForkFiles::blocks`] is either read or
//! an error, never skipped; one read call never crosses a segment.

use std::ffi::OsStr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Fork, SEGMENT_BLOCKS, SEGMENT_BYTES};
use pagemill_sys::{ALIGNMENT, AlignedBuffer, MapAdvice, Mapping};

use crate::capabilities::FileCapabilities;
use crate::error::{Error, ErrorKind, Result};
use crate::file_damage::{FileDamage, examine};
use crate::mapped_blocks::MappedBlocks;
use crate::read_settings::IoMethod;
use crate::seam::{Advice, Caching, File, Residency};
use crate::segment_listing::{ListedSegment, SegmentListing};
use crate::storage::{ReadCalls, Storage};

/// The files of one fork, open for reading by any number of threads.
#[derive(Debug)]
pub struct ForkFiles {
    storage: Storage,
    /// What the storage knows the fork's open files by.
    number: u64,
    fork: Fork,
    /// The path of segment 0.
    path: PathBuf,
    /// Bytes in each segment file; `None` where the file is missing.
    lens: Vec<Option<u64>>,
    blocks: u32,
    damage: Vec<FileDamage>,
    caching: Caching,
    /// The same, past the page cache, once somebody asked for it; nothing where it cannot be had.
    past_cache: OnceLock<Option<Box<Self>>>,
}

impl ForkFiles {
    /// Opens the fork of the relation whose main fork starts in the file `base`. `None` when no
    /// such file exists; a lost segment 0 with data in a later segment is damage, not absence.
    ///
    /// Lists the directory. For many relations of one directory, list it once and use
    /// [`open_listed`](Self::open_listed).
    ///
    /// # Errors
    /// When the directory or the size of a segment cannot be read.
    pub fn open(storage: &Storage, base: &Path, fork: Fork) -> Result<Option<Self>> {
        let (Some(directory), Some(name)) = (base.parent(), base.file_name()) else {
            return Ok(None);
        };
        let here = directory.as_os_str().is_empty();
        let listed = if here { Path::new(".") } else { directory };
        let listing = SegmentListing::read(storage, listed)?;
        Self::open_listed(storage, &listing, name, fork)
    }

    /// Opens the fork of the relation called `name` in the directory listed; otherwise as
    /// [`open`](Self::open). Makes no call for a fork that does not exist.
    ///
    /// # Errors
    /// When the size of a segment cannot be read.
    pub fn open_listed(
        storage: &Storage,
        listing: &SegmentListing,
        name: &OsStr,
        fork: Fork,
    ) -> Result<Option<Self>> {
        let mut name = name.to_owned();
        name.push(fork.suffix());
        let path = listing.directory().join(&name);
        let lens = segment_lens(storage, &path, listing.segments_of(&name))?;
        if lens.is_empty() {
            return Ok(None);
        }
        let damage = examine(fork, &lens, |segment| segment_path(&path, segment));
        Ok(Some(Self {
            storage: storage.clone(),
            number: storage.files().draw_fork(),
            fork,
            blocks: count_blocks(&lens),
            path,
            lens,
            damage,
            caching: storage.settings().caching,
            past_cache: OnceLock::new(),
        }))
    }

    /// Whether its blocks are read through the page cache.
    pub fn caching(&self) -> Caching {
        self.caching
    }

    /// The same fork, read past the page cache. `None` where the file system has no direct I/O, or wants an alignment
    /// that buffers do not have.
    pub fn past_cache(&self) -> Option<&Self> {
        if self.caching == Caching::Direct {
            return Some(self);
        }
        let made = self.past_cache.get_or_init(|| {
            let twin = Self {
                storage: self.storage.clone(),
                number: self.storage.files().draw_fork(),
                fork: self.fork,
                path: self.path.clone(),
                lens: self.lens.clone(),
                blocks: self.blocks,
                damage: self.damage.clone(),
                caching: Caching::Direct,
                past_cache: OnceLock::new(),
            };
            // One segment is as good as another: all lie in one directory.
            let first = (0..).step_by(SEGMENT_BLOCKS as usize).take(self.lens.len());
            let held = first.map(BlockNumber).find(|block| self.contiguous(*block, 1) > 0)?;
            twin.file(held).is_ok().then(|| Box::new(twin))
        });
        made.as_deref()
    }

    /// Which fork this is.
    pub fn fork(&self) -> Fork {
        self.fork
    }

    /// The path of segment 0.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many block numbers there are, from 0: up to the last whole block of the last segment
    /// that has data. Blocks lost before it are counted; an incomplete one at the end is not.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Bytes of all segment files.
    pub fn bytes(&self) -> u64 {
        self.lens.iter().flatten().fold(0, |sum, len| sum.saturating_add(*len))
    }

    /// Path and bytes of each segment file; no bytes where the file is missing.
    pub fn segments(&self) -> impl Iterator<Item = (PathBuf, Option<u64>)> {
        (0..).zip(&self.lens).map(|(segment, len)| (segment_path(&self.path, segment), *len))
    }

    /// What the sizes of the files give away, in the order of segments.
    pub fn damage(&self) -> &[FileDamage] {
        &self.damage
    }

    /// The file of a block and the offset in it, in bytes, whether or not the fork has it.
    pub fn locate(&self, block: BlockNumber) -> (PathBuf, u64) {
        let (segment, offset) = position(block);
        (segment_path(&self.path, segment), offset)
    }

    /// How many blocks from `first` on, at most `limit`, one read call can fetch: those up to the
    /// end of the segment or of the file. 0 when `first` is lost or past the end.
    pub fn contiguous(&self, first: BlockNumber, limit: u32) -> u32 {
        let (segment, offset) = position(first);
        let held = self.segment_len(segment).unwrap_or(0).min(SEGMENT_BYTES);
        let whole = held.saturating_sub(offset) / BLOCK_SIZE as u64;
        let left = self.blocks.saturating_sub(first.0);
        u32::try_from(whole).unwrap_or(u32::MAX).min(left).min(limit)
    }

    /// Reads one block.
    ///
    /// # Errors
    /// As [`read_blocks`](Self::read_blocks).
    pub fn read_block(&self, block: BlockNumber, page: &mut BlockBytes) -> Result<()> {
        self.read_blocks(block, std::slice::from_mut(page))
    }

    /// Reads consecutive blocks from `first` on: one call for each segment they lie in, and more
    /// only after a short or interrupted one. Blocks known to be lost cost no call.
    ///
    /// # Errors
    /// Names the first block that was not read. Whether the blocks before it were, is not told.
    pub fn read_blocks(&self, first: BlockNumber, pages: &mut [BlockBytes]) -> Result<()> {
        let method = self.storage.settings().io_method.unwrap_or(IoMethod::Pread);
        self.read_blocks_by(method, first, pages)
    }

    /// As [`read_blocks`](Self::read_blocks), with the calls of a method. A method that reads ahead
    /// has nothing to read ahead here: its reader makes the call.
    ///
    /// # Errors
    /// As [`read_blocks`](Self::read_blocks).
    pub fn read_blocks_by(
        &self,
        method: IoMethod,
        first: BlockNumber,
        pages: &mut [BlockBytes],
    ) -> Result<()> {
        let mut block = first;
        let mut rest = pages;
        while !rest.is_empty() {
            let count = self.contiguous(block, u32::try_from(rest.len()).unwrap_or(u32::MAX));
            if count == 0 {
                return Err(self.lost(block));
            }
            let (now, later) = rest.split_at_mut(count as usize);
            self.read_within_segment(method, block, now)?;
            block = BlockNumber(block.0.saturating_add(count));
            rest = later;
        }
        Ok(())
    }

    fn read_within_segment(
        &self,
        method: IoMethod,
        first: BlockNumber,
        pages: &mut [BlockBytes],
    ) -> Result<()> {
        if method == IoMethod::Mmap && self.capabilities(first).map {
            let count = u32::try_from(pages.len()).unwrap_or(u32::MAX);
            let mapped = self.map_blocks(first, count)?;
            pages.copy_from_slice(mapped.fetched(self)?);
            return mapped.check(self);
        }
        let misaligned = pages.as_ptr().align_offset(ALIGNMENT) != 0;
        if misaligned && self.caching == Caching::Direct {
            return self.read_past_cache(method, first, pages);
        }
        let (_, offset) = position(first);
        let file = self.file(first)?;
        let bytes = pages.as_flattened_mut();
        let how = ReadCalls { method, caching: self.caching };
        let (done, stopped) = self.storage.read_until_stopped(file.as_ref(), bytes, offset, how);
        if done >= bytes.len() { Ok(()) } else { Err(self.stopped(first, done, stopped)) }
    }

    /// Direct I/O wants its buffer aligned: into any other it goes by way of one that is.
    fn read_past_cache(
        &self,
        method: IoMethod,
        first: BlockNumber,
        pages: &mut [BlockBytes],
    ) -> Result<()> {
        let mut aligned = AlignedBuffer::zeroed(size_of_val(pages));
        self.read_within_segment(method, first, aligned.as_chunks_mut().0)?;
        pages.copy_from_slice(aligned.as_chunks().0);
        Ok(())
    }

    /// The error of a read from `first` on that was stopped after `done` bytes: by an error, or by
    /// the end of the file.
    pub(crate) fn stopped(
        &self,
        first: BlockNumber,
        done: usize,
        stopped: Option<std::io::Error>,
    ) -> Error {
        let whole = u32::try_from(done / BLOCK_SIZE).unwrap_or(u32::MAX);
        let got = (done % BLOCK_SIZE) as u64;
        let kind = stopped.map_or_else(|| cut_block(got), ErrorKind::from);
        self.error(kind, BlockNumber(first.0.saturating_add(whole)))
    }

    /// The file that holds a block.
    ///
    /// # Errors
    /// When it cannot be opened. Names the block.
    pub(crate) fn file(&self, block: BlockNumber) -> Result<Arc<dyn File>> {
        let (segment, offset) = position(block);
        let open = || self.storage.open_blocks(&segment_path(&self.path, segment), self.caching);
        let file = self.storage.files().file((self.number, segment), open);
        file.map_err(|error| error.with_block(self.fork, block).with_offset(offset))
    }

    /// Blocks of one segment as memory: `count` from `first` on, which [`contiguous`](Self::contiguous)
    /// must allow. Nothing is read yet.
    ///
    /// # Errors
    /// When the file cannot be opened or mapped. Names the block.
    pub fn map_blocks(&self, first: BlockNumber, count: u32) -> Result<MappedBlocks> {
        if count == 0 || self.contiguous(first, count) < count {
            return Err(self.lost(first));
        }
        let segment = position(first).0;
        let file = self.file(first)?;
        let len = self.segment_len(segment).unwrap_or(0).min(SEGMENT_BYTES);
        let whole = len - len % BLOCK_SIZE as u64;
        let mapping = self.storage.files().mapping((self.number, segment), || {
            self.storage.counters().record_map();
            let len = usize::try_from(whole).unwrap_or(usize::MAX);
            let mapping = file.map(len);
            let mapping = mapping.map_err(|error| self.error(ErrorKind::from(error), first))?;
            self.advise_mapping(&mapping);
            Ok(mapping)
        })?;
        Ok(MappedBlocks::new(mapping, file, first, count))
    }

    /// Tells the kernel of a new mapping what the settings say, if it concerns the whole.
    fn advise_mapping(&self, mapping: &Mapping) {
        let advice = self.storage.settings().madvise;
        if matches!(advice, MapAdvice::Sequential | MapAdvice::Random) {
            self.storage.counters().record_advice();
            // Advice is never needed for a right result.
            let _ = mapping.advise(0..mapping.len(), advice);
        }
    }

    /// Tells the kernel what to expect of blocks of one segment. Nothing comes of it where the kernel
    /// takes no advice.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn advise(&self, first: BlockNumber, count: u32, advice: Advice) -> Result<()> {
        let file = self.file(first)?;
        if !file.capabilities().advise {
            return Ok(());
        }
        self.storage.counters().record_advice();
        // Advice is never needed for a right result, and the read itself will tell what is wrong.
        let _ = file.advise(byte_range(first, count), advice);
        Ok(())
    }

    /// What the file that holds a block can do; nothing where it cannot be opened.
    pub fn capabilities(&self, block: BlockNumber) -> FileCapabilities {
        self.file(block).map_or_else(|_| FileCapabilities::default(), |file| file.capabilities())
    }

    /// About how much time a processor needs to make some blocks of one segment, beyond copying them; none where the file cannot
    /// be opened.
    pub fn making_time(&self, first: BlockNumber, count: u32) -> Duration {
        let file = self.file(first);
        file.map_or(Duration::ZERO, |file| file.making_time(byte_range(first, count)))
    }

    /// How much of some blocks of one segment is in the kernel's page cache; `None` where it does not
    /// tell. Where `cachestat` does not answer (before Linux 6.5, on overlayfs) it is asked through a mapping.
    pub fn residency(&self, first: BlockNumber, count: u32) -> Option<Residency> {
        let file = self.file(first).ok()?;
        let can = file.capabilities();
        if can.residency
            && let Ok(found) = file.residency(byte_range(first, count))
        {
            return Some(found);
        }
        if !can.map || !self.storage.settings().may_map || !file.is_own() {
            return None;
        }
        self.map_blocks(first, count).ok()?.residency().ok()
    }

    /// What the fork is read through.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The error for a block that is known not to be there.
    fn lost(&self, block: BlockNumber) -> Error {
        let (segment, offset) = position(block);
        let kind = match self.segment_len(segment) {
            _ if block.0 >= self.blocks => ErrorKind::PastEnd { blocks: self.blocks },
            None => ErrorKind::NotFound,
            Some(len) => cut_block(len.saturating_sub(offset)),
        };
        self.error(kind, block)
    }

    pub(crate) fn error(&self, kind: ErrorKind, block: BlockNumber) -> Error {
        let (path, offset) = self.locate(block);
        Error::new(kind, path).with_block(self.fork, block).with_offset(offset)
    }

    fn segment_len(&self, segment: u32) -> Option<u64> {
        self.lens.get(segment as usize).copied().flatten()
    }
}

impl Drop for ForkFiles {
    fn drop(&mut self) {
        self.storage.files().forget(self.number);
    }
}

/// The bytes of blocks of one segment in its file.
fn byte_range(first: BlockNumber, count: u32) -> Range<u64> {
    let (_, start) = position(first);
    start..start + u64::from(count) * BLOCK_SIZE as u64
}

/// The segment of a block and the offset in it, in bytes.
pub(crate) fn position(block: BlockNumber) -> (u32, u64) {
    (block.0 / SEGMENT_BLOCKS, u64::from(block.0 % SEGMENT_BLOCKS) * BLOCK_SIZE as u64)
}

/// The path of a segment, given that of segment 0.
pub(crate) fn segment_path(path: &Path, segment: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    if segment > 0 {
        name.push(format!(".{segment}"));
    }
    name.into()
}

fn cut_block(got: u64) -> ErrorKind {
    ErrorKind::ShortRead { expected: BLOCK_SIZE as u64, got }
}

/// The sizes of the segments listed, up to the last one that has any bytes. Empty ones after it
/// are what a truncation leaves. No sizes at all when there is neither segment 0 nor any data.
fn segment_lens(
    storage: &Storage,
    path: &Path,
    listed: &[ListedSegment],
) -> Result<Vec<Option<u64>>> {
    let mut lens = Vec::new();
    for &(segment, len) in listed {
        let len = match len {
            Some(len) => Ok(len),
            None => storage.metadata(&segment_path(path, segment)).map(|found| found.len),
        };
        match len {
            Ok(len) => {
                lens.resize(segment as usize, None);
                lens.push(Some(len));
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    let active = lens.iter().rposition(|len| len.is_some_and(|bytes| bytes > 0));
    let first_exists = lens.first().is_some_and(Option::is_some);
    lens.truncate(active.map_or(usize::from(first_exists), |last| last + 1));
    Ok(lens)
}

/// The number of blocks up to the last whole one. Kept below 2^32 as PostgreSQL keeps it: the
/// highest block number, 0xFFFFFFFE, leaves 0xFFFFFFFF for "no block" (`storage/block.h`).
fn count_blocks(lens: &[Option<u64>]) -> u32 {
    let full_segments = lens.len().saturating_sub(1) as u64;
    let last = lens.last().copied().flatten().unwrap_or(0).min(SEGMENT_BYTES) / BLOCK_SIZE as u64;
    let blocks = full_segments.saturating_mul(u64::from(SEGMENT_BLOCKS)).saturating_add(last);
    u32::try_from(blocks).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
