//! What a command names as one table: a relation with rows of its own, or a partitioned table,
//! whose rows are those of its partitions.
//!
//! Partitions have their own order of columns, so they are exported by the names of the columns
//! their parent prints. Plain inheritance children are tables of their own, as for COPY.
//!
//! Invariant: one part is open at a time, so that a table of thousands of partitions needs no
//! more descriptors than any other.

use std::collections::BTreeSet;
use std::sync::Arc;

use pagemill_cluster::{ClassRow, Database, Relation, RelationKind, ValueCatalog};
use pagemill_format::{BlockNumber, Oid};
use pagemill_io::{ByteSink, ForkFiles};

use crate::count::count;
use crate::damage::DamageLog;
use crate::error::Result;
use crate::export::{Export, ExportOptions, ExportSummary};
use crate::list::tablespace_of;
use crate::progress::Progress;
use crate::scan_plan::{ScanOptions, ScanRequest, check_start};
use crate::select::Selected;
use crate::table::{Table, fork_with_rows, present_ranges, refuse_unreadable};

/// The rows of one named table.
#[derive(Debug)]
pub struct RowSource<'a> {
    pub(crate) database: &'a Database,
    selected: Selected,
    pub(crate) named: Relation,
    /// The partitions, in the order of a server's scan where that is known; `None` when the relation has its own
    /// rows.
    pub(crate) partitions: Option<Vec<Relation>>,
    /// The order of some partition key is not known here.
    in_oid_order: bool,
}

impl<'a> RowSource<'a> {
    /// The rows of each relation that was chosen. The columns of all are read in one pass.
    ///
    /// # Errors
    /// When columns, partitions or files cannot be found.
    pub fn all(database: &'a Database, selected: &[Selected]) -> Result<Vec<Self>> {
        let classes: Vec<&ClassRow> = selected.iter().map(|selected| &selected.class).collect();
        let named = database.relations(&classes)?;
        let pairs = selected.iter().zip(named);
        pairs.map(|(selected, named)| Self::new(database, selected.clone(), named)).collect()
    }

    fn new(database: &'a Database, selected: Selected, named: Relation) -> Result<Self> {
        let (mut partitions, mut in_oid_order) = (None, false);
        if named.class.kind == RelationKind::PartitionedTable {
            let found = database.leaf_partitions(&named.class)?;
            partitions = Some(database.relations(&found.leaves)?);
            in_oid_order = !found.unordered.is_empty();
        }
        Ok(Self { database, selected, named, partitions, in_oid_order })
    }

    /// True when partitions come in the order of their OIDs, and not in that of a server's scan, as the order of
    /// the values of some partition key is not known here.
    pub fn is_in_oid_order(&self) -> bool {
        self.in_oid_order
    }

    /// The relation that was named.
    pub fn selected(&self) -> &Selected {
        &self.selected
    }

    /// The relations that hold the rows.
    pub fn parts(&self) -> &[Relation] {
        self.partitions.as_deref().unwrap_or(std::slice::from_ref(&self.named))
    }

    /// The tablespaces of these relations, each once.
    pub fn tablespaces(&self) -> BTreeSet<Oid> {
        self.parts().iter().map(|part| tablespace_of(self.database, &part.class)).collect()
    }

