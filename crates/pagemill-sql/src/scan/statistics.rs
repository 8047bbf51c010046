//! What is thought of the rows of a table before any is read: how many they are, and of their columns what ANALYZE left behind.
//!
//! Invariant: all of it is an estimate, told as one, and nothing but catalogs is read for it.
//!
//! Source: `table_block_relation_estimate_size` in `src/backend/access/table/tableam.c`, `get_typavgwidth` in
//! `src/backend/utils/cache/lsyscache.c`, `src/include/catalog/pg_statistic.h`, PostgreSQL 14 to 18.

use std::collections::HashMap;

use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Statistics};
use pagemill_engine::Table;
use pagemill_format::Oid;
use pagemill_format::page::{LINE_POINTER_BYTES, PAGE_HEADER_BYTES};

use super::relation_table::RelationTable;
use super::source::BLOCK_BYTES;
use crate::catalog::Catalog;
use crate::error::Result;
use crate::system_rows::for_each_row;

/// The header of a tuple, aligned.
const TUPLE_HEADER_BYTES: u64 = 24;
/// A value of unknown length.
const LIKELY_BYTES: u64 = 32;
/// Tables of fewer blocks are so quickly read that the statistics of their columns do not matter.
const FEW_BLOCKS: u64 = 128;

/// What ANALYZE found out of a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredStatistics {
    /// `stanullfrac`.
    null_fraction: f32,
    /// `stadistinct`: how many, or, below 0, in what share of the rows.
    distinct: f32,
}

/// By table, number of the column, and whether the tables that inherit are counted in.
pub(crate) type AllStatistics = HashMap<(Oid, i16, bool), StoredStatistics>;

/// Reads `pg_statistic`.
pub(crate) fn read_statistics(catalog: &Catalog) -> Result<AllStatistics> {
    let columns = ["starelid", "staattnum", "stainherit", "stanullfrac", "stadistinct"];
    let mut found = AllStatistics::new();
    for_each_row(catalog.values(), "pg_statistic", &columns, |row| {
        let float = |bits: i32| f32::from_bits(bits as u32);
        let stored =
            StoredStatistics { null_fraction: float(row.int4(3)), distinct: float(row.int4(4)) };
        found.insert((row.oid(0), row.int2(1), row.bool(2)), stored);
        Ok(())
    })?;
    Ok(found)
}

/// The statistics of a table for the query engine.
pub(super) fn statistics(table: &RelationTable) -> Statistics {
    let rows: f64 = table.parts.iter().map(|(part, blocks)| rows_of(table, part, *blocks)).sum();
    let mut statistics = Statistics::new_unknown(&table.schema);
    statistics.num_rows = Precision::Inexact(rows as usize);
    let blocks: u64 = table.parts.iter().map(|(_, blocks)| blocks).sum();
    if blocks >= FEW_BLOCKS {
        let stored = table.context.catalog.statistics();
        for (at, column) in table.columns.iter().enumerate() {
            let is_it = |c: &pagemill_cluster::Column| !c.dropped && c.name == column.stored_name;
            let place = table.named.columns.iter().position(is_it);
            let number = place.and_then(|place| i16::try_from(place + 1).ok());
            let key = number.map(|n| (table.named.class.oid, n, table.is_partitioned()));
            if let Some(known) = key.and_then(|key| stored.get(&key)) {
                statistics.column_statistics[at] = known.for_rows(rows);
            }
        }
    }
    statistics
}

impl StoredStatistics {
    fn for_rows(self, rows: f64) -> ColumnStatistics {
        let distinct = match self.distinct {
            share if share < 0.0 => f64::from(-share) * rows,
            number => f64::from(number),
        };
        let unknown = ColumnStatistics::new_unknown();
        let estimate = |number: f64| Precision::Inexact(number as usize);
        ColumnStatistics {
            null_count: estimate(f64::from(self.null_fraction) * rows),
            // 0 stands for a number that is not known.
            distinct_count: if distinct > 0.0 { estimate(distinct) } else { Precision::Absent },
            ..unknown
        }
    }
}

/// About how many rows there are: as many on a page as when they were last counted, or as many as have room.
fn rows_of(table: &RelationTable, part: &Table, blocks: u64) -> f64 {
    let class = &part.relation.class;
    if class.tuples >= 0.0 && class.pages > 0 {
        return f64::from(class.tuples) / f64::from(class.pages) * blocks as f64;
    }
    let length = |column: &pagemill_cluster::Column| {
        let row = table.context.catalog.type_row(column.type_oid);
        row.and_then(|row| u64::try_from(row.length).ok()).unwrap_or(LIKELY_BYTES)
    };
    let columns = part.relation.columns.iter().filter(|column| !column.dropped);
    let tuple = TUPLE_HEADER_BYTES + LINE_POINTER_BYTES as u64 + columns.map(length).sum::<u64>();
    let on_a_page = ((BLOCK_BYTES - PAGE_HEADER_BYTES as u64) / tuple).max(1);
    (on_a_page * blocks) as f64
}
