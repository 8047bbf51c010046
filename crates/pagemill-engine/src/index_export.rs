//! Rows written in the order of an index.
//!
//! A row comes from the heap, or from the index alone where the visibility map says that all rows
//! of its heap block are visible to everybody and the index has every column that is printed.
//!
//! Invariant: a column is printed from the index only if the index stores it as a value of the very
//! type of the column: an operator class may store something else (`name` as `cstring`).

use std::collections::HashSet;

use pagemill_cluster::heap::TupleFault;
use pagemill_cluster::hot_chain::{Member, visible_member};
use pagemill_cluster::{ClusterLog, Damage, IndexRow, Relation};
use pagemill_format::BlockNumber;
use pagemill_format::page::Page;
use pagemill_io::ByteSink;

use crate::damage::{DamageLog, damage_of, value_damage};
use crate::error::{Error, Result};
use crate::export::{BUFFER_BYTES, Export, FLUSH_BYTES, fault_damage, recycle};
use crate::fork_pages::ForkPages;
use crate::index_scan::{Entry, IndexScan, KeyTuple, entry_damage};
use crate::page_scan::BlockLocation;
use crate::row_writer::{PrintedColumn, RowWriter, ValueFault};

/// Entries whose rows are found before the first of them is written.
const GROUP: usize = 64;

/// What an entry leads to.
type EntryRow<'p> = Result<Option<Member<'p>>, (u16, TupleFault)>;

/// The columns that are printed as the index has them; `None` when one of them is not in it, or not
/// as itself.
pub(crate) fn index_columns(
    printed: &[PrintedColumn],
    table: &Relation,
    index: &IndexRow,
    index_relation: &Relation,
) -> Option<Vec<PrintedColumn>> {
    let in_index = |column: &PrintedColumn| {
        let number = i16::try_from(column.position + 1).ok()?;
        let own = table.columns.get(column.position)?;
        let stored = index.columns.iter().zip(&index_relation.columns);
        let position = stored.into_iter().position(|(key, stored)| {
            *key == number && stored.type_oid == own.type_oid && stored.layout == own.layout
        })?;
        Some(column.moved_to(position))
    };
    printed.iter().map(in_index).collect()
}

/// What writes the rows of one table in the order of one index.
pub(crate) struct IndexExport<'a> {
    heap: ForkPages,
    log: ClusterLog,
    columns: &'a [PrintedColumn],
    writer: RowWriter<'a>,
    /// What writes rows from the index alone, and how many columns the index has.
    index_writer: RowWriter<'a>,
    index_width: usize,
    buffer: Vec<u8>,
    rows: u64,
    /// Blocks whose damage was reported.
    reported: HashSet<BlockNumber>,
}

impl<'a> IndexExport<'a> {
    /// `index_columns` are those of [`index_columns`], or none if the index is not asked.
    pub(crate) fn new(
        export: &'a Export<'_>,
        heap: ForkPages,
        index_relation: &'a Relation,
        index_columns: &'a [PrintedColumn],
    ) -> Self {
        let Export { catalog, table, columns, .. } = export;
        Self {
            heap,
            log: ClusterLog::new(catalog.database().cluster().clone()),
            columns,
            writer: RowWriter::new(export, &table.relation, columns),
            index_writer: RowWriter::new(export, index_relation, index_columns),
            index_width: index_relation.columns.len(),
            buffer: Vec::with_capacity(BUFFER_BYTES),
            rows: 0,
            reported: HashSet::new(),
        }
    }

    /// Rows written.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Pages of table, TOAST tables and their indexes that were there when asked for, and pages
    /// that were read.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let counts = [self.heap.counts(), self.writer.cache_counts()];
        counts.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Writes the rows of all entries of a scan.
    ///
    /// # Errors
    /// On damage, unless it is to be skipped; when the output cannot be written.
    pub(crate) fn write(
        &mut self,
        scan: &mut IndexScan,
        output: &mut dyn ByteSink,
        damage: &mut DamageLog,
    ) -> Result<()> {
        loop {
            self.heap.begin_round();
            if !scan.advance(damage, |block| self.heap.want(block))? {
                return output.write_all(&self.buffer).map_err(Error::Output);
            }
            self.heap.read_wanted(|block| scan.is_worth_reading(block));
            let batch = scan.batch();
            for group in batch.entries().chunks(GROUP) {
                self.check_pages(group, damage)?;
                self.write_group(scan, group, output, damage)?;
            }
        }
    }

    /// Sees to it that the pages of a group of entries are there and sound; those that are not are
    /// reported.
    fn check_pages(&mut self, group: &[Entry], damage: &mut DamageLog) -> Result<()> {
        for entry in group.iter().filter(|entry| entry.key.is_none()) {
            let block = entry.tid.block;
            if let Err(error) = self.heap.get(block)
                && self.reported.insert(block)
            {
                damage.report(damage_of(error)?)?;
            }
        }
        Ok(())
    }

    /// First all rows of a group are found, then they are written: the processor waits for the
    /// memory of several rows at once, and not for that of each in turn.
    fn write_group(
        &mut self,
        scan: &IndexScan,
        group: &[Entry],
        output: &mut dyn ByteSink,
        damage: &mut DamageLog,
    ) -> Result<()> {
        let Self { heap, log, columns, writer, buffer, rows, .. } = self;
        let mut found: [EntryRow<'_>; GROUP] = [const { Ok(None) }; GROUP];
        for (found, Entry { tid, key }) in found.iter_mut().zip(group) {
            if let Some(bytes) = heap.held(tid.block).filter(|_| key.is_none()) {
                *found = visible_member(Page::new(bytes), tid.block, tid.line_pointer, log);
            }
        }
        for (found, entry) in found.into_iter().zip(group) {
            let place = BlockLocation::new(heap.files(), entry.tid.block);
            let written = match found {
                Ok(Some((number, tuple))) => writer
                    .write(tuple, buffer)
                    .map_err(|fault| fault_damage(place, number, columns, fault)),
                Err((number, fault)) => Err(place.tuple_damage(number, fault)),
                Ok(None) => match scan.batch().key(entry, self.index_width) {
                    Some(key) => write_key(&mut self.index_writer, scan, &key, buffer),
                    None => continue,
                },
            };
            match written {
                Ok(()) => *rows += 1,
                Err(found) => damage.report(found?)?,
            }
            if buffer.len() >= FLUSH_BYTES {
                output.write_all(buffer).map_err(Error::Output)?;
                recycle(buffer);
            }
        }
        Ok(())
    }
}

/// Writes a row from the index alone.
fn write_key(
    writer: &mut RowWriter<'_>,
    scan: &IndexScan,
    key: &KeyTuple<'_>,
    buffer: &mut Vec<u8>,
) -> Result<(), Result<Damage>> {
    let ValueFault { error, .. } = match writer.write_data(key.data, buffer) {
        Ok(()) => return Ok(()),
        Err(fault) => fault,
    };
    let found = value_damage(error);
    Err(found.map(|found| entry_damage(scan.files(), key.leaf, key.item, found.to_string())))
}
