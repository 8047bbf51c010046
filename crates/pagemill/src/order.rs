//! `--order-by`: what the flag asks of a command, and the work in the order of an index.
//!
//! The rows of one index come one after the other, so one table and one job are all it takes; more
//! are refused rather than done in another order.

use anyhow::Result;
use pagemill_cli::cluster_arguments::CommonArguments;
use pagemill_engine::{
    ExportSummary, IndexOrder, OrderOptions, OrderSummary, RowExport, RowSource, ScanOptions,
};
use pagemill_format::BLOCK_SIZE;
use pagemill_io::ByteSink;

use crate::failure::UsageError;
use crate::tables::{Tables, Watch};
use pagemill_cli::table_arguments::OrderArguments;

/// The order that was asked for, as far as the command line tells.
pub(crate) struct Order {
    options: OrderOptions,
}

impl Order {
    /// The order that the flags name, if they name one.
    pub(crate) fn of(
        arguments: &OrderArguments,
        common: &CommonArguments,
        tables: &Tables<'_>,
    ) -> Result<Option<Self>> {
        let Some(index) = &arguments.order_by else { return Ok(None) };
        let refuse = |reason: String| Err(UsageError(reason).into());
        if common.jobs > 1 {
            let jobs = common.jobs;
            return refuse(format!(
                "--order-by reads row after row: -j {jobs} cannot be followed, leave it out"
            ));
        }
        let count = tables.sources.len();
        if count > 1 {
            return refuse(format!(
                "{count} tables match, and an index is one table's: name one with --order-by"
            ));
        }
        let options = OrderOptions {
            index: index.clone(),
            backward: arguments.backward,
            index_only: !arguments.no_index_only,
            buffer_bytes: common.shared_buffers.get().saturating_mul(BLOCK_SIZE),
        };
        Ok(Some(Self { options }))
    }

    /// The index, for a table.
    #[cfg(feature = "arrow")]
    pub(crate) fn index(&self, source: &RowSource<'_>) -> Result<IndexOrder> {
        Ok(IndexOrder::find(source, &self.options)?)
    }

    /// Counts the rows of a table.
    pub(crate) fn count(
        &self,
        scan: ScanOptions,
        source: &RowSource<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<u64> {
        let order = IndexOrder::find(source, &self.options)?;
        let done = source.count_in_order(&order, scan, watch.progress, watch.damage)?;
        let done = work_of(done);
        watch.work.buffer_hits += done.buffer_hits;
        watch.work.buffer_misses += done.buffer_misses;
        Ok(done.rows)
    }

    /// Writes the rows of a table.
    pub(crate) fn write(
        &self,
        source: &RowSource<'_>,
        export: &RowExport<'_>,
        output: &mut dyn ByteSink,
        watch: &mut Watch<'_>,
    ) -> Result<ExportSummary> {
        let order = IndexOrder::find(source, &self.options)?;
        let done = export.write_in_order(&order, output, watch.progress, watch.damage)?;
        Ok(work_of(done))
    }
}

fn work_of(done: OrderSummary) -> ExportSummary {
    let OrderSummary { rows, buffer_hits, buffer_misses } = done;
    ExportSummary { rows, buffer_hits, buffer_misses }
}
