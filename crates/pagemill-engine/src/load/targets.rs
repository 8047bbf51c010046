//! Everything a load writes: the table, its TOAST table, the indexes of both.
//!
//! Invariant: batches are taken in the order of the input.

use pagemill_cluster::change::ClusterChange;
use pagemill_format::Oid;
use pagemill_io::check_interrupt;

use super::LoadSummary;
use super::dead_rows::DeadRows;
use super::heap_target::HeapTarget;
use super::index_build::IndexTarget;
use super::index_keys::{KeyFormer, KeyRun};
use super::old_entries::OldEntries;
use super::page_run::Pieces;
use super::plan::LoadPlan;
use super::row_former::{ChunkKey, FormedRows};
use super::used_ids::UsedIds;
use crate::error::Result;

/// Where everything goes.
#[derive(Debug)]
pub(super) struct Targets<'p> {
    plan: &'p LoadPlan,
    heap: HeapTarget,
    indexes: Vec<IndexTarget<'p>>,
    toast: Option<(HeapTarget, IndexTarget<'p>)>,
    pieces: Pieces,
}

impl<'p> Targets<'p> {
    /// Takes numbers for new files, and makes them.
    ///
    /// # Errors
    /// When they cannot be made.
    pub(super) fn new(change: &mut ClusterChange, plan: &'p LoadPlan) -> Result<Self> {
        let cluster = change.database().cluster().clone();
        let pieces = Pieces::default();
        let count = plan.indexes.len() + usize::from(plan.toast_index.is_some());
        let shares = (count, plan.options.jobs);
        let heap =
            HeapTarget::new(change, plan, (&plan.relation.class, plan.expected_blocks), &pieces)?;
        let toast = match plan.rules.toast.as_ref().zip(plan.toast_index.as_ref()) {
            Some(((table, _), index)) => {
                let heap = HeapTarget::new(change, plan, (table, 0), &pieces)?;
                Some((heap, IndexTarget::new(index, &cluster, shares)))
            }
            None => None,
        };
        let indexes =
            plan.indexes.iter().map(|index| IndexTarget::new(index, &cluster, shares)).collect();
        Ok(Self { plan, heap, indexes, toast, pieces })
    }

    pub(super) fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    /// The values that the TOAST table has and keeps.
    ///
    /// # Errors
    /// When its index cannot be read.
    pub(super) fn used_ids(&self, change: &ClusterChange) -> Result<UsedIds> {
        let Some((heap, index)) = &self.toast else { return Ok(UsedIds::default()) };
        if heap.old().is_none_or(|old| old.blocks() == 0) {
            return Ok(UsedIds::default());
        }
        // A number counts as used also by a value that is dead, and there still.
        let none = DeadRows::default();
        let mut old = OldEntries::open(change.database(), index.plan, &none)?;
        let mut ids = Vec::new();
        while let Some(leaf) = old.next_leaf()? {
            check_interrupt(change.database().cluster().path())
                .map_err(pagemill_cluster::Error::from)?;
            for &entry in &leaf.entries {
                // `chunk_id` is the first of the key, behind a header of eight bytes.
                let id = leaf.entry(entry).get(8..).and_then(<[u8]>::first_chunk);
                let id = id.map(|id| Oid(u32::from_le_bytes(*id)));
                if ids.last() != id.as_ref() {
                    ids.extend(id);
                }
            }
        }
        Ok(UsedIds::new(ids))
    }

    /// Takes the rows of a batch, in their turn.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn take(&mut self, change: &mut ClusterChange, formed: FormedRows) -> Result<()> {
        let first = self.heap.add(change, formed.heap, formed.rows, &self.pieces)?;
        for (index, run) in self.indexes.iter_mut().zip(formed.keys) {
            index.take(run, first)?;
        }
        if let Some((heap, index)) = &mut self.toast {
            let first =
                heap.add(change, formed.toast, formed.chunk_keys.len() as u64, &self.pieces)?;
            index.take(chunk_run(index, &formed.chunk_keys)?, first)?;
        }
        Ok(())
    }

    /// Writes what depends on all rows, and tells the catalogs.
    ///
    /// # Errors
    /// When two rows have one key of a unique index, or something cannot be written.
    pub(super) fn finish(
        self,
        change: &mut ClusterChange,
        summary: &mut LoadSummary,
    ) -> Result<()> {
        summary.write_method = self.heap.write_method();
        summary.blocks = u64::from(self.heap.new_blocks());
        let plan = self.plan;
        let dead = match self.indexes.is_empty() {
            true => None,
            false => self.heap.dead_rows(change)?,
        };
        for index in self.indexes {
            index.build(change, plan, self.heap.old().zip(dead.as_ref()), self.heap.tuples())?;
        }
        self.heap.finish(change, plan)?;
        if let Some((heap, index)) = self.toast
            && (plan.is_fresh || !plan.options.wal || heap.new_blocks() > 0)
        {
            let dead = heap.dead_rows(change)?;
            index.build(change, plan, heap.old().zip(dead.as_ref()), heap.tuples())?;
            heap.finish(change, plan)?;
        }
        Ok(())
    }
}

/// The entries of chunks, as those of rows.
fn chunk_run(index: &IndexTarget<'_>, keys: &[ChunkKey]) -> Result<KeyRun> {
    let mut former = KeyFormer::new(index.plan)?;
    for (id, sequence, tid) in keys {
        let (id, sequence) = (id.0.to_le_bytes(), sequence.to_le_bytes());
        former.add(&[Some(&id[..]), Some(&sequence[..])][..], *tid)?;
    }
    Ok(former.finish())
}
