//! [`WalIndex`]: what a stretch of WAL did, found in one pass, so that any page can be redone alone when it is asked for.
//!
//! Only what says where changes are is kept: for each block the places of its records, from the last that brings the
//! whole page on; what became of files, of databases and of relation maps; what became of transactions. The records
//! themselves are [fetched](RecordFetch) again when a page is redone.
//!
//! Memory is bounded, since WAL is as long as it likes, and may be made by anybody. Places of records go to temporary
//! files when there are too many; what cannot go there ends in an error.
//!
//! Pages of visibility maps and of free-space maps are left out. A map's bit counts only for a heap block that has no
//! entry here: the record that clears a bit is one of that block too. Nobody reads free space.
//!
//! Sources: `src/backend/access/transam/xlogrecovery.c` and the redo functions of `rmgrlist.h`, PostgreSQL 14 to 18.

mod entry;
mod entry_list;
mod files;
mod fork_history;
mod full_page_writes;
mod log_pages;
mod memory;
mod record_fetch;
mod spill;
mod transactions;

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use pagemill_format::control::Checkpoint;
use pagemill_format::wal::{
    BlockTouch, DatabaseChange, Record, RecordHeader, RelFileLocator, ResourceManager,
};
use pagemill_format::{Fork, Lsn, PgVersion};
use pagemill_io::Storage;
use pagemill_redo::{Effect, effect};

use crate::ahead::{ForkHasher, PlainRecords};
use crate::error::{Error, Result};
use crate::reader::{EndOfWal, WalRecord};
use crate::wal_source::WalSource;

pub use entry::{BlockKey, Entry, EntryKind, ForkKey};
pub use files::{DatabaseDirectory, DirectoryLife};
pub use fork_history::{FileLife, ForkHistory};
use full_page_writes::FullPageWrites;
pub(crate) use full_page_writes::is_table_image;
pub use log_pages::LogPages;
use memory::MemoryLimits;
pub use record_fetch::{FetchedRecord, RecordFetch};
use spill::Spill;
pub use transactions::Transactions;

type Forks = HashMap<ForkKey, ForkHistory, BuildHasherDefault<ForkHasher>>;

/// What a stretch of WAL did.
#[derive(Debug)]
pub struct WalIndex {
    /// Where the first record begins.
    pub start: Lsn,
    /// Where the last one ends, and why.
    pub end: EndOfWal,
    /// How many records there are.
    pub records: u64,
    /// Whether `full_page_writes` is known to have been on all the time.
    pub full_page_writes: bool,
    /// Transactions and multixacts.
    pub transactions: Transactions,
    /// Databases and relation maps.
    pub files: files::Files,
    forks: Forks,
}

impl WalIndex {
    /// What became of a fork; `None` when WAL did nothing to it.
    pub fn fork(&self, key: ForkKey) -> Option<&ForkHistory> {
        self.forks.get(&key)
    }

    /// All forks that something was done to.
    pub fn forks(&self) -> impl Iterator<Item = (&ForkKey, &ForkHistory)> {
        self.forks.iter()
    }

    /// A block whose records bring no whole page, though they should: `full_page_writes` was on all the time, and one of them
    /// is of a kind that then brings an image when it is the first change of its page. `None` when there is no such block.
    pub fn first_without_image(&self) -> Option<(ForkKey, Entry)> {
        if !self.full_page_writes {
            return None;
        }
        let mut found =
            self.forks.iter().filter_map(|(key, fork)| Some((*key, fork.first_without_image()?)));
        found.next()
    }
}

/// Takes records in, one after the other.
#[derive(Debug)]
pub struct WalIndexBuilder {
    version: PgVersion,
    start: Option<Lsn>,
    records: u64,
    full_page_writes: FullPageWrites,
    /// Where redo begins, unless its record is the checkpoint's own.
    redo: Lsn,
    transactions: Transactions,
    files: files::Files,
    forks: Forks,
    /// Bytes of entries in memory, or more.
    entry_bytes: usize,
    /// Bytes of what says which entries in files count, when entries were counted last.
    cut_bytes: usize,
    limits: MemoryLimits,
    spill: Spill,
}

/// What a fork takes in tables besides its entries, in bytes.
const FORK_BYTES: usize = 256;

impl WalIndexBuilder {
    /// Nothing taken in yet, from this checkpoint on. Entries that do not fit in the memory that is allowed for the source go to
    /// temporary files.
    pub fn new(storage: &Storage, source: &WalSource, checkpoint: &Checkpoint) -> Self {
        let limits = MemoryLimits { all: source.memory() };
        Self {
            version: source.version(),
            start: None,
            records: 0,
            full_page_writes: FullPageWrites::from_checkpoint(checkpoint.full_page_writes, false),
            redo: checkpoint.redo,
            transactions: Transactions::new(checkpoint.clone()),
            files: files::Files::default(),
            forks: Forks::default(),
            entry_bytes: 0,
            cut_bytes: 0,
            limits,
            spill: Spill::new(storage.clone(), limits),
        }
    }

