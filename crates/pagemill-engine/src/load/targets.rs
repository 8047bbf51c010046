//! Everything a load writes: the table, its TOAST table, the indexes of both.
//!
//! Invariant: batches are taken in the order of the input.

use pagemill_cluster::Database;
use pagemill_cluster::change::ClusterChange;
use pagemill_format::{Oid, Tid};
use pagemill_io::check_interrupt;

use super::LoadSummary;
use super::dead_rows::DeadRows;
use super::duplicate_key::FirstTaken;
use super::heap_target::{HeapTarget, RowsTarget};
use super::index::OldEntries;
use super::index::{IndexTarget, KeyFormer, KeyRun, MergeShare, TupleLocations};
use super::plan::LoadPlan;
use super::row_former::{ChunkKey, FormedRows, FormedTable};
use super::row_lines::{InputLine, RowLines};
use super::table_plan::{TableLoad, TablePlan};
use super::used_ids::UsedIds;
use crate::encoding::readable_name;
use crate::error::{Error, Result};
use crate::heap_files::page_run::{PIECE_BLOCKS, Pieces};

/// Blocks of memory that the tables of a load have together, in each thread.
const MOST_BLOCKS: usize = 512;

/// Where everything goes.
#[derive(Debug)]
pub(super) struct Targets<'p> {
    plan: &'p LoadPlan,
    /// By table of the plan; one that is one of many is made when its first row comes.
    tables: Vec<Option<TableTarget<'p>>>,
    pieces: Pieces,
}

/// Where everything of one table goes.
#[derive(Debug)]
struct TableTarget<'p> {
    table: &'p TablePlan,
    heap: HeapTarget,
    indexes: Vec<IndexTarget<'p>>,
    toast: Option<(HeapTarget, IndexTarget<'p>)>,
    lines: RowLines,
}

impl<'p> Targets<'p> {
    /// Takes numbers for new files, and makes them.
    ///
    /// # Errors
    /// When they cannot be made.
    pub(super) fn new(change: &mut ClusterChange, plan: &'p LoadPlan) -> Result<Self> {
        let tables: Vec<_> = plan.tables.iter().map(|_| None).collect();
        let share = (MOST_BLOCKS / tables.len().max(1)).clamp(1, PIECE_BLOCKS);
        let pieces = match plan.routing {
            Some(_) => Pieces::of_blocks(1 << share.ilog2()),
            None => Pieces::default(),
        };
        let mut targets = Self { plan, tables, pieces };
        if plan.routing.is_none() || plan.options.truncate {
            for number in 0..plan.tables.len() {
                targets.table(change, number)?;
            }
        }
        Ok(targets)
    }

    /// The table of this number, made if need be.
    fn table(&mut self, change: &mut ClusterChange, number: usize) -> Result<&mut TableTarget<'p>> {
        let slot = self.tables.get_mut(number).expect("a row goes to a table of the plan"); // infallible: it was routed by it
        match slot {
            Some(target) => Ok(target),
            None => {
                let table = &self.plan.tables[number];
                Ok(slot.insert(TableTarget::new(change, self.plan, table, &self.pieces)?))
            }
        }
    }

    pub(super) fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    /// Takes the rows of a batch, in their turn.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn take(&mut self, change: &mut ClusterChange, formed: FormedRows) -> Result<()> {
        let (pieces, packs) = (self.pieces.clone(), self.plan.routing.is_some());
        for formed in formed.tables {
            let target = self.table(change, formed.table)?;
            target.take(change, formed, packs, &pieces)?;
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
        for target in self.tables.into_iter().flatten() {
            let load = TableLoad { plan: self.plan, table: target.table };
            target.finish(change, load, &self.pieces, summary)?;
        }
        Ok(())
    }
}

/// The values that the TOAST table of each table has and keeps.
///
/// # Errors
/// When an index cannot be read.
pub(super) fn used_ids(database: &Database, plan: &LoadPlan) -> Result<Vec<UsedIds>> {
    plan.tables.iter().map(|table| used_ids_of(database, table)).collect()
}

