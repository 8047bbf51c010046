//! The scan of a relation as a source of files: what the engine asks to plan it.
//!
//! Invariant: planning reads no page of a table; rows that are only counted are counted by the visibility map.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::SchemaRef;
use datafusion::common::Result as QueryResult;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileGroup, FileOpener, FileScanConfig, FileScanConfigBuilder, FileSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::DataFusionError;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_expr::expressions::{Column, DynamicFilterTracking};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_expr_common::physical_expr::snapshot_physical_expr;
use datafusion::physical_plan::filter_pushdown::FilterPushdownPropagation;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan};
use object_store::ObjectStore;

use datafusion_datasource::projection::{ProjectionOpener, SplitProjection};

use super::ScanContext;
use super::filters::{Change, ScanFilters};
use super::first_rows::{FirstRows, SortKey, WantedRows};
use super::index_access::IndexAccess;
use super::index_expressions::IndexExpressions;
use super::opener::RelationOpener;
use super::partitions::Partitions;
use super::reader::Decodings;
use super::relation_table::{RelationTable, TableColumn};
use super::statistics::statistics;
use pagemill_engine::Table;
use pagemill_format::Oid;

/// Bytes of a block.
pub(super) const BLOCK_BYTES: u64 = 8192;
/// The address that stands for files that the engine does not open itself.
pub(crate) const NO_STORE: &str = "pagemill://files";

/// The scan of one relation.
#[derive(Clone)]
pub(crate) struct RelationSource {
    pub(super) context: Arc<ScanContext>,
    pub(super) name: Arc<str>,
    pub(super) parts: Arc<[(Arc<Table>, u64)]>,
    pub(super) columns: Arc<[TableColumn]>,
    /// What the scan itself leaves out rows by.
    pub(super) filters: ScanFilters,
    /// Of a partitioned table.
    partitions: Option<KnownPartitions>,
    pub(super) index: IndexAccess,
    /// Of the indexes of its tables.
    pub(super) expressions: Arc<IndexExpressions>,
    /// True where the order of the rows shows.
    pub(super) shows_order: bool,
    /// Those that alone are wanted, where that is known.
    pub(super) first_rows: Option<Arc<WantedRows>>,
    schema: TableSchema,
    projection: SplitProjection,
    metrics: ExecutionPlanMetricsSet,
    pub(super) decodings: Decodings,
}

/// What was found out of the partitions of a table, once it was asked for.
#[derive(Clone)]
struct KnownPartitions {
    table: Oid,
    bounds: Arc<OnceLock<Partitions>>,
    /// For conditions that do not change.
    without_rows: Arc<OnceLock<Arc<[usize]>>>,
}

impl KnownPartitions {
    fn of(table: &RelationTable) -> Self {
        let table = table.named.class.oid;
        Self { table, bounds: Arc::default(), without_rows: Arc::default() }
    }

    /// For other conditions.
    fn anew(&self) -> Self {
        Self { without_rows: Arc::default(), ..self.clone() }
    }

    fn bounds(&self, source: &RelationSource) -> QueryResult<&Partitions> {
        if let Some(known) = self.bounds.get() {
            return Ok(known);
        }
        let read = Partitions::read(&source.context.catalog, self.table, &source.columns);
        let read = read.map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(self.bounds.get_or_init(|| read))
    }
}

