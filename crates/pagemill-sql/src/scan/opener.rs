//! Rows of a range of a relation as a stream of batches: a thread reads and decodes, and a short channel hands over.
//!
//! Invariants: the thread ends soon after nobody listens any more, also when all rows so far were nobody's; no page is held
//! while it waits for the listener.

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::Schema;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::Result as QueryResult;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener};
use datafusion::error::DataFusionError;
use futures::StreamExt as _;
use futures::stream::unfold;
use pagemill_engine::{ScanRequest, Table, count, count_blocks};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

use super::account::ScanAccount;
use super::reader::RowReader;
use super::source::{BLOCK_BYTES, RelationSource};
use crate::error::{Error, Result, SqlState, StatementError};

/// Batches that the reader may be ahead.
const BATCHES_AHEAD: usize = 2;
/// Rows of a batch without columns.
const COUNTED_ROWS: u64 = 8192;

/// Opens the parts of a relation, one or a range of one at a time.
pub(super) struct RelationOpener {
    pub(super) source: RelationSource,
    /// How many rows are wanted at most.
    pub(super) limit: Option<usize>,
    /// The engine's number for this share of the scan.
    pub(super) partition: usize,
}

/// Where batches go, and how many rows more are wanted there.
pub(super) struct Output<'o> {
    pub(super) listener: Listener<'o>,
    /// Rows that are still wanted.
    pub(super) left: usize,
}

/// Who is handed the batches.
pub(super) enum Listener<'o> {
    /// Another thread.
    Channel(Sender<QueryResult<RecordBatch>>),
    /// Who called: there are few.
    Caller(&'o mut Vec<RecordBatch>),
}

impl Output<'_> {
    /// Hands over rows; false when no more are wanted.
    pub(super) fn send(&mut self, batch: RecordBatch) -> bool {
        let rows = batch.num_rows().min(self.left);
        self.left -= rows;
        let batch = batch.slice(0, rows);
        let is_taken = match &mut self.listener {
            Listener::Channel(batches) => batches.blocking_send(Ok(batch)).is_ok(),
            Listener::Caller(batches) => {
                batches.push(batch);
                true
            }
        };
        is_taken && self.left > 0
    }

    /// True when nobody listens any more.
    pub(super) fn is_closed(&self) -> bool {
        match &self.listener {
            Listener::Channel(batches) => batches.is_closed(),
            Listener::Caller(_) => false,
        }
    }
}

impl FileOpener for RelationOpener {
    fn open(&self, file: PartitionedFile) -> QueryResult<FileOpenFuture> {
        let source = self.source.clone();
        let at: usize = file.object_meta.location.as_ref().parse().map_err(|_| {
            DataFusionError::Internal("a part of a relation goes by its number".to_owned())
        })?;
        let blocks = match &file.range {
            None => 0..u32::MAX,
            Some(range) => block_at(range.start)..block_at(range.end),
        };
        let (left, partition) = (self.limit.unwrap_or(usize::MAX), self.partition);
        Ok(Box::pin(async move {
            let (sender, receiver) = channel(BATCHES_AHEAD);
            let reader = tokio::task::spawn_blocking(move || {
                let _running = source.context.running();
                let out = Output { listener: Listener::Channel(sender.clone()), left };
                let read = read(&source, (at, blocks), partition, out);
                if let Err(error) = read {
                    // Nobody to tell is nobody who minds.
                    let _ = sender.blocking_send(Err(told(error)));
                }
            });
            Ok(unfold((receiver, Some(reader)), next_batch).boxed())
        }))
    }
}

/// The next batch. A reader that ends without a word has panicked: then what it gave is not all there is.
async fn next_batch(
    (mut receiver, mut reader): (Receiver<QueryResult<RecordBatch>>, Option<JoinHandle<()>>),
) -> Option<(QueryResult<RecordBatch>, (Receiver<QueryResult<RecordBatch>>, Option<JoinHandle<()>>))>
{
    if let Some(batch) = receiver.recv().await {
        return Some((batch, (receiver, reader)));
    }
    let error = reader.take()?.await.err()?;
    Some((Err(DataFusionError::External(Box::new(error))), (receiver, None)))
}

/// The first block that begins at this byte or behind it.
fn block_at(byte: i64) -> u32 {
    let block = u64::try_from(byte).unwrap_or(0).div_ceil(BLOCK_BYTES);
    u32::try_from(block).unwrap_or(u32::MAX)
}

/// The error as the engine hands it on.
fn told(error: Error) -> DataFusionError {
    let message = error.to_string();
    match error {
        Error::Statement(error) => error.into(),
        Error::Engine(error) if is_damage(&error) => {
            StatementError::new(SqlState::DATA_CORRUPTED, message).into()
        }
        Error::Query(error) => *error,
        other => DataFusionError::External(Box::new(other)),
    }
}

fn is_damage(error: &pagemill_engine::Error) -> bool {
    matches!(error, pagemill_engine::Error::Cluster(pagemill_cluster::Error::Damage(_)))
}

fn read(
    source: &RelationSource,
    (at, blocks): (usize, Range<u32>),
    partition: usize,
    out: Output<'_>,
) -> Result<()> {
    let Some((table, all)) = source.parts.get(at) else { return Ok(()) };
    let account = ScanAccount::new(source, partition, (&blocks, *all));
    if source.parts_without_rows()?.contains(&at) {
        return Ok(());
    }
    match source.is_count() {
        true => read_count(source, (table, blocks), &account, out),
        false => RowReader { source, part: at, table, blocks, account, out }.read(),
    }
}

/// Rows of which no value is wanted: as many empty ones as there are.
fn read_count(
    source: &RelationSource,
    (table, blocks): (&Arc<Table>, Range<u32>),
    account: &ScanAccount,
    mut out: Output<'_>,
) -> Result<()> {
    let context = &source.context;
    let mut damage = context.damage_log();
    let cluster = context.catalog.database().cluster();
    let (options, progress) = (context.options, &account.progress);
    let request = ScanRequest { cluster, table, options, progress };
    let mut rows = match blocks {
        Range { start: 0, end: u32::MAX } => count(request, &mut damage)?,
        some => count_blocks(request, &[some], &mut damage)?,
    };
    context.keep(&damage)?;
    let schema = Arc::new(Schema::empty());
    while rows > 0 {
        let some = rows.min(COUNTED_ROWS);
        rows -= some;
        let options = RecordBatchOptions::new().with_row_count(Some(some as usize));
        let batch = RecordBatch::try_new_with_options(schema.clone(), Vec::new(), &options);
        if !out.send(batch.map_err(DataFusionError::from)?) {
            return Ok(());
        }
    }
    Ok(())
}
