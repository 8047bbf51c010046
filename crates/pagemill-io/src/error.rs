//! The one error of this crate: what went wrong, then where: file, fork, block, byte offset.
//!
//! Printed on one line with the remedy, if there is one:
//! `base/5/16384.1: fork main, block 131080 (offset 65536): short read, 4096 of 8192 bytes: …`.
//! The operating system's message is part of that line, so [`std::error::Error::source`] is empty
//! and a printed chain says nothing twice.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use pagemill_format::{BlockNumber, Fork};

use crate::refusal::Refusal;
use crate::tar_files::TarFault;

/// Result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// A failure and its place.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {kind}")]
pub struct Error {
    kind: ErrorKind,
    place: Location,
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is not there: never was, was removed meanwhile, or is a lost segment.
    #[error("no such file: restore it from a backup, or check the path")]
    NotFound,
    /// The directory that was named is not there.
    #[error("no such directory: check the path")]
    NoDirectory,
    /// What was named is no directory.
    #[error("not a directory: name the directory, not a file in it")]
    NotADirectory,
    /// The directory for temporary files is not there.
    #[error("the directory for temporary files does not exist: make it, or set TMPDIR to another")]
    NoTemporaryDirectory,
    /// The directory for temporary files takes none.
    #[error("no temporary file can be made in it ({reason}): set TMPDIR to another directory")]
    TemporaryDirectory {
        /// Why not.
        reason: io::ErrorKind,
    },
    /// Symbolic links on the way lead to each other (ELOOP).
    #[error("its symbolic links lead in a circle: correct the link")]
    LinkLoop,
    /// The operating system refused.
    #[error("permission denied: run as the user who owns the data directory")]
    Permission,
    /// The file ended too early.
    #[error("short read, {got} of {expected} bytes: the file was cut")]
    ShortRead {
        /// Bytes wanted.
        expected: u64,
        /// Bytes there were.
        got: u64,
    },
    /// A block number that the fork does not have; a wrong pointer led here.
    #[error("no such block: the fork has {blocks} blocks")]
    PastEnd {
        /// Blocks the fork has.
        blocks: u32,
    },
    /// A file that is always small is not.
    #[error("{len} bytes, at most {limit} expected: this is not the file it should be")]
    TooLarge {
        /// The file's size in bytes.
        len: u64,
        /// The largest size accepted, in bytes.
        limit: u64,
    },
    /// The file system has no space left (ENOSPC).
    #[error("no space left on the file system: free some, or use another")]
    NoSpace,
    /// The user, the group or the project has used up its share (EDQUOT).
    #[error("the disk quota is used up: free some space, or have it raised")]
    Quota,
    /// The file system is mounted read-only, or became so after a failure (EROFS).
    #[error(
        "the file system is read-only: see the kernel's log for a failure, or mount it for writing"
    )]
    ReadOnly,
    /// The file would become larger than the file system or the process's limit allows (EFBIG).
    #[error("the file would become too large: raise the limit of file sizes (ulimit -f)")]
    FileTooLarge,
    /// There is a file of this name already.
    #[error("exists already: see what made it, and remove it if nothing uses it")]
    Exists,
    /// What was written could not be brought to the device. Nothing that was written since the last sync
    /// can be relied on, and no later sync succeeds.
    #[error(
        "could not be synced: {reason}: what was written may be lost, see the kernel's log and start over"
    )]
    SyncFailed {
        /// The system's words.
        reason: String,
    },
    /// A sync that was not tried, because an earlier one had failed.
    #[error("not synced, because {} could not be synced before ({reason}): start over", path.display())]
    SyncFailedBefore {
        /// What could not be synced first.
        path: PathBuf,
        /// The system's words then.
        reason: String,
    },
    /// Nothing is written any more, because something failed before.
    #[error("refused: an earlier write failed ({reason}): start over")]
    Ended {
        /// What failed first.
        reason: String,
    },
    /// The process was asked to end (see [`crate::watch_interrupts`]), so this was not done any more.
    #[error("interrupted")]
    Interrupted,
    /// The stream was closed when the process began.
    #[error("it is closed")]
    Closed,
    /// A way to read or write that the platform does not offer.
    #[error(transparent)]
    Refused(Refusal),
    /// An archive that is damaged, or that is not read.
    #[error(transparent)]
    Tar(TarFault),
    /// Anything else the operating system reports.
    #[error("{0}{remedy}", remedy = remedy(.0))]
    Io(io::Error),
}

/// The remedy for system errors that have one.
fn remedy(error: &io::Error) -> &'static str {
    match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::IO) => ": the device failed, see the kernel's log",
        Some(rustix::io::Errno::ISDIR) => ": name a file in it",
        Some(rustix::io::Errno::MFILE) => ": raise the limit of open files (ulimit -n)",
        Some(rustix::io::Errno::NFILE) => ": the system's table of open files is full",
        Some(rustix::io::Errno::PERM | rustix::io::Errno::NOSYS) => {
            ": the call is not available (old kernel, or a sandbox)"
        }
        Some(rustix::io::Errno::NOMEM) => ": no memory or address space is left: free some",
        Some(rustix::io::Errno::STALE) => ": the network file system lost the file, mount it again",
        _ => "",
    }
}

