//! Space for blocks to come: a fork that grows ahead of its writers, many blocks at a time.
//!
//! PostgreSQL extends a relation when it needs a page, by few blocks at once
//! (`mdzeroextend`, `src/backend/storage/smgr/md.c`, PostgreSQL 16 to 18; `file_extend_method` as in later ones).
//! Here the step grows with the load, so that the calls are few and the file system can give space in one
//! piece; what was taken too much is cut back at the end.
//!
//! ```text
//!   0 ──── granted ──────────── allocated
//!   written, or being written │ taken from the file system, reads as zeros
//! ```
//!
//! | what the file system says | what is done |
//! | --- | --- |
//! | it cannot allocate (EOPNOTSUPP, ENOSYS, EPERM of a sandbox) | zeros are written, now and later |
//! | no space for the step | only what is wanted is asked for |
//! | no space for that either | zeros are written: old XFS and ZFS say so wrongly; if they do not fit, there is none |
//!
//! Where the file system writes each block to a new place (btrfs, ZFS, bcachefs), space that was taken may
//! still be wanting when the block is written over, and nothing can be promised.
//!
//! Invariants: below `allocated` there is no hole; `granted` ≤ `allocated`; a failure changes neither, and
//! what it left behind is cut off; blocks are granted once.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pagemill_format::{BLOCK_SIZE, BlockNumber};
use pagemill_sys::AlignedBuffer;
use rustix::io::Errno;

use crate::error::{Error, ErrorKind, Result, check_interrupt};
use crate::storage_traits::StorageTraits;
use crate::writable_fork::{MAX_BLOCKS, WritableFork};

/// Blocks taken at once at first (1 MiB).
const FIRST_STEP: u32 = 128;
/// And at most (256 MiB): the fewer steps, the fewer pieces the file lies in.
const LARGEST_STEP: u32 = 32_768;
/// How many times larger each step is than the one before.
const GROWTH: u32 = 8;
/// Up to so many blocks PostgreSQL writes zeros rather than to allocate: they are cheap, and many small
/// allocations are not.
const FEW_BLOCKS: u32 = 8;
/// Bytes of zeros written at once at most.
const ZEROS: usize = 1 << 20;

/// How a file is made longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileExtendMethod {
    /// The kernel allocates (`fallocate`), and nothing is written.
    PosixFallocate,
    /// Zeros are written.
    WriteZeros,
}

impl FileExtendMethod {
    /// Both.
    pub const ALL: [Self; 2] = [Self::PosixFallocate, Self::WriteZeros];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::PosixFallocate => "posix_fallocate",
            Self::WriteZeros => "write_zeros",
        }
    }
}

impl fmt::Display for FileExtendMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no method.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown method to extend files; expected posix_fallocate or write_zeros")]
pub struct UnknownExtendMethod;

impl FromStr for FileExtendMethod {
    type Err = UnknownExtendMethod;

    fn from_str(name: &str) -> std::result::Result<Self, UnknownExtendMethod> {
        Self::ALL.into_iter().find(|method| method.name() == name).ok_or(UnknownExtendMethod)
    }
}

/// The space of one fork, for all its writers.
#[derive(Debug)]
pub struct FileExtension {
    fork: Arc<WritableFork>,
    /// Zeros are not written on when a signal came.
    may_be_interrupted: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    granted: u32,
    /// Below this block there is space.
    allocated: u32,
    step: u32,
    method: FileExtendMethod,
    reason: String,
    /// True when the method was asked for, and small pieces get it too.
    asked: bool,
    /// Made when zeros are first written.
    zeros: Option<AlignedBuffer>,
}

impl FileExtension {
    /// Extends a fork that has `blocks` blocks, by `method`; `None` for what suits the file system
    /// (`auto`).
    pub fn new(fork: Arc<WritableFork>, blocks: u32, method: Option<FileExtendMethod>) -> Self {
        let place = fork.storage().place_of(fork.path());
        let (chosen, reason) = choose(method, &place);
        let state = State {
            granted: blocks,
            allocated: blocks,
            step: FIRST_STEP,
            method: chosen,
            reason,
            asked: method.is_some(),
            zeros: None,
        };
        Self { fork, may_be_interrupted: false, state: Mutex::new(state) }
    }

    /// The same for new files, which are removed when work is given up: no more zeros are written once a signal came
    /// ([`check_interrupt`]), as up to 256 MiB of them are at once, which takes seconds on a slow device.
    #[must_use]
    pub fn interruptible(self) -> Self {
        Self { may_be_interrupted: true, ..self }
    }

    /// The fork.
    pub fn fork(&self) -> &Arc<WritableFork> {
        &self.fork
    }

    /// The method now used, and why it is.
    pub fn method(&self) -> (FileExtendMethod, String) {
        let state = self.state();
        (state.method, state.reason.clone())
    }

    /// Tells that about so many more blocks will be wanted: what is taken next is that much, up to a quarter of
    /// a segment at once.
    pub fn expect_blocks(&self, blocks: u32) {
        self.state().step = blocks.clamp(1, LARGEST_STEP);
    }

    /// How many blocks were granted, or were there before.
    pub fn granted(&self) -> u32 {
        self.state().granted
    }

