//! The rows of a table, pulled one by one, in the order of its file or of an index, and their values.
//!
//! Invariant: a row borrows the page it lies on until the next one is asked for; only values that are compressed or kept in
//! a TOAST table are copied.

use std::sync::Arc;

use pagemill_cluster::{Error as ClusterError, Relation, ValueCatalog, ValueLookups};
use pagemill_engine::{
    DamageLog, IndexOrder, OnDamage, OrderedScan, Progress, Result, ScanOptions, ScanRequest,
    Table, TableScan, TupleRow, value_error,
};
use pagemill_format::Tid;
use pagemill_types::decode;
use pagemill_types::output::{ValueType, ValueWriter};
use pagemill_types::value::Value;

/// The rows of a table.
pub struct Rows {
    catalog: ValueCatalog,
    names: Vec<String>,
    types: Vec<Arc<ValueType>>,
    /// Partitions that are still to be read, or the table itself.
    parts: std::vec::IntoIter<Relation>,
    scan: Scan,
    options: ScanOptions,
    progress: Progress,
    lookups: ValueLookups,
    damage: DamageLog,
    /// A value that did not lie in the page.
    buffer: Vec<u8>,
}

/// Where rows come from.
enum Scan {
    /// Nothing was begun yet.
    None,
    /// The file: its next row in the scan's batch, and how many that has.
    InFile(Box<TableScan>, usize, usize),
    /// An index.
    InOrder(Box<OrderedScan>),
}

impl Rows {
    pub(super) fn new(
        table: &super::Table,
        names: Vec<String>,
        options: ScanOptions,
        progress: Progress,
    ) -> Result<Self> {
        let (catalog, named) = (&table.database.catalog, &table.named);
        let parts: Vec<_> =
            table.sources()?.iter().flat_map(|source| source.parts().to_vec()).collect();
        let positions = positions(named, &names)?;
        let value_type = |position: &usize| catalog.value_type(named.columns[*position].type_oid);
        Ok(Self {
            catalog: catalog.clone(),
            types: positions.iter().map(value_type).collect::<Result<_, _>>()?,
            names,
            parts: parts.into_iter(),
            scan: Scan::None,
            options,
            progress,
            lookups: catalog.lookups(),
            damage: DamageLog::new(OnDamage::Stop),
            buffer: Vec::new(),
        })
    }

    /// The same in the order of an index of the only part.
    pub(super) fn in_order(mut self, part: Relation, order: &IndexOrder) -> Result<Self> {
        let database = self.catalog.database();
        let columns = positions(&part, &self.names)?;
        let table = Arc::new(Table::open(database, part, &mut self.damage)?);
        let (cluster, options, progress) = (database.cluster(), self.options, &self.progress);
        let request = ScanRequest { cluster, table: &table, options, progress };
        let scan = order.scan(database, request, &columns, &mut self.damage)?;
        self.scan = Scan::InOrder(Box::new(scan));
        self.parts = Vec::new().into_iter();
        Ok(self)
    }

    /// The next row; `None` after the last.
    ///
    /// # Errors
    /// On damage, and when a file cannot be read.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>> {
        while !self.advance()? {
            if !self.next_part()? {
                return Ok(None);
            }
        }
        let tuple = match &self.scan {
            Scan::None => None,
            Scan::InFile(scan, next, _) => scan.batch().map(|batch| batch.row(next - 1)),
            Scan::InOrder(scan) => scan.row(),
        };
        let Self { types, lookups, buffer, .. } = self;
        Ok(tuple.map(|tuple| Row { tuple, types, lookups, buffer }))
    }

    /// Goes on to the next row of the scan; false when it has no more.
    fn advance(&mut self) -> Result<bool> {
        match &mut self.scan {
            Scan::None => Ok(false),
            Scan::InOrder(scan) => Ok(scan.next_row(&mut self.damage)?.is_some()),
            Scan::InFile(scan, next, count) => {
                if next == count {
                    (*next, *count) = (0, 0);
                    let Some(batch) = scan.next_batch(&mut self.damage)? else { return Ok(false) };
                    *count = batch.len();
                }
                *next += 1;
                Ok(true)
            }
        }
    }

    /// Begins the scan of the next part; false when there is none.
    fn next_part(&mut self) -> Result<bool> {
        let Some(part) = self.parts.next() else { return Ok(false) };
        let positions = positions(&part, &self.names)?;
        let database = self.catalog.database();
        let table = Arc::new(Table::open(database, part, &mut self.damage)?);
        let (cluster, options, progress) = (database.cluster(), self.options, &self.progress);
        let request = ScanRequest { cluster, table: &table, options, progress };
        let scan = TableScan::new(request, &positions)?;
        self.scan = Scan::InFile(Box::new(scan), 0, 0);
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