impl From<Refusal> for ErrorKind {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<io::Error> for ErrorKind {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::StorageFull => Self::NoSpace,
            io::ErrorKind::QuotaExceeded if error.raw_os_error().is_some() => Self::Quota,
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            io::ErrorKind::FileTooLarge => Self::FileTooLarge,
            io::ErrorKind::AlreadyExists => Self::Exists,
            _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                Self::LinkLoop
            }
            // EPERM is no matter of the file's owner: it is how a sandbox forbids a call.
            io::ErrorKind::PermissionDenied
                if error.raw_os_error() != Some(rustix::io::Errno::PERM.raw_os_error()) =>
            {
                Self::Permission
            }
            io::ErrorKind::Unsupported if error.raw_os_error().is_none() => {
                let words = error.to_string();
                let refusal = error.downcast::<Refusal>();
                Self::Refused(refusal.unwrap_or(Refusal::Unsupported(words)))
            }
            _ => Self::Io(error),
        }
    }
}

/// Where it happened, as far as known.
#[derive(Debug)]
struct Location {
    path: PathBuf,
    block: Option<(Fork, BlockNumber)>,
    offset: Option<u64>,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match (self.block, self.offset) {
            (Some((fork, block)), Some(offset)) => {
                write!(f, ": fork {fork}, block {block} (offset {offset})")
            }
            (Some((fork, block)), None) => write!(f, ": fork {fork}, block {block}"),
            (None, Some(offset)) => write!(f, ": offset {offset}"),
            (None, None) => Ok(()),
        }
    }
}

/// Long work asks this again and again, and gives up where it is an error. `path` is what is worked on.
///
/// # Errors
/// [`ErrorKind::Interrupted`] once a signal came that is [watched](crate::watch_interrupts).
pub fn check_interrupt(path: &Path) -> Result<()> {
    match pagemill_sys::interrupted() {
        true => Err(Error::new(ErrorKind::Interrupted, path)),
        false => Ok(()),
    }
}

impl Error {
    /// A failure that concerns the whole file.
    pub fn new(kind: impl Into<ErrorKind>, path: impl Into<PathBuf>) -> Self {
        Self { kind: kind.into(), place: Location { path: path.into(), block: None, offset: None } }
    }

    /// Adds the block.
    #[must_use]
    pub fn with_block(mut self, fork: Fork, block: BlockNumber) -> Self {
        self.place.block = Some((fork, block));
        self
    }

    /// Adds the offset in the file, in bytes.
    #[must_use]
    pub fn with_offset(mut self, offset: u64) -> Self {
        self.place.offset = Some(offset);
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.place.path
    }

    /// The block, when one block is concerned.
    pub fn block(&self) -> Option<BlockNumber> {
        self.place.block.map(|(_, block)| block)
    }

    /// The fork, when one block is concerned.
    pub fn fork(&self) -> Option<Fork> {
        self.place.block.map(|(fork, _)| fork)
    }

    /// The offset in the file in bytes, when one place is concerned.
    pub fn offset(&self) -> Option<u64> {
        self.place.offset
    }

    /// True when space ran out: the device's or the user's share of it.
    pub fn is_no_space(&self) -> bool {
        matches!(self.kind, ErrorKind::NoSpace | ErrorKind::Quota)
    }

    /// True when there is a file of the name already.
    pub fn is_exists(&self) -> bool {
        matches!(self.kind, ErrorKind::Exists)
    }

    /// True when something was given up because the process was asked to end.
    pub fn is_interruption(&self) -> bool {
        matches!(self.kind, ErrorKind::Interrupted)
    }

    /// True when whoever read what is written went away.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(&self.kind, ErrorKind::Io(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// True when the file is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self.kind, ErrorKind::NotFound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_with_the_place_the_finding_and_the_remedy() {
        let error =
            Error::new(ErrorKind::ShortRead { expected: 8192, got: 4096 }, "base/5/16384.1")
                .with_block(Fork::Main, BlockNumber(131_080))
                .with_offset(65_536);
        assert_eq!(
            error.to_string(),
            "base/5/16384.1: fork main, block 131080 (offset 65536): \
             short read, 4096 of 8192 bytes: the file was cut"
        );
    }

    #[test]
    fn the_systems_errors_get_their_kind_and_their_remedy() {
        let of = |errno: rustix::io::Errno| Error::new(io::Error::from(errno), "x");
        assert!(of(rustix::io::Errno::NOENT).is_not_found());
        assert!(matches!(of(rustix::io::Errno::ACCESS).kind(), ErrorKind::Permission));
        for (errno, words) in [
            (rustix::io::Errno::NOSPC, "free some"),
            (rustix::io::Errno::DQUOT, "quota"),
            (rustix::io::Errno::ROFS, "read-only"),
            (rustix::io::Errno::FBIG, "ulimit -f"),
            (rustix::io::Errno::EXIST, "exists already"),
        ] {
            let message = of(errno).to_string();
            assert!(message.contains(words), "{message}");
        }
        let message = of(rustix::io::Errno::IO).to_string();
        assert!(message.ends_with(": the device failed, see the kernel's log"), "{message}");
    }
}
