//! The bodies of the smaller records: files made and cut, locks and running transactions for standbys, OIDs,
//! pages of the commit log, checkpoints.
//!
//! Each has a `record` that builds it and, where somebody reads it, a `parse`. Page numbers of the commit log
//! have 8 bytes from 17 on.
//!
//! Sources: `src/include/catalog/storage_xlog.h`, `src/include/storage/standbydefs.h`,
//! `src/include/catalog/pg_control.h`, `src/backend/access/transam/clog.c`, PostgreSQL 14 to 18.

use super::commit::read_list;
use super::{RecordBuilder, RelFileLocator, ResourceManager};
use crate::control::Checkpoint;
use crate::error::Result;
use crate::ids::{BlockNumber, Fork, Oid, PgVersion, TransactionId};
use crate::reader::Reader;

/// A file of a relation was made (`XLOG_SMGR_CREATE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageFile {
    /// The relation.
    pub locator: RelFileLocator,
    /// The fork.
    pub fork: Fork,
}

impl StorageFile {
    /// The record.
    pub fn record(&self, xid: TransactionId) -> RecordBuilder<'static> {
        let mut data = self.locator.encode().to_vec();
        data.extend_from_slice(&(self.fork as u32).to_le_bytes());
        let info = ResourceManager::SMGR_CREATE | ResourceManager::SPECIAL_REL_UPDATE;
        RecordBuilder::new(ResourceManager::STORAGE, info, xid).main_data(data)
    }

    /// Reads the main data.
    ///
    /// # Errors
    /// Corrupt: too short, or a fork that there is not.
    pub fn parse(main_data: &[u8]) -> Result<Self> {
        let mut r = Reader::new("storage record", main_data);
        let (locator, fork) = (RelFileLocator::read(&mut r)?, r.u32()?);
        let known = usize::try_from(fork).ok().and_then(|fork| Fork::ALL.get(fork));
        let unknown = || r.corrupt(format!("fork {fork} where 0 to 3 are defined"));
        Ok(Self { locator, fork: *known.ok_or_else(unknown)? })
    }
}

/// A relation was cut (`XLOG_SMGR_TRUNCATE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncation {
    /// The relation.
    pub locator: RelFileLocator,
    /// The blocks of its main fork that it keeps.
    pub blocks: BlockNumber,
    /// Which forks are cut: 1 the main fork, 2 the visibility map, 4 the free-space map.
    pub forks: u32,
}

impl Truncation {
    /// The main fork.
    pub const MAIN_FORK: u32 = 1;
    /// Every fork.
    pub const ALL_FORKS: u32 = 7;

    /// The record.
    pub fn record(&self, xid: TransactionId) -> RecordBuilder<'static> {
        let mut data = self.blocks.0.to_le_bytes().to_vec();
        data.extend_from_slice(&self.locator.encode());
        data.extend_from_slice(&self.forks.to_le_bytes());
        let info = ResourceManager::SMGR_TRUNCATE | ResourceManager::SPECIAL_REL_UPDATE;
        RecordBuilder::new(ResourceManager::STORAGE, info, xid).main_data(data)
    }

    /// Reads the main data.
    ///
    /// # Errors
    /// Corrupt: too short.
    pub fn parse(main_data: &[u8]) -> Result<Self> {
        let mut r = Reader::new("storage record", main_data);
        let (blocks, locator) = (BlockNumber(r.u32()?), RelFileLocator::read(&mut r)?);
        Ok(Self { locator, blocks, forks: r.u32()? })
    }
}

/// An access exclusive lock that standbys take too (`XLOG_STANDBY_LOCK`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExclusiveLock {
    /// The transaction that holds it.
    pub xid: TransactionId,
    /// The database; 0 for a shared relation.
    pub database: Oid,
    /// The relation.
    pub relation: Oid,
}

impl ExclusiveLock {
    /// The record of several locks, which a transaction writes when it takes them.
    pub fn record(locks: &[Self]) -> RecordBuilder<'static> {
        let mut data = (locks.len() as u32).to_le_bytes().to_vec();
        for lock in locks {
            for field in [lock.xid.0, lock.database.0, lock.relation.0] {
                data.extend_from_slice(&field.to_le_bytes());
            }
        }
        let xid = locks.first().map_or(TransactionId::INVALID, |lock| lock.xid);
        RecordBuilder::new(ResourceManager::STANDBY, ResourceManager::STANDBY_LOCK, xid)
            .main_data(data)
    }

    /// Reads the main data.
    ///
    /// # Errors
    /// Corrupt: fewer locks than promised.
    pub fn parse(main_data: &[u8]) -> Result<Vec<Self>> {
        read_list(&mut Reader::new("standby record", main_data), 12, |r| {
            let (xid, database) = (TransactionId(r.u32()?), Oid(r.u32()?));
            Ok(Self { xid, database, relation: Oid(r.u32()?) })
        })
    }
}

