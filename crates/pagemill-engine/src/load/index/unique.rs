//! Finds two live rows with one key of a unique index.
//!
//! Of the new rows all are live; of the old ones it is asked in the table, as a server does.
//!
//! Of several new rows with keys that are taken, the first of the input is the one that a server would have met.
//!
//! Invariant: entries are looked at in the order of the index, so that those of one key follow each other.

use pagemill_cluster::{ClusterLog, Database, hot_chain};
use pagemill_format::index_tuple_builder::entry_tid;
use pagemill_format::page::Page;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Tid};
use pagemill_io::ForkFiles;

use super::keys::KeyRun;
use super::plan::IndexPlan;
use crate::error::Result;
use crate::load::message_text::key_text;

/// Finds two live rows with one key.
#[derive(Debug)]
pub(in crate::load) struct UniqueKeys<'a> {
    plan: &'a IndexPlan,
    database: &'a Database,
    heap: Option<&'a ForkFiles>,
    log: ClusterLog,
    /// The last entry, or the last of its key whose row is live, with its abbreviation; empty before the first.
    last: (u64, Vec<u8>),
    page: (Option<BlockNumber>, Box<BlockBytes>),
    first: Option<TakenKey>,
}

/// A new row whose key another row has.
#[derive(Debug)]
pub(in crate::load) struct TakenKey {
    pub(in crate::load) row: Tid,
    /// The names and values of the key: `(a, b)=(1, x)`.
    pub(in crate::load) key: String,
}

impl<'a> UniqueKeys<'a> {
    /// For the rows in `heap`, which may be seen or not, and others that all are new.
    pub(in crate::load) fn new(
        plan: &'a IndexPlan,
        database: &'a Database,
        heap: Option<&'a ForkFiles>,
    ) -> Self {
        let log = ClusterLog::new(database.cluster().clone());
        Self {
            plan,
            database,
            heap,
            log,
            last: (0, Vec::new()),
            page: (None, Box::new([0; BLOCK_SIZE])),
            first: None,
        }
    }

    /// True once two rows with one key were met.
    pub(in crate::load) fn has_taken(&self) -> bool {
        self.first.is_some()
    }

    /// Of the rows with keys that are taken, the first.
    pub(in crate::load) fn into_first(self) -> Option<TakenKey> {
        self.first
    }

    /// Looks at the next entries.
    ///
    /// # Errors
    /// When a row cannot be read.
    pub(in crate::load) fn check(&mut self, run: &KeyRun) -> Result<()> {
        let (abbreviation, bytes) = std::mem::take(&mut self.last);
        let mut last = (abbreviation, &*bytes);
        for &entry in &run.entries {
            let entry = run.key(entry);
            // Entries of one key have one abbreviation.
            if entry.0 != last.0 || !self.is_hidden_by(entry.1, last.1)? {
                last = entry;
            }
        }
        self.last = (last.0, last.1.to_vec());
        Ok(())
    }

    /// True for an entry with the key of a live row, and none of its own. One that has both is taken note of.
    ///
    /// # Errors
    /// When a row cannot be read.
    fn is_hidden_by(&mut self, entry: &[u8], last: &[u8]) -> Result<bool> {
        let order = &self.plan.order;
        let is_other = last.is_empty()
            || !order.same_key(last, entry)
            || !self.plan.nulls_not_distinct && order.has_null(entry);
        if is_other || !self.is_live(entry_tid(last))? {
            return Ok(false);
        }
        let is_live = self.is_live(entry_tid(entry))?;
        if is_live {
            self.note(entry);
        }
        Ok(!is_live)
    }

    /// True for a new row, and for an old one that is still visible.
    fn is_live(&mut self, tid: Tid) -> Result<bool> {
        let Some(heap) = self.heap.filter(|heap| tid.block.0 < heap.blocks()) else {
            return Ok(true);
        };
        if self.page.0 != Some(tid.block) {
            heap.read_block(tid.block, &mut self.page.1).map_err(pagemill_cluster::Error::from)?;
            self.page.0 = Some(tid.block);
        }
        let page = Page::new(&self.page.1);
        let member = hot_chain::visible_member(page, tid.block, tid.line_pointer, &mut self.log);
        // What is damaged is told by whoever reads the table; a key that may be there counts as there.
        Ok(member.is_ok_and(|member| member.is_some()))
    }

    #[cold]
    fn note(&mut self, entry: &[u8]) {
        let row = entry_tid(entry);
        if self.first.as_ref().is_none_or(|first| row < first.row) {
            self.first = Some(TakenKey { row, key: key_text(self.database, self.plan, entry) });
        }
    }
}
