//! The one error of this crate. The end of WAL is none: it is told by [`WalReader`](crate::WalReader) as
//! what it is.

use std::fmt;
use std::path::PathBuf;

use pagemill_format::Lsn;
use pagemill_format::wal::SegmentName;

use crate::finding::Finding;
use crate::reader::EndOfWal;

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
    #[error("{path}: no WAL at {lsn}: {cause}")]
    Missing {
        /// The segment it would be in.
        path: PathBuf,
        /// Where.
        lsn: Lsn,
        /// What is there instead.
        cause: MissingCause,
    },
    /// The WAL there is cannot be gone on with.
    #[error("{path}: {cause}")]
    Refused {
        /// The segment, or the directory.
        path: PathBuf,
        /// Why not.
        cause: Refusal,
    },
    /// A record that cannot be written.
    #[error(transparent)]
    Record(#[from] pagemill_format::Error),
    /// What WAL does is too much for the memory that was allowed, and cannot go to a file.
    #[error("{0} do not fit in the memory allowed for WAL")]
    Memory(&'static str),
    /// The system failed, or a file is not there.
    #[error(transparent)]
    Io(#[from] pagemill_io::Error),
}

/// What is where WAL would be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MissingCause {
    /// No file of the segment.
    #[error("there is no segment {0}")]
    NoSegment(SegmentName),
    /// A file of the segment that ends before the page does.
    #[error("segment {0} is cut short")]
    CutShort(SegmentName),
    /// Zeros.
    #[error("the page at {0} was never written")]
    NeverWritten(Lsn),
    /// What the segment's file had in it before it got its present name.
    #[error("the page at {page} was written for {found} and not since")]
    Recycled {
        /// Where the page lies.
        page: Lsn,
        /// Where it says that it lies.
        found: Lsn,
    },
    /// WAL ends before it.
    #[error("{}", .0.reason)]
    Ended(Box<EndOfWal>),
}

/// Why WAL cannot be read, or cannot be gone on with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The header of a segment's first page is not one.
    #[error(transparent)]
    Header(#[from] pagemill_format::Error),
    /// Another version of PostgreSQL, or another program.
    #[error("magic number {0:04X} is not that of WAL of PostgreSQL 14 to 18")]
    Magic(u16),
    /// The file does not begin as a segment does.
    #[error("its first page has no long header: it is no WAL segment")]
    NoLongHeader,
    /// The name of the file says something else than its contents.
    #[error("its name is not that of a WAL segment of its size")]
    Name,
    /// A size that PostgreSQL cannot be told to use.
    #[error("WAL segments of {0} bytes are none of PostgreSQL's sizes")]
    SegmentSize(u32),
    /// A build with other pages.
    #[error("WAL pages of {found} bytes: only {expected} are read")]
    PageSize {
        /// The size of its pages, in bytes.
        found: u32,
        /// The one size that is read, in bytes.
        expected: usize,
    },
    /// A timeline's history that is none.
    #[error("{0}")]
    History(pagemill_format::Error),
    /// A compression that is not read.
    #[error("{0}, which is not read: unpack it first")]
    Compression(&'static str),
    /// Bytes of no known kind.
    #[error("neither WAL nor compressed in a way that is known, so it may be encrypted")]
    UnknownKind,
    /// The compression is damaged.
    #[error("cannot be decompressed: {0}")]
    Decompression(std::io::Error),
    /// More in a compressed file than a segment has.
    #[error("holds more than the {0} bytes expected")]
    TooLong(u32),
    /// A file in an archive that is no whole segment.
    #[error("holds {found} bytes, where a segment has {expected}: it was not archived whole")]
    NotWhole {
        /// What it holds, in bytes.
        found: u64,
        /// What a segment holds, in bytes.
        expected: u64,
    },
    /// Another record is where the control file has the last checkpoint.
    #[error("the record at {0} is no shutdown checkpoint")]
    NotAShutdownCheckpoint(Lsn),
    /// The checkpoint is not one that WAL can be written behind.
    #[error("the checkpoint at {lsn} says redo {redo} and timeline {timeline}, not {expected}")]
    OtherCheckpoint {
        /// Where it begins.
        lsn: Lsn,
        /// Where it says that a recovery begins.
        redo: Lsn,
        /// Its timeline.
        timeline: u32,
        /// The timeline of the segments.
        expected: u32,
    },
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
    pub finding: Finding,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, offset, lsn) = (self.path.display(), self.offset, self.lsn);
        write!(f, "{path}: offset {offset} (WAL {lsn}): {}", self.finding)
    }
}
