//! Parts of a plan one after the other, for statements of one thread: the rows of `SELECT 1 UNION ALL SELECT 2` come in the order that is
//! written.
//!
//! The engine's own step for it asks all parts at once, and takes the rows of whichever has some first.
//!
//! Invariant: the rows are those of all parts, and a part is begun when that before it has ended.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Result as QueryResult, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, PlanProperties,
};
use futures::{StreamExt as _, TryStreamExt as _, stream};

/// A plan whose parts come one after the other, wherever they come together, and also at its end.
pub(crate) fn in_order(plan: &Arc<dyn ExecutionPlan>) -> QueryResult<Arc<dyn ExecutionPlan>> {
    let ordered = plan.clone().transform_up(|step| {
        let Some(together) = step.downcast_ref::<CoalescePartitionsExec>() else {
            return Ok(Transformed::no(step));
        };
        let parts = one_after_another(together.input().clone());
        Ok(Transformed::yes(match together.fetch() {
            Some(_) => Arc::new(GlobalLimitExec::new(parts, 0, together.fetch())),
            None => parts,
        }))
    });
    Ok(one_after_another(ordered?.data))
}

fn one_after_another(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.output_partitioning().partition_count() {
        1 => plan,
        _ => Arc::new(PartsInOrder::new(plan)),
    }
}

/// The partitions of a plan as one.
#[derive(Debug)]
struct PartsInOrder {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl PartsInOrder {
    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Self { input, properties: Arc::new(properties) }
    }
}

impl DisplayAs for PartsInOrder {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for PartsInOrder {
    fn name(&self) -> &str {
        "PartsInOrder"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
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
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self::new(input))),
            _ => internal_err!("parts are those of one plan"),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        let anew = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, anew)
    }

    fn execute(
        &self,
        _: usize,
        context: Arc<TaskContext>,
    ) -> QueryResult<SendableRecordBatchStream> {
        let input = self.input.clone();
        let parts = input.output_partitioning().partition_count();
        let rows = stream::iter(0..parts).map(move |part| input.execute(part, context.clone()));
        let rows = RecordBatchStreamAdapter::new(self.schema(), rows.try_flatten());
        Ok(make_cooperative(Box::pin(rows)))
    }
}