    /// Grants the next `count` blocks: nobody else gets them, and there is space for them.
    ///
    /// # Errors
    /// When there is no space, or no block number left. Names the file and the block; what was granted
    /// before stays so.
    pub fn extend(&self, count: u32) -> Result<Range<u32>> {
        let mut state = self.state();
        let first = state.granted;
        let end = self.end_of(first, count)?;
        self.allocate_to(&mut state, end)?;
        state.granted = end;
        Ok(first..end)
    }

    /// Grants all blocks below `end` that were not granted before, for a writer that knows their numbers.
    ///
    /// # Errors
    /// As [`extend`](Self::extend).
    pub fn ensure(&self, end: u32) -> Result<()> {
        let mut state = self.state();
        if end > state.granted {
            self.allocate_to(&mut state, end)?;
            state.granted = end;
        }
        Ok(())
    }

    /// Cuts off what was taken and not granted. Syncs nothing.
    ///
    /// # Errors
    /// Names the file.
    pub fn cut_back(&self) -> Result<()> {
        let mut state = self.state();
        if state.allocated > state.granted {
            self.fork.cut(state.granted)?;
            state.allocated = state.granted;
        }
        Ok(())
    }

    fn end_of(&self, first: u32, count: u32) -> Result<u32> {
        let end = first.checked_add(count).filter(|end| *end < MAX_BLOCKS);
        end.ok_or_else(|| self.failure(ErrorKind::FileTooLarge, first))
    }

    /// Makes sure that there is space below `end`, and takes more if the load grows.
    fn allocate_to(&self, state: &mut State, end: u32) -> Result<()> {
        let from = state.allocated;
        if end <= from {
            return Ok(());
        }
        let ahead = end.max(from.saturating_add(state.step).min(MAX_BLOCKS - 1));
        state.step = state.step.saturating_mul(GROWTH).min(LARGEST_STEP);
        let taken = self.take(state, from..ahead, Trust::Refusals).map(|()| ahead);
        let taken = match taken {
            Err(error) if error.is_no_space() => {
                // Then only what is wanted, and small steps: the end of the space is near.
                state.step = FIRST_STEP;
                let _ = self.fork.cut(from);
                self.take(state, from..end, Trust::Writes).map(|()| end)
            }
            taken => taken,
        };
        // Part of what failed may have come about. What is told is why the rest did not.
        state.allocated = taken.inspect_err(|_| drop(self.fork.cut(from)))?;
        Ok(())
    }

    /// Takes space for a range of blocks, segment by segment.
    fn take(&self, state: &mut State, blocks: Range<u32>, trust: Trust) -> Result<()> {
        let mut block = blocks.start;
        while block < blocks.end {
            let count = WritableFork::within_segment(BlockNumber(block), blocks.end - block);
            self.take_within_segment(state, block, count, trust)?;
            block += count;
        }
        Ok(())
    }

    fn take_within_segment(
        &self,
        state: &mut State,
        first: u32,
        count: u32,
        trust: Trust,
    ) -> Result<()> {
        let few = count <= FEW_BLOCKS && !state.asked;
        if state.method == FileExtendMethod::WriteZeros || few {
            return self.write_zeros(state, first, count);
        }
        let (file, offset) = self.fork.file(BlockNumber(first))?;
        let Err(error) = file.allocate(offset..offset + bytes_of(count)) else { return Ok(()) };
        let why = match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM | Errno::INVAL) | None => {
                format!("fallocate is not possible here ({error})")
            }
            Some(Errno::NOSPC) if trust == Trust::Writes => {
                "fallocate says that there is no space where there is".to_owned()
            }
            Some(_) => return Err(self.fork.failure(error, BlockNumber(first))),
        };
        self.write_zeros(state, first, count)?;
        (state.method, state.reason) = (FileExtendMethod::WriteZeros, why);
        Ok(())
    }

    fn write_zeros(&self, state: &mut State, first: u32, count: u32) -> Result<()> {
        let zeros = state.zeros.get_or_insert_with(|| AlignedBuffer::zeroed(ZEROS));
        let (mut block, end) = (first, first.saturating_add(count));
        while block < end {
            let now = (end - block).min((ZEROS / BLOCK_SIZE) as u32);
            if self.may_be_interrupted {
                check_interrupt(self.fork.path())?;
            }
            self.fork.write_blocks(BlockNumber(block), &zeros[..now as usize * BLOCK_SIZE])?;
            block += now;
        }
        Ok(())
    }

    fn failure(&self, kind: ErrorKind, block: u32) -> Error {
        Error::new(kind, self.fork.path()).with_block(self.fork.fork(), BlockNumber(block))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who is believed that there is no space left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// Whoever says so.
    Refusals,
    /// A write alone.
    Writes,
}

fn bytes_of(blocks: u32) -> u64 {
    u64::from(blocks) * BLOCK_SIZE as u64
}

/// The method, and why it is this one.
fn choose(asked: Option<FileExtendMethod>, place: &StorageTraits) -> (FileExtendMethod, String) {
    match asked {
        Some(method) => (method, "asked for".to_owned()),
        None if place.compresses => {
            let reason = "auto: the file system would no longer compress what is allocated";
            (FileExtendMethod::WriteZeros, reason.to_owned())
        }
        None if place.copies_on_write => {
            let reason = "auto: the file system writes to a new place each time, so that space cannot be \
                          promised";
            (FileExtendMethod::PosixFallocate, reason.to_owned())
        }
        None => (FileExtendMethod::PosixFallocate, "auto".to_owned()),
    }
}

#[cfg(test)]
mod tests;
