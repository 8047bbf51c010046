//! The answer to a statement that runs: its columns, and batches of its rows as they are asked for.
//!
//! Invariant: whoever drops one ends its scans.

use std::sync::Arc;

use arrow::array::StringArray;
use arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt as _;

use crate::admission::Turn;
use crate::error::Result;
use crate::scan::ScanContext;
use crate::session::{Answer, AnswerColumn};

/// Rows to be pulled.
pub struct Rows {
    columns: Arc<[AnswerColumn]>,
    /// Batches that are there: one that was asked for early, as it tells whether the statement has to run otherwise, or all.
    ready: std::vec::IntoIter<RecordBatch>,
    /// `None` where those are all.
    stream: Option<SendableRecordBatchStream>,
    scans: Arc<ScanContext>,
    turn: Option<Turn>,
    rows: u64,
}

impl Rows {
    /// Begins a stream: its first batch is there, or its first error told.
    pub(crate) async fn begin(
        columns: Arc<[AnswerColumn]>,
        mut stream: SendableRecordBatchStream,
        scans: Arc<ScanContext>,
        turn: Option<Turn>,
    ) -> Result<Self> {
        let first = stream.next().await.transpose()?;
        turn.iter().for_each(Turn::pause);
        let ready = Vec::from_iter(first).into_iter();
        Ok(Self { columns, ready, stream: Some(stream), scans, turn, rows: 0 })
    }

    /// Rows that are all there.
    pub(crate) fn of_batches(
        columns: Arc<[AnswerColumn]>,
        batches: Vec<RecordBatch>,
        scans: Arc<ScanContext>,
    ) -> Self {
        Self { columns, ready: batches.into_iter(), stream: None, scans, turn: None, rows: 0 }
    }

    /// Lines of text as the rows of one column.
    pub(crate) fn of_lines<'l>(
        column: AnswerColumn,
        lines: impl Iterator<Item = &'l str>,
        scans: Arc<ScanContext>,
    ) -> Result<Self> {
        let lines: StringArray = lines.map(Some).collect();
        let batch = RecordBatch::try_from_iter([(&*column.name, Arc::new(lines) as _)]);
        let columns = Arc::new([column]);
        Ok(Self::of_batches(columns, vec![batch.map_err(DataFusionError::from)?], scans))
    }

    /// The columns.
    pub fn columns(&self) -> &Arc<[AnswerColumn]> {
        &self.columns
    }

    /// True where all rows are there already, and few.
    pub fn are_few(&self) -> bool {
        self.stream.is_none()
    }

    /// More rows; `None` at the end.
    ///
    /// # Errors
    /// When the statement fails on a value, a table cannot be read, or it was cancelled.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.turn.iter().for_each(Turn::resume);
        let batch = match (self.ready.next(), &mut self.stream) {
            (Some(ready), _) => Some(ready),
            (None, Some(stream)) => stream.next().await.transpose()?,
            (None, None) => None,
        };
        self.turn.iter().for_each(Turn::pause);
        if batch.is_some() && self.scans.progress.is_cancelled() {
            return Err(pagemill_engine::Error::Cancelled.into());
        }
        self.rows += batch.as_ref().map_or(0, |batch| batch.num_rows() as u64);
        Ok(batch)
    }

    /// Ends the scans before the last row.
    pub fn cancel(&self) {
        self.scans.cancel();
    }

    /// What it came to, once nothing reads any more.
    pub async fn finish(self) -> Answer {
        let Self { columns, stream, scans, rows, .. } = self;
        drop(stream);
        scans.quiet().await;
        let (losses, notices) = (scans.losses(), scans.notices());
        Answer { columns, rows, pages: scans.progress.pages(), losses, notices }
    }
}
