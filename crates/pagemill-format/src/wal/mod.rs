//! WAL as it lies on disk: segments, pages, records, and what is in the records that are written here.
//!
//! WAL is one long sequence of bytes, addressed by [`Lsn`]. It is cut into segment files of equal size and
//! these into pages of 8192 bytes. Each page opens with a header; records fill the rest, begin at multiples
//! of 8 and go on over as many pages and segments as they need. A record is a header, headers of its block
//! references, then the data of the blocks (full-page images among it), then its main data.
//!
//! Nothing here knows of files: [`Record`] and [`PageHeader`] are read from bytes, [`RecordBuilder`] and
//! [`PageHeader`] written to bytes. Which bytes follow each other is the business of `pagemill-wal`.
//!
//! Sources: `src/include/access/xlog_internal.h`, `src/include/access/xlogrecord.h`, PostgreSQL 14 to 18.

mod block_reference;
mod commit;
mod database_records;
mod image;
mod invalidation;
mod multixact_records;
mod page_header;
mod record;
mod record_bodies;
mod record_builder;
mod recovery_records;
mod resource_manager;
mod segment;

use std::fmt;

use crate::ids::{Lsn, Oid, PgVersion};

pub use block_reference::{BlockImage, BlockReference, BlockTouch};
pub use commit::{Commit, DroppedStatistics};
pub use database_records::{CopiedDatabase, DatabaseChange, RelationMapUpdate};
pub use image::{ImageCompression, ImageCompressor, PageImage};
pub use invalidation::Invalidation;
pub use multixact_records::{MultiXactChange, MultiXactCreation, zeroed_commit_log_page};
pub use page_header::{LONG_HEADER_BYTES, LongHeader, PageHeader, SHORT_HEADER_BYTES};
pub use record::{MAX_RECORD_BYTES, RECORD_HEADER_BYTES, Record, RecordHeader};
pub use record_bodies::{ExclusiveLock, RunningTransactions, StorageFile, Truncation};
pub use record_builder::{EncodedRecord, RecordBuilder};
pub use recovery_records::RecoveryRecord;
pub use resource_manager::ResourceManager;
pub use segment::{MAX_SEGMENT_SIZE, MIN_SEGMENT_SIZE, SegmentName, is_segment_size};

/// Bytes of a WAL page (XLOG_BLCKSZ as every distribution builds it).
pub const PAGE_BYTES: usize = 8192;
/// Records begin at multiples of this.
pub const RECORD_ALIGNMENT: u64 = 8;
/// The highest number of a block reference; a record can have one more than that.
pub const MAX_BLOCK_ID: u8 = 32;

/// XLOG_PAGE_MAGIC of each version.
const MAGIC_NUMBERS: [(u16, PgVersion); 5] = [
    (0xD10D, PgVersion::V14),
    (0xD110, PgVersion::V15),
    (0xD113, PgVersion::V16),
    (0xD116, PgVersion::V17),
    (0xD118, PgVersion::V18),
];

/// The number every WAL page of this version begins with.
pub fn page_magic(version: PgVersion) -> u16 {
    let known = MAGIC_NUMBERS.iter().find(|(_, of)| *of == version);
    known.map_or(0, |(magic, _)| *magic)
}

/// The version whose WAL pages begin with this number.
pub fn version_of_magic(magic: u16) -> Option<PgVersion> {
    MAGIC_NUMBERS.iter().find(|(known, _)| *known == magic).map(|(_, version)| *version)
}

/// The next place where a record can begin, from `lsn` on.
pub fn align_record(lsn: Lsn) -> Lsn {
    Lsn(lsn.0.saturating_add(RECORD_ALIGNMENT - 1) & !(RECORD_ALIGNMENT - 1))
}

/// The files of a relation, as WAL names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RelFileLocator {
    /// The tablespace, never 0.
    pub tablespace: Oid,
    /// The database; 0 for a shared relation.
    pub database: Oid,
    /// The relfilenode.
    pub number: Oid,
}

impl RelFileLocator {
    /// Bytes of one in a record.
    pub const BYTES: usize = 12;

    pub(crate) fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let fields = [self.tablespace, self.database, self.number];
        for (to, field) in bytes.chunks_exact_mut(4).zip(fields) {
            to.copy_from_slice(&field.0.to_le_bytes());
        }
        bytes
    }

    /// Reads the next one.
    ///
    /// # Errors
    /// Corrupt: too few bytes are left.
    pub fn read(r: &mut crate::reader::Reader<'_>) -> crate::Result<Self> {
        Ok(Self { tablespace: Oid(r.u32()?), database: Oid(r.u32()?), number: Oid(r.u32()?) })
    }
}

/// As `pg_waldump` prints it: tablespace, database and relfilenode.
impl fmt::Display for RelFileLocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.tablespace, self.database, self.number)
    }
}

#[cfg(test)]
mod tests;
