//! Rows by their keys, read by whoever asks: no thread, no channel and no stream for a row or two.
//!
//! ```text
//! [projections] ─ scan of one relation ─► an index of which all searched columns are given ─► few TIDs ─► rows, here and now
//!                                                                                      └► else `None`: the plan runs
//! ```
//!
//! Invariant: what is given is what the plan would give, in the same order, and with the same errors.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::Result as QueryResult;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::projection::ProjectionExec;
use pagemill_engine::Table;

use super::ScanContext;
use super::account::ScanAccount;
use super::filters::Change;
use super::opener::{Listener, Output};
use super::reader::RowReader;
use super::source::RelationSource;
use crate::error::Result;

/// A plan whose rows may be read that way.
pub(crate) struct KeyLookup {
    source: RelationSource,
    /// Which of the columns that are read the scan gives.
    columns: Vec<usize>,
    schema: SchemaRef,
    /// What is made of these, the innermost first.
    projections: Vec<Projection>,
}

struct Projection {
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
}

impl KeyLookup {
    /// `None` for a plan of another shape.
    pub(crate) fn of(plan: &dyn ExecutionPlan) -> Option<Self> {
        if let Some(all) = plan.downcast_ref::<CoalescePartitionsExec>() {
            return Self::of(&**all.input()).filter(|_| all.fetch().is_none());
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let mut found = Self::of(&**projection.input())?;
            let exprs = projection.expr().iter().map(|shown| shown.expr.clone()).collect();
            found.projections.push(Projection { exprs, schema: projection.schema() });
            return Some(found);
        }
        let scan = plan.downcast_ref::<DataSourceExec>()?;
        let config = scan.data_source().downcast_ref::<FileScanConfig>()?;
        let source = config.file_source.downcast_ref::<RelationSource>()?;
        if source.parts.len() != 1 || config.limit.is_some() || source.is_count() {
            return None;
        }
        let (source, schema) = (source.clone(), plan.schema());
        Some(Self { columns: source.shown_columns()?, source, schema, projections: Vec::new() })
    }

    /// The rows, with each expression changed for this run; `None` where the plan is to run.
    ///
    /// # Errors
    /// As the plan's.
    pub(crate) fn rows(
        &self,
        context: &Arc<ScanContext>,
        change: impl Change,
    ) -> Result<Option<Vec<RecordBatch>>> {
        let source = self.source.renewed(context, &change)?;
        let [(table, _)] = &source.parts[..] else { return Ok(None) };
        if !source.index.decides_by_key(&source, table)? {
            return Ok(None);
        }
        let mut batches = read(&source, table)?;
        for batch in &mut batches {
            let arrays = self.columns.iter().map(|at| batch.column(*at).clone()).collect();
            *batch = made(arrays, batch.num_rows(), &self.schema)?;
            for Projection { exprs, schema } in &self.projections {
                let given = batch.schema();
                let exprs = exprs.iter().map(|expr| change(expr, &given));
                let exprs = exprs.collect::<QueryResult<Vec<_>>>()?;
                *batch = projected(batch, &exprs, schema)?;
            }
        }
        Ok(Some(batches))
    }
}

fn read(source: &RelationSource, table: &Arc<Table>) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    let account = ScanAccount::new(source, 0, (&(0..u32::MAX), table.blocks().into()));
    let out = Output { listener: Listener::Caller(&mut batches), left: usize::MAX };
    RowReader { source, part: 0, table, blocks: 0..u32::MAX, account, out }.read()?;
    Ok(batches)
}

fn projected(
    batch: &RecordBatch,
    exprs: &[Arc<dyn PhysicalExpr>],
    schema: &SchemaRef,
) -> QueryResult<RecordBatch> {
    let rows = batch.num_rows();
    let arrays = exprs.iter().map(|expr| expr.evaluate(batch)?.into_array(rows));
    made(arrays.collect::<QueryResult<_>>()?, rows, schema)
}

fn made(arrays: Vec<ArrayRef>, rows: usize, schema: &SchemaRef) -> QueryResult<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema.clone(), arrays, &options)?)
}
