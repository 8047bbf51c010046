//! [`Finding`]: what lies where a record, or the rest of one, was looked for and is not.
//!
//! The same finding is the end of WAL or damage: what lies behind it decides that ([`WalReader`](crate::WalReader)).
//!
//! Sources: `XLogReaderValidatePageHeader`, `ValidXLogRecordHeader` and `ValidXLogRecord` in
//! `src/backend/access/transam/xlogreader.c`, PostgreSQL 14 to 18.

use pagemill_format::Lsn;

use crate::error::MissingCause;

/// What is there in place of a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Finding {
    /// No page of this WAL.
    #[error(transparent)]
    NoPage(#[from] MissingCause),
    /// A page that is none, in the words of its parser.
    #[error("{0}")]
    PageHeader(String),
    /// A page of another version, or no page.
    #[error("magic number {found:04X} where {expected:04X} belongs")]
    Magic {
        /// What it begins with.
        found: u16,
        /// What it should begin with.
        expected: u16,
    },
    /// A page from elsewhere in the WAL.
    #[error("the page says it is that at {0}")]
    OtherPage(Lsn),
    /// A page of a timeline that is not followed, or that was left before.
    #[error("the page is of timeline {found}, on the way to {expected}")]
    Timeline {
        /// The page's.
        found: u32,
        /// The one that is read up to.
        expected: u32,
    },
    /// A header as at the beginning of a segment.
    #[error("a long header in the midst of a segment")]
    LongHeader,
    /// A segment that does not begin as one does.
    #[error("a segment without a long header")]
    ShortHeader,
    /// WAL that is another's.
    #[error("WAL of another cluster: system identifier {found}, not {expected}")]
    OtherCluster {
        /// The segment's.
        found: u64,
        /// That of the cluster.
        expected: u64,
    },
    /// A segment of another size.
    #[error("a segment of {found} bytes among those of {expected}")]
    SegmentSize {
        /// Its size, in bytes.
        found: u32,
        /// That of the others, in bytes.
        expected: u32,
    },
    /// A page that goes on with a record which was never finished, before the server was started again.
    #[error("the page at {0} goes on with another record")]
    OtherRecord(Lsn),
    /// A page that does not go on with the rest of the record.
    #[error(
        "the page goes on with {found} bytes of a record, where {missing} of that at {lsn} belong"
    )]
    OtherRest {
        /// Where the record begins.
        lsn: Lsn,
        /// Bytes of it that are missing.
        missing: usize,
        /// Bytes of a record that the page goes on with.
        found: u32,
    },
    /// No page with the rest of a record.
    #[error("the record at {lsn} is not finished: {cause}")]
    Unfinished {
        /// Where the record begins.
        lsn: Lsn,
        /// What is there instead of the page.
        cause: MissingCause,
    },
    /// The part of the file's timeline that is followed ends before.
    #[error("the timeline was left at {0}, and the file of the next is not there")]
    TimelineLeft(Lsn),
    /// Nothing was written there.
    #[error("zeros where a record would begin")]
    Zeros,
    /// A place in a page's header, or one that is not aligned.
    #[error("no record can begin at {0}")]
    NoBeginning(Lsn),
    /// A record shorter than a record's header.
    #[error("a record of {0} bytes")]
    TooShort(usize),
    /// A record whose place is known, with a length that none can have.
    #[error("no record is {0} bytes long")]
    Length(usize),
    /// No header of a record, in the words of its parser.
    #[error("{0}")]
    RecordHeader(String),
    /// A record whose CRC is another, in the words of the check.
    #[error("{0}")]
    Crc(String),
    /// A record whose parts do not fit together, in the words of its parser.
    #[error("{0}")]
    Parts(String),
    /// A record of no known resource manager.
    #[error("resource manager {0}, which there is not")]
    ResourceManager(u8),
    /// A record that follows another one than the one before.
    #[error("the record says that the one before begins at {0}")]
    OtherBefore(Lsn),
    /// A record that says of another that it was given up, where none was.
    #[error("the record gives up one at {0}, where none was met")]
    NothingGivenUp(Lsn),
    /// A segment that had the record, and has not any more.
    #[error("the segment is cut short")]
    SegmentCut,
    /// The same, and there is no file.
    #[error("the segment is gone")]
    SegmentGone,
    /// Files that could not be read, in the words of that error.
    #[error("{0}")]
    Unread(String),
    /// Nothing is wrong: it is not read on, since the target of a recovery is met.
    #[error("the target is met")]
    TargetMet,
}
