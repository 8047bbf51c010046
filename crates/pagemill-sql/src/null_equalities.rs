//! Joins for which NULL equals NULL are not put together with others.
//!
//! Of inner joins that stand in each other the engine makes others, over the same inputs. Whether NULL equals NULL it takes for all of
//! them from the topmost: `(a JOIN b ON a.x IS NOT DISTINCT FROM b.x) JOIN c USING (y)` lost the rows where both are NULL, and the other
//! way around rows would be joined that `=` keeps apart.
//!
//! Invariant: a plan with such a join is left as it is; all else is the engine's own rule.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The engine's rule that puts joins together, by the name that it gives itself.
pub(crate) const PUTS_TOGETHER: &str = "eliminate_cross_join";

/// That rule, for plans whose joins have one equality.
#[derive(Debug)]
pub(crate) struct OneEquality(pub(crate) Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for OneEquality {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>, DataFusionError> {
        match joins_nulls(&plan)? {
            true => Ok(Transformed::no(plan)),
            false => self.0.rewrite(plan, config),
        }
    }
}

/// Whether NULL equals NULL for an inner join in the plan, or in a query of its expressions.
fn joins_nulls(plan: &LogicalPlan) -> Result<bool, DataFusionError> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= matches!(node, LogicalPlan::Join(join)
            if join.join_type == JoinType::Inner && join.null_equality == NullEquality::NullEqualsNull);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}
