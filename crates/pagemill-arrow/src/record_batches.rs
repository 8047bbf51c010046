//! The record batches of a table, pulled one by one: for whoever wants Arrow arrays and no file.
//!
//! Invariant: the batches have the rows in the order of the scan, partition by partition.

use std::collections::VecDeque;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pagemill_cluster::Relation;
use pagemill_engine::{DamageLog, Progress, TableScan, TupleRow};

use crate::error::Result;
use crate::export::ArrowExport;
use crate::table_part::{BatchSink, Job};

/// The batches of a table, by one thread.
pub struct RecordBatches<'a> {
    export: &'a ArrowExport<'a>,
    progress: &'a Progress,
    /// Parts that were not begun.
    parts: std::slice::Iter<'a, Relation>,
    current: Option<(TableScan, Job)>,
    ready: VecDeque<RecordBatch>,
}

impl BatchSink for VecDeque<RecordBatch> {
    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        self.push_back(batch);
        Ok(())
    }
}

impl<'a> ArrowExport<'a> {
    /// The record batches of all rows, of about 8192 rows each.
    pub fn batches(&'a self, progress: &'a Progress) -> RecordBatches<'a> {
        let parts = self.source.parts().iter();
        RecordBatches { export: self, progress, parts, current: None, ready: VecDeque::new() }
    }
}

impl RecordBatches<'_> {
    /// The schema of the batches; columns to partition by are the last ones, as text.
    pub fn schema(&self) -> &SchemaRef {
        self.export.plan.schema()
    }

    /// The next batch; `None` at the end.
    ///
    /// # Errors
    /// On damage, unless it is to be skipped; a value that does not fit.
    pub fn next_batch(&mut self, damage: &mut DamageLog) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            let Some((scan, job)) = &mut self.current else {
                let Some(part) = self.parts.next() else { return Ok(None) };
                let part = self.export.part(part, self.progress, damage)?;
                self.current = Some((part.all()?, part.job()?));
                continue;
            };
            match scan.next_batch(damage)? {
                Some(page) => {
                    let rows: Vec<TupleRow<'_>> = page.rows().collect();
                    job.take(&rows, damage, &mut self.ready)?;
                }
                None => {
                    job.flush(&mut self.ready)?;
                    self.current = None;
                }
            }
        }
    }
}