/// Which transactions are running (`XLOG_RUNNING_XACTS`): what a standby begins from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunningTransactions {
    /// Running transactions, then their subtransactions.
    pub xids: Vec<TransactionId>,
    /// How many of these are subtransactions.
    pub subtransactions: u32,
    /// Not all subtransactions are listed.
    pub is_overflowed: bool,
    /// The next transaction id to be given out.
    pub next_xid: TransactionId,
    /// The oldest running transaction, or the next one.
    pub oldest_running: TransactionId,
    /// The newest transaction that ended.
    pub latest_completed: TransactionId,
}

impl RunningTransactions {
    /// Nothing is running.
    pub fn none(next_xid: TransactionId) -> Self {
        let mut latest = TransactionId(next_xid.0.wrapping_sub(1));
        if !latest.is_normal() {
            latest = TransactionId(u32::MAX);
        }
        Self { next_xid, oldest_running: next_xid, latest_completed: latest, ..Self::default() }
    }

    /// The record.
    pub fn record(&self) -> RecordBuilder<'static> {
        let transactions = (self.xids.len() as u32).saturating_sub(self.subtransactions);
        let mut data = Vec::with_capacity(24 + 4 * self.xids.len());
        data.extend_from_slice(&transactions.to_le_bytes());
        data.extend_from_slice(&self.subtransactions.to_le_bytes());
        data.extend_from_slice(&[u8::from(self.is_overflowed), 0, 0, 0]);
        for xid in [self.next_xid, self.oldest_running, self.latest_completed] {
            data.extend_from_slice(&xid.0.to_le_bytes());
        }
        self.xids.iter().for_each(|xid| data.extend_from_slice(&xid.0.to_le_bytes()));
        let info = ResourceManager::RUNNING_XACTS;
        RecordBuilder::new(ResourceManager::STANDBY, info, TransactionId::INVALID).main_data(data)
    }

    /// Reads the main data.
    ///
    /// # Errors
    /// Corrupt: fewer transactions than promised.
    pub fn parse(main_data: &[u8]) -> Result<Self> {
        let mut r = Reader::new("standby record", main_data);
        let (transactions, subtransactions) = (r.u32()?, r.u32()?);
        let is_overflowed = r.u8()? != 0;
        r.align(4);
        let (next_xid, oldest_running) = (TransactionId(r.u32()?), TransactionId(r.u32()?));
        let latest_completed = TransactionId(r.u32()?);
        let count = (transactions as usize).saturating_add(subtransactions as usize);
        if count.saturating_mul(4) > r.remaining() {
            return Err(r.corrupt(format!("{count} transactions in {} bytes", r.remaining())));
        }
        let xids: Result<_> = (0..count).map(|_| Ok(TransactionId(r.u32()?))).collect();
        let xids = xids?;
        Ok(Self {
            xids,
            subtransactions,
            is_overflowed,
            next_xid,
            oldest_running,
            latest_completed,
        })
    }
}

impl RecordBuilder<'static> {
    /// A checkpoint with no server running after it (`XLOG_CHECKPOINT_SHUTDOWN`).
    pub fn shutdown_checkpoint(checkpoint: &Checkpoint, version: PgVersion) -> Self {
        let info = ResourceManager::XLOG_CHECKPOINT_SHUTDOWN;
        Self::new(ResourceManager::XLOG, info, TransactionId::INVALID)
            .main_data(checkpoint.encode(version).to_vec())
    }

    /// OIDs below `next` may have been given out (`XLOG_NEXTOID`).
    pub fn next_oid(next: Oid) -> Self {
        Self::new(ResourceManager::XLOG, ResourceManager::XLOG_NEXTOID, TransactionId::INVALID)
            .main_data(next.0.to_le_bytes().to_vec())
    }

    /// The rest of the segment stays unused (`XLOG_SWITCH`).
    pub fn switch() -> Self {
        Self::new(ResourceManager::XLOG, ResourceManager::XLOG_SWITCH, TransactionId::INVALID)
    }

    /// A page of the commit log begins as zeros (`CLOG_ZEROPAGE`).
    pub fn commit_log_zero_page(page: u64, version: PgVersion) -> Self {
        Self::zero_page(ResourceManager::CLOG, page, version)
    }

    /// A page of commit timestamps begins as zeros (`COMMIT_TS_ZEROPAGE`, which has the number of `CLOG_ZEROPAGE`).
    pub fn commit_timestamp_zero_page(page: u64, version: PgVersion) -> Self {
        Self::zero_page(ResourceManager::COMMIT_TS, page, version)
    }

    fn zero_page(of: ResourceManager, page: u64, version: PgVersion) -> Self {
        let bytes = page.to_le_bytes();
        let page = if version >= PgVersion::V17 { &bytes[..] } else { &bytes[..4] };
        Self::new(of, ResourceManager::CLOG_ZEROPAGE, TransactionId::INVALID)
            .main_data(page.to_vec())
    }
}