    /// Takes a record in, the next one in the order of the WAL.
    ///
    /// # Errors
    /// Its parts do not fit together, or it changes files in a way that is not known; it does not fit in memory, and files
    /// cannot be written.
    pub fn add(&mut self, found: &WalRecord<'_>) -> Result<()> {
        let record = found.parse().map_err(|error| bad_record(found, &error))?;
        self.begin(found.lsn);
        self.records += 1;
        self.transactions.saw(record.header.xid);
        self.add_blocks(found).map_err(|error| bad_record(found, &error))?;
        self.add_body(&record).map_err(|error| bad_record(found, &error))?;
        if record.header.resource_manager == ResourceManager::DATABASE {
            let change = DatabaseChange::parse(&record, self.version);
            if let Some(change) = change.map_err(|error| bad_record(found, &error))? {
                self.add_database(found.lsn, change)?;
            }
        }
        self.refuse_unknown(found, &record)?;
        self.keep_limits()
    }

    /// All records were taken in.
    ///
    /// # Errors
    /// Temporary files that cannot be written or read.
    pub fn finish(mut self, end: EndOfWal) -> Result<WalIndex> {
        self.spill.finish(&mut self.forks)?;
        self.forks.values_mut().for_each(ForkHistory::finish);
        self.transactions.finish();
        Ok(WalIndex {
            start: self.start.unwrap_or(end.lsn),
            end,
            records: self.records,
            full_page_writes: self.full_page_writes.was_on(),
            transactions: self.transactions,
            files: self.files,
            forks: self.forks,
        })
    }

    /// Takes the first `count` of these records in, the next ones in the order of the WAL.
    ///
    /// # Errors
    /// They do not fit in memory, and files cannot be written.
    pub fn add_plain(&mut self, records: &PlainRecords, count: usize) -> Result<()> {
        let places = records.places();
        let Some(first) = places.first().filter(|_| count > 0) else { return Ok(()) };
        self.begin(first.lsn);
        self.records += count as u64;
        if records.first_table_image.is_some_and(|record| record < count) {
            self.full_page_writes.saw_image();
        }
        for (_, xid) in records.writers.iter().take_while(|(record, _)| *record < count) {
            self.transactions.saw(*xid);
        }
        for end in records.ends().iter().take_while(|end| end.record < count) {
            self.transactions.ended(end.xid, end.is_commit);
        }
        let stop = places.get(count).map(|place| place.lsn);
        for (key, entries) in &records.forks {
            let counted = match stop {
                Some(stop) => entries.partition_point(|entry| entry.lsn() < stop),
                None => entries.len(),
            };
            if counted > 0 {
                self.touch_all(*key, &entries[..counted]);
            }
        }
        self.keep_limits()
    }

    fn touch_all(&mut self, key: ForkKey, entries: &[Entry]) {
        let fork = self.forks.entry(key).or_default();
        let before = fork.entry_bytes();
        fork.touch_all(entries, self.limits.unsorted_entries());
        // Pruning makes it less; what there is then is counted when it seems to be too much.
        self.entry_bytes += fork.entry_bytes().saturating_sub(before);
    }

    /// Writes entries to a file when there are too many.
    fn keep_limits(&mut self) -> Result<()> {
        let fixed = self.fixed_bytes();
        if fixed > self.limits.fixed() {
            return Err(Error::Memory("the files and transactions that it changes"));
        }
        let most = self.limits.entries(fixed);
        if self.entry_bytes <= most {
            return Ok(());
        }
        self.forks.values_mut().for_each(ForkHistory::finish);
        self.count_entries();
        if self.entry_bytes > most / 2 {
            self.spill.write(&mut self.forks)?;
            self.count_entries();
        }
        Ok(())
    }

    fn count_entries(&mut self) {
        self.entry_bytes = self.forks.values().map(ForkHistory::entry_bytes).sum();
        self.cut_bytes = self.forks.values().map(|fork| fork.cuts().bytes()).sum();
    }

    /// What is kept in memory whatever it is, in bytes.
    fn fixed_bytes(&self) -> usize {
        self.forks.len() * FORK_BYTES
            + self.transactions.bytes()
            + self.files.bytes()
            + self.spill.fixed_bytes()
            + self.cut_bytes
    }

