//! What a scan met, for EXPLAIN ANALYZE.
//!
//! Invariant: a scan is accounted for once, also when it ends early or fails, before the thread that read it ends.

use std::ops::Range;

use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use pagemill_engine::Progress;

#[cfg(feature = "workers")]
use super::source::BLOCK_BYTES;
use super::source::RelationSource;

/// What is counted, in the order of [`Counts`].
const COUNTED: [&str; 7] = [
    "blocks_read",
    "blocks_mapped",
    "blocks_skipped",
    "tuples_alive",
    "tuples_dead",
    "rows_removed_by_filter",
    "toast_fetches",
];

/// How many of each there were.
pub(crate) type Counts = [u64; COUNTED.len()];

/// The account of one range of a relation.
pub(super) struct ScanAccount {
    metrics: ExecutionPlanMetricsSet,
    partition: usize,
    /// What the engine met of this range.
    pub(super) progress: Progress,
    /// How many blocks the range has.
    blocks: u64,
    /// Rows that did not pass the conditions.
    pub(super) removed: u64,
    /// Values that were fetched from TOAST tables.
    pub(super) toast_fetches: u64,
}

impl ScanAccount {
    /// For some of so many blocks.
    pub(super) fn new(
        source: &RelationSource,
        partition: usize,
        (blocks, all): (&Range<u32>, u64),
    ) -> Self {
        let (start, end) = (u64::from(blocks.start), u64::from(blocks.end).min(all));
        Self {
            metrics: source.metrics_set().clone(),
            partition,
            progress: source.context.progress.of_part(),
            blocks: end.saturating_sub(start),
            removed: 0,
            toast_fetches: 0,
        }
    }

    fn add(&self, name: &'static str, count: u64) {
        let counter = MetricBuilder::new(&self.metrics).counter(name, self.partition);
        counter.add(usize::try_from(count).unwrap_or(usize::MAX));
    }
}

impl Drop for ScanAccount {
    fn drop(&mut self) {
        let met = self.progress.counts();
        let skipped = self.blocks.saturating_sub(met.blocks_read + met.blocks_mapped);
        let counts: Counts = [
            met.blocks_read,
            met.blocks_mapped,
            skipped,
            met.tuples_alive,
            met.tuples_dead,
            self.removed,
            self.toast_fetches,
        ];
        for (name, count) in COUNTED.into_iter().zip(counts) {
            self.add(name, count);
        }
    }
}

/// What scans of a plan that has run met, each with its relation, in the order of the plan.
pub(crate) fn counts(plan: &dyn ExecutionPlan) -> Vec<(String, Counts)> {
    let mut found: Vec<_> = counts_of(plan).into_iter().collect();
    for child in plan.children() {
        found.extend(counts(&**child));
    }
    found
}

/// A line for each scan.
pub(crate) fn accounts(plan: &dyn ExecutionPlan) -> Vec<String> {
    counts(plan).iter().map(|(name, counts)| account_line(name, counts)).collect()
}

/// The relation that a node of a plan scans.
pub(super) fn relation_source(plan: &dyn ExecutionPlan) -> Option<&RelationSource> {
    let scan = plan.downcast_ref::<DataSourceExec>()?;
    let config = scan.data_source().downcast_ref::<FileScanConfig>()?;
    config.file_source.downcast_ref::<RelationSource>()
}

/// True for a scan of a relation.
pub(crate) fn is_relation_scan(plan: &dyn ExecutionPlan) -> bool {
    relation_source(plan).is_some()
}

/// True for a scan of a relation of this cluster.
#[cfg(feature = "workers")]
pub(crate) fn is_scan_of(plan: &dyn ExecutionPlan, path: &std::path::Path) -> bool {
    relation_source(plan)
        .is_some_and(|source| source.context.catalog.database().cluster().path() == path)
}

/// How many bytes each of the relations has that hold the rows of a scanned one.
#[cfg(feature = "workers")]
pub(crate) fn parts_of_scan(plan: &dyn ExecutionPlan) -> Vec<u64> {
    let source = relation_source(plan);
    let bytes = |source: &RelationSource| {
        source.parts.iter().map(|(_, blocks)| blocks * BLOCK_BYTES).collect()
    };
    source.map(bytes).unwrap_or_default()
}

fn counts_of(plan: &dyn ExecutionPlan) -> Option<(String, Counts)> {
    let source = relation_source(plan)?;
    let metrics = plan.metrics()?;
    let sum = |name: &str| metrics.sum_by_name(name).map_or(0, |value| value.as_usize() as u64);
    Some((source.name.to_string(), COUNTED.map(sum)))
}

/// What a scan of this relation met, in words.
pub(crate) fn account_line(name: &str, counts: &Counts) -> String {
    let [read, mapped, skipped, alive, dead, removed, fetched] = counts;
    format!(
        "Scan of {name}: {read} blocks read, {mapped} mapped, {skipped} skipped; {alive} tuples alive, {dead} dead; {removed} rows \
         removed by filters; {fetched} TOAST values fetched"
    )
}