    /// The database they are in.
    pub fn database(&self) -> &'a Database {
        self.database
    }

    /// How many blocks they have together, lost ones left out.
    ///
    /// # Errors
    /// When the sizes of files cannot be read.
    pub fn blocks(&self) -> Result<u64> {
        let mut blocks = 0;
        for part in self.parts() {
            let cluster = self.database.cluster();
            let Some(files) = cluster.fork(&part.base, fork_with_rows(cluster, &part.class))?
            else {
                continue;
            };
            blocks += present_ranges(&files).iter().map(|range| range.len() as u64).sum::<u64>();
        }
        Ok(blocks)
    }

    /// Refuses parts that cannot be read, before work on the others is begun.
    pub(crate) fn refuse_unreadable(&self) -> Result<()> {
        self.parts().iter().try_for_each(|part| refuse_unreadable(self.database, part))
    }

    /// Refuses a scan that begins with a block that no part has.
    fn check_start(&self, options: ScanOptions) -> Result<()> {
        if options.order.start.is_none() {
            return Ok(());
        }
        let cluster = self.database.cluster();
        let mut largest: Option<ForkFiles> = None;
        for part in self.parts() {
            let found = cluster.fork(&part.base, fork_with_rows(cluster, &part.class))?;
            let more = |files: &ForkFiles| {
                largest.as_ref().is_none_or(|known| files.blocks() > known.blocks())
            };
            largest = found.filter(more).or(largest);
        }
        let name = self.named.display_name();
        largest.map_or(Ok(()), |files| check_start(&name, &files, options.order))
    }

    /// The options for one part: a partition that has no such block is scanned from its beginning.
    fn options_for(&self, table: &Table, mut options: ScanOptions) -> ScanOptions {
        let is_past_end = |start: &BlockNumber| start.0 >= table.blocks();
        if self.partitions.is_some() && options.order.start.as_ref().is_some_and(is_past_end) {
            options.order.start = None;
        }
        options
    }

    /// Refuses what cannot be read, and a scan that begins with a block that no part has, before work is begun.
    ///
    /// # Errors
    /// Names what is refused, and why.
    pub fn refuse(&self, options: ScanOptions) -> Result<()> {
        self.refuse_unreadable()?;
        self.check_start(options)
    }

    /// Opens one of the parts, with the options for it: a partition that has no block to begin with is scanned from
    /// its beginning.
    ///
    /// # Errors
    /// As [`Table::open`].
    pub fn open_part(
        &self,
        part: &Relation,
        options: ScanOptions,
        damage: &mut DamageLog,
    ) -> Result<(Arc<Table>, ScanOptions)> {
        let table = Arc::new(Table::open(self.database, part.clone(), damage)?);
        let options = self.options_for(&table, options);
        Ok((table, options))
    }

    /// The relation that was named, with the columns that its parts have by the same names.
    pub fn named(&self) -> &Relation {
        &self.named
    }

    /// Counts the rows.
    ///
    /// # Errors
    /// As [`count`].
    pub fn count(
        &self,
        options: ScanOptions,
        progress: &Progress,
        damage: &mut DamageLog,
    ) -> Result<u64> {
        self.refuse(options)?;
        let mut rows = 0;
        for part in self.parts() {
            let (table, options) = self.open_part(part, options, damage)?;
            let cluster = self.database.cluster();
            let request = ScanRequest { cluster, table: &table, options, progress };
            rows += count(request, damage)?;
        }
        Ok(rows)
    }

    /// The rows to be exported as these options say.
    pub fn export<'e>(
        &'e self,
        catalog: &'e ValueCatalog,
        options: &'e ExportOptions,
    ) -> RowExport<'e> {
        RowExport { source: self, catalog, options }
    }
}

/// The rows of one named table on their way out; nothing is looked at before they are written.
#[derive(Clone, Copy)]
pub struct RowExport<'e> {
    pub(crate) source: &'e RowSource<'e>,
    pub(crate) catalog: &'e ValueCatalog,
    pub(crate) options: &'e ExportOptions,
}

impl RowExport<'_> {
    /// Writes the header line, where one is asked for, and the rows.
    ///
    /// # Errors
    /// As [`Export`]; what can be refused is refused before anything is written.
    pub fn write(
        &self,
        output: &mut dyn ByteSink,
        progress: &Progress,
        damage: &mut DamageLog,
    ) -> Result<ExportSummary> {
        let Self { source, catalog, options } = *self;
        source.refuse(options.scan)?;
        let named = match source.partitions {
            None => Table::open(source.database, source.named.clone(), damage)?,
            Some(_) => Table::without_rows(source.named.clone()),
        };
        let named = Arc::new(named);
        let export = Export::prepare(catalog, &named, options)?;
        let partitions = source.partitions.as_deref().unwrap_or_default();
        let columns = Some(export.column_names());
        let options = ExportOptions { columns, ..options.clone() };
        for partition in partitions {
            Export::prepare(catalog, &Arc::new(Table::without_rows(partition.clone())), &options)?;
        }
        export.write_header(output)?;
        let mut summary = export.write_rows(output, progress, damage)?;
        for partition in partitions {
            let (table, scan) = source.open_part(partition, options.scan, damage)?;
            let options = ExportOptions { scan, ..options.clone() };
            let export = Export::prepare(catalog, &table, &options)?;
            summary.add(export.write_rows(output, progress, damage)?);
        }
        Ok(summary)
    }
}
