//! Indexes built anew: the entries of the new rows, and those of the old index, merged into one B-tree.
//!
//! The old index is one more run in order. What of it leads to rows that nobody sees any more is carried over, as a
//! server would find it; only for a unique key it is asked whether the row is still there.
//!
//! Invariants: entries reach the builder in strictly ascending order; of a unique index no two live rows have one key.
//!
//! Source: `_bt_load` in `src/backend/access/nbtree/nbtsort.c`, PostgreSQL 14 to 18.

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
        while let Some((abbreviation, entry)) = merge.first() {
            if let Some(unique) = &mut unique {
                unique.check(abbreviation, entry)?;
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

/// Runs merged into one: a heap of small keys, and beside it the runs they are of.
struct Merge<'p> {
    plan: &'p IndexPlan,
    /// The runs' abbreviations and numbers, as a heap whose first comes first in the index.
    heap: Vec<(u64, u32)>,
    heads: Vec<Head>,
}

/// A run and the entry it is at.
struct Head {
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

impl<'p> Merge<'p> {
    fn new(plan: &'p IndexPlan, runs: KeyRuns, old: Option<OldEntries>) -> Result<Self> {
        let mut sources: Vec<Source> = runs.into_readers().into_iter().map(Source::Run).collect();
        sources.extend(old.map(|old| Source::Old(Box::new(old))));
        let mut merge = Self { plan, heap: Vec::new(), heads: Vec::new() };
        for mut source in sources {
            let mut entry = Vec::new();
            if source.next_into(&mut entry)? {
                let number = merge.heads.len() as u32;
                merge.heap.push((plan.order.abbreviate(&entry), number));
                merge.heads.push(Head { entry, source });
            }
        }
        (0..merge.heap.len() / 2).rev().for_each(|at| merge.sift_down(at));
        Ok(merge)
    }

    /// The entry whose turn it is, and its abbreviation.
    fn first(&self) -> Option<(u64, &[u8])> {
        let &(abbreviation, number) = self.heap.first()?;
        Some((abbreviation, &self.heads.get(number as usize)?.entry))
    }

    fn advance(&mut self) -> Result<()> {
        let Some((abbreviation, number)) = self.heap.first_mut() else { return Ok(()) };
        let Some(head) = self.heads.get_mut(*number as usize) else { return Ok(()) };
        if head.source.next_into(&mut head.entry)? {
            *abbreviation = self.plan.order.abbreviate(&head.entry);
        } else {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Ok(())
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let left = 2 * at + 1;
            let mut child = left;
            match (self.heap.get(left), self.heap.get(left + 1)) {
                (None, _) => return,
                (Some(l), Some(r)) if self.precedes(*r, *l) => child += 1,
                _ => {}
            }
            match (self.heap.get(at), self.heap.get(child)) {
                (Some(parent), Some(below)) if self.precedes(*below, *parent) => {
                    self.heap.swap(at, child);
                    at = child;
                }
                _ => return,
            }
        }
    }

    #[inline]
    fn precedes(&self, a: (u64, u32), b: (u64, u32)) -> bool {
        a.0 < b.0 || a.0 == b.0 && self.entry_precedes(a.1, b.1)
    }

    fn entry_precedes(&self, a: u32, b: u32) -> bool {
        let entry = |number: u32| self.heads.get(number as usize).map(|head| &*head.entry);
        let (Some(a), Some(b)) = (entry(a), entry(b)) else { return false };
        self.plan.order.compare(a, b).is_lt()
    }
}

/// Finds two live rows with one key.
struct UniqueKeys<'a> {
    plan: &'a IndexPlan,
    database: &'a Database,
    heap: Option<&'a ForkFiles>,
    log: ClusterLog,
    /// The last entry whose row is live, and its abbreviation.
    last: Vec<u8>,
    last_abbreviation: u64,
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
            last_abbreviation: 0,
            page: (None, Box::new([0; BLOCK_SIZE])),
        }
    }

    fn check(&mut self, abbreviation: u64, entry: &[u8]) -> Result<()> {
        let order = &self.plan.order;
        if order.has_null(entry) && !self.plan.nulls_not_distinct {
            return Ok(());
        }
        // Entries of one key have one abbreviation.
        let is_other = self.last.is_empty()
            || abbreviation != self.last_abbreviation
            || !order.same_key(&self.last, entry);
        if is_other {
            self.last_abbreviation = abbreviation;
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
