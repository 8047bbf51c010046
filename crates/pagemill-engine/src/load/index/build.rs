//! Indexes built anew: the entries of the new rows, and those of the old index, merged into one B-tree.
//!
//! The old index is one more run in order. What of it leads to rows that nobody sees any more is left out, where that is
//! known; for a unique key it is asked again whether the row is still there.
//!
//! Invariants: entries reach the builder in strictly ascending order; of a unique index no two live rows have one key.
//!
//! Source: `_bt_load` in `src/backend/access/nbtree/nbtsort.c`, PostgreSQL 14 to 18.

use pagemill_cluster::Cluster;
use pagemill_cluster::change::{ClassChange, ClusterChange};
use pagemill_format::Fork;
use pagemill_format::btree_builder::BtreeBuilder;
use pagemill_io::ForkFiles;
use pagemill_wal::ForkKey;

use super::keys::{KeyRun, TupleLocations};
use super::merge::merge;
use super::old_entries::OldEntries;
use super::plan::IndexPlan;
use super::runs::{KeyRuns, MergeShare};
use super::sources::KeySource;
use super::unique::{TakenKey, UniqueKeys};
use crate::error::{Error, Result};
use crate::heap_files::page_run::PIECE_BLOCKS;
use crate::load::dead_rows::DeadRows;
use crate::load::fork_writer::ForkWriter;
use crate::load::relation_files::{new_files, writing};
use crate::load::table_plan::TableLoad;

/// The entries of one index, as they come in.
#[derive(Debug)]
pub(in crate::load) struct IndexTarget<'p> {
    pub(in crate::load) plan: &'p IndexPlan,
    runs: KeyRuns,
}

impl<'p> IndexTarget<'p> {
    /// No entries yet.
    pub(in crate::load) fn new(plan: &'p IndexPlan, cluster: &Cluster, share: MergeShare) -> Self {
        Self { plan, runs: KeyRuns::new(cluster.storage(), cluster.path(), share) }
    }

    /// Takes the entries of a batch whose rows came to lie there.
    ///
    /// # Errors
    /// When they are more than memory holds, and cannot be written aside.
    pub(in crate::load) fn take(&mut self, mut run: KeyRun, places: &TupleLocations) -> Result<()> {
        run.place(places);
        self.runs.push(run, &self.plan.order)
    }

    /// Builds the index in a new file. With `heap`, entries of the old index stay, which lead to its rows. Where two rows have
    /// one key of a unique index, all entries are looked at, for the first such row, and none are written from there on.
    ///
    /// # Errors
    /// When something cannot be read or written.
    pub(in crate::load) fn build(
        self,
        change: &mut ClusterChange,
        load: TableLoad<'_>,
        heap: Option<(&ForkFiles, &DeadRows)>,
        entries: Option<f32>,
    ) -> Result<Option<TakenKey>> {
        let plan = self.plan;
        let TableLoad { plan: load, table } = load;
        let database = change.database().clone();
        let old = match heap {
            Some((_, dead)) => Some(OldEntries::open(&database, plan, dead)?),
            None => None,
        };
        let file = new_files(change, &plan.class, table.is_unlogged, &load.options)?;
        let writing = writing(table.is_unlogged, &load.options, PIECE_BLOCKS);
        let mut writer =
            ForkWriter::new_file(change, ForkKey { locator: file, fork: Fork::Main }, 0, writing)?;
        let mut builder = BtreeBuilder::new(&plan.order, plan.options());
        let mut unique =
            plan.unique.then(|| UniqueKeys::new(plan, &database, heap.map(|(heap, _)| heap)));
        let mut sources = self.runs.into_sources();
        sources.extend(old.map(|old| KeySource::Index(Box::new(old))));
        merge(&plan.order, sources, load.options.jobs, |run| {
            if let Some(unique) = &mut unique {
                unique.check(run)?;
                if unique.has_taken() {
                    return Ok(());
                }
            }
            let mut sink = |block, page: &mut _| writer.add_page(change, block, page);
            run.entries
                .iter()
                .try_for_each(|entry| builder.add::<Error, _>(run.entry(*entry), &mut sink))
        })?;
        if let Some(taken) = unique.and_then(UniqueKeys::into_first) {
            return Ok(Some(taken));
        }
        let built =
            builder.finish::<Error, _>(&mut |block, page| writer.add_page(change, block, page))?;
        writer.flush(change)?;
        writer.finish()?;
        change.replace_files(plan.class.oid, file)?;
        let size =
            ClassChange { pages: Some(built.blocks), tuples: entries, ..ClassChange::default() };
        change.set_size(plan.class.oid, size);
        Ok(None)
    }
}
