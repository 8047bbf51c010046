//! [`PageHistory`]: what a redone page is made of, told instead of done: the page it begins from, and the records that are
//! applied to that or passed over.

use std::io;
use std::path::Path;

use pagemill_format::page::Page;
use pagemill_format::wal::ResourceManager;
use pagemill_format::{
    BLOCK_SIZE, BlockBytes, BlockNumber, Fork, Lsn, SEGMENT_BLOCKS, TransactionId,
};
use pagemill_io::Caching;
use pagemill_redo::{RedoSite, TupleChange, tuple_changes};
use pagemill_wal::{BlockKey, Entry, EntryKind};

use super::composed_file::read_page;
use super::layout::Named;
use super::page_redo::{PageRedo, damaged, of_index, reference_to};
use super::{OverlayFileSystem, Segment};

/// How a page comes to be as it is after redo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageHistory {
    /// What redo begins from.
    pub base: BasePage,
    /// The records that redo looks at for the page, in the order of the WAL; none when the page is as the file has it.
    pub records: Vec<PageRecord>,
}

/// What redo of a page begins from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BasePage {
    /// The page in the file, which has this LSN.
    InFile(Lsn),
    /// The file does not have it, or has it from before a truncation: zeros.
    NotInFile,
    /// The first record brings or makes the whole page: what the file has is not looked at.
    NotNeeded,
}

/// A record that redo of a page looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRecord {
    /// Where it begins.
    pub lsn: Lsn,
    /// Where it ends: the LSN that it gives the page.
    pub end: Lsn,
    /// Who wrote it.
    pub manager: ResourceManager,
    /// What it is called, as `pg_waldump` names it.
    pub operation: String,
    /// The transaction that wrote it; 0 when none did.
    pub xid: TransactionId,
    /// What it does to the page.
    pub kind: EntryKind,
    /// It is applied; else the page in the file has it already.
    pub is_applied: bool,
    /// What it does to which tuples, where that can be told.
    pub tuples: Vec<TupleChange>,
}

impl OverlayFileSystem {
    /// How a page of the segment at `path` is made; `None` for one that is not redone by records of its own: of a map, or of
    /// an unlogged relation.
    ///
    /// # Errors
    /// What the operating system reports; a record that cannot be read any more.
    pub(crate) fn page_history(
        &self,
        path: &Path,
        block: BlockNumber,
    ) -> io::Result<Option<PageHistory>> {
        let Named::Segment(key, segment) = self.layout.named(path) else { return Ok(None) };
        if !matches!(key.fork, Fork::Main | Fork::Init) {
            return Ok(None);
        }
        let base_blocks = match self.segment(path, key, segment)? {
            Segment::AsItLies => SEGMENT_BLOCKS,
            Segment::Redone(extent) => extent.base_blocks,
            Segment::Absent | Segment::Map { .. } | Segment::OfInitFork(_) => return Ok(None),
        };
        let within = block.0 % SEGMENT_BLOCKS;
        let file = self.below_if_there(path, Caching::Buffered)?;
        let mut page: Box<BlockBytes> = Box::new([0; BLOCK_SIZE]);
        read_page(file.as_deref().filter(|_| within < base_blocks), within, &mut page)?;
        let entries = self.index.fork(key).map(|fork| fork.entries_of(block));
        let entries = entries.transpose().map_err(of_index)?.unwrap_or_default();
        self.redo.history(BlockKey { fork: key, block }, &entries, &page).map(Some)
    }
}

impl PageRedo {
    fn history(
        &self,
        key: BlockKey,
        entries: &[Entry],
        base: &BlockBytes,
    ) -> io::Result<PageHistory> {
        let starts_whole = entries.first().is_some_and(|entry| entry.kind().is_whole_page());
        let base = match Page::new(base).is_new() {
            _ if starts_whole => BasePage::NotNeeded,
            true => BasePage::NotInFile,
            false => BasePage::InFile(Page::new(base).header().lsn),
        };
        let mut buffer = Vec::new();
        let record = |entry: &Entry| self.page_record(key, *entry, base, &mut buffer);
        Ok(PageHistory { base, records: entries.iter().map(record).collect::<io::Result<_>>()? })
    }

    fn page_record(
        &self,
        key: BlockKey,
        entry: Entry,
        base: BasePage,
        buffer: &mut Vec<u8>,
    ) -> io::Result<PageRecord> {
        let found = self.records.fetch(entry.lsn(), buffer);
        let found = found.map_err(|error| damaged(error.to_string()))?;
        let (header, version) = (&found.record.header, self.records.version());
        let reference = reference_to(&found, self.named(key, entry.lsn())).map(|block| block.id);
        let tuples = reference.and_then(|reference| {
            let site = RedoSite {
                record: &found.record,
                start: found.lsn,
                end: found.end,
                reference,
                version,
                hints_logged: self.rules().hints_logged,
            };
            tuple_changes(&site).ok()
        });
        let is_applied = match base {
            BasePage::InFile(lsn) => found.end > lsn,
            BasePage::NotInFile | BasePage::NotNeeded => true,
        };
        Ok(PageRecord {
            lsn: found.lsn,
            end: found.end,
            manager: header.resource_manager,
            operation: header.record_name(version),
            xid: header.xid,
            kind: entry.kind(),
            is_applied,
            tuples: tuples.unwrap_or_default(),
        })
    }
}
