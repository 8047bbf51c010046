//! How blocks are to be read: the settings that every reader of one [`Storage`](crate::Storage)
//! shares.
//!
//! The names are those of the command line, and PostgreSQL's where it has them (`io_method`,
//! `effective_io_concurrency`). What is chosen by measuring is called `auto` in both.

use std::fmt;
use std::str::FromStr;

use pagemill_sys::MapAdvice;

use crate::seam::{Caching, QueueKind};

/// A way to get blocks out of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IoMethod {
    /// `lseek`, then `read`, one block at a time, as PostgreSQL did up to version 11.
    Seek,
    /// `pread` into one buffer.
    Pread,
    /// `preadv` into a buffer for each block.
    Preadv,
    /// The file mapped into memory, no read call at all.
    Mmap,
    /// `pread` by a pool of threads, ahead of the reader.
    Worker,
    /// A ring of requests that the kernel serves, ahead of the reader.
    IoUring,
    /// The file system's own queue, ahead of the reader; where it has one, this is what `auto` takes.
    Own,
}

impl IoMethod {
    /// How many there are.
    pub const COUNT: usize = Self::Own as usize + 1;

    /// All that can be asked for by name, in the order of their age.
    pub const ALL: [Self; 6] =
        [Self::Seek, Self::Pread, Self::Preadv, Self::Mmap, Self::Worker, Self::IoUring];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seek => "seek",
            Self::Pread => "pread",
            Self::Preadv => "preadv",
            Self::Mmap => "mmap",
            Self::Worker => "worker",
            Self::IoUring => "io_uring",
            Self::Own => "own queue",
        }
    }

    /// The queue that the method hands its reads to; `None` where the reader makes the calls itself.
    pub fn queue(self) -> Option<QueueKind> {
        match self {
            Self::Worker => Some(QueueKind::Worker),
            Self::IoUring => Some(QueueKind::IoUring),
            Self::Own => Some(QueueKind::Own),
            Self::Seek | Self::Pread | Self::Preadv | Self::Mmap => None,
        }
    }
}

impl fmt::Display for IoMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no method.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no such I/O method: there are seek, pread, preadv, mmap, worker and io_uring")]
pub struct UnknownMethod;

impl FromStr for IoMethod {
    type Err = UnknownMethod;

    fn from_str(name: &str) -> Result<Self, UnknownMethod> {
        Self::ALL.into_iter().find(|method| method.name() == name).ok_or(UnknownMethod)
    }
}

/// What the kernel is told of blocks that a scan will want, where the kernel's cache is used and the
/// reader makes the calls itself.
///
/// Distances are those of [`ReadSettings::readahead_distance`]; a *window* is that many blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Readahead {
    /// Nothing: the kernel's own readahead is all there is.
    None,
    /// Every block, one distance before it is read.
    EveryPage,
    /// In every second window, each block of the window after it: reading the one while the other is
    /// fetched.
    Window,
    /// As [`Window`](Self::Window), and in the windows between each block two windows later.
    DoubleWindow,
    /// Nothing on sequential runs, which the kernel notices itself, unless the blocks lie on mirrors, or
    /// in files that it does not read ahead; the blocks of scattered runs as far ahead as is needed
    /// not to wait.
    #[default]
    Auto,
}

/// How everything of one storage is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadSettings {
    /// The method; `None` to choose by measuring (`auto`).
    pub io_method: Option<IoMethod>,
    /// True when files may be mapped: nobody changes them meanwhile.
    pub may_map: bool,
    /// What the kernel is told of a mapping.
    pub madvise: MapAdvice,
    /// Through the kernel's page cache or past it.
    pub caching: Caching,
    /// What the kernel is told.
    pub readahead: Readahead,
    /// How far ahead [`Readahead`] looks, in blocks.
    pub readahead_distance: u32,
    /// The most reads in flight at once for one stream; `None` for the tablespace's own setting or
    /// PostgreSQL's default.
    pub effective_io_concurrency: Option<u32>,
    /// The most segment files kept open.
    pub max_open_files: usize,
    /// The most bytes of segment files kept mapped.
    pub max_mapped_bytes: u64,
}

/// PostgreSQL 18's default of `effective_io_concurrency`.
pub const DEFAULT_EFFECTIVE_IO_CONCURRENCY: u32 = 16;
/// PostgreSQL's largest `effective_io_concurrency` (`MAX_IO_CONCURRENCY`, `storage/bufmgr.h`).
pub const MAX_EFFECTIVE_IO_CONCURRENCY: u32 = 1000;
/// 32 MiB ahead.
pub const DEFAULT_READAHEAD_DISTANCE: u32 = 4096;

impl Default for ReadSettings {
    fn default() -> Self {
        Self {
            io_method: None,
            may_map: true,
            madvise: MapAdvice::PopulateRead,
            caching: Caching::Buffered,
            readahead: Readahead::Auto,
            readahead_distance: DEFAULT_READAHEAD_DISTANCE,
            effective_io_concurrency: None,
            max_open_files: 512,
            max_mapped_bytes: 1 << 40,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_found_by_its_name() {
        for method in IoMethod::ALL {
            assert_eq!(method.name().parse(), Ok(method));
        }
        assert_eq!("sendfile".parse::<IoMethod>(), Err(UnknownMethod));
    }
}
