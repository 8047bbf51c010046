//! Whether an index alone tells all that is wanted of a table: the values of all columns that are looked at or given.
//!
//! The entries of the index stand for the rows of blocks that the visibility map promises to be all-visible; other blocks are
//! scanned themselves. That is worth it where the index is much smaller than its table, and few blocks are left.
//!
//! Invariants: every row comes from the index or from the table, by its block, which does not change; so all threads of a scan
//! have to take the same way, and several machines, which decide each for itself, do not take it. A damaged index is not
//! stepped over here, so that where damage is left out the table is read. Rows come in the order of the index's file: those that are
//! only read and shown come from the table.
//!
//! Source: `check_index_only` in `src/backend/optimizer/path/indxpath.c`, PostgreSQL 14 to 18.

use std::ops::Range;
use std::sync::Arc;

use pagemill_cluster::SearchIndex;
use pagemill_engine::{OnDamage, Table, mixed_blocks};

use super::relation_table::TableColumn;
use super::source::RelationSource;
use crate::error::Result;

/// Of fewer blocks a table is read as a whole.
const LEAST_BLOCKS: u32 = 64;
/// An index of more than one of so many of the table's blocks is not worth it.
const INDEX_SHARE: u32 = 2;
/// As little are more than one of so many blocks that are left.
const MIXED_SHARE: u32 = 4;

/// An index in place of its table.
pub(super) struct KeyAccess {
    /// Its files and columns, which have the names of the table's.
    pub(super) index: Arc<Table>,
    /// The blocks of the table whose rows are not all visible.
    pub(super) mixed: Vec<Range<u32>>,
    blocks: u32,
}

impl KeyAccess {
    /// The way by the smallest index that has all columns; `None` where there is none that is worth it.
    ///
    /// # Errors
    /// When the catalogs, the size of a file or a directory cannot be read.
    pub(super) fn of(source: &RelationSource, table: &Arc<Table>) -> Result<Option<Self>> {
        let Some(index) = covering_index(source, table)? else { return Ok(None) };
        let (database, blocks) = (source.context.catalog.database(), table.blocks());
        let Some(index) = Table::of_index(database, under_names_of(table, &index))? else {
            return Ok(None);
        };
        if index.blocks() > blocks / INDEX_SHARE {
            return Ok(None);
        }
        let mixed = mixed_blocks(database.cluster(), table)?;
        let left: u32 = mixed.iter().map(|range| range.end - range.start).sum();
        let found = Self { index: Arc::new(index), mixed, blocks };
        Ok((left <= blocks / MIXED_SHARE).then_some(found))
    }

    /// How many blocks are read.
    pub(super) fn cost(&self) -> u32 {
        self.index.blocks() + self.mixed_count()
    }

    fn mixed_count(&self) -> u32 {
        self.mixed.iter().map(|range| range.end - range.start).sum()
    }

    /// In words.
    pub(super) fn reason(&self) -> String {
        let name = String::from_utf8_lossy(&self.index.relation.class.name);
        let (index, mixed, all) = (self.index.blocks(), self.mixed_count(), self.blocks);
        match mixed {
            0 => format!("index {name} alone, {index} blocks of it"),
            _ => format!("index {name} alone, {index} blocks of it, and {mixed} of {all} blocks"),
        }
    }

    /// The blocks of the index that stand for a range of the table's: those for ranges that make up the table are the index.
    pub(super) fn share(&self, blocks: &Range<u32>) -> Range<u32> {
        let (index, all) = (u64::from(self.index.blocks()), u64::from(self.blocks));
        let at = |block: u32| (u64::from(block).min(all) * index / all) as u32;
        at(blocks.start)..at(blocks.end)
    }
}

/// The index that has all columns that are wanted or looked at and is the smallest, by what the catalogs know.
pub(super) fn covering_index(
    source: &RelationSource,
    table: &Table,
) -> Result<Option<Arc<SearchIndex>>> {
    let context = &source.context;
    let is_alone = !context.cuts_counts && context.on_damage == OnDamage::Stop;
    if !is_alone || source.shows_order || table.blocks() < LEAST_BLOCKS || source.is_count() {
        return Ok(None);
    }
    let looked_at = source.filters.columns();
    let wanted = source.wanted().iter().chain(&looked_at).map(|at| &source.columns[*at]);
    let wanted: Vec<&TableColumn> = wanted.collect();
    let indexes = context.catalog.search_indexes(&table.relation)?;
    let found = indexes.trees.iter().filter_map(|(_, index)| index.as_ref().ok());
    let found = found.filter(|index| index.predicate.is_none());
    let found = found.filter(|index| wanted.iter().all(|column| has(index, table, column)));
    let found = found.filter(|index| index.class.pages <= table.blocks() / INDEX_SHARE);
    Ok(found.min_by_key(|index| index.class.pages).cloned())
}

/// True where an index keeps the values of a column as the table has them: some operator classes keep others.
fn has(index: &SearchIndex, table: &Table, column: &TableColumn) -> bool {
    let columns = &table.relation.columns;
    let at = columns.iter().position(|stored| stored.name == column.stored_name);
    let Some(at) = at.filter(|_| column.system.is_none()) else { return false };
    let place = index.positions.iter().position(|position| *position == Some(at));
    let own = place.and_then(|place| index.relation.columns.get(place));
    own.is_some_and(|own| own.type_oid == columns[at].type_oid)
}

/// The index with its columns named as the table's are; expressions are nobody's.
fn under_names_of(table: &Table, index: &SearchIndex) -> pagemill_cluster::Relation {
    let mut relation = index.relation.clone();
    for (column, position) in relation.columns.iter_mut().zip(&index.positions) {
        let of_table = position.and_then(|at| table.relation.columns.get(at));
        column.name = of_table.map(|column| column.name.clone()).unwrap_or_default(); // default: no column has an empty name
    }
    relation
}
