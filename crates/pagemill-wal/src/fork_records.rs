//! [`ForkRecords`]: every record of one fork in a stretch of WAL, block by block, and how the transactions that wrote them
//! ended.
//!
//! Other than the [index](crate::WalIndex) that pages are redone by, nothing is forgotten behind a page that a record brings
//! whole: who asks what happened to a row wants to see what came before.
//!
//! Where the file was made anew within the stretch, what came before was of another file of the same number.
//!
//! Invariant: the records of a block are in the order of the WAL.
//!
//! Sources: `xact_redo` in `src/backend/access/transam/xact.c`, `smgr_redo` in `src/backend/catalog/storage.c`,
//! PostgreSQL 14 to 18.

use std::collections::{HashMap, HashSet};

use pagemill_format::wal::{Commit, Record, ResourceManager, StorageFile, Truncation};
use pagemill_format::{BlockNumber, Fork, Lsn, PgVersion, TransactionId};

use crate::error::{Error, Result};
use crate::index::ForkKey;
use crate::reader::WalReader;

const KIND_BITS: u8 = 0x70;
const COMMIT: u8 = 0x00;
const ABORT: u8 = 0x20;
const COMMIT_PREPARED: u8 = 0x30;
const ABORT_PREPARED: u8 = 0x40;

/// What WAL says of the blocks of one fork.
#[derive(Debug)]
pub struct ForkRecords {
    /// Where the first record of the stretch begins.
    pub start: Lsn,
    /// Where the last one ends.
    pub end: Lsn,
    key: ForkKey,
    version: PgVersion,
    blocks: HashMap<BlockNumber, Vec<Lsn>>,
    /// Where the fork was cut, and how many blocks were left.
    cuts: Vec<(Lsn, u32)>,
    /// The transactions that wrote these records.
    writers: HashSet<TransactionId>,
    first_xid: Option<TransactionId>,
    ends: HashMap<TransactionId, TransactionEnding>,
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionEnding {
    /// Where its last record begins.
    pub lsn: Lsn,
    /// When, in microseconds since 2000-01-01 UTC.
    pub time: i64,
    /// It committed; else it was rolled back.
    pub committed: bool,
}

impl ForkRecords {
    /// Reads the rest of what a reader brings, up to the record that begins at `until` or behind.
    ///
    /// # Errors
    /// A record that cannot be taken apart; files that cannot be read.
    pub fn read(reader: &mut WalReader, key: ForkKey, until: Option<Lsn>) -> Result<Self> {
        let start = reader.position();
        let mut found = Self {
            start,
            end: start,
            key,
            version: reader.directory().version,
            blocks: HashMap::new(),
            cuts: Vec::new(),
            writers: HashSet::new(),
            first_xid: None,
            ends: HashMap::new(),
        };
        while let Some(record) = reader.next_record()? {
            if until.is_some_and(|until| record.lsn >= until) {
                break;
            }
            let at = |error| {
                let what = format!("the record at {}: {error}", record.lsn);
                Error::Record(pagemill_format::Error::corrupt("WAL", 0, what))
            };
            found.add(record.lsn, &record.parse().map_err(at)?).map_err(at)?;
            found.end = record.end;
        }
        Ok(found)
    }

    /// Where the records of a block begin, and those that cut it off, in the order of the WAL.
    pub fn of(&self, block: BlockNumber) -> Vec<BlockRecord> {
        let changes = self.blocks.get(&block).into_iter().flatten();
        let changes = changes.map(|lsn| BlockRecord { lsn: *lsn, is_cut: false });
        let cuts = self.cuts.iter().filter(|(_, left)| *left <= block.0);
        let cuts = cuts.map(|(lsn, _)| BlockRecord { lsn: *lsn, is_cut: true });
        let mut found: Vec<_> = changes.chain(cuts).collect();
        found.sort_by_key(|record| record.lsn);
        found
    }

    /// How a transaction ended, where this WAL says so: one that wrote to the fork, or that ran when the stretch begins.
    pub fn ending(&self, xid: TransactionId) -> Option<TransactionEnding> {
        self.ends.get(&xid).copied()
    }

    fn add(&mut self, lsn: Lsn, record: &Record<'_>) -> pagemill_format::Result<()> {
        let xid = record.header.xid;
        if xid.is_normal() {
            self.first_xid.get_or_insert(xid);
        }
        for block in &record.blocks {
            if (block.locator, block.fork) != (self.key.locator, self.key.fork) {
                continue;
            }
            self.writers.insert(xid);
            let lsns = self.blocks.entry(block.block).or_default();
            if lsns.last() != Some(&lsn) {
                lsns.push(lsn);
            }
        }
        match record.header.resource_manager {
            ResourceManager::TRANSACTION => self.add_transaction(lsn, record),
            ResourceManager::STORAGE if self.key.fork == Fork::Main => {
                self.add_storage(lsn, record)
            }
            _ => Ok(()),
        }
    }

    fn add_transaction(&mut self, lsn: Lsn, record: &Record<'_>) -> pagemill_format::Result<()> {
        let committed = match record.header.info & KIND_BITS {
            COMMIT | COMMIT_PREPARED => true,
            ABORT | ABORT_PREPARED => false,
            _ => return Ok(()),
        };
        let ended = Commit::parse(record.main_data, record.header.info, self.version)?;
        let xid = ended.prepared.as_ref().map_or(record.header.xid, |(xid, _)| *xid);
        let ending = TransactionEnding { lsn, time: ended.time, committed };
        for xid in ended.subtransactions.iter().copied().chain([xid]) {
            let ran_before = self.first_xid.is_none_or(|first| xid.precedes(first));
            if self.writers.contains(&xid) || ran_before {
                self.ends.insert(xid, ending);
            }
        }
        Ok(())
    }

    fn add_storage(&mut self, lsn: Lsn, record: &Record<'_>) -> pagemill_format::Result<()> {
        match record.header.kind() {
            ResourceManager::SMGR_CREATE => {
                let made = StorageFile::parse(record.main_data)?;
                if (made.locator, made.fork) == (self.key.locator, self.key.fork) {
                    self.blocks.clear();
                    self.cuts.clear();
                }
            }
            ResourceManager::SMGR_TRUNCATE => {
                let cut = Truncation::parse(record.main_data)?;
                if cut.locator == self.key.locator && cut.forks & Truncation::MAIN_FORK != 0 {
                    self.cuts.push((lsn, cut.blocks.0));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// A record that concerns a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRecord {
    /// Where it begins.
    pub lsn: Lsn,
    /// It cuts the fork before the block; else it names the block.
    pub is_cut: bool,
}
