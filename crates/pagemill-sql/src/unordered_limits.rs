//! Rows that a LIMIT or OFFSET takes without an order, which a sort above must not change.
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
//! Invariant: no sort passes a step that cuts off rows in no order; the steps that stand in its way are gone when the rule is done.
//!
//! Source: `subquery_is_pushdown_safe` in `src/backend/optimizer/path/allpaths.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use datafusion::common::Result as QueryResult;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNode as _};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};

use crate::barrier::{barred_from_sorts, behind_sorts};

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
                true => Transformed::yes(behind_sorts(node)),
                false => Transformed::no(node),
            })
        };
        let free = |node: Arc<dyn ExecutionPlan>| {
            let kept = barred_from_sorts(&*node).cloned();
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
