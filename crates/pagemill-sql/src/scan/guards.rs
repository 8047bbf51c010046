//! Conditions that can fail are asked only about the rows that the conditions before them leave.
//!
//! The engine asks all parts of `a <> 0 AND 10 / a > 0` about all rows of a batch, unless few of them are left. Below a scan
//! that cannot happen (`filters.rs`); above groups, joins and subqueries it would end a statement that the server answers.
//!
//! Invariant: a row passes as before, since a filter drops a row by NULL as it does by false.

use std::sync::Arc;

use datafusion::common::Result as QueryResult;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNode as _};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{case, lit};
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};

use super::harmless::is_harmless;

/// The rule; it comes last, when conditions have been handed down.
#[derive(Debug)]
pub(crate) struct GuardedConditions;

impl PhysicalOptimizerRule for GuardedConditions {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| match node.downcast_ref::<FilterExec>() {
            Some(filter) => guarded(filter),
            None => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "GuardedConditions"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn guarded(filter: &FilterExec) -> QueryResult<Transformed<Arc<dyn ExecutionPlan>>> {
    let schema = filter.input().schema();
    let parts = split_conjunction(filter.predicate());
    let can_fail = parts.iter().rposition(|part| !is_harmless(part, &schema)).unwrap_or(0);
    if can_fail == 0 {
        return Ok(Transformed::no(Arc::new(filter.clone())));
    }
    let mut parts = parts.into_iter().rev().cloned();
    let last = parts.next().expect("a condition has a part"); // infallible: split of one
    let one = parts.try_fold(last, |behind, part| -> QueryResult<Arc<dyn PhysicalExpr>> {
        case(None, vec![(part, behind)], Some(lit(false)))
    })?;
    let filter = FilterExecBuilder::from(filter).with_predicate(one).build()?;
    Ok(Transformed::yes(Arc::new(filter)))
}
