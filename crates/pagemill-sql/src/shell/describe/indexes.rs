//! Indexes as psql tells of them.
//!
//! Source: `src/include/catalog/pg_index.h`, PostgreSQL 15.

use std::collections::HashMap;

use pagemill_format::Oid;

use super::expression::UNWRITTEN;
use super::names::Names;
use crate::definitions::{self, IndexRow, IndexWriter, Style, Unwritten};
use crate::error::Result;
use crate::system_rows::for_each_row;

/// A row of `pg_index`.
#[derive(Debug, Clone)]
pub(super) struct Index {
    pub(super) oid: Oid,
    pub(super) table: Oid,
    pub(super) is_unique: bool,
    pub(super) nulls_are_equal: bool,
    pub(super) is_primary: bool,
    pub(super) is_clustered: bool,
    pub(super) is_valid: bool,
    pub(super) is_replica_identity: bool,
    pub(super) key_columns: usize,
}

/// The indexes that `is_wanted` takes, by table and index.
pub(super) fn read(names: &Names<'_>, is_wanted: impl Fn(Oid, Oid) -> bool) -> Result<Vec<Index>> {
    let catalog = names.catalog;
    let mut columns = vec![
        "indexrelid",
        "indrelid",
        "indisunique",
        "indisprimary",
        "indisclustered",
        "indisvalid",
        "indisreplident",
        "indnkeyatts",
    ];
    if catalog.database().cluster().version().major() >= 15 {
        columns.push("indnullsnotdistinct");
    }
    let mut found = Vec::new();
    for_each_row(catalog.values(), "pg_index", &columns, |row| {
        if is_wanted(row.oid(1), row.oid(0)) {
            found.push(Index {
                oid: row.oid(0),
                table: row.oid(1),
                is_unique: row.bool(2),
                is_primary: row.bool(3),
                is_clustered: row.bool(4),
                is_valid: row.bool(5),
                is_replica_identity: row.bool(6),
                key_columns: usize::try_from(row.int2(7)).unwrap_or(0),
                nulls_are_equal: columns.len() > 8 && row.bool(8),
            });
        }
        Ok(())
    })?;
    Ok(found)
}

/// Definitions of indexes, as the server writes them.
pub(super) struct Definitions {
    writer: IndexWriter,
    rows: HashMap<Oid, IndexRow>,
}

impl Definitions {
    pub(super) fn new(names: &Names<'_>) -> Result<Self> {
        let writer = IndexWriter::new(names.catalog, Style::new(true))?;
        Ok(Self { writer, rows: definitions::indexes(names.catalog)? })
    }

    fn written(
        &self,
        index: &Index,
        write: impl FnOnce(&IndexRow) -> Result<String, Unwritten>,
    ) -> String {
        let written = self.rows.get(&index.oid).and_then(|row| write(row).ok());
        written.unwrap_or_else(|| UNWRITTEN.to_owned())
    }

    pub(super) fn method(&self, index: &Index) -> String {
        self.written(index, |row| self.writer.method(row))
    }

    /// The expression or column at a place from 0, as a key without what follows it.
    pub(super) fn key(&self, index: &Index, place: usize) -> String {
        self.written(index, |row| self.writer.column(row, place))
    }

    /// The condition that the rows fulfill, in parentheses; `None` where there is none.
    pub(super) fn predicate(&self, index: &Index) -> Option<String> {
        let row = self.rows.get(&index.oid)?;
        match self.writer.predicate(row) {
            Ok(written) => written.map(|text| format!("({text})")),
            Err(_) => Some(UNWRITTEN.to_owned()),
        }
    }

    /// What follows `USING` in the statement that makes the index.
    pub(super) fn definition(&self, index: &Index) -> String {
        let whole = self.written(index, |row| self.writer.definition(row));
        whole.split_once(" USING ").map_or(whole.clone(), |(_, rest)| rest.to_owned())
    }

    /// What a constraint EXCLUDE is.
    pub(super) fn exclusion(&self, index: &Index, operators: &[Oid]) -> String {
        self.written(index, |row| self.writer.exclusion(row, operators))
    }
}
