//! Batches of a query that is run for each row, made when they are asked for.
//!
//! Invariant: no more rows are kept than a batch holds and one more of the query, but for those of rows that were equal, where the query gives
//! the same for them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array, new_null_array};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::Result as QueryResult;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::scalar::ScalarValue;
use futures::StreamExt as _;

use super::RowQuery;
use crate::error::Error;
use crate::generic_plan::{for_any_values, plan_with_values};
use crate::interruption::interruptible;
use crate::nested::{planned_apart, with_placeholders, with_values};
use crate::scan::with_runtime_filters;

/// Rows of queries that are kept for equal rows before them.
const MOST_KEPT: usize = 100_000;

/// Where the work stands.
struct State {
    query: Arc<RowQuery>,
    values: Vec<Arc<dyn PhysicalExpr>>,
    input: SendableRecordBatchStream,
    schema: SchemaRef,
    /// Rows of a batch at most.
    most: usize,
    current: Option<Current>,
    /// The plan for any values, once it was sought.
    generic: Option<Option<Arc<dyn ExecutionPlan>>>,
    known: HashMap<Vec<ScalarValue>, Arc<[RecordBatch]>>,
    kept: usize,
    /// False where each run may give other rows, as `random` does.
    gives_the_same: bool,
}

/// The batch below of which the rows are gone through.
struct Current {
    below: RecordBatch,
    values: Vec<ArrayRef>,
    row: usize,
    running: Option<Running>,
}

/// The query of one row.
struct Running {
    rows: Rows,
    has_any: bool,
    key: Vec<ScalarValue>,
    /// What it gave, while that is little.
    given: Option<Vec<RecordBatch>>,
}

enum Rows {
    Stream(SendableRecordBatchStream),
    Known(Arc<[RecordBatch]>, usize),
}

/// What is made for a batch: the rows below, and for each those beside it.
#[derive(Default)]
struct Output {
    rows: Vec<u32>,
    parts: Vec<RecordBatch>,
}