    /// The first record begins here, or one behind it.
    fn begin(&mut self, lsn: Lsn) {
        if self.start.is_none() && lsn > self.redo {
            // The checkpoint's record, which is not replayed, is the last one of a server that was shut down.
            let is_on = self.transactions.checkpoint.full_page_writes;
            self.full_page_writes = FullPageWrites::from_checkpoint(is_on, true);
        }
        self.start.get_or_insert(lsn);
    }

    fn add_blocks(&mut self, found: &WalRecord<'_>) -> pagemill_format::Result<()> {
        found.visit_blocks(|block| {
            if is_table_image(&found.header, &block) {
                self.full_page_writes.saw_image();
            }
            if let Some((key, entry)) = entry_of(&found.header, found.lsn, &block) {
                self.touch_all(key, &[entry]);
            }
        })
    }

    /// What records of other managers do is known by their blocks, also where they are read ahead as plain ones.
    fn add_body(&mut self, record: &Record<'_>) -> pagemill_format::Result<()> {
        let version = self.version;
        match record.header.resource_manager {
            ResourceManager::XLOG => self.add_xlog(record)?,
            ResourceManager::TRANSACTION => {
                for locator in self.transactions.end_of_transaction(record, version)? {
                    self.drop_relation(locator);
                }
            }
            ResourceManager::STORAGE => self.add_storage(record)?,
            ResourceManager::CLOG => self.transactions.commit_log(record, version)?,
            ResourceManager::TABLESPACE => self.files.tablespace(record),
            ResourceManager::MULTIXACT => self.transactions.multixact(record, version)?,
            ResourceManager::RELMAP => self.files.map_update(record)?,
            _ => {}
        }
        Ok(())
    }

    fn add_xlog(&mut self, record: &Record<'_>) -> pagemill_format::Result<()> {
        const FPW_CHANGE: u8 = 0x80;
        if transactions::is_checkpoint(record) {
            let checkpoint = Checkpoint::parse(record.main_data, self.version)?;
            let is_shutdown = record.header.kind() == ResourceManager::XLOG_CHECKPOINT_SHUTDOWN;
            self.full_page_writes.checkpoint(checkpoint.full_page_writes, is_shutdown);
            self.transactions.checkpoint(checkpoint, is_shutdown);
        } else if record.header.kind() == FPW_CHANGE {
            self.full_page_writes.change();
        } else if record.header.kind() == ResourceManager::XLOG_END_OF_RECOVERY {
            self.full_page_writes.restart();
        }
        Ok(())
    }

    /// A record of an extension's resource manager that changes files without naming blocks: what it did, nobody here
    /// knows. `pg_rewind` refuses the same.
    fn refuse_unknown(&self, found: &WalRecord<'_>, record: &Record<'_>) -> Result<()> {
        const FIRST_CUSTOM: u8 = 128;
        let manager = record.header.resource_manager;
        let is_special = record.header.info & ResourceManager::SPECIAL_REL_UPDATE != 0;
        if manager.0 < FIRST_CUSTOM || !is_special {
            return Ok(());
        }
        let what = format!(
            "the record at {} is of {}, and changes files in a way that is not known here",
            found.lsn,
            manager.name()
        );
        Err(Error::Record(pagemill_format::Error::unsupported("WAL", what)))
    }
}

/// What is kept of a record's change of a block; `None` when it changes nothing that is looked at.
#[inline]
pub(crate) fn entry_of(
    header: &RecordHeader,
    lsn: Lsn,
    block: &BlockTouch,
) -> Option<(ForkKey, Entry)> {
    if !matches!(block.fork, Fork::Main | Fork::Init) {
        return None;
    }
    let kind = match effect(header, block) {
        Effect::Image => EntryKind::Image,
        Effect::Init => EntryKind::Init,
        Effect::Delta => EntryKind::Delta,
        Effect::DeltaWithoutImage => EntryKind::DeltaWithoutImage,
        Effect::Nothing => return None,
    };
    let key = ForkKey { locator: block.locator, fork: block.fork };
    Some((key, Entry::new(block.block, lsn, kind)))
}

/// The directory that a relation's files lie in.
fn directory_of(locator: RelFileLocator) -> DatabaseDirectory {
    DatabaseDirectory { tablespace: locator.tablespace, database: locator.database }
}

/// A record whose CRC is right, and whose parts do not fit together.
fn bad_record(found: &WalRecord<'_>, error: &pagemill_format::Error) -> Error {
    let what = format!("the record at {}: {error}", found.lsn);
    Error::Record(pagemill_format::Error::corrupt("WAL", 0, what))
}

#[cfg(test)]
mod tests;
