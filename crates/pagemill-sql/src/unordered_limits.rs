//! Rows that a LIMIT or OFFSET takes without an order, which a sort above must not change, and those that it takes in one.
//!
//! The engine moves a sort below such a limit, as any rows would do for it: `(SELECT … LIMIT 3) ORDER BY x` became the first three
//! of all, and behind an OFFSET there were none. The server takes the rows that come first, and sorts these.
//!
//! ```text
//!   sort              sort                       sort
//!   limit      ──►    barrier       ── rule ──►  limit
//!   scan              limit                      scan
//! ```
//!
//! It also took the sort below an OFFSET away where nothing above asks for the order.
//!
//! Invariant: each limit takes its rows of the sort that was below it; no sort passes a step that cuts off rows in no order; the steps that stand in its way are gone when the rule is done.
//!
//! Source: `subquery_is_pushdown_safe` in `src/backend/optimizer/path/allpaths.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use datafusion::common::Result as QueryResult;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{
    Transformed, TransformedResult as _, TreeNode as _, TreeNodeRecursion,
};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::sorts::sort::SortExec;

use crate::barrier::{barred_from_sorts, behind_sorts};

/// The engine's rule that moves sorts.
pub(crate) const MOVES_SORTS: &str = "EnsureRequirements";

/// That rule, for plans whose limits keep their rows.
#[derive(Debug)]
pub(crate) struct UnorderedLimits(pub(crate) Arc<dyn PhysicalOptimizerRule + Send + Sync>);

/// Marks a sort that the rule must not take away, as it takes none away of which only the first rows are wanted. What the rule makes
/// of it wants as many.
const KEPT: usize = usize::MAX;

/// The sort that a limit takes its rows of, kept.
fn with_kept_sort(
    node: Arc<dyn ExecutionPlan>,
) -> QueryResult<Transformed<Arc<dyn ExecutionPlan>>> {
    if !node.is::<GlobalLimitExec>() && !node.is::<LocalLimitExec>() {
        return Ok(Transformed::no(node));
    }
    let below = Arc::clone(node.children()[0]);
    let below = below.transform_down(|node| match node.downcast_ref::<SortExec>() {
        Some(sort) => {
            let is_plain = sort.fetch().is_none();
            let kept = is_plain.then(|| Arc::new(sort.with_fetch(Some(KEPT))) as _);
            Ok(Transformed::new(kept.unwrap_or(node), is_plain, TreeNodeRecursion::Jump))
        }
        None if node.children().len() == 1 => Ok(Transformed::no(node)),
        None => Ok(Transformed::new(node, false, TreeNodeRecursion::Jump)),
    })?;
    match below.transformed {
        true => {
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Ok(Transformed::yes(node.replace_children(vec![below.data], options)?))
        }
        false => Ok(Transformed::no(node)),
    }
}

fn without_mark(node: Arc<dyn ExecutionPlan>) -> QueryResult<Transformed<Arc<dyn ExecutionPlan>>> {
    let is_marked = node.fetch() == Some(KEPT);
    let plain = if is_marked { node.with_fetch(None) } else { None };
    Ok(plain.map_or_else(|| Transformed::no(node), Transformed::yes))
}

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
                true => Transformed::yes(behind_sorts(node)),
                false => Transformed::no(node),
            })
        };
        let free = |node: Arc<dyn ExecutionPlan>| {
            let kept = barred_from_sorts(&*node).cloned();
            Ok(kept.map_or_else(|| Transformed::no(node), Transformed::yes))
        };
        let plan = plan.transform_up(kept).data()?.transform_down(with_kept_sort).data()?;
        self.0.optimize(plan, config)?.transform_up(free).data()?.transform_up(without_mark).data()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}
