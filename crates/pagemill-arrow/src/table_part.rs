//! One part of a table, a partition or all of it: which blocks make a share, and the job that makes batches of their rows.
//!
//! Invariant: shares, one after the other, are the part in the order of the scan.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use pagemill_engine::{
    DamageLog, ExportSummary, Progress, ScanOptions, ScanRequest, Table, TableScan, TupleRow,
};

use crate::batch_builder::BatchBuilder;
use crate::error::Result;
use crate::export::ArrowExport;

/// Most blocks of a share (128 MiB), so that row groups are of a good size.
const MOST_SHARE_BLOCKS: u32 = 16_384;
/// Fewest (8 MiB).
const LEAST_SHARE_BLOCKS: u32 = 1024;
/// Shares for each job, where the table is large enough: so that all end at about the same time.
const SHARES_PER_JOB: u32 = 4;

/// Where batches go.
pub(crate) trait BatchSink {
    /// Takes a batch.
    ///
    /// # Errors
    /// When it cannot be encoded or written.
    fn push(&mut self, batch: RecordBatch) -> Result<()>;
}

/// The rows of one part, to be read by one thread or several.
pub(crate) struct TablePart<'p> {
    pub(crate) export: &'p ArrowExport<'p>,
    pub(crate) table: Arc<Table>,
    /// Where it has the columns of the plan.
    pub(crate) columns: Vec<usize>,
    pub(crate) options: ScanOptions,
    pub(crate) progress: &'p Progress,
}

impl TablePart<'_> {
    pub(crate) fn shares(&self) -> Result<Vec<Range<u32>>> {
        let jobs = u32::try_from(self.options.jobs).unwrap_or(u32::MAX);
        let wanted = self.table.blocks() / jobs.saturating_mul(SHARES_PER_JOB).max(1);
        self.shares_of(wanted.clamp(LEAST_SHARE_BLOCKS, MOST_SHARE_BLOCKS))
    }

    pub(crate) fn shares_of(&self, most_blocks: u32) -> Result<Vec<Range<u32>>> {
        let cluster = self.export.source.database().cluster();
        Ok(TableScan::shares(cluster, &self.table, self.options, most_blocks)?)
    }

    pub(crate) fn request(&self) -> ScanRequest<'_> {
        let cluster = self.export.source.database().cluster();
        let Self { table, options, progress, .. } = self;
        ScanRequest { cluster, table, options: *options, progress }
    }

    pub(crate) fn all(&self) -> Result<TableScan> {
        Ok(TableScan::new(self.request(), &self.columns)?)
    }

    pub(crate) fn scan(&self, share: &Range<u32>) -> Result<TableScan> {
        Ok(TableScan::of_blocks(self.request(), &self.columns, std::slice::from_ref(share))?)
    }

    pub(crate) fn job(&self) -> Result<Job> {
        let ArrowExport { catalog, plan, options, .. } = self.export;
        let name = self.table.relation.display_name();
        Ok(Job { builder: BatchBuilder::new(catalog, &name, plan, options.infinity)?, rows: 0 })
    }
}

/// What a thread reads into.
pub(crate) struct Job {
    builder: BatchBuilder,
    rows: u64,
}

impl Job {
    pub(crate) fn run(
        &mut self,
        mut scan: TableScan,
        damage: &mut DamageLog,
        sink: &mut dyn BatchSink,
    ) -> Result<()> {
        while let Some(batch) = scan.next_batch(damage)? {
            let rows: Vec<TupleRow<'_>> = batch.rows().collect();
            self.take(&rows, damage, sink)?;
        }
        self.flush(sink)
    }

    pub(crate) fn take(
        &mut self,
        rows: &[TupleRow<'_>],
        damage: &mut DamageLog,
        sink: &mut dyn BatchSink,
    ) -> Result<()> {
        let mut rest = rows;
        while !rest.is_empty() {
            let taken = self.builder.append(rest, damage)?;
            rest = &rest[taken..];
            if !rest.is_empty() || self.builder.is_full() {
                self.flush(sink)?;
            }
        }
        Ok(())
    }

    pub(crate) fn flush(&mut self, sink: &mut dyn BatchSink) -> Result<()> {
        if self.builder.is_empty() {
            return Ok(());
        }
        self.rows += self.builder.len() as u64;
        sink.push(self.builder.finish()?)
    }

    pub(crate) fn summary(&self) -> ExportSummary {
        let (buffer_hits, buffer_misses) = self.builder.cache_counts();
        ExportSummary { rows: self.rows, buffer_hits, buffer_misses }
    }
}
