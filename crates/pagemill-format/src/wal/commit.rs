//! The record of a commit: when, in which database, which files and statistics go with it, and what other
//! sessions are to forget.
//!
//! Only what there is takes room: a word of flags tells which parts follow, and is itself left out when
//! nothing does. Statistics to drop came with 15, and their objects' ids have 8 bytes from 18 on.
//!
//! Sources: `src/include/access/xact.h`; `XactLogCommitRecord` in `src/backend/access/transam/xact.c` and
//! `ParseCommitRecord` in `src/backend/access/rmgrdesc/xactdesc.c`, PostgreSQL 14 to 18.

use super::invalidation::{Invalidation, MESSAGE_BYTES};
use super::{RecordBuilder, RelFileLocator, ResourceManager};
use crate::error::Result;
use crate::ids::{Lsn, Oid, PgVersion, TransactionId};
use crate::reader::Reader;

const STRUCTURE: &str = "commit record";
/// In the record's `info`: a word of flags follows.
const HAS_INFO: u8 = 0x80;

const DATABASE: u32 = 1 << 0;
const SUBTRANSACTIONS: u32 = 1 << 1;
const FILES: u32 = 1 << 2;
const INVALIDATIONS: u32 = 1 << 3;
const TWO_PHASE: u32 = 1 << 4;
const ORIGIN: u32 = 1 << 5;
const EXCLUSIVE_LOCKS: u32 = 1 << 6;
const GID: u32 = 1 << 7;
const STATISTICS: u32 = 1 << 8;
const UPDATE_RELCACHE_FILE: u32 = 1 << 30;
const FORCE_SYNC: u32 = 1 << 31;

/// What a commit (or an abort, which has some of it) says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Commit {
    /// When, in microseconds since 2000-01-01 UTC.
    pub time: i64,
    /// The database and its tablespace; wanted where there are invalidations, or `wal_level` is logical.
    pub database: Option<(Oid, Oid)>,
    /// Its subtransactions.
    pub subtransactions: Vec<TransactionId>,
    /// Files of relations to remove.
    pub dropped_files: Vec<RelFileLocator>,
    /// Cumulative statistics to remove; not in 14.
    pub dropped_statistics: Vec<DroppedStatistics>,
    /// What other sessions are to forget.
    pub invalidations: Vec<Invalidation>,
    /// The prepared transaction that this ends.
    pub prepared: Option<(TransactionId, Vec<u8>)>,
    /// Where it comes from: LSN and time there.
    pub origin: Option<(Lsn, i64)>,
    /// It held access exclusive locks, which standbys release now.
    pub had_exclusive_locks: bool,
    /// The file with cached catalog entries has to be made anew.
    pub update_relcache_file: bool,
    /// The server waited for the disk, whatever `synchronous_commit` said.
    pub force_sync: bool,
}

/// Cumulative statistics of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DroppedStatistics {
    /// The kind of statistics: 2 for relations (from 15 on).
    pub kind: i32,
    /// The database; 0 for a shared object.
    pub database: Oid,
    /// The object.
    pub object: u64,
}

