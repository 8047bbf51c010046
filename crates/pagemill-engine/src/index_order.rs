//! The order of an index as a table's rows can be asked for in: which index that is, whether it can
//! give all rows, and the scan that does.
//!
//! What cannot be done is refused before a page is read, with the indexes that would do. A name
//! without a schema is looked for among the table's indexes, which are all in its schema.

use std::sync::Arc;

use pagemill_cluster::btree_scan::Direction;
use pagemill_cluster::names::nearest;
use pagemill_cluster::{
    AllVisible, ClassRow, Damage, Database, Error as ClusterError, IndexRow, Relation, RelationKind,
};
use pagemill_format::BLOCK_SIZE;
use pagemill_io::{ByteSink, ForkFiles};
use pagemill_stream::ReadStreamOptions;

use crate::damage::DamageLog;
use crate::encoding::readable_name;
use crate::error::{Error, Result};
use crate::export::Export;
use crate::fork_pages::{ForkPages, ForkReading, IndexPages};
use crate::index_count::HeapSights;
use crate::index_export::{IndexExport, index_columns};
use crate::index_scan::{IndexOnly, IndexScan, KnownHeap};
use crate::pattern::Pattern;
use crate::progress::Progress;
use crate::refusal::{Misuse, OrderCause, OrderChoices, OrderRefusal};
use crate::row_source::{RowExport, RowSource};
use crate::scan_plan::ScanOptions;
use crate::table::{Table, device_settings, fork_with_rows};

/// Memory for pages unless told otherwise (128 MiB, PostgreSQL's `shared_buffers`).
const DEFAULT_BUFFER_BYTES: usize = 128 << 20;
/// The least room for pages of the table.
const LEAST_HEAP_PAGES: usize = 64;
/// Most names listed in a refusal.
const LISTED: usize = 8;

/// In what order rows are wanted, and how they are to be fetched.
#[derive(Debug, Clone)]
pub struct OrderOptions {
    /// The index: `[SCHEMA.]INDEX`, quotes as in SQL.
    pub index: String,
    /// From the last entry to the first.
    pub backward: bool,
    /// The heap need not be looked at where the visibility map makes that unnecessary.
    pub index_only: bool,
    /// Bytes of pages that are kept in memory.
    pub buffer_bytes: usize,
}

impl Default for OrderOptions {
    fn default() -> Self {
        let buffer_bytes = DEFAULT_BUFFER_BYTES;
        Self { index: String::new(), backward: false, index_only: true, buffer_bytes }
    }
}

/// What a scan in the order of an index did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrderSummary {
    /// Rows counted or written.
    pub rows: u64,
    /// Pages that were asked for and in memory.
    pub buffer_hits: u64,
    /// Pages that were read.
    pub buffer_misses: u64,
}

/// An index that gives all rows of a table.
#[derive(Debug)]
pub struct IndexOrder {
    row: IndexRow,
    relation: Relation,
    options: OrderOptions,
}

impl IndexOrder {
    /// The index of a table that the options name.
    ///
    /// # Errors
    /// When there is none, or it cannot give all rows of the table in an order.
    pub fn find(source: &RowSource<'_>, options: &OrderOptions) -> Result<Self> {
        let (database, table) = (source.database, &source.named);
        let search = Search { database, table };
        if let Some(partitions) = &source.partitions {
            return Err(search.partitioned(partitions)?);
        }
        source.refuse_unreadable()?;
        let class = search.named(&options.index)?;
        let row = search.usable(class)?;
        Ok(Self { row, relation: database.relation(class)?, options: options.clone() })
    }

    pub(crate) fn direction(&self) -> Direction {
        if self.options.backward { Direction::Backward } else { Direction::Forward }
    }

    /// The files of the index; after a crash, what an unlogged one is reset to.
    pub(crate) fn files(&self, database: &Database) -> Result<Arc<ForkFiles>> {
        let cluster = database.cluster();
        let fork = fork_with_rows(cluster, &self.relation.class);
        let files = cluster.fork(&self.relation.base, fork)?.ok_or_else(|| {
            let what = format!("the file of index {} is missing", self.relation.display_name());
            ClusterError::from(Damage::in_file(&self.relation.base, what))
        })?;
        match files.damage().first() {
            None => Ok(Arc::new(files)),
            Some(found) => {
                let damage = Damage::in_file(&self.relation.base, found.to_string());
                Err(ClusterError::from(damage).into())
            }
        }
    }

    /// How the index is read: as its own tablespace is set to.
    pub(crate) fn reading(&self, database: &Database, options: ScanOptions) -> ReadStreamOptions {
        let (effective_io_concurrency, _) = device_settings(database, &self.relation.class);
        options.reading(effective_io_concurrency)
    }

