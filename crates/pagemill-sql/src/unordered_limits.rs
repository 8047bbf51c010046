//! Rows that a LIMIT or OFFSET takes without an order, which a sort above must not change.
//!
//! The engine moves a sort below such a limit, as any rows would do for it: `(SELECT … LIMIT 3) ORDER BY x` became the first three
//! of all, and behind an OFFSET there were none. The server takes the rows that come first, and sorts these.
//!
//! ```text
//!   sort              sort                       sort
//!   limit      ──►    KeptRows      ── rule ──►  limit
//!   scan              limit                      scan
//! ```
//!
//! Invariant: no sort passes a step that cuts off rows in no order; the steps that stand in its way are gone when the rule is done.
//!
//! Source: `subquery_is_pushdown_safe` in `src/backend/optimizer/path/allpaths.c`, PostgreSQL 14 to 18.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{
    Transformed, TransformedResult as _, TreeNode as _, TreeNodeRecursion,
};
use datafusion::common::{Result as QueryResult, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

/// The engine's rule that moves sorts.
pub(crate) const MOVES_SORTS: &str = "EnsureRequirements";

/// That rule, for plans whose limits keep their rows.
#[derive(Debug)]
pub(crate) struct UnorderedLimits(pub(crate) Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for UnorderedLimits {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        let kept = |node: Arc<dyn ExecutionPlan>| {
            let is_limit = node.is::<GlobalLimitExec>() || node.is::<LocalLimitExec>();
            let is_unordered = is_limit && node.properties().output_ordering().is_none();
            Ok(match is_unordered {
                true => Transformed::yes(Arc::new(KeptRows { input: node }) as Arc<_>),
                false => Transformed::no(node),
            })
        };
        let free = |node: Arc<dyn ExecutionPlan>| {
            let kept = node.downcast_ref::<KeptRows>().map(|kept| kept.input.clone());
            Ok(kept.map_or_else(|| Transformed::no(node), Transformed::yes))
        };
        let plan = plan.transform_up(kept).data()?;
        self.0.optimize(plan, config)?.transform_up(free).data()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Stands above a limit while sorts are moved.
#[derive(Debug)]
struct KeptRows {
    input: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for KeptRows {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptRows")
    }
}

impl ExecutionPlan for KeptRows {
    fn name(&self) -> &str {
        "KeptRows"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    /// Said so that no sort passes.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
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
            (Some(input), true) => Ok(Arc::new(Self { input })),
            _ => internal_err!("one limit is kept"),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
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
