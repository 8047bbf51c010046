//! Rows written in the order of an index.
//!
//! A row comes from the heap, or from the index alone where the visibility map says that all rows
//! of its heap block are visible to everybody and the index has every column that is printed.
//!
//! Invariant: a column is printed from the index only if the index stores it as a value of the very
//! type of the column: an operator class may store something else (`name` as `cstring`).

use std::collections::HashSet;

use pagemill_cluster::hot_chain::visible_member;
use pagemill_cluster::{ClusterLog, IndexRow, Relation};
use pagemill_format::page::Page;
use pagemill_format::{BlockNumber, Tid};
use pagemill_io::Output;

use crate::damage::{DamageLog, ValueDamage, damage_of, value_damage};
use crate::error::{Error, Result};
use crate::export::{BUFFER_BYTES, Export, FLUSH_BYTES, fault_damage, recycle};
use crate::fork_pages::ForkPages;
use crate::index_scan::{IndexScan, KeyTuple, entry_damage};
use crate::row_writer::{PrintedColumn, RowWriter, ValueFault};
use crate::scan::Place;

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
    heap: ForkPages<'a>,
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
        heap: ForkPages<'a>,
        index_relation: &'a Relation,
        index_columns: &'a [PrintedColumn],
    ) -> Self {
        let Export { catalog, table, columns, copy, transcoder, .. } = export;
        let transcoder = transcoder.as_ref();
        Self {
            heap,
            log: ClusterLog::new(catalog.database().cluster().clone()),
            columns,
            writer: RowWriter::new(catalog, &table.relation, columns, copy, transcoder),
            index_writer: RowWriter::new(catalog, index_relation, index_columns, copy, transcoder),
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
        scan: &mut IndexScan<'_>,
        output: &mut Output,
        damage: &mut DamageLog,
    ) -> Result<()> {
        loop {
            self.heap.begin_round();
            if !scan.advance(damage, |block| self.heap.want(block))? {
                return output.write_all(&self.buffer).map_err(Error::Output);
            }
            self.heap.read_wanted(|block| scan.is_worth_reading(block));
            let batch = scan.batch();
            for entry in batch.entries() {
                match batch.key(entry, self.index_width) {
                    Some(key) => self.write_key(scan, &key, damage)?,
                    None => self.write_row(entry.tid, damage)?,
                }
                if self.buffer.len() >= FLUSH_BYTES {
                    output.write_all(&self.buffer).map_err(Error::Output)?;
                    recycle(&mut self.buffer);
                }
            }
        }
    }

    fn write_row(&mut self, tid: Tid, damage: &mut DamageLog) -> Result<()> {
        let place = Place::new(self.heap.files(), tid.block);
        let page = match self.heap.get(tid.block) {
            Ok(bytes) => Page::new(bytes),
            Err(error) if self.reported.insert(tid.block) => {
                return damage.report(damage_of(error)?);
            }
            Err(_) => return Ok(()),
        };
        match visible_member(page, tid.block, tid.line_pointer, &mut self.log) {
            Ok(None) => Ok(()),
            Ok(Some((number, tuple))) => match self.writer.write(tuple, &mut self.buffer) {
                Ok(()) => {
                    self.rows += 1;
                    Ok(())
                }
                Err(fault) => damage.report(fault_damage(place, number, self.columns, fault)?),
            },
            Err((number, fault)) => damage.report(place.tuple_damage(number, fault)?),
        }
    }

    fn write_key(
        &mut self,
        scan: &IndexScan<'_>,
        key: &KeyTuple<'_>,
        damage: &mut DamageLog,
    ) -> Result<()> {
        match self.index_writer.write_data(key.data, &mut self.buffer) {
            Ok(()) => {
                self.rows += 1;
                Ok(())
            }
            Err(ValueFault { error, .. }) => {
                let what = match value_damage(error)? {
                    ValueDamage::Here(what) => what,
                    ValueDamage::Elsewhere(damage) => damage.to_string(),
                };
                damage.report(entry_damage(scan.files(), key.place, what))
            }
        }
    }
}
