//! Where everything of a load goes, and what is done once the last row is there.

use pagemill_cluster::change::{ClassChange, ClusterChange};
use pagemill_cluster::{ClassRow, Database};
use pagemill_format::wal::RelFileLocator;
use pagemill_format::{Fork, Oid};

use super::fork_writer::ForkWriter;
use super::page_run::Pieces;
use super::plan::LoadPlan;
use super::row_former::{ChunkKey, FormedRows};
use super::used_ids::UsedIds;
use super::LoadSummary;
use crate::error::Result;

/// One relation with rows: the table, or its TOAST table.
#[derive(Debug)]
struct HeapTarget {
    class: ClassRow,
    main: ForkWriter,
    /// The blocks it had, which stay.
    old_blocks: u32,
    new_file: Option<RelFileLocator>,
    rows: u64,
}

/// Everything that is written.
#[derive(Debug)]
pub(super) struct Targets {
    heap: HeapTarget,
    toast: Option<HeapTarget>,
    chunk_keys: Vec<ChunkKey>,
    pieces: Pieces,
}

impl Targets {
    /// Takes numbers for new files, and makes them.
    ///
    /// # Errors
    /// When they cannot be made.
    pub(super) fn new(change: &mut ClusterChange, plan: &LoadPlan) -> Result<Self> {
        let heap = HeapTarget::new(change, plan, &plan.relation.class)?;
        let toast = match &plan.rules.toast {
            Some((table, _)) => Some(HeapTarget::new(change, plan, table)?),
            None => None,
        };
        Ok(Self { heap, toast, chunk_keys: Vec::new(), pieces: Pieces::default() })
    }

    pub(super) fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    /// The values that the TOAST table has and keeps.
    ///
    /// # Errors
    /// When its index cannot be read.
    pub(super) fn used_ids(&self, _database: &Database) -> Result<UsedIds> {
        Ok(UsedIds::default())
    }

    /// Takes the rows of a batch, in their turn.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn take(&mut self, change: &mut ClusterChange, formed: FormedRows) -> Result<()> {
        self.heap.rows += formed.rows;
        self.heap.main.add_heap(change, formed.heap, &self.pieces)?;
        if let Some(toast) = &mut self.toast {
            toast.rows += formed.chunk_keys.len() as u64;
            let first = toast.main.add_heap(change, formed.toast, &self.pieces)?;
            let moved = |(id, sequence, mut tid): ChunkKey| {
                tid.block.0 += first.0;
                (id, sequence, tid)
            };
            self.chunk_keys.extend(formed.chunk_keys.into_iter().map(moved));
        }
        Ok(())
    }

    /// Writes what depends on all rows, and tells the catalogs.
    ///
    /// # Errors
    /// When something cannot be written.
    pub(super) fn finish(
        self,
        change: &mut ClusterChange,
        plan: &LoadPlan,
        summary: &mut LoadSummary,
    ) -> Result<()> {
        summary.blocks = u64::from(self.heap.main.blocks() - self.heap.old_blocks);
        self.heap.finish(change, plan)?;
        if let Some(toast) = self.toast {
            toast.finish(change, plan)?;
        }
        Ok(())
    }
}

impl HeapTarget {
    fn new(change: &mut ClusterChange, plan: &LoadPlan, class: &ClassRow) -> Result<Self> {
        let old = change.files_of(class.oid)?;
        if plan.is_fresh {
            let new = change.new_files(&[old.tablespace])?;
            let new = new.first().copied().unwrap_or_default();
            let (method, wal) = (plan.options.extend_method, plan.options.wal);
            let main = ForkWriter::new_file(change, (new, Fork::Main), method, wal)?;
            return Ok(Self { class: class.clone(), main, old_blocks: 0, new_file: Some(new), rows: 0 });
        }
        let base = change.database().base_path(class)?;
        let old_blocks = change.database().cluster().main_fork(&base)?.blocks();
        let main = ForkWriter::behind(old, Fork::Main, old_blocks);
        Ok(Self { class: class.clone(), main, old_blocks, new_file: None, rows: 0 })
    }

    fn finish(self, change: &mut ClusterChange, plan: &LoadPlan) -> Result<()> {
        let blocks = self.main.blocks();
        self.main.finish()?;
        if let Some(new) = self.new_file {
            change.replace_files(self.class.oid, new)?;
        }
        let seen = if plan.options.freeze { blocks } else { 0 };
        change.set_size(
            self.class.oid,
            ClassChange {
                pages: Some(blocks),
                tuples: tuples_after(&self.class, self.old_blocks, self.rows),
                all_visible: self.new_file.map(|_| seen),
                all_frozen: self.new_file.map(|_| seen),
                filenode: None,
            },
        );
        Ok(())
    }
}

/// `reltuples` afterwards: what was estimated of the old rows, at their density then, and the new ones. `None` where
/// the old ones were never counted.
fn tuples_after(class: &ClassRow, old_blocks: u32, rows: u64) -> Option<f32> {
    if old_blocks == 0 {
        return Some(rows as f32);
    }
    if class.tuples < 0.0 || class.pages == 0 {
        return None;
    }
    let density = f64::from(class.tuples) / f64::from(class.pages);
    Some((density * f64::from(old_blocks) + rows as f64) as f32)
}
