//! [`WalHistory`]: all the WAL that there is of a cluster, for questions about single blocks: what happened to one, and how
//! it was after each of its records.
//!
//! Recovery needs WAL from the last checkpoint on. Segments of before lie in `pg_wal` until a server reuses them, and in
//! archives; here all count that follow each other without a gap up to that checkpoint. The end is the point that was redone to,
//! or the end of WAL.
//!
//! A page is known from the first record on that brings it whole, or from the moment at which the file has it. Before that
//! only what the records themselves say is known.
//!
//! Invariant: a page that is handed out is as a server had it, hint bits aside.
//!
//! Source: `XLogReadBufferForRedoExtended` in `src/backend/access/transam/xlogutils.c`, PostgreSQL 14 to 18.

use std::path::Path;

use pagemill_format::page::Page;
use pagemill_format::wal::{BlockReference, Record};
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Lsn, PgVersion};
use pagemill_io::Storage;
use pagemill_redo::{Effect, RedoSite, TupleChange, effect, redo, tuple_changes};
use pagemill_wal::{
    BlockKey, BlockRecord, FetchedRecord, ForkKey, ForkRecords, RecordFetch, WalReader, WalSource,
};

use crate::data_directory::Cluster;
use crate::error::Result;
use crate::page_check::find_fault;
use crate::recovery::plan::{PlanOptions, wal_source};

/// The WAL that there is.
#[derive(Debug)]
pub struct WalHistory {
    storage: Storage,
    source: WalSource,
    start: Lsn,
    /// From where on there has to be WAL.
    redo: Lsn,
    until: Option<Lsn>,
    records: RecordFetch,
    hints_logged: bool,
    verify_checksums: bool,
}

/// What a record makes of a block.
#[derive(Debug)]
pub struct BlockStep<'s> {
    /// The record.
    pub record: &'s Record<'s>,
    /// Where it begins.
    pub lsn: Lsn,
    /// Where it ends.
    pub end: Lsn,
    /// What it does to the block; `None` when it cuts the fork before it.
    pub effect: Option<Effect>,
    /// What it does to which tuples, as far as the record says so.
    pub tuples: Vec<TupleChange>,
    /// The page afterwards; `None` where that cannot be known, and for a block that was cut off.
    pub page: Option<&'s BlockBytes>,
    /// Why it cannot be known from here on, where a record does not fit the page.
    pub fault: Option<String>,
}

impl WalHistory {
    /// The WAL of a cluster, up to where it was redone to.
    ///
    /// # Errors
    /// [`pagemill_wal::Error::Missing`] when there is none; places that cannot be listed.
    pub fn of(cluster: &Cluster) -> Result<Self> {
        let control = cluster.control();
        let redone = cluster.redone();
        let source = match redone {
            Some(redone) => redone.source.clone(),
            None => wal_source(cluster.state(), &PlanOptions::default())?,
        };
        let storage = cluster.state().storage().clone();
        let redo = control.checkpoint.redo;
        let start = source.oldest_before(&storage, redo)?;
        let records = RecordFetch::new(&storage, &source, start)?;
        let until = redone.map(|redone| redone.end);
        let hints_logged = control.has_data_checksums() || control.settings.wal_log_hints;
        let verify_checksums = cluster.verify_checksums();
        Ok(Self { storage, source, start, redo, until, records, hints_logged, verify_checksums })
    }

    /// The version that wrote the WAL.
    pub fn version(&self) -> PgVersion {
        self.records.version()
    }

    /// All records of a fork. All WAL is read for that.
    ///
    /// # Errors
    /// [`pagemill_wal::Error::Missing`] when there is no WAL; a record that cannot be taken apart; files that cannot be read.
    pub fn fork(&self, key: ForkKey) -> Result<ForkRecords> {
        let read = |start| -> Result<ForkRecords> {
            let mut reader = WalReader::from_along(&self.storage, &self.source, start)?;
            Ok(ForkRecords::read(&mut reader, key, self.until)?)
        };
        match read(self.start) {
            // What is damaged before the checkpoint does not count as the end of all WAL.
            Ok(found) if found.end >= self.redo || self.start >= self.redo => Ok(found),
            _ => read(self.redo),
        }
    }