    /// How many pages of the index, and how many bytes of the table, are kept in memory.
    pub(crate) fn memory(&self, index: &ForkFiles) -> (usize, usize) {
        let pages = self.options.buffer_bytes / BLOCK_SIZE;
        let whole = index.blocks() as usize;
        let tree = if whole <= pages / 2 { whole } else { 0 };
        let heap = pages.saturating_sub(tree).max(LEAST_HEAP_PAGES);
        (tree, heap * BLOCK_SIZE)
    }
}

/// The search for an index of one table.
struct Search<'a> {
    database: &'a Database,
    table: &'a Relation,
}

impl<'a> Search<'a> {
    fn readable(&self, class: &ClassRow) -> String {
        readable_name(self.database.row().encoding, &class.name)
    }

    /// The index of this name.
    fn named(&self, text: &str) -> Result<&'a ClassRow> {
        let pattern = Pattern::parse(text)?;
        pattern.check_database(&String::from_utf8_lossy(&self.database.row().name))?;
        let Some((schema, name)) = pattern.is_literal() else {
            return Err(Misuse::NotOneIndex(text.to_owned()).into());
        };
        let own_schema = readable_name(self.database.row().encoding, &self.table.schema);
        let schema = schema.unwrap_or(&own_schema);
        let is_it = |class: &&ClassRow| self.readable(class) == name && self.is_in(class, schema);
        match self.database.classes().iter().find(is_it) {
            Some(class) => Ok(class),
            None => Err(self.missing(text, name)?),
        }
    }

    fn is_in(&self, class: &ClassRow, schema: &str) -> bool {
        let found = self.database.schema_of(class).unwrap_or_default();
        readable_name(self.database.row().encoding, &found) == schema
    }

    /// The index's row, if all rows of the table can be had through it.
    fn usable(&self, class: &ClassRow) -> Result<IndexRow> {
        let (name, table) = (self.readable(class), self.table.display_name());
        let refuse = |cause| -> Result<IndexRow> {
            Err(Error::refused(OrderRefusal { cause, choices: self.choices()? }))
        };
        let row = match class.kind {
            RelationKind::Index | RelationKind::PartitionedIndex => {
                self.database.index(class.oid)?
            }
            kind => return refuse(OrderCause::NotAnIndex { name, kind }),
        };
        let Some(row) = row else {
            return refuse(OrderCause::NoRow(name));
        };
        if row.table != self.table.class.oid {
            let other = self.database.class(row.table).map(|class| self.readable(class));
            let other = other.unwrap_or_else(|| "another table".into());
            return refuse(OrderCause::OfAnotherTable { name, other, table });
        }
        if !self.database.is_btree(class)? {
            return refuse(OrderCause::NotABtree(name));
        }
        if !row.is_usable() {
            return refuse(OrderCause::Invalid(name));
        }
        if !row.is_complete() {
            return refuse(OrderCause::Partial(name));
        }
        Ok(row)
    }

    #[cold]
    fn missing(&self, text: &str, name: &str) -> Result<Error> {
        let good = self.good_indexes(self.table)?;
        let near = nearest(name, good.iter().map(String::as_str), 3);
        let choices = match near.is_empty() {
            true => self.choices()?,
            false => OrderChoices::Near(near.into_iter().map(str::to_owned).collect()),
        };
        let (index, table) = (text.to_owned(), self.table.display_name());
        Ok(Error::refused(OrderRefusal { cause: OrderCause::Missing { index, table }, choices }))
    }

    /// The indexes that would do, as a remedy.
    fn choices(&self) -> Result<OrderChoices> {
        let indexes = self.good_indexes(self.table)?;
        let table = self.table.display_name();
        Ok(match indexes.is_empty() {
            true => OrderChoices::NoIndex(table),
            false => OrderChoices::Indexes { table, indexes },
        })
    }

    fn good_indexes(&self, table: &Relation) -> Result<Vec<String>> {
        let mut good = Vec::new();
        for row in self.database.indexes_of(table.class.oid)? {
            let Some(class) = self.database.class(row.oid) else { continue };
            if row.is_usable() && row.is_complete() && self.database.is_btree(class)? {
                good.push(self.readable(class));
            }
        }
        good.sort();
        Ok(good)
    }

    #[cold]
    fn partitioned(&self, partitions: &[Relation]) -> Result<Error> {
        let mut found = Vec::new();
        for partition in partitions.iter().take(LISTED) {
            if let Some(index) = self.good_indexes(partition)?.first() {
                found.push((partition.display_name(), index.clone()));
            }
        }
        let choices = match found.is_empty() {
            true => OrderChoices::NoPartition,
            false => OrderChoices::Partitions(found),
        };
        let cause = OrderCause::Partitioned(self.table.display_name());
        Ok(Error::refused(OrderRefusal { cause, choices }))
    }
}

