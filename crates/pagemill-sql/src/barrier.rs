//! A step that lets rows through and no condition down: behind it stand those that decide which rows may be seen at all.
//!
//! ```text
//!   the statement's conditions      may fail, and tell by that of the rows they see
//!   ─────────── Barrier ──────────  none is moved below, merged, or searched an index for
//!   policies, a view's conditions
//! ```
//!
//! Invariant: what is above sees no row that is not handed up, not by an error either. The server lets conditions through that it
//! knows to be leakproof; here none is.
//!
//! Source: `security_barrier` in `src/backend/optimizer/path/allpaths.c` (`subquery_is_pushdown_safe`), `security_level` in
//! `src/backend/optimizer/plan/initsplan.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchemaRef, Result as QueryResult, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

/// The plan with a barrier on top.
pub(crate) fn behind_barrier(input: LogicalPlan) -> LogicalPlan {
    LogicalPlan::Extension(Extension { node: Arc::new(Barrier { input }) })
}

/// What is behind a barrier, if the node is one.
pub(crate) fn barred(plan: &LogicalPlan) -> Option<&LogicalPlan> {
    let LogicalPlan::Extension(Extension { node }) = plan else { return None };
    node.as_any().downcast_ref::<Barrier>().map(|barrier| &barrier.input)
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Barrier {
    input: LogicalPlan,
}

impl PartialOrd for Barrier {
    /// Barriers have no order.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for Barrier {
    fn name(&self) -> &str {
        "Barrier"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.input.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Barrier")
    }

    fn with_exprs_and_inputs(
        &self,
        _: Vec<Expr>,
        mut inputs: Vec<LogicalPlan>,
    ) -> QueryResult<Self> {
        let input = inputs.pop().expect("a barrier has an input"); // infallible: as many as inputs() gave
        Ok(Self { input })
    }

    fn necessary_children_exprs(&self, wanted: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![wanted.to_vec()])
    }
}

/// Plans barriers.
pub(crate) struct Barriers;

#[async_trait]
impl ExtensionPlanner for Barriers {
    async fn plan_extension(
        &self,
        _: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        _: &dyn Session,
        _: &PhysicalPlanningContext,
    ) -> QueryResult<Option<Arc<dyn ExecutionPlan>>> {
        let is_one = node.as_any().is::<Barrier>();
        Ok(is_one.then(|| BarrierExec::over(inputs[0].clone(), Bars::Conditions)))
    }
}

/// What does not pass a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bars {
    Conditions,
    /// Sorts neither.
    Sorts,
}

/// The step when it runs. Of filters from above it says nothing, which the engine takes for a refusal.
#[derive(Debug)]
struct BarrierExec {
    input: Arc<dyn ExecutionPlan>,
    bars: Bars,
}

impl BarrierExec {
    fn over(input: Arc<dyn ExecutionPlan>, bars: Bars) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self { input, bars })
    }
}

/// A step that no sort passes, while plans are made.
pub(crate) fn behind_sorts(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    BarrierExec::over(input, Bars::Sorts)
}

/// What is behind a step that no sort passes, if the node is one.
pub(crate) fn barred_from_sorts(node: &dyn ExecutionPlan) -> Option<&Arc<dyn ExecutionPlan>> {
    let barrier = node.downcast_ref::<BarrierExec>()?;
    (barrier.bars == Bars::Sorts).then_some(&barrier.input)
}

/// True for a barrier.
#[cfg(feature = "workers")]
pub(crate) fn is_barrier(node: &dyn ExecutionPlan) -> bool {
    node.is::<BarrierExec>()
}

/// A barrier as it comes to a worker.
#[cfg(feature = "workers")]
pub(crate) fn barrier_over(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    BarrierExec::over(input, Bars::Conditions)
}

impl DisplayAs for BarrierExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BarrierExec")
    }
}

impl ExecutionPlan for BarrierExec {
    fn name(&self) -> &str {
        "BarrierExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    /// Rows keep their order. The engine moves no sort below what says otherwise.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.bars != Bars::Sorts]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
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
            (Some(input), true) => Ok(Self::over(input, self.bars)),
            _ => internal_err!("a barrier has one input"),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> QueryResult<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