fn used_ids_of(database: &Database, table: &TablePlan) -> Result<UsedIds> {
    let toast = table.rules.toast.as_ref().zip(table.toast_index.as_ref());
    let Some(((class, _), index)) = toast.filter(|_| !table.is_fresh) else {
        return Ok(UsedIds::default());
    };
    if database.cluster().main_fork(&database.base_path(class)?)?.blocks() == 0 {
        return Ok(UsedIds::default());
    }
    // A number counts as used also by a value that is dead, and there still.
    let none = DeadRows::default();
    let mut old = OldEntries::open(database, index, &none)?;
    let mut ids = Vec::new();
    while let Some(leaf) = old.next_leaf()? {
        check_interrupt(database.cluster().path()).map_err(pagemill_cluster::Error::from)?;
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

impl<'p> TableTarget<'p> {
    fn new(
        change: &mut ClusterChange,
        plan: &'p LoadPlan,
        table: &'p TablePlan,
        pieces: &Pieces,
    ) -> Result<Self> {
        let cluster = change.database().cluster().clone();
        let count = |of: &TablePlan| of.indexes.len() + usize::from(of.toast_index.is_some());
        let indexes = plan.tables.iter().map(count).sum();
        let share = MergeShare { indexes, jobs: plan.options.jobs };
        let expected = if plan.routing.is_some() { 0 } else { plan.expected_blocks };
        let (load, class) = (TableLoad { plan, table }, &table.relation.class);
        let heap = HeapTarget::new(change, load, RowsTarget { class, expected }, pieces)?;
        let toast = match table.rules.toast.as_ref().zip(table.toast_index.as_ref()) {
            Some(((class, _), index)) => {
                let rows = RowsTarget { class, expected: 0 };
                let heap = HeapTarget::new(change, load, rows, pieces)?;
                Some((heap, IndexTarget::new(index, &cluster, share)))
            }
            None => None,
        };
        let indexes =
            table.indexes.iter().map(|index| IndexTarget::new(index, &cluster, share)).collect();
        Ok(Self { table, heap, indexes, toast, lines: RowLines::default() })
    }

    fn take(
        &mut self,
        change: &mut ClusterChange,
        formed: FormedTable,
        packs: bool,
        pieces: &Pieces,
    ) -> Result<()> {
        let mut add = |heap: &mut HeapTarget, run, rows| match packs {
            true => heap.pack(change, run, rows, pieces),
            false => heap.add(change, run, rows, pieces).map(TupleLocations::From),
        };
        let places = add(&mut self.heap, formed.heap, formed.rows)?;
        if let (TupleLocations::From(first), Some(lines)) = (&places, formed.lines) {
            self.lines.add(*first, lines);
        }
        for (index, run) in self.indexes.iter_mut().zip(formed.keys) {
            index.take(run, &places)?;
        }
        if let Some((heap, index)) = &mut self.toast {
            let places = add(heap, formed.toast, formed.chunk_keys.len() as u64)?;
            index.take(chunk_run(index, &formed.chunk_keys)?, &places)?;
        }
        Ok(())
    }

    fn finish(
        mut self,
        change: &mut ClusterChange,
        load: TableLoad<'_>,
        pieces: &Pieces,
        summary: &mut LoadSummary,
    ) -> Result<()> {
        self.heap.close(change, pieces)?;
        summary.write_method = self.heap.write_method().or(summary.write_method);
        summary.blocks += u64::from(self.heap.new_blocks());
        let dead = match self.indexes.is_empty() {
            true => None,
            false => self.heap.dead_rows(change)?,
        };
        let old = self.heap.old().zip(dead.as_ref());
        let mut taken = FirstTaken::default();
        for index in self.indexes {
            let plan = index.plan;
            // After the first, only others that may be earlier in the input are of interest.
            if plan.unique || !taken.is_some() {
                taken.add(plan, index.build(change, load, old, self.heap.tuples())?);
            }
        }
        let lines = &self.lines;
        if let Some(duplicate) = taken.report(|row| place_of(lines, change.database(), load, row)) {
            return Err(Error::DuplicateKey(Box::new(duplicate)));
        }
        self.heap.finish(change, load)?;
        let Some((mut heap, index)) = self.toast else { return Ok(()) };
        heap.close(change, pieces)?;
        if load.table.has_new_files || heap.new_blocks() > 0 {
            let dead = heap.dead_rows(change)?;
            let old = heap.old().zip(dead.as_ref());
            let taken = index.build(change, load, old, heap.tuples())?;
            assert!(taken.is_none(), "values of a TOAST table have numbers that were not used");
            heap.finish(change, load)?;
        }
        Ok(())
    }
}

/// Where a new row lay in the input, as far as that was kept.
fn place_of(
    lines: &RowLines,
    database: &Database,
    load: TableLoad<'_>,
    row: Tid,
) -> Option<InputLine> {
    let (input, line) = lines.find(row)?;
    let relation = readable_name(database.row().encoding, &load.plan.relation.class.name);
    Some(InputLine { input, relation: relation.into(), line })
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
