//! A table of a database: its columns, how many rows it has, and the way to them.
//!
//! Invariant: the columns are those that have values in the files, in the order of the table.

use pagemill_cluster::{Generated, Relation};
use std::io::Write;

use pagemill_engine::{
    DamageLog, Error, ExportOptions, IndexOrder, OnDamage, OrderOptions, Progress, Result,
    RowSource, ScanOptions, Selected,
};
use pagemill_io::WriterSink;

use super::{Database, Rows};

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    pub(super) database: Database,
    selected: Selected,
    pub(super) named: Relation,
    columns: Vec<Column>,
}

/// A column that has values in the files: neither dropped nor computed when it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type, as SQL spells it.
    pub type_name: String,
}

impl Table {
    pub(super) fn open(database: &Database, selected: Selected) -> Result<Self> {
        let named = database.inner.relation(&selected.class)?;
        let stored =
            named.columns.iter().filter(|c| !c.dropped && c.generated != Generated::Virtual);
        let column = |column: &pagemill_cluster::Column| -> Result<Column> {
            let type_name = database.catalog.type_name(column.type_oid)?;
            Ok(Column { name: column.display_name(), type_name })
        };
        let columns = stored.map(column).collect::<Result<_>>()?;
        Ok(Self { database: database.clone(), selected, named, columns })
    }

    /// `schema.name`.
    pub fn name(&self) -> String {
        self.selected.display_name()
    }

    /// Its columns, in order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// How many rows a server started on the files would count.
    ///
    /// # Errors
    /// On damage, and when files cannot be read.
    pub fn count(&self) -> Result<u64> {
        let mut damage = DamageLog::new(OnDamage::Stop);
        let mut rows = 0;
        for source in self.sources()? {
            rows += source.count(ScanOptions::default(), &Progress::default(), &mut damage)?;
        }
        Ok(rows)
    }

    /// Its rows in the order of the file, with the values of these columns; with those of all for an empty list.
    ///
    /// # Errors
    /// When there is no such column, its type cannot be printed, or files cannot be opened.
    pub fn rows(&self, columns: &[&str]) -> Result<Rows> {
        self.rows_with(columns, ScanOptions::default(), &Progress::default())
    }

    /// The same, as the options say; `progress` tells how far they are, and cancels them.
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
    pub fn rows_with(
        &self,
        columns: &[&str],
        options: ScanOptions,
        progress: &Progress,
    ) -> Result<Rows> {
        let named: Vec<String> = match columns {
            [] => self.columns.iter().map(|column| column.name.clone()).collect(),
            some => some.iter().map(|name| (*name).to_owned()).collect(),
        };
        Rows::new(self, named, options, progress.clone())
    }

    /// Its rows in the order of a B-tree index of it, `[SCHEMA.]INDEX`, as an index scan of PostgreSQL gives them; from the
    /// last entry to the first if `backward`.
    ///
    /// # Errors
    /// When there is no such index, it has not all rows of the table, or files cannot be opened.
    pub fn rows_in_order(&self, index: &str, backward: bool, columns: &[&str]) -> Result<Rows> {
        let sources = self.sources()?;
        let options = OrderOptions { index: index.to_owned(), backward, ..OrderOptions::default() };
        let rows = self.rows(columns)?;
        match &sources[..] {
            [only] => rows.in_order(self.named.clone(), &IndexOrder::find(only, &options)?),
            _ => unreachable!("a selected relation is one source of rows"),
        }
    }

    /// Writes its rows as `COPY … TO` does. Returns how many there are.
    ///
    /// # Errors
    /// On damage, when an option is wrong, or the writer fails.
    pub fn copy_to(&self, writer: impl Write, options: &ExportOptions) -> Result<u64> {
        let mut damage = DamageLog::new(OnDamage::Stop);
        let mut sink = WriterSink::new(writer, "the writer");
        let mut rows = 0;
        for source in self.sources()? {
            let export = source.export(&self.database.catalog, options);
            rows += export.write(&mut sink, &Progress::default(), &mut damage)?.rows;
        }
        sink.finish().map_err(Error::Output)?;
        Ok(rows)
    }

    pub(super) fn sources(&self) -> Result<Vec<RowSource<'_>>> {
        RowSource::all(&self.database.inner, std::slice::from_ref(&self.selected))
    }
}
