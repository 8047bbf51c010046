//! The answer to a statement that runs: its columns, and batches of its rows as they are asked for.
//!
//! Invariant: whoever drops one ends its scans.

use std::sync::Arc;

use arrow::array::StringArray;
use arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt as _;
use pagemill_types::builtin::oid;

use crate::error::Result;
use crate::scan::ScanContext;
use crate::session::{Answer, AnswerColumn};
use crate::types::PgType;

/// Rows to be pulled.
pub struct Rows {
    columns: Vec<AnswerColumn>,
    /// A batch that was asked for early, as it tells whether the statement has to run otherwise.
    first: Option<RecordBatch>,
    /// `None` where the first batch is all.
    stream: Option<SendableRecordBatchStream>,
    scans: Arc<ScanContext>,
    rows: u64,
}

impl Rows {
    /// Begins a stream: its first batch is there, or its first error told.
    pub(crate) async fn begin(
        columns: Vec<AnswerColumn>,
        mut stream: SendableRecordBatchStream,
        scans: Arc<ScanContext>,
    ) -> Result<Self> {
        let first = stream.next().await.transpose()?;
        Ok(Self { columns, first, stream: Some(stream), scans, rows: 0 })
    }

    /// Lines of text as the rows of one column.
    pub(crate) fn of_lines<'l>(
        name: &str,
        lines: impl Iterator<Item = &'l str>,
        scans: Arc<ScanContext>,
    ) -> Result<Self> {
        let lines: StringArray = lines.map(Some).collect();
        let batch = RecordBatch::try_from_iter([(name, Arc::new(lines) as _)]);
        let columns = vec![Self::line_column(name)];
        let first = Some(batch.map_err(DataFusionError::from)?);
        Ok(Self { columns, first, stream: None, scans, rows: 0 })
    }

    /// The column of such lines.
    pub(crate) fn line_column(name: &str) -> AnswerColumn {
        AnswerColumn { name: name.to_owned(), ty: PgType::new(oid::TEXT) }
    }

    /// The columns.
    pub fn columns(&self) -> &[AnswerColumn] {
        &self.columns
    }

    /// More rows; `None` at the end.
    ///
    /// # Errors
    /// When the statement fails on a value, a table cannot be read, or it was cancelled.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let batch = match (self.first.take(), &mut self.stream) {
            (Some(first), _) => Some(first),
            (None, Some(stream)) => stream.next().await.transpose()?,
            (None, None) => None,
        };
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
        Answer { columns, rows, pages: scans.progress.pages(), losses: scans.losses() }
    }
}
