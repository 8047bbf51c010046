//! The rows of a table, pulled one by one, and their values.
//!
//! Invariant: a row borrows the page it lies on until the next one is asked for; only values that are compressed or kept in
//! a TOAST table are copied.

use std::sync::Arc;

use pagemill_cluster::{Error as ClusterError, Relation, ValueCatalog, ValueLookups};
use pagemill_engine::{
    DamageLog, OnDamage, Progress, Result, ScanOptions, Table, TableScan, TupleRow, value_error,
};
use pagemill_format::Tid;
use pagemill_format::types::decode;
use pagemill_format::types::output::{ValueType, ValueWriter};
use pagemill_format::types::value::Value;

/// The rows of a table.
pub struct Rows {
    catalog: ValueCatalog,
    names: Vec<String>,
    types: Vec<Arc<ValueType>>,
    /// Partitions that are still to be read, or the table itself.
    parts: std::vec::IntoIter<Relation>,
    scan: Option<TableScan>,
    /// The next row of the scan's batch, and how many it has.
    at: usize,
    count: usize,
    options: ScanOptions,
    progress: Progress,
    lookups: ValueLookups,
    damage: DamageLog,
    /// A value that did not lie in the page.
    buffer: Vec<u8>,
}

impl Rows {
    pub(super) fn new(
        catalog: &ValueCatalog,
        (named, parts): (&Relation, Vec<Relation>),
        names: Vec<String>,
        (options, progress): (ScanOptions, Progress),
    ) -> Result<Self> {
        let positions = positions(named, &names)?;
        let value_type = |position: &usize| catalog.value_type(named.columns[*position].type_oid);
        Ok(Self {
            catalog: catalog.clone(),
            types: positions.iter().map(value_type).collect::<Result<_, _>>()?,
            names,
            parts: parts.into_iter(),
            scan: None,
            at: 0,
            count: 0,
            options,
            progress,
            lookups: catalog.lookups(),
            damage: DamageLog::new(OnDamage::Stop),
            buffer: Vec::new(),
        })
    }

    /// The next row; `None` after the last.
    ///
    /// # Errors
    /// On damage, and when a file cannot be read.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>> {
        while self.at == self.count {
            if !self.next_batch()? {
                return Ok(None);
            }
        }
        let Some(batch) = self.scan.as_ref().and_then(TableScan::batch) else { return Ok(None) };
        self.at += 1;
        let tuple = batch.row(self.at - 1);
        Ok(Some(Row {
            tuple,
            types: &self.types,
            lookups: &mut self.lookups,
            buffer: &mut self.buffer,
        }))
    }

    /// Goes on to the next page with rows; false at the end.
    fn next_batch(&mut self) -> Result<bool> {
        (self.at, self.count) = (0, 0);
        if let Some(scan) = &mut self.scan
            && let Some(batch) = scan.next_batch(&mut self.damage)?
        {
            self.count = batch.len();
            return Ok(true);
        }
        let Some(part) = self.parts.next() else { return Ok(false) };
        let positions = positions(&part, &self.names)?;
        let database = self.catalog.database();
        let table = Arc::new(Table::open(database, part, &mut self.damage)?);
        let cluster = database.cluster();
        self.scan =
            Some(TableScan::new(cluster, &table, &positions, self.options, &self.progress)?);
        Ok(true)
    }
}

/// Where a relation has the columns of these names.
fn positions(relation: &Relation, names: &[String]) -> Result<Vec<usize>> {
    let position = |name: &String| {
        let mut columns = relation.columns.iter();
        columns.position(|column| !column.dropped && column.display_name() == *name).ok_or_else(
            || {
                let what = format!("column \"{name}\" of {}", relation.display_name());
                ClusterError::NotFound { what, near: Vec::new() }.into()
            },
        )
    };
    names.iter().map(position).collect()
}

/// One row.
pub struct Row<'r> {
    tuple: TupleRow<'r>,
    types: &'r [Arc<ValueType>],
    lookups: &'r mut ValueLookups,
    buffer: &'r mut Vec<u8>,
}

impl Row<'_> {
    /// Its `ctid`.
    pub fn tid(&self) -> Tid {
        self.tuple.tid()
    }

    /// The value of a column, by its place among those that were asked for; `None` for NULL. It stays until the next
    /// value of the row is asked for.
    ///
    /// # Errors
    /// When the value is damaged, or cannot be fetched.
    ///
    /// # Panics
    /// When fewer columns were asked for.
    pub fn value(&mut self, column: usize) -> Result<Option<Value<'_>>> {
        let value_type = &self.types[column];
        let Some(raw) = self.tuple.raw(column) else { return Ok(None) };
        let payload = decode::payload(self.lookups, value_type.layout.len, raw, self.buffer);
        let value = payload.and_then(|payload| decode::decode(value_type, payload));
        value.map(Some).map_err(value_error)
    }

    /// The text of a value, as COPY prints it before it escapes it, in the encoding of the database; `None` for NULL.
    ///
    /// # Errors
    /// As [`value`](Self::value).
    ///
    /// # Panics
    /// As [`value`](Self::value).
    pub fn bytes(&mut self, column: usize) -> Result<Option<&[u8]>> {
        let value_type = &self.types[column];
        let Some(raw) = self.tuple.raw(column) else { return Ok(None) };
        self.buffer.clear();
        let mut writer = ValueWriter::new(self.lookups);
        writer
            .write(&value_type.output, value_type.layout.len, raw, self.buffer)
            .map_err(value_error)?;
        Ok(Some(self.buffer))
    }

    /// As [`bytes`](Self::bytes), as a string; what is not UTF-8 shows replacement characters.
    ///
    /// # Errors
    /// As [`value`](Self::value).
    ///
    /// # Panics
    /// As [`value`](Self::value).
    pub fn text(&mut self, column: usize) -> Result<Option<String>> {
        Ok(self.bytes(column)?.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
    }
}