impl RelationSource {
    pub(super) fn scan(
        table: &RelationTable,
        projection: Option<&Vec<usize>>,
        limit: Option<usize>,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        let schema = TableSchema::from(table.schema.clone());
        let source = Self {
            context: table.context.clone(),
            name: table.named.display_name().into(),
            parts: table.parts.clone().into(),
            columns: table.columns.clone().into(),
            filters: ScanFilters::default(),
            partitions: table.is_partitioned().then(|| KnownPartitions::of(table)),
            index: IndexAccess::default(),
            expressions: Arc::default(),
            shows_order: table.context.shows_order(),
            first_rows: None,
            projection: SplitProjection::unprojected(&schema),
            schema,
            metrics: ExecutionPlanMetricsSet::new(),
            decodings: Decodings::default(),
        };
        let file = |(at, (_, blocks)): (usize, &(Arc<Table>, u64))| {
            PartitionedFile::new(at.to_string(), blocks * BLOCK_BYTES)
        };
        let files: Vec<PartitionedFile> = source.parts.iter().enumerate().map(file).collect();
        let url = ObjectStoreUrl::parse(NO_STORE)?;
        let config = FileScanConfigBuilder::new(url, Arc::new(source))
            .with_file_group(FileGroup::new(files))
            .with_statistics(statistics(table))
            .with_limit(limit)
            .with_projection_indices(projection.cloned())?
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    /// Positions of the columns that are read.
    pub(super) fn wanted(&self) -> &[usize] {
        &self.projection.file_indices
    }

    /// Places of the parts without any row that the conditions let pass, as far as they are known by now.
    pub(super) fn parts_without_rows(&self) -> QueryResult<Arc<[usize]>> {
        let (Some(partitions), Some(condition)) = (&self.partitions, self.filters.as_one()) else {
            return Ok(Arc::new([]));
        };
        if let Some(known) = partitions.without_rows.get() {
            return Ok(known.clone());
        }
        let bounds = partitions.bounds(self)?;
        let out = bounds
            .without_rows(snapshot_physical_expr(condition.clone())?, self.schema.table_schema())?;
        let is_out = |(at, (part, _)): (usize, &(Arc<Table>, u64))| {
            out.contains(&part.relation.class.oid).then_some(at)
        };
        let places: Arc<[usize]> = self.parts.iter().enumerate().filter_map(is_out).collect();
        Ok(match DynamicFilterTracking::classify(&condition).contains_dynamic_filter() {
            true => places,
            false => partitions.without_rows.get_or_init(|| places).clone(),
        })
    }

    /// The expressions on the columns of the table that the scan gives.
    pub(super) fn projected(&self) -> impl Iterator<Item = &Arc<dyn PhysicalExpr>> {
        self.projection.source.iter().map(|projected| &projected.expr)
    }

    /// Which of the columns that are read are shown, in their order; `None` where anything else is.
    pub(super) fn shown_columns(&self) -> Option<Vec<usize>> {
        let place = |expr: &Arc<dyn PhysicalExpr>| {
            let column = expr.downcast_ref::<Column>()?.index();
            self.wanted().iter().position(|wanted| *wanted == column)
        };
        self.projected().map(place).collect()
    }

    /// The same scan, of which only the rows that come first in these orders are wanted; `None` where no index may help.
    pub(super) fn with_first_rows(&self, orders: &[(Vec<SortKey>, usize)]) -> Option<Self> {
        let of = |(sort, rows): &(Vec<SortKey>, usize)| FirstRows::by(self, sort, *rows);
        let orders = orders.iter().map(of).collect::<Option<Vec<_>>>()?;
        let wanted = WantedRows { orders, filters: self.filters.clone() };
        let (index, first_rows) = (IndexAccess::default(), Some(Arc::new(wanted)));
        Some(Self { index, first_rows, ..self.clone() })
    }

    /// The columns that conditions look at.
    pub(super) fn table_columns(&self) -> &SchemaRef {
        self.schema.table_schema()
    }

    /// Where scans tell what they met.
    pub(super) fn metrics_set(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    /// The same scan for another run of its statement, with each condition changed to one that is as harmless.
    pub(super) fn renewed(
        &self,
        context: &Arc<ScanContext>,
        change: impl Change,
    ) -> QueryResult<Self> {
        let filters = self.filters.changed(change, self.schema.table_schema())?;
        // One in another database keeps to the catalogs of that.
        let context = match Arc::ptr_eq(&context.catalog, &self.context.catalog) {
            true => context.clone(),
            false => Arc::new(context.beside(&self.context.catalog)),
        };
        let partitions = self.partitions.as_ref().map(KnownPartitions::anew);
        let (index, metrics) = (IndexAccess::default(), ExecutionPlanMetricsSet::new());
        Ok(Self { context, filters, partitions, index, metrics, ..self.clone() })
    }

    /// True when rows are only counted.
    pub(super) fn is_count(&self) -> bool {
        self.wanted().is_empty() && self.filters.is_empty()
    }
}

/// The scan of a relation for another run of its statement, with each of its conditions changed to one that is as harmless.
pub(crate) fn renewed_scan(
    scan: &DataSourceExec,
    context: &Arc<ScanContext>,
    change: impl Change,
) -> QueryResult<Arc<dyn ExecutionPlan>> {
    let found = scan.data_source().downcast_ref::<FileScanConfig>().and_then(|config| {
        config.file_source.downcast_ref::<RelationSource>().map(|source| (config, source))
    });
    let (config, source) = found.expect("a plan that is kept scans relations"); // infallible: others are not kept
    let mut config = config.clone();
    config.file_source = Arc::new(source.renewed(context, change)?);
    Ok(DataSourceExec::from_data_source(config))
}

impl FileSource for RelationSource {
    fn create_file_opener(
        &self,
        _: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> QueryResult<Arc<dyn FileOpener>> {
        let opener = RelationOpener { source: self.clone(), limit: config.limit, partition };
        let opener: Arc<dyn FileOpener> = Arc::new(opener);
        ProjectionOpener::try_new(self.projection.clone(), opener, self.schema.file_schema())
    }

    fn table_schema(&self) -> &TableSchema {
        &self.schema
    }

    fn with_batch_size(&self, _: usize) -> Arc<dyn FileSource> {
        Arc::new(self.clone())
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.filters.as_one()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "relation"
    }

    fn fmt_extra(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ", table={}", self.name)?;
        if self.partitions.is_some() {
            let all = self.parts.len();
            let pruned = self.parts_without_rows().map_or(0, |parts| parts.len());
            write!(f, ", partitions={} of {all}, {pruned} pruned", all - pruned)?;
        }
        if let Some(filter) = self.filters.as_one() {
            write!(f, ", filter={filter}")?;
        }
        self.index.describe(self, f)
    }

    fn repartitioned(
        &self,
        target_partitions: usize,
        repartition_file_min_size: usize,
        output_ordering: Option<LexOrdering>,
        config: &FileScanConfig,
    ) -> QueryResult<Option<FileScanConfig>> {
        // Rows that are only counted are counted by the visibility map, all at once by one machine.
        if self.is_count() && !self.context.cuts_counts {
            return Ok(None);
        }
        let cut = datafusion_datasource::file_groups::FileGroupPartitioner::new()
            .with_target_partitions(target_partitions)
            .with_repartition_file_min_size(repartition_file_min_size)
            .with_preserve_order_within_groups(output_ordering.is_some())
            .repartition_file_groups(&config.file_groups);
        Ok(cut.map(|file_groups| {
            let mut config = config.clone();
            config.file_groups = file_groups;
            config
        }))
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> QueryResult<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let zone = self.context.catalog.time_zone().map(|zone| &**zone);
        let (filters, taken) = self.filters.with(filters, self.schema.table_schema(), zone)?;
        let partitions = self.partitions.as_ref().map(KnownPartitions::anew);
        let index = IndexAccess::default();
        let source: Arc<dyn FileSource> =
            Arc::new(Self { filters, partitions, index, ..self.clone() });
        Ok(FilterPushdownPropagation::with_parent_pushdown_result(taken).with_updated_node(source))
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> QueryResult<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        let projection = SplitProjection::new(self.schema.file_schema(), &merged);
        Ok(Some(Arc::new(Self { projection, ..self.clone() })))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> QueryResult<TreeNodeRecursion>,
    ) -> QueryResult<TreeNodeRecursion> {
        let conditions = self.filters.conditions().iter();
        let projected = self.projection.source.iter().map(|projected| &projected.expr);
        datafusion::physical_plan::apply_expression_roots(conditions.chain(projected), f)
    }
}
