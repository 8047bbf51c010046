//! Batches of an expansion, each made when it is asked for.
//!
//! Invariant: no more rows are made than a batch holds before somebody takes them.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::Result as QueryResult;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt as _;

use super::Expansion;
use crate::error::StatementError;
use crate::functions::sets::{Cells, Series, typed_cells};

/// Where an expansion stands.
struct Expanded {
    expansion: Arc<Expansion>,
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    input: SendableRecordBatchStream,
    schema: SchemaRef,
    /// Rows of a batch at most.
    most: usize,
    current: Option<Current>,
}

/// The batch below that is being expanded.
struct Current {
    below: RecordBatch,
    arguments: Vec<ArrayRef>,
    row: usize,
    /// The series of the row, in step; none before it is begun.
    running: Option<Running>,
}

/// The series of one row; none in the place of one that has ended.
struct Running {
    series: Vec<Option<Box<dyn Series>>>,
    number: i64,
}

/// The rows that are made for a batch.
struct Output {
    /// The rows below, one for each made.
    rows: Vec<u32>,
    cells: Vec<Cells>,
    numbers: Option<Cells>,
}

/// The stream of an expansion's batches.
pub(super) fn expanded(
    expansion: Arc<Expansion>,
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    input: SendableRecordBatchStream,
    schema: SchemaRef,
    most: usize,
) -> SendableRecordBatchStream {
    let state =
        Expanded { expansion, arguments, input, schema: schema.clone(), most, current: None };
    let batches = futures::stream::try_unfold(state, |mut state| async move {
        Ok(state.next().await?.map(|batch| (batch, state)))
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

impl Expanded {
    async fn next(&mut self) -> QueryResult<Option<RecordBatch>> {
        loop {
            if self.current.is_none() {
                let Some(below) = self.input.next().await.transpose()? else { return Ok(None) };
                self.current = Some(self.begun(below)?);
            }
            let Some(current) = &mut self.current else { continue };
            let mut out = Output::new(&self.expansion);
            let is_whole = out.fill(&self.expansion, current, self.most)?;
            let batch = out.batch(&current.below, &self.schema)?;
            if is_whole {
                self.current = None;
            }
            if batch.num_rows() > 0 {
                return Ok(Some(batch));
            }
        }
    }

    fn begun(&self, below: RecordBatch) -> QueryResult<Current> {
        let rows = below.num_rows();
        let of = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(&below)?.into_array(rows);
        let arguments = self.arguments.iter().map(of).collect::<QueryResult<_>>()?;
        Ok(Current { below, arguments, row: 0, running: None })
    }
}

impl Output {
    fn new(expansion: &Expansion) -> Self {
        let columns = expansion.calls.iter().flat_map(|call| call.columns.iter());
        let numbers = expansion.ordinality.as_ref();
        Self {
            rows: Vec::new(),
            cells: columns.map(|column| typed_cells(&column.carrier)).collect(),
            numbers: numbers.map(|_| typed_cells(&arrow::datatypes::DataType::Int64)),
        }
    }

    /// Makes rows until the batch is full; true when the batch below has no more.
    fn fill(
        &mut self,
        expansion: &Expansion,
        current: &mut Current,
        most: usize,
    ) -> Result<bool, StatementError> {
        while current.row < current.below.num_rows() {
            if current.running.is_none() {
                current.running = Some(begin(expansion, &current.arguments, current.row)?);
            }
            let Some(running) = &mut current.running else { continue };
            while self.rows.len() < most && self.step(expansion, running)? {
                self.rows.push(current.row as u32);
            }
            if self.rows.len() >= most {
                return Ok(false);
            }
            if running.number == 0 && expansion.keeps_all {
                self.rows.push(current.row as u32);
                self.cells.iter_mut().chain(&mut self.numbers).try_for_each(Cells::null)?;
            }
            current.running = None;
            current.row += 1;
        }
        Ok(true)
    }

    /// One row of all series; false when all have ended.
    fn step(
        &mut self,
        expansion: &Expansion,
        running: &mut Running,
    ) -> Result<bool, StatementError> {
        let (mut cells, mut missing) = (&mut self.cells[..], Vec::new());
        for (call, series) in expansion.calls.iter().zip(&mut running.series) {
            let (own, rest) = cells.split_at_mut(call.columns.len());
            cells = rest;
            let has_row = match series {
                Some(series) => series.next(own)?,
                None => false,
            };
            if !has_row {
                *series = None;
                missing.push(own);
            }
        }
        if missing.len() == expansion.calls.len() {
            return Ok(false);
        }
        missing.into_iter().flatten().try_for_each(Cells::null)?;
        running.number += 1;
        if let Some(numbers) = &mut self.numbers {
            numbers.int8(running.number);
        }
        Ok(true)
    }

    fn batch(self, below: &RecordBatch, schema: &SchemaRef) -> QueryResult<RecordBatch> {
        let count = self.rows.len();
        let rows = UInt32Array::from(self.rows);
        let mut columns = Vec::with_capacity(schema.fields().len());
        for column in below.columns() {
            columns.push(take(column, &rows, None)?);
        }
        for cells in self.cells.into_iter().chain(self.numbers) {
            columns.push(cells.finish().map_err(DataFusionError::from)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
    }
}

fn begin(
    expansion: &Expansion,
    arguments: &[ArrayRef],
    row: usize,
) -> Result<Running, StatementError> {
    let (mut rest, mut series) = (arguments, Vec::with_capacity(expansion.calls.len()));
    for call in &expansion.calls {
        let (own, behind) = rest.split_at(call.arguments.len());
        rest = behind;
        series.push(Some(call.begin(own, row)?));
    }
    Ok(Running { series, number: 0 })
}