impl Commit {
    /// The record, for servers of this version.
    pub fn record(&self, xid: TransactionId, version: PgVersion) -> RecordBuilder<'static> {
        let flags = self.flags(version);
        let mut data = Vec::with_capacity(64);
        data.extend_from_slice(&self.time.to_le_bytes());
        if flags != 0 {
            data.extend_from_slice(&flags.to_le_bytes());
        }
        if let Some((database, tablespace)) = self.database {
            data.extend_from_slice(&database.0.to_le_bytes());
            data.extend_from_slice(&tablespace.0.to_le_bytes());
        }
        self.encode_lists(flags, version, &mut data);
        if let Some((xid, gid)) = &self.prepared {
            data.extend_from_slice(&xid.0.to_le_bytes());
            if flags & GID != 0 {
                data.extend_from_slice(gid);
                data.push(0);
            }
        }
        if let Some((lsn, time)) = self.origin {
            data.extend_from_slice(&lsn.0.to_le_bytes());
            data.extend_from_slice(&time.to_le_bytes());
        }
        RecordBuilder::new(ResourceManager::TRANSACTION, self.info(flags), xid).main_data(data)
    }

    fn info(&self, flags: u32) -> u8 {
        let special = match self.dropped_files.is_empty() {
            true => 0,
            false => ResourceManager::SPECIAL_REL_UPDATE,
        };
        let kind = if self.prepared.is_some() { 0x30 } else { ResourceManager::XACT_COMMIT };
        kind | special | if flags != 0 { HAS_INFO } else { 0 }
    }

    fn flags(&self, version: PgVersion) -> u32 {
        let has_gid = self.prepared.as_ref().is_some_and(|(_, gid)| !gid.is_empty());
        let has_statistics = !self.dropped_statistics.is_empty() && version >= PgVersion::V15;
        let parts = [
            (self.database.is_some(), DATABASE),
            (!self.subtransactions.is_empty(), SUBTRANSACTIONS),
            (!self.dropped_files.is_empty(), FILES),
            (!self.invalidations.is_empty(), INVALIDATIONS),
            (self.prepared.is_some(), TWO_PHASE),
            (self.origin.is_some(), ORIGIN),
            (self.had_exclusive_locks, EXCLUSIVE_LOCKS),
            (has_gid, GID),
            (has_statistics, STATISTICS),
            (self.update_relcache_file, UPDATE_RELCACHE_FILE),
            (self.force_sync, FORCE_SYNC),
        ];
        parts.iter().filter(|(is_there, _)| *is_there).fold(0, |flags, (_, flag)| flags | flag)
    }

    fn encode_lists(&self, flags: u32, version: PgVersion, data: &mut Vec<u8>) {
        if flags & SUBTRANSACTIONS != 0 {
            list(&self.subtransactions, data, |xid, data| {
                data.extend_from_slice(&xid.0.to_le_bytes())
            });
        }
        if flags & FILES != 0 {
            list(&self.dropped_files, data, |file, data| data.extend_from_slice(&file.encode()));
        }
        if flags & STATISTICS != 0 {
            list(&self.dropped_statistics, data, |item, data| item.encode(version, data));
        }
        if flags & INVALIDATIONS != 0 {
            list(&self.invalidations, data, |message, data| message.encode(data));
        }
    }

    /// Reads the main data of a commit or an abort with this `info`.
    ///
    /// # Errors
    /// Corrupt: a part that the flags promise is not there.
    pub fn parse(main_data: &[u8], info: u8, version: PgVersion) -> Result<Self> {
        let mut r = Reader::new(STRUCTURE, main_data);
        let time = r.i64()?;
        let flags = if info & HAS_INFO != 0 { r.u32()? } else { 0 };
        let mut commit = Self { time, ..Self::default() };
        if flags & DATABASE != 0 {
            commit.database = Some((Oid(r.u32()?), Oid(r.u32()?)));
        }
        commit.read_lists(&mut r, flags, version)?;
        if flags & TWO_PHASE != 0 {
            let xid = TransactionId(r.u32()?);
            let gid = if flags & GID != 0 { r.cstr()?.to_vec() } else { Vec::new() };
            commit.prepared = Some((xid, gid));
        }
        if flags & ORIGIN != 0 {
            commit.origin = Some((Lsn(r.u64()?), r.i64()?));
        }
        commit.had_exclusive_locks = flags & EXCLUSIVE_LOCKS != 0;
        commit.update_relcache_file = flags & UPDATE_RELCACHE_FILE != 0;
        commit.force_sync = flags & FORCE_SYNC != 0;
        Ok(commit)
    }

    fn read_lists(&mut self, r: &mut Reader<'_>, flags: u32, version: PgVersion) -> Result<()> {
        if flags & SUBTRANSACTIONS != 0 {
            self.subtransactions = read_list(r, 4, |r| Ok(TransactionId(r.u32()?)))?;
        }
        if flags & FILES != 0 {
            self.dropped_files = read_list(r, RelFileLocator::BYTES, RelFileLocator::read)?;
        }
        if flags & STATISTICS != 0 {
            let bytes = if version >= PgVersion::V18 { 16 } else { 12 };
            self.dropped_statistics = read_list(r, bytes, |r| DroppedStatistics::read(r, version))?;
        }
        if flags & INVALIDATIONS != 0 {
            self.invalidations = read_list(r, MESSAGE_BYTES, Invalidation::read)?;
        }
        Ok(())
    }
}

impl DroppedStatistics {
    fn encode(self, version: PgVersion, data: &mut Vec<u8>) {
        data.extend_from_slice(&self.kind.to_le_bytes());
        data.extend_from_slice(&self.database.0.to_le_bytes());
        let object = self.object.to_le_bytes();
        data.extend_from_slice(if version >= PgVersion::V18 { &object } else { &object[..4] });
    }

    fn read(r: &mut Reader<'_>, version: PgVersion) -> Result<Self> {
        let (kind, database) = (r.i32()?, Oid(r.u32()?));
        let object = if version >= PgVersion::V18 { r.u64()? } else { u64::from(r.u32()?) };
        Ok(Self { kind, database, object })
    }
}

/// A count and that many items.
fn list<T: Copy>(items: &[T], data: &mut Vec<u8>, encode: impl Fn(T, &mut Vec<u8>)) {
    // A record is too short for more items than 32 bits count.
    data.extend_from_slice(&(items.len() as u32).to_le_bytes());
    items.iter().for_each(|item| encode(*item, data));
}

/// The reverse of [`list`]: items of `bytes` bytes each, as many as the count says and the record holds.
pub(super) fn read_list<T>(
    r: &mut Reader<'_>,
    bytes: usize,
    read: impl Fn(&mut Reader<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let count = r.u32()? as usize;
    if count.saturating_mul(bytes) > r.remaining() {
        return Err(r.corrupt(format!("{count} items of {bytes} bytes in {}", r.remaining())));
    }
    (0..count).map(|_| read(r)).collect()
}
