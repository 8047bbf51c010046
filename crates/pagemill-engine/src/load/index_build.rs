//! Indexes built anew: the entries of the new rows, and those of the old index, merged into one B-tree.
//!
//! The old index is one more run in order. What of it leads to rows that nobody sees any more is carried over, as a
//! server would find it; only for a unique key it is asked whether the row is still there.
//!
//! Invariants: entries reach the builder in strictly ascending order; of a unique index no two live rows have one key.
//!
//! Source: `_bt_load` in `src/backend/access/nbtree/nbtsort.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use pagemill_cluster::change::{ClassChange, ClusterChange};
use pagemill_cluster::{Cluster, ClusterLog, Database, hot_chain};
use pagemill_format::btree_builder::BtreeBuilder;
use pagemill_format::index_tuple_builder::entry_tid;
use pagemill_format::page::Page;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Fork, Tid};
use pagemill_io::ForkFiles;

use super::fork_writer::ForkWriter;
use super::index_keys::KeyRun;
use super::index_plan::IndexPlan;
use super::key_runs::{KeyRuns, RunReader};
use super::old_entries::OldEntries;
use super::plan::LoadPlan;
use crate::error::{Error, Result};

/// The entries of one index, as they come in.
#[derive(Debug)]
pub(super) struct IndexTarget<'p> {
    pub(super) plan: &'p IndexPlan,
    runs: KeyRuns,
}

impl<'p> IndexTarget<'p> {
    /// For one of so many indexes.
    pub(super) fn new(plan: &'p IndexPlan, cluster: &Cluster, indexes: usize) -> Self {
        Self { plan, runs: KeyRuns::new(cluster.storage(), cluster.path(), indexes) }
    }

    /// Takes the entries of a batch whose rows begin at this block.
    ///
    /// # Errors
    /// When they are more than memory holds, and cannot be written aside.
    pub(super) fn take(&mut self, mut run: KeyRun, first: BlockNumber) -> Result<()> {
        run.assign(first);
        self.runs.push(run, &self.plan.order)
    }

    /// Builds the index in a new file. With `heap`, entries of the old index stay, which lead to its rows.
    ///
    /// # Errors
    /// When two rows have one key of a unique index, or something cannot be read or written.
    pub(super) fn build(
        self,
        change: &mut ClusterChange,
        load: &LoadPlan,
        heap: Option<&ForkFiles>,
        entries: Option<f32>,
    ) -> Result<()> {
        let plan = self.plan;
        let database = change.database().clone();
        let old = match heap {
            Some(_) => Some(OldEntries::open(&database, plan)?),
            None => None,
        };
        let file = change.files_of(plan.class.oid)?;
        let file = change.new_files(&[file.tablespace])?.first().copied().unwrap_or_default();
        let mut writer = ForkWriter::new_file(change, (file, Fork::Main), 0, &load.options)?;
        let mut builder = BtreeBuilder::new(&plan.order, plan.options());
        let mut unique = plan.unique.then(|| UniqueKeys::new(plan, &database, heap));
        let mut merge = Merge::new(plan, self.runs, old)?;
        while let Some(entry) = merge.next()? {
            if let Some(unique) = &mut unique {
                unique.check(entry)?;
            }
            builder
                .add::<Error, _>(entry, &mut |block, page| writer.add_page(change, block, page))?;
            merge.advance()?;
        }
        let built =
            builder.finish::<Error, _>(&mut |block, page| writer.add_page(change, block, page))?;
        writer.flush(change)?;
        writer.finish()?;
        change.replace_files(plan.class.oid, file)?;
        let size =
            ClassChange { pages: Some(built.blocks), tuples: entries, ..ClassChange::default() };
        change.set_size(plan.class.oid, size);
        Ok(())
    }
}

/// Runs merged into one.
struct Merge<'p> {
    plan: &'p IndexPlan,
    /// The run whose entry comes first on top.
    heap: BinaryHeap<Head<'p>>,
}

