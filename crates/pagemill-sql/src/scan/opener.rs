//! Rows of a range of a relation as a stream of batches: a thread reads and decodes, and a short channel hands over.
//!
//! Invariants: the thread ends soon after nobody listens any more, also when all rows so far were nobody's; no page is held
//! while it waits for the listener.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::Result as QueryResult;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener};
use datafusion::error::DataFusionError;
use futures::StreamExt as _;
use futures::stream::unfold;
use pagemill_arrow::{BatchBuilder, InfinityChoice, Plan};
use pagemill_engine::{Table, TableScan, TupleRow, count};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

use super::source::{BLOCK_BYTES, RelationSource};
use crate::error::{Error, Result, SqlState, StatementError};
use crate::types::PgType;

/// Batches that the reader may be ahead.
const BATCHES_AHEAD: usize = 2;
/// Rows of a batch without columns.
const COUNTED_ROWS: u64 = 8192;

type Batches = Sender<QueryResult<RecordBatch>>;

pub(super) struct RelationOpener {
    pub(super) source: RelationSource,
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
        Ok(Box::pin(async move {
            let (sender, receiver) = channel(BATCHES_AHEAD);
            let reader = tokio::task::spawn_blocking(move || {
                let read = read(&source, at, blocks, &sender);
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

fn read(source: &RelationSource, at: usize, blocks: Range<u32>, out: &Batches) -> Result<()> {
    let Some((table, _)) = source.parts.get(at) else { return Ok(()) };
    match source.wanted() {
        [] => read_count(source, table, out),
        wanted => read_rows(source, (table, wanted), blocks, out),
    }
}

/// Rows of which no value is wanted: as many empty ones as there are.
fn read_count(source: &RelationSource, table: &Arc<Table>, out: &Batches) -> Result<()> {
    let context = &source.context;
    let mut damage = context.damage_log();
    let cluster = context.catalog.database().cluster();
    let mut rows = count(cluster, table, context.options, &context.progress, &mut damage)?;
    context.keep(&damage)?;
    let schema = Arc::new(Schema::empty());
    while rows > 0 {
        let some = rows.min(COUNTED_ROWS);
        rows -= some;
        let options = RecordBatchOptions::new().with_row_count(Some(some as usize));
        let batch = RecordBatch::try_new_with_options(schema.clone(), Vec::new(), &options);
        if out.blocking_send(batch.map_err(Into::into)).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

fn read_rows(
    source: &RelationSource,
    (table, wanted): (&Arc<Table>, &[usize]),
    blocks: Range<u32>,
    out: &Batches,
) -> Result<()> {
    let context = &source.context;
    let values = context.catalog.values();
    let names: Vec<Box<[u8]>> =
        wanted.iter().map(|at| source.columns[*at].stored_name.clone()).collect();
    let plan = Plan::stored(values, &table.relation, &names)?;
    let positions = plan.positions(values, &table.relation)?;
    let types: Vec<PgType> = wanted.iter().map(|at| source.columns[*at].ty).collect();
    let carriers = wanted.iter().map(|at| &source.columns[*at]);
    let fields: Vec<Field> =
        carriers.map(|column| Field::new(&column.name, column.carrier.clone(), true)).collect();
    let last = Finish { context, types, schema: Arc::new(Schema::new(fields)) };

    let cluster = context.catalog.database().cluster();
    let options = pagemill_engine::ScanOptions { jobs: 1, ..context.options };
    let mut damage = context.damage_log();
    let what = (&positions[..], std::slice::from_ref(&blocks));
    let mut scan = TableScan::of_blocks(cluster, table, what, options, &context.progress)?;
    let name = table.relation.display_name();
    let mut builder = BatchBuilder::new(values, &name, &plan, InfinityChoice::Error)?;
    while let Some(batch) = scan.next_batch(&mut damage)? {
        if out.is_closed() {
            return Ok(());
        }
        let rows: Vec<TupleRow<'_>> = batch.rows().collect();
        let mut rest = &rows[..];
        while !rest.is_empty() {
            let taken = builder.append(rest, &mut damage)?;
            rest = &rest[taken..];
            if (builder.is_full() || !rest.is_empty())
                && out.blocking_send(Ok(last.finish(builder.finish()?)?)).is_err()
            {
                return Ok(());
            }
        }
    }
    if !builder.is_empty() {
        let _ = out.blocking_send(Ok(last.finish(builder.finish()?)?));
    }
    context.keep(&damage)
}

/// What is left to do with a batch: labels of enums become their places.
struct Finish<'s> {
    context: &'s super::ScanContext,
    types: Vec<PgType>,
    schema: SchemaRef,
}

impl Finish<'_> {
    fn finish(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(batch.num_columns());
        for (at, array) in batch.columns().iter().enumerate() {
            let wanted = self.schema.field(at).data_type();
            columns.push(match (array.data_type(), wanted) {
                (DataType::UInt32, DataType::Int32) => self.places(array, self.types[at])?,
                (found, wanted) => {
                    assert_eq!(found, wanted, "a column is read as its type is carried");
                    array.clone()
                }
            });
        }
        Ok(RecordBatch::try_new(self.schema.clone(), columns).map_err(DataFusionError::from)?)
    }

    fn places(&self, array: &ArrayRef, ty: PgType) -> Result<ArrayRef> {
        let order = self.context.catalog.enum_order(ty.oid)?;
        let labels = array.as_primitive::<UInt32Type>();
        let place = |label: Option<u32>| {
            label.map(|label| order.place(pagemill_format::Oid(label))).transpose()
        };
        let places: Int32Array = labels.iter().map(place).collect::<Result<_, _>>()?;
        assert_eq!(places.len(), array.len(), "each label has a place");
        Ok(Arc::new(places))
    }
}
