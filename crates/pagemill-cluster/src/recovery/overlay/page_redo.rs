//! [`PageRedo`]: pages as they are after redo, made one at a time, when they are asked for.
//!
//! Behind an image or an initialization the page in the file does not matter, and may be torn: it is not looked at. In any
//! other case it is where redo begins, so it must be sound. Records that the page already has, by its LSN, are passed over:
//! one that is newer than the WAL stays as it is, and is found by whoever reads it.
//!
//! Where the cluster has checksums a redone page gets its own, so that whoever reads it checks it like any other.
//!
//! Source: `XLogReadBufferForRedoExtended` in `src/backend/access/transam/xlogutils.c`, PostgreSQL 14 to 18.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use pagemill_format::page::Page;
use pagemill_format::page_builder::set_checksum;
use pagemill_format::wal::{BlockReference, RelFileLocator};
use pagemill_format::{BlockBytes, BlockNumber, Lsn};
use pagemill_redo::{RedoSite, redo};
use pagemill_wal::{
    BlockKey, DatabaseDirectory, Entry, FetchedRecord, ForkKey, RecordFetch, WalIndex,
};

use crate::page_check::find_fault;

/// Redone pages that are kept (16 MiB).
const KEPT_PAGES: usize = 2048;

/// How many records ahead the processor is asked for one.
const FETCHED_AHEAD: usize = 6;

/// What most records fit in.
const USUAL_RECORD_BYTES: usize = 1024;

/// How pages of a cluster are redone.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageRules {
    /// Pages carry checksums.
    pub(super) has_checksums: bool,
    /// Checksums of pages that redo begins from are verified.
    pub(super) verify_checksums: bool,
    /// Pages get an LSN also for what is a hint.
    pub(super) hints_logged: bool,
}

/// Redoes pages of one cluster.
#[derive(Debug)]
pub(super) struct PageRedo {
    index: Arc<WalIndex>,
    pub(super) records: RecordFetch,
    rules: PageRules,
    kept: Vec<Mutex<Option<KeptPage>>>,
}

#[derive(Debug)]
struct KeptPage {
    key: BlockKey,
    page: Box<BlockBytes>,
}

impl PageRedo {
    pub(super) fn new(index: Arc<WalIndex>, records: RecordFetch, rules: PageRules) -> Self {
        let kept = (0..KEPT_PAGES).map(|_| Mutex::default()).collect();
        Self { index, records, rules, kept }
    }

    pub(super) fn index(&self) -> &WalIndex {
        &self.index
    }

    pub(super) fn rules(&self) -> PageRules {
        self.rules
    }

    /// Makes a page by the records of its `entries`, of which there is at least one. `read_base` gives the page in the
    /// file.
    ///
    /// # Errors
    /// Why it cannot be made: the record, and what does not fit.
    pub(super) fn page(
        &self,
        key: BlockKey,
        entries: &[Entry],
        read_base: impl FnOnce(&mut BlockBytes) -> io::Result<()>,
        page: &mut BlockBytes,
    ) -> io::Result<()> {
        let slot = &self.kept[slot_of(key)];
        {
            let kept = slot.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(found) = kept.as_ref().filter(|kept| kept.key == key) {
                *page = *found.page;
                return Ok(());
            }
        }
        let starts_whole = entries.first().is_some_and(|entry| entry.kind().is_whole_page());
        let base_lsn = if starts_whole {
            page.fill(0);
            None
        } else {
            read_base(page)?;
            self.check_base(key.block, entries, page)?;
            Some(Page::new(page).header().lsn)
        };
        self.apply(key, entries, base_lsn, page)?;
        let mut kept = slot.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.as_mut() {
            Some(other) => {
                other.key = key;
                *other.page = *page;
            }
            None => *kept = Some(KeptPage { key, page: Box::new(*page) }),
        }
        Ok(())
    }

    /// Makes sure that redo can begin from a page of the file.
    fn check_base(
        &self,
        block: BlockNumber,
        entries: &[Entry],
        page: &BlockBytes,
    ) -> io::Result<()> {
        let first = entries.first().map_or(Lsn(0), |entry| entry.lsn());
        if Page::new(page).is_new() {
            let what = format!("the record at {first} changes it, and the file does not have it");
            return Err(damaged(what));
        }
        if let Some(fault) = find_fault(self.rules.verify_checksums, block, page) {
            let what =
                format!("the record at {first} changes it, and as it lies it is damaged: {fault}");
            return Err(damaged(what));
        }
        Ok(())
    }

    /// What a record at `lsn` calls a page: one of a database that was copied later had its place in that which was.
    pub(super) fn named(&self, mut key: BlockKey, lsn: Lsn) -> BlockKey {
        let RelFileLocator { tablespace, database, .. } = key.fork.locator;
        let origin = self.index.files.origin(DatabaseDirectory { tablespace, database }, lsn);
        let locator = &mut key.fork.locator;
        (locator.tablespace, locator.database) = (origin.tablespace, origin.database);
        key
    }

    fn apply(
        &self,
        key: BlockKey,
        entries: &[Entry],
        base_lsn: Option<Lsn>,
        page: &mut BlockBytes,
    ) -> io::Result<()> {
        let mut buffer = Vec::with_capacity(USUAL_RECORD_BYTES);
        entries.iter().take(FETCHED_AHEAD).for_each(|soon| self.records.prefetch(soon.lsn()));
        for (number, entry) in entries.iter().enumerate() {
            if let Some(soon) = entries.get(number + FETCHED_AHEAD) {
                self.records.prefetch(soon.lsn());
            }
            let found = self.records.fetch(entry.lsn(), &mut buffer);
            let found = found.map_err(|error| damaged(error.to_string()))?;
            if base_lsn.is_some_and(|base| found.end <= base) {
                continue;
            }
            let reference = reference_to(&found, self.named(key, entry.lsn()))
                .map(|block| block.id)
                .ok_or_else(|| {
                    damaged(format!("the record at {} does not name it any more", found.lsn))
                })?;
            let site = RedoSite {
                record: &found.record,
                start: found.lsn,
                end: found.end,
                reference,
                version: self.records.version(),
                hints_logged: self.rules.hints_logged,
            };
            redo(page, &site).map_err(|error| damaged(error.to_string()))?;
        }
        if self.rules.has_checksums && !Page::new(page).is_new() {
            set_checksum(page, key.block);
        }
        Ok(())
    }
}

pub(super) fn reference_to<'f, 'a>(
    found: &'f FetchedRecord<'a>,
    key: BlockKey,
) -> Option<&'f BlockReference<'a>> {
    let BlockKey { fork: ForkKey { locator, fork }, block } = key;
    let is_it = |reference: &&BlockReference<'_>| {
        (reference.locator, reference.fork, reference.block) == (locator, fork, block)
    };
    found.record.blocks.iter().find(is_it)
}

/// Neighbors of a fork lie in neighboring places.
fn slot_of(key: BlockKey) -> usize {
    let locator = key.fork.locator;
    let fork = locator.number.0.wrapping_mul(0x9E37_79B1) ^ locator.database.0;
    fork.wrapping_add(key.block.0) as usize % KEPT_PAGES
}

/// What is wrong with the bytes of a page, as an error of reading it: where it is, is added by whoever reads.
pub(super) fn damaged(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Why what WAL did cannot be looked up, as an error of reading a file, with the cause in it.
pub(super) fn of_index(error: pagemill_wal::Error) -> io::Error {
    io::Error::other(error)
}
