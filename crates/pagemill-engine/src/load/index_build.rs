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

use super::dead_rows::DeadRows;
use super::fork_writer::ForkWriter;
use super::index_keys::{KeyRun, Places};
use super::index_plan::IndexPlan;
use super::key_merge::merge;
use super::key_runs::KeyRuns;
use super::key_sources::KeySource;
use super::old_entries::OldEntries;
use super::page_run::PIECE_BLOCKS;
use super::plan::LoadPlan;
use super::relation_files::{new_files, writing};
use super::table_plan::TablePlan;
use super::unique_keys::UniqueKeys;
use crate::error::{Error, Result};

/// The entries of one index, as they come in.
#[derive(Debug)]
pub(super) struct IndexTarget<'p> {
    pub(super) plan: &'p IndexPlan,
    runs: KeyRuns,
}

impl<'p> IndexTarget<'p> {
    /// For one of so many indexes, to be merged by so many threads.
    pub(super) fn new(
        plan: &'p IndexPlan,
        cluster: &Cluster,
        (indexes, jobs): (usize, usize),
    ) -> Self {
        Self { plan, runs: KeyRuns::new(cluster.storage(), cluster.path(), (indexes, jobs)) }
    }

    /// Takes the entries of a batch whose rows came to lie there.
    ///
    /// # Errors
    /// When they are more than memory holds, and cannot be written aside.
    pub(super) fn take(&mut self, mut run: KeyRun, places: &Places) -> Result<()> {
        run.place(places);
        self.runs.push(run, &self.plan.order)
    }

    /// Builds the index in a new file. With `heap`, entries of the old index stay, which lead to its rows.
    ///
    /// # Errors
    /// When two rows have one key of a unique index, or something cannot be read or written.
    pub(super) fn build(
        self,
        change: &mut ClusterChange,
        (load, table): (&LoadPlan, &TablePlan),
        heap: Option<(&ForkFiles, &DeadRows)>,
        entries: Option<f32>,
    ) -> Result<()> {
        let plan = self.plan;
        let database = change.database().clone();
        let old = match heap {
            Some((_, dead)) => Some(OldEntries::open(&database, plan, dead)?),
            None => None,
        };
        let file = new_files(change, &plan.class, table.is_unlogged, &load.options)?;
        let writing = writing(table.is_unlogged, &load.options, PIECE_BLOCKS);
        let mut writer = ForkWriter::new_file(change, (file, Fork::Main), 0, writing)?;
        let mut builder = BtreeBuilder::new(&plan.order, plan.options());
        let mut unique =
            plan.unique.then(|| UniqueKeys::new(plan, &database, heap.map(|(heap, _)| heap)));
        let mut sources = self.runs.into_sources();
        sources.extend(old.map(|old| KeySource::Index(Box::new(old))));
        merge(&plan.order, sources, load.options.jobs, |run| {
            if let Some(unique) = &mut unique {
                unique.check(run)?;
            }
            let mut sink = |block, page: &mut _| writer.add_page(change, block, page);
            run.entries
                .iter()
                .try_for_each(|entry| builder.add::<Error, _>(run.entry(*entry), &mut sink))
        })?;
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
