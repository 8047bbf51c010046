//! What a platform, a file system or a file does not offer, as values: a caller can match on them and take another way.
//!
//! A file system behind the seam reports one inside an [`io::Error`] of the kind `Unsupported`; [`From`] there and back
//! keeps it as it is. Remedies that the system offers are part of the texts; what to ask of this library instead is not.

use std::io;
use std::path::PathBuf;

/// What is not offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The file system does not bypass the page cache.
    #[error("the file system has no direct I/O")]
    NoDirectIo,
    /// It does so for other files.
    #[error("the file system has no direct I/O for this file")]
    NoDirectIoForFile,
    /// Direct I/O wants more of a buffer than ours offer.
    #[error("direct I/O here wants buffers at multiples of {memory} bytes and offsets of {offset}")]
    DirectAlignment {
        /// Where buffers have to begin, in bytes.
        memory: usize,
        /// Where reads and writes have to begin in the file, in bytes.
        offset: usize,
    },
    /// A mapping is the page cache.
    #[error("a mapping goes through the page cache, which direct I/O bypasses")]
    MappedDirectIo,
    /// The kernel is too old for a ring.
    #[error("this kernel has no io_uring (Linux 5.6 or later is needed)")]
    NoRing,
    /// An administrator switched rings off.
    #[error("io_uring is switched off by sysctl kernel.io_uring_disabled = {0}: set it to 0")]
    RingSwitchedOff(String),
    /// A sandbox forbids rings.
    #[error(
        "io_uring is forbidden to this process (seccomp, as in many containers): allow it there"
    )]
    RingForbidden,
    /// The process may not lock the memory of a ring.
    #[error("io_uring may not lock enough memory: raise it (ulimit -l)")]
    RingMemory,
    /// The process may not open more files.
    #[error("io_uring needs a descriptor: raise the limit of open files (ulimit -n)")]
    RingDescriptor,
    /// Nobody may open more files.
    #[error("the system's table of open files is full")]
    FileTableFull,
    /// Another failure of a ring, in the system's words.
    #[error("io_uring: {0}")]
    Ring(String),
    /// The process may start no thread; in the system's words.
    #[error("worker: no thread can be started: {0}: raise the limit of processes (ulimit -u)")]
    NoThreads(String),
    /// Two files cannot share their blocks.
    #[error("cannot be a reflink of {from}: {cause}: copy the bytes instead")]
    NotShared {
        /// The file that was to be shared.
        from: PathBuf,
        /// Why not.
        cause: NotShared,
    },
    /// More pages were to be written than the buffer or the fork has room for.
    #[error("{0} pages are more than the buffer or the fork can have")]
    TooManyPages(usize),
    /// A call that a file system behind the seam does not have, in its words.
    #[error("{0}")]
    Unsupported(String),
}

/// Why two files cannot share their blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotShared {
    /// They have no blocks in common.
    #[error("the two lie on different file systems")]
    DifferentFileSystems,
    /// One of the two, or where they lie, forbids it.
    #[error("the file system does not let these two files share blocks")]
    TheseFiles,
    /// No two files there can.
    #[error("the file system does not share blocks between files")]
    NoReflinks,
}

impl Refusal {
    /// The refusal that an error of a file system is; `None` for a failure.
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        Self::new(io::ErrorKind::Unsupported, refusal)
    }
}