/// A run and the entry it is at.
struct Head<'p> {
    plan: &'p IndexPlan,
    abbreviation: u64,
    entry: Vec<u8>,
    source: Source,
}

enum Source {
    Run(RunReader),
    Old(Box<OldEntries>),
}

impl Source {
    fn next_into(&mut self, entry: &mut Vec<u8>) -> Result<bool> {
        match self {
            Self::Run(run) => run.next_into(entry),
            Self::Old(old) => old.next_into(entry),
        }
    }
}

impl<'p> Head<'p> {
    /// Goes on to the next entry; false when there is none.
    fn advance(&mut self) -> Result<bool> {
        let found = self.source.next_into(&mut self.entry)?;
        self.abbreviation = self.plan.order.abbreviate(&self.entry);
        Ok(found)
    }
}

/// The greatest of a heap is the one that comes first.
impl Ord for Head<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_key = || other.plan.order.compare(&other.entry, &self.entry);
        other.abbreviation.cmp(&self.abbreviation).then_with(by_key)
    }
}

impl PartialOrd for Head<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Head<'_> {}

impl<'p> Merge<'p> {
    fn new(plan: &'p IndexPlan, runs: KeyRuns, old: Option<OldEntries>) -> Result<Self> {
        let mut sources: Vec<Source> = runs.into_readers().into_iter().map(Source::Run).collect();
        sources.extend(old.map(|old| Source::Old(Box::new(old))));
        let mut heap = BinaryHeap::with_capacity(sources.len());
        for source in sources {
            let mut head = Head { plan, abbreviation: 0, entry: Vec::new(), source };
            if head.advance()? {
                heap.push(head);
            }
        }
        Ok(Self { plan, heap })
    }

    /// The entry whose turn it is.
    fn next(&mut self) -> Result<Option<&[u8]>> {
        let _ = self.plan;
        Ok(self.heap.peek().map(|head| &*head.entry))
    }

    fn advance(&mut self) -> Result<()> {
        let Some(mut first) = self.heap.peek_mut() else { return Ok(()) };
        if !first.advance()? {
            std::collections::binary_heap::PeekMut::pop(first);
        }
        Ok(())
    }
}

/// Finds two live rows with one key.
struct UniqueKeys<'a> {
    plan: &'a IndexPlan,
    database: &'a Database,
    heap: Option<&'a ForkFiles>,
    log: ClusterLog,
    /// The last entry whose row is live.
    last: Vec<u8>,
    page: (Option<BlockNumber>, Box<BlockBytes>),
}

impl<'a> UniqueKeys<'a> {
    fn new(plan: &'a IndexPlan, database: &'a Database, heap: Option<&'a ForkFiles>) -> Self {
        let log = ClusterLog::new(database.cluster().clone());
        Self {
            plan,
            database,
            heap,
            log,
            last: Vec::new(),
            page: (None, Box::new([0; BLOCK_SIZE])),
        }
    }

    fn check(&mut self, entry: &[u8]) -> Result<()> {
        let order = &self.plan.order;
        if order.has_null(entry) && !self.plan.nulls_not_distinct {
            return Ok(());
        }
        if self.last.is_empty() || !order.same_key(&self.last, entry) {
            self.last.clear();
            self.last.extend_from_slice(entry);
            return Ok(());
        }
        let before = entry_tid(&self.last);
        if self.is_live(before)? && self.is_live(entry_tid(entry))? {
            return Err(self.duplicate(entry));
        }
        if !self.is_live(before)? {
            self.last.clear();
            self.last.extend_from_slice(entry);
        }
        Ok(())
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
    fn duplicate(&self, entry: &[u8]) -> Error {
        let key = super::key_text::key_text(self.database, self.plan, entry);
        pagemill_cluster::Error::refused(format!(
            "duplicate key value violates unique constraint \"{}\": Key {key} is there twice: nothing was loaded",
            self.plan.name()
        ))
        .into()
    }
}