    /// The page as it lies at this place of a file, with nothing redone; `None` where the file has none, or a damaged one.
    ///
    /// # Errors
    /// What the operating system reports.
    pub fn page_in_file(
        &self,
        path: &Path,
        offset: u64,
        block: BlockNumber,
    ) -> Result<Option<Box<BlockBytes>>> {
        let file = match self.storage.open(path) {
            Ok(file) => file,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut page: Box<BlockBytes> = Box::new([0; BLOCK_SIZE]);
        let got = self.storage.read_fully_at(file.as_ref(), page.as_mut_slice(), offset);
        let got = got.map_err(|error| pagemill_io::Error::new(error, path))?;
        let is_whole = got == BLOCK_SIZE && !Page::new(&page).is_new();
        let is_sound = is_whole && find_fault(self.verify_checksums, block, &page).is_none();
        Ok(is_sound.then_some(page))
    }

    /// Follows a block from record to record. `base` is the page in the file as it lies, if there is one.
    ///
    /// # Errors
    /// What `see` returns; a record that cannot be read any more.
    pub fn follow<E: From<crate::Error>>(
        &self,
        key: BlockKey,
        records: &[BlockRecord],
        base: Option<&BlockBytes>,
        mut see: impl FnMut(BlockStep<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut state = PageState { page: None, base };
        let mut buffer = Vec::new();
        for record in records {
            let found = self.records.fetch(record.lsn, &mut buffer).map_err(crate::Error::from)?;
            let step = match record.is_cut {
                true => state.cut(&found),
                false => state.change(self, key, &found),
            };
            see(step)?;
        }
        Ok(())
    }
}

/// A page between two records.
struct PageState<'b> {
    /// The page, once it is known.
    page: Option<Box<BlockBytes>>,
    /// The page in the file, until its moment has come or it is needed no more.
    base: Option<&'b BlockBytes>,
}

impl PageState<'_> {
    fn cut<'s>(&'s mut self, found: &'s FetchedRecord<'_>) -> BlockStep<'s> {
        self.page = None;
        self.base = self.base.filter(|base| Page::new(base).header().lsn > found.end);
        BlockStep {
            record: &found.record,
            lsn: found.lsn,
            end: found.end,
            effect: None,
            tuples: Vec::new(),
            page: None,
            fault: None,
        }
    }

    fn change<'s>(
        &'s mut self,
        wal: &WalHistory,
        key: BlockKey,
        found: &'s FetchedRecord<'_>,
    ) -> BlockStep<'s> {
        let BlockKey { fork: ForkKey { locator, fork }, block } = key;
        let is_it =
            |r: &&BlockReference<'_>| (r.locator, r.fork, r.block) == (locator, fork, block);
        let reference = found.record.blocks.iter().find(is_it);
        let done = reference
            .map_or(Effect::Nothing, |reference| effect(&found.record.header, &reference.touch()));
        let site = RedoSite {
            record: &found.record,
            start: found.lsn,
            end: found.end,
            reference: reference.map_or(u8::MAX, |reference| reference.id),
            version: wal.version(),
            hints_logged: wal.hints_logged,
        };
        let fault = self.apply(&site, done);
        BlockStep {
            record: &found.record,
            lsn: found.lsn,
            end: found.end,
            effect: Some(done),
            tuples: tuple_changes(&site).unwrap_or_default(),
            page: self.page.as_deref(),
            fault,
        }
    }

    /// Makes of the page what the record makes of it; says why that cannot be done.
    fn apply(&mut self, site: &RedoSite<'_>, done: Effect) -> Option<String> {
        match done {
            Effect::Nothing => return None,
            Effect::Image | Effect::Init => self.page = Some(Box::new([0; BLOCK_SIZE])),
            Effect::Delta | Effect::DeltaWithoutImage if self.page.is_none() => {
                let base = self.base?;
                let lsn = Page::new(base).header().lsn;
                if site.end >= lsn {
                    self.page = Some(Box::new(*base));
                }
                // The page in the file has the record already.
                if site.end <= lsn {
                    return None;
                }
            }
            Effect::Delta | Effect::DeltaWithoutImage => {}
        }
        self.base = None;
        let fault = redo(self.page.as_mut()?, site).err()?;
        self.page = None;
        Some(fault.to_string())
    }
}