/// The stream of the rows.
pub(super) fn for_each_row(
    query: Arc<RowQuery>,
    values: Vec<Arc<dyn PhysicalExpr>>,
    input: SendableRecordBatchStream,
    (schema, most): (SchemaRef, usize),
) -> SendableRecordBatchStream {
    let gives_the_same = !query.is_volatile();
    let state = State {
        query,
        values,
        input,
        schema: schema.clone(),
        most,
        current: None,
        generic: None,
        known: HashMap::new(),
        kept: 0,
        gives_the_same,
    };
    let batches = futures::stream::try_unfold(state, |mut state| async move {
        Ok(state.next().await?.map(|batch| (batch, state)))
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

impl State {
    async fn next(&mut self) -> QueryResult<Option<RecordBatch>> {
        loop {
            let mut current = match self.current.take() {
                Some(current) => current,
                None => match self.input.next().await.transpose()? {
                    None => return Ok(None),
                    Some(below) => self.begun(below)?,
                },
            };
            let mut out = Output::default();
            let is_whole = self.fill(&mut current, &mut out).await?;
            let batch = out.batch(&current.below, (&self.query.schema(), &self.schema))?;
            if !is_whole {
                self.current = Some(current);
            }
            if batch.num_rows() > 0 {
                return Ok(Some(batch));
            }
        }
    }

    fn begun(&self, below: RecordBatch) -> QueryResult<Current> {
        let rows = below.num_rows();
        let of = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(&below)?.into_array(rows);
        let values = self.values.iter().map(of).collect::<QueryResult<_>>()?;
        Ok(Current { below, values, row: 0, running: None })
    }

    /// Makes rows until the batch is full; true when the batch below has no more.
    async fn fill(&mut self, current: &mut Current, out: &mut Output) -> QueryResult<bool> {
        while current.row < current.below.num_rows() {
            let mut running = match current.running.take() {
                Some(running) => running,
                None => self.begin(current.key()?).await?,
            };
            while out.rows.len() < self.most
                && let Some(batch) = running.next().await?
            {
                out.add(current.row, batch);
            }
            if out.rows.len() >= self.most {
                current.running = Some(running);
                return Ok(false);
            }
            if !running.has_any && self.query.keeps_all {
                let schema = self.query.schema();
                let nulls =
                    schema.fields().iter().map(|field| new_null_array(field.data_type(), 1));
                out.add(current.row, batch_of(&nullable(&schema), nulls.collect(), 1)?);
            }
            self.keep(running);
            current.row += 1;
        }
        Ok(true)
    }

    /// Keeps what was given, for a row that is equal.
    fn keep(&mut self, running: Running) {
        let Some(given) = running.given else { return };
        let rows: usize = given.iter().map(RecordBatch::num_rows).sum();
        if self.gives_the_same
            && matches!(running.rows, Rows::Stream(_))
            && self.kept + rows < MOST_KEPT
        {
            // One without rows takes its room, too.
            self.kept += rows + 1;
            self.known.insert(running.key, given.into());
        }
    }

    async fn begin(&mut self, key: Vec<ScalarValue>) -> QueryResult<Running> {
        let rows = match self.known.get(&key) {
            Some(known) => Rows::Known(known.clone(), 0),
            None => Rows::Stream(self.run(&key).await?),
        };
        Ok(Running { rows, has_any: false, key, given: Some(Vec::new()) })
    }

    async fn run(&mut self, values: &[ScalarValue]) -> QueryResult<SendableRecordBatchStream> {
        let nested = self.query.nested.clone();
        if nested.progress.is_cancelled() {
            return Err(Error::from(pagemill_engine::Error::Cancelled).into());
        }
        if self.generic.is_none() {
            self.generic = Some(self.any_plan()?);
        }
        let plan = match &self.generic {
            Some(Some(plan)) => plan_with_values(plan, values, &nested.scans)?,
            _ => {
                let plan = with_values(&self.query.plan, (&self.query.outer, values))?;
                planned_apart(&nested, &|state| {
                    let plan = plan.clone();
                    Box::pin(async move { state.create_physical_plan(&plan).await })
                })?
            }
        };
        let (plan, task) = with_runtime_filters(plan, &nested.state)?;
        execute_stream(interruptible(plan, &nested.progress)?, task)
    }

    /// A plan for any values, where it is as good as one for given ones.
    fn any_plan(&self) -> QueryResult<Option<Arc<dyn ExecutionPlan>>> {
        let plan = with_placeholders(&self.query.plan, &self.query.outer)?;
        let made = planned_apart(&self.query.nested, &|state| {
            let plan = plan.clone();
            Box::pin(async move { for_any_values(&plan, state).await })
        });
        // What stands in the way is told by the plan for the values, if it stands in its way, too.
        Ok(made.unwrap_or(None))
    }
}

impl Current {
    /// What the query refers to, of the row.
    fn key(&self) -> QueryResult<Vec<ScalarValue>> {
        let values = self.values.iter();
        values.map(|column| ScalarValue::try_from_array(column, self.row)).collect()
    }
}

impl Running {
    async fn next(&mut self) -> QueryResult<Option<RecordBatch>> {
        let batch = match &mut self.rows {
            Rows::Stream(stream) => stream.next().await.transpose()?,
            Rows::Known(batches, at) => {
                *at += 1;
                batches.get(*at - 1).cloned()
            }
        };
        let Some(batch) = batch else { return Ok(None) };
        self.has_any |= batch.num_rows() > 0;
        if let Some(given) = &mut self.given {
            given.push(batch.clone());
            if given.iter().map(RecordBatch::num_rows).sum::<usize>() > MOST_KEPT {
                self.given = None;
            }
        }
        Ok(Some(batch))
    }
}

impl Output {
    fn add(&mut self, row: usize, batch: RecordBatch) {
        self.rows.extend(std::iter::repeat_n(row as u32, batch.num_rows()));
        self.parts.push(batch);
    }

    fn batch(
        self,
        below: &RecordBatch,
        (beside, schema): (&SchemaRef, &SchemaRef),
    ) -> QueryResult<RecordBatch> {
        let count = self.rows.len();
        let rows = UInt32Array::from(self.rows);
        let mut columns = Vec::with_capacity(schema.fields().len());
        for column in below.columns() {
            columns.push(take(column, &rows, None)?);
        }
        let beside = nullable(beside);
        let parts = self
            .parts
            .iter()
            .map(|part| batch_of(&beside, part.columns().to_vec(), part.num_rows()));
        let parts = parts.collect::<QueryResult<Vec<_>>>()?;
        columns.extend(concat_batches(&beside, &parts)?.columns().iter().cloned());
        batch_of(schema, columns, count)
    }
}

/// The same columns, each of which may be NULL.
fn nullable(schema: &SchemaRef) -> SchemaRef {
    let field = |field: &Arc<arrow::datatypes::Field>| field.as_ref().clone().with_nullable(true);
    Arc::new(arrow::datatypes::Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

fn batch_of(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> QueryResult<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(schema.clone(), columns, &options);
    batch.map_err(DataFusionError::from)
}
