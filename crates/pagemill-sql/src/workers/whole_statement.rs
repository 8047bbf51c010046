//! The whole of a statement that several machines run, as the coordinator pulls its rows: it ends soon after it was cancelled, whatever
//! a worker does.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use datafusion::common::Result as QueryResult;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use datafusion_distributed::display_plan_ascii;
use futures::StreamExt as _;
use futures::stream::unfold;
use pagemill_engine::Progress;

use crate::error::Error;

/// How often is looked whether the statement was cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The statement.
#[derive(Debug)]
pub(crate) struct Distributed {
    input: Arc<dyn ExecutionPlan>,
    /// The plan that was divided.
    whole: Arc<dyn ExecutionPlan>,
    cancel: Progress,
}

impl Distributed {
    pub(super) fn new(
        input: Arc<dyn ExecutionPlan>,
        whole: &Arc<dyn ExecutionPlan>,
        cancel: Progress,
    ) -> Self {
        Self { input, whole: whole.clone(), cancel }
    }

    /// The plan as it was before it was divided: parts of its scans ran.
    pub(crate) fn whole(&self) -> &Arc<dyn ExecutionPlan> {
        &self.whole
    }

    /// The stages and what their tasks do, for EXPLAIN.
    pub(crate) fn stages(&self) -> String {
        #[cfg(feature = "ballista")]
        if let Some(statement) = self.input.downcast_ref::<super::ballista::OnBallista>() {
            return statement.stages();
        }
        display_plan_ascii(&*self.input, false)
    }
}

impl DisplayAs for Distributed {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Distributed")
    }
}

impl ExecutionPlan for Distributed {
    fn name(&self) -> &str {
        "Distributed"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
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
            Some(input) => Ok(Arc::new(Self::new(input, &self.whole, self.cancel.clone()))),
            None => Err(DataFusionError::Internal("a statement has an input".to_owned())),
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
        let rows = unfold(Some(rows), move |rows| next(rows, cancel.clone()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

type Next =
    Option<(QueryResult<arrow::record_batch::RecordBatch>, Option<SendableRecordBatchStream>)>;

async fn next(rows: Option<SendableRecordBatchStream>, cancel: Progress) -> Next {
    let mut rows = rows?;
    loop {
        tokio::select! {
            batch = rows.next() => {
                let batch = batch?;
                let rest = batch.is_ok().then_some(rows);
                return Some((batch, rest));
            }
            () = tokio::time::sleep(LOOK_EVERY) => {
                if cancel.is_cancelled() {
                    let cancelled = Error::from(pagemill_engine::Error::Cancelled);
                    return Some((Err(cancelled.into()), None));
                }
            }
        }
    }
}
