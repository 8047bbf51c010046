//! Rows of the system's catalogs, read from the cluster's own files.
//!
//! Invariant: damage in a catalog is an error; a statement is never planned on half of one.

use std::sync::Arc;

use pagemill_cluster::{ClassRow, Cluster, Database, ValueCatalog, ValueLookups};
use pagemill_engine::{
    DamageLog, OnDamage, Progress, ScanOptions, ScanRequest, Table, TableScan, TupleRow,
};
use pagemill_format::Oid;
use pagemill_types::array::text_elements;
use pagemill_types::decode::payload;

use crate::error::{Error, Result, SqlState, StatementError};

/// The schema `pg_catalog`.
///
/// Source: `src/include/catalog/pg_namespace.dat`, PostgreSQL 18.
pub(crate) const PG_CATALOG: Oid = Oid(11);

/// One row, cut down to the columns that were asked for.
pub(crate) struct SystemRow<'r> {
    tuple: TupleRow<'r>,
    lengths: &'r [i16],
    lookups: &'r mut ValueLookups,
    buffer: &'r mut Vec<u8>,
}

impl SystemRow<'_> {
    fn fixed<const N: usize>(&self, column: usize) -> [u8; N] {
        let raw = self.tuple.raw(column).unwrap_or_default();
        let mut bytes = [0; N];
        let len = raw.len().min(N);
        bytes[..len].copy_from_slice(&raw[..len]);
        bytes
    }

    pub(crate) fn oid(&self, column: usize) -> Oid {
        Oid(u32::from_le_bytes(self.fixed(column)))
    }

    pub(crate) fn int2(&self, column: usize) -> i16 {
        i16::from_le_bytes(self.fixed(column))
    }

    pub(crate) fn int4(&self, column: usize) -> i32 {
        i32::from_le_bytes(self.fixed(column))
    }

    pub(crate) fn byte(&self, column: usize) -> u8 {
        self.fixed::<1>(column)[0]
    }

    pub(crate) fn bool(&self, column: usize) -> bool {
        self.byte(column) != 0
    }

    pub(crate) fn name(&self, column: usize) -> String {
        let raw = self.tuple.raw(column).unwrap_or_default();
        let len = raw.iter().position(|byte| *byte == 0).unwrap_or(raw.len());
        String::from_utf8_lossy(&raw[..len]).into_owned()
    }

    /// The payload of a varlena; `None` for NULL.
    pub(crate) fn payload(&mut self, column: usize) -> Result<Option<&[u8]>> {
        let Some(raw) = self.tuple.raw(column) else { return Ok(None) };
        let bytes = payload(self.lookups, self.lengths[column], raw, self.buffer);
        bytes.map(Some).map_err(|error| damaged(&error))
    }

    pub(crate) fn text(&mut self, column: usize) -> Result<Option<String>> {
        Ok(self.payload(column)?.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
    }

    /// The elements of an array of texts; none for NULL.
    pub(crate) fn texts(&mut self, column: usize) -> Result<Vec<String>> {
        let Some(payload) = self.payload(column)? else { return Ok(Vec::new()) };
        let found = text_elements(payload).map_err(|error| damaged(&error))?;
        Ok(found.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect())
    }

    pub(crate) fn is_null(&self, column: usize) -> bool {
        self.tuple.raw(column).is_none()
    }

    pub(crate) fn int8(&self, column: usize) -> i64 {
        i64::from_le_bytes(self.fixed(column))
    }

    /// An `int2vector`, or an array of `smallint` of one dimension without NULLs.
    pub(crate) fn int2s(&mut self, column: usize) -> Result<Vec<i16>> {
        let bytes = self.payload(column)?.unwrap_or_default();
        let numbers = bytes.get(20..).unwrap_or_default().as_chunks::<2>().0;
        Ok(numbers.iter().map(|number| i16::from_le_bytes(*number)).collect())
    }

    /// An `oidvector`: five words of an array's header, then the numbers.
    pub(crate) fn oids(&mut self, column: usize) -> Result<Vec<Oid>> {
        let bytes = self.payload(column)?.unwrap_or_default();
        let numbers = bytes.get(20..).unwrap_or_default().as_chunks::<4>().0;
        Ok(numbers.iter().map(|number| Oid(u32::from_le_bytes(*number))).collect())
    }
}