impl RowSource<'_> {
    /// Counts the rows as an index scan meets them.
    ///
    /// # Errors
    /// On damage, unless it is to be skipped; when files cannot be read.
    pub fn count_in_order(
        &self,
        order: &IndexOrder,
        options: ScanOptions,
        progress: &Progress,
        damage: &mut DamageLog,
    ) -> Result<OrderSummary> {
        let cluster = self.database.cluster();
        let table = Table::open(self.database, self.named.clone(), damage)?;
        let Some(heap) = table.shared_files() else { return Ok(OrderSummary::default()) };
        let files = order.files(self.database)?;
        let (tree_pages, heap_bytes) = order.memory(&files);
        let reading = order.reading(self.database, options);
        let tree = ForkReading { cluster, files: &files, options: reading, progress };
        let tree = IndexPages::new(tree, tree_pages);
        let (index_only, all_visible) = match order.options.index_only {
            true => (IndexOnly::Count, AllVisible::open(cluster, &table.relation.base)?),
            false => (IndexOnly::Never, AllVisible::nothing(cluster)),
        };
        let known = KnownHeap { blocks: heap.blocks(), index_only, all_visible };
        let scan = IndexScan::new(tree, order.direction(), known);
        let mut scan = scan.reading_around(table.reads_around());
        scan.start(cluster, damage)?;
        let heap = ForkReading { cluster, files: &heap, options: table.reading(options), progress };
        let mut sights = HeapSights::new(heap, heap_bytes);
        let rows = sights.count(&mut scan, damage)?;
        Ok(summary(rows, [scan.counts(), sights.counts()]))
    }
}

impl RowExport<'_> {
    /// Writes the header line, where one is asked for, and the rows in the order of an index.
    ///
    /// # Errors
    /// As [`Export`]; what can be refused is refused before anything is written.
    pub fn write_in_order(
        &self,
        order: &IndexOrder,
        output: &mut dyn ByteSink,
        progress: &Progress,
        damage: &mut DamageLog,
    ) -> Result<OrderSummary> {
        let Self { source, catalog, options } = *self;
        let table = Arc::new(Table::open(source.database, source.named.clone(), damage)?);
        let export = Export::prepare(catalog, &table, options)?;
        export.write_header(output)?;
        export.write_rows_in_order(order, output, progress, damage)
    }
}

impl Export<'_> {
    fn write_rows_in_order(
        &self,
        order: &IndexOrder,
        output: &mut dyn ByteSink,
        progress: &Progress,
        damage: &mut DamageLog,
    ) -> Result<OrderSummary> {
        let Some(heap) = self.table.shared_files() else {
            return Ok(OrderSummary::default());
        };
        let database = self.catalog.database();
        let cluster = database.cluster();
        let files = order.files(database)?;
        let (tree_pages, heap_bytes) = order.memory(&files);
        let reading = order.reading(database, self.scan);
        let table = &self.table.relation;
        let columns = index_columns(&self.columns, table, &order.row, &order.relation)
            .filter(|_| order.options.index_only);
        let (index_only, all_visible) = match columns {
            Some(_) => (IndexOnly::Keep, AllVisible::open(cluster, &table.base)?),
            None => (IndexOnly::Never, AllVisible::nothing(cluster)),
        };
        let tree = ForkReading { cluster, files: &files, options: reading, progress };
        let tree = IndexPages::new(tree, tree_pages);
        let known = KnownHeap { blocks: heap.blocks(), index_only, all_visible };
        let scan = IndexScan::new(tree, order.direction(), known);
        let mut scan = scan.reading_around(self.table.reads_around());
        scan.start(cluster, damage)?;
        let options = self.table.reading(self.scan);
        let heap = ForkReading { cluster, files: &heap, options, progress };
        let heap = ForkPages::new(heap, heap_bytes / BLOCK_SIZE);
        let columns = columns.unwrap_or_default();
        let mut rows = IndexExport::new(self, heap, &order.relation, &columns);
        rows.write(&mut scan, output, damage)?;
        Ok(summary(rows.rows(), [scan.counts(), rows.counts()]))
    }
}

fn summary(rows: u64, counts: [(u64, u64); 2]) -> OrderSummary {
    let [(tree_hits, tree_read), (heap_hits, heap_read)] = counts;
    let (buffer_hits, buffer_misses) = (tree_hits + heap_hits, tree_read + heap_read);
    OrderSummary { rows, buffer_hits, buffer_misses }
}
