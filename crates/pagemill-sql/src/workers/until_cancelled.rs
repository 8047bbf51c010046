//! A step that hands rows on until the statement is cancelled. Both engines have tasks of their own going on a worker, which nobody ends
//! when the request of the statement does: the rows they wait for have to.
//!
//! Invariant: rows are what they are below.

use std::fmt;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::common::Result as QueryResult;
use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt as _;
use pagemill_engine::Progress;

use crate::error::Error;

/// The plan, in which whatever gives way to others ends when the statement is cancelled.
pub(super) fn until_cancelled(
    plan: Arc<dyn ExecutionPlan>,
    cancel: &Progress,
) -> QueryResult<Arc<dyn ExecutionPlan>> {
    let changed = plan.transform_up(|node| {
        Ok(match node.is::<CooperativeExec>() {
            true => {
                let watched = UntilCancelled { input: node, cancel: cancel.clone() };
                Transformed::yes(Arc::new(watched) as Arc<dyn ExecutionPlan>)
            }
            false => Transformed::no(node),
        })
    })?;
    Ok(changed.data)
}

#[derive(Debug)]
struct UntilCancelled {
    input: Arc<dyn ExecutionPlan>,
    cancel: Progress,
}

impl DisplayAs for UntilCancelled {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UntilCancelled")
    }
}

impl ExecutionPlan for UntilCancelled {
    fn name(&self) -> &str {
        "UntilCancelled"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> QueryResult<TreeNodeRecursion>,
    ) -> QueryResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) => Ok(Arc::new(Self { input, cancel: self.cancel.clone() })),
            None => Err(DataFusionError::Internal("what is watched has an input".to_owned())),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> QueryResult<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context)?;
        let (schema, cancel) = (rows.schema(), self.cancel.clone());
        let rows = rows.map(move |batch| unless_cancelled(batch, &cancel));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// A batch, or that the statement was cancelled.
pub(super) fn unless_cancelled(
    batch: QueryResult<RecordBatch>,
    cancel: &Progress,
) -> QueryResult<RecordBatch> {
    match cancel.is_cancelled() {
        true => Err(Error::from(pagemill_engine::Error::Cancelled).into()),
        false => batch,
    }
}
