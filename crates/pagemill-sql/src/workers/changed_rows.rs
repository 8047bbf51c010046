//! A step that hands on the rows of its input, with something done to their stream on the way: where the engine has no step for what
//! has to be seen to between two of its own.
//!
//! Invariant: the rows are those of the input, in its order, until an error.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result as QueryResult;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};

/// The rows of an input, or why it has none.
pub(super) type Rows = QueryResult<SendableRecordBatchStream>;
/// What is done to them.
type Change = Arc<dyn Fn(Rows) -> Rows + Send + Sync>;

/// The step.
pub(super) struct ChangedRows {
    name: &'static str,
    input: Arc<dyn ExecutionPlan>,
    change: Change,
}

impl ChangedRows {
    pub(super) fn over(
        input: Arc<dyn ExecutionPlan>,
        name: &'static str,
        change: impl Fn(Rows) -> Rows + Send + Sync + 'static,
    ) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self { name, input, change: Arc::new(change) })
    }
}

impl fmt::Debug for ChangedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.name).field("input", &self.input).finish_non_exhaustive()
    }
}

impl DisplayAs for ChangedRows {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl ExecutionPlan for ChangedRows {
    fn name(&self) -> &str {
        self.name
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
            Some(input) => {
                Ok(Arc::new(Self { name: self.name, input, change: self.change.clone() }))
            }
            None => Err(DataFusionError::Internal(format!("{} has an input", self.name))),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Rows {
        (self.change)(self.input.execute(partition, context))
    }
}