fn damaged(error: &pagemill_format::Error) -> Error {
    StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()).into()
}

/// A catalog, and where some of its columns are.
pub(crate) struct SystemTable {
    pub(crate) table: Arc<Table>,
    pub(crate) positions: Vec<usize>,
    lengths: Vec<i16>,
    pub(crate) damage: DamageLog,
    lookups: ValueLookups,
    buffer: Vec<u8>,
}

impl SystemTable {
    /// Opens the files of a catalog.
    ///
    /// # Errors
    /// When it is missing, damaged, or has no such column.
    pub(crate) fn open(catalog: &ValueCatalog, name: &str, wanted: &[&str]) -> Result<Self> {
        let database = catalog.database();
        let class = system_class(database, name)?;
        let relation = database.relation(class)?;
        let missing = |column: &str| {
            let what = format!("column {column} of {name} does not exist");
            StatementError::new(SqlState::UNDEFINED_COLUMN, what)
        };
        let place = |column: &&str| {
            let is_it = |c: &pagemill_cluster::Column| *c.name == *column.as_bytes() && !c.dropped;
            relation.columns.iter().position(is_it).ok_or_else(|| missing(column))
        };
        let positions = wanted.iter().map(place).collect::<Result<Vec<usize>, _>>()?;
        let lengths = positions.iter().map(|at| relation.columns[*at].layout.len).collect();
        let mut damage = DamageLog::new(OnDamage::Stop);
        let table = Arc::new(Table::open(database, relation, &mut damage)?);
        let (lookups, buffer) = (catalog.lookups(), Vec::new());
        Ok(Self { table, positions, lengths, damage, lookups, buffer })
    }

    /// One of its rows.
    pub(crate) fn row<'r>(&'r mut self, tuple: TupleRow<'r>) -> SystemRow<'r> {
        let Self { lengths, lookups, buffer, .. } = self;
        SystemRow { tuple, lengths, lookups, buffer }
    }

    /// Hands every row to `visit`.
    ///
    /// # Errors
    /// When the catalog is damaged; what `visit` returns.
    pub(crate) fn for_each_row(
        &mut self,
        cluster: &Cluster,
        mut visit: impl FnMut(&mut SystemRow<'_>) -> Result<()>,
    ) -> Result<()> {
        let (options, progress) = (ScanOptions::default(), &Progress::default());
        let table = self.table.clone();
        let request = ScanRequest { cluster, table: &table, options, progress };
        let mut scan = TableScan::new(request, &self.positions)?;
        while let Some(batch) = scan.next_batch(&mut self.damage)? {
            for tuple in batch.rows() {
                visit(&mut self.row(tuple))?;
            }
        }
        Ok(())
    }
}

/// Hands every row of a catalog to `visit`.
///
/// # Errors
/// When the catalog is missing, damaged, or has no such column; what `visit` returns.
pub(crate) fn for_each_row(
    catalog: &ValueCatalog,
    name: &str,
    wanted: &[&str],
    visit: impl FnMut(&mut SystemRow<'_>) -> Result<()>,
) -> Result<()> {
    let cluster = catalog.database().cluster();
    SystemTable::open(catalog, name, wanted)?.for_each_row(cluster, visit)
}

fn system_class<'d>(database: &'d Database, name: &str) -> Result<&'d ClassRow> {
    let is_it =
        |class: &&ClassRow| class.namespace == PG_CATALOG && *class.name == *name.as_bytes();
    database.classes().iter().find(is_it).ok_or_else(|| {
        let what = format!("relation \"pg_catalog.{name}\" does not exist");
        StatementError::new(SqlState::UNDEFINED_TABLE, what).into()
    })
}
