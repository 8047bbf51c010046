//! The one error of this crate. The end of WAL is none: it is told by [`WalReader`](crate::WalReader) as
//! what it is.

use std::fmt;
use std::path::PathBuf;

use pagemill_format::Lsn;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong with WAL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// WAL that cannot be what PostgreSQL wrote, and goes on behind it.
    #[error(transparent)]
    Damage(Box<Damage>),
    /// The WAL that is asked for is not there.
    #[error("{path}: no WAL at {lsn}: {reason}")]
    Missing {
        /// The segment it would be in.
        path: PathBuf,
        /// Where.
        lsn: Lsn,
        /// What is there instead.
        reason: String,
    },
    /// The WAL there is cannot be gone on with.
    #[error("{path}: {reason}")]
    Refused {
        /// The segment, or the directory.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A record that cannot be written.
    #[error(transparent)]
    Record(#[from] pagemill_format::Error),
    /// The system failed, or a file is not there.
    #[error(transparent)]
    Io(#[from] pagemill_io::Error),
}

/// Damaged WAL, and where it is.
#[derive(Debug, thiserror::Error)]
pub struct Damage {
    /// The segment.
    pub path: PathBuf,
    /// The place in the segment's file, in bytes.
    pub offset: u64,
    /// The place in the WAL.
    pub lsn: Lsn,
    /// What is wrong there.
    pub finding: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, offset, lsn) = (self.path.display(), self.offset, self.lsn);
        write!(f, "{path}: offset {offset} (WAL {lsn}): {}", self.finding)
    }
}
