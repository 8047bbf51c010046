//! Keeps conditions above the one group of all rows.
//!
//! The engine hands a condition down below an aggregate where it names nothing but what the rows are grouped by. Without GROUP BY
//! that is a condition that names nothing, or a constant: below it leaves out all rows, and the one row over nothing stays.
//!
//! Invariant: a filter on an aggregate without groups stays where it is; all else is the engine's own rule.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::{ApplyOrder, Optimizer};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::null_equalities::{OneEquality, PUTS_TOGETHER};

/// The rule that hands conditions down, by the name that it gives itself.
const HANDS_DOWN: &str = "push_down_filter";

/// The engine's rules, of which the one that hands conditions down passes no group of all rows, and the one that puts joins together
/// keeps whether NULL equals NULL.
pub(crate) fn logical_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = Optimizer::new().rules;
    let found = rules.iter_mut().filter(|rule| rule.name() == HANDS_DOWN);
    let guarded = found.map(|rule| *rule = Arc::new(AboveGlobalGroups(Arc::clone(rule)))).count();
    assert!(guarded > 0, "the engine has a rule {HANDS_DOWN}");
    let found = rules.iter_mut().filter(|rule| rule.name() == PUTS_TOGETHER);
    let guarded = found.map(|rule| *rule = Arc::new(OneEquality(Arc::clone(rule)))).count();
    assert!(guarded > 0, "the engine has a rule {PUTS_TOGETHER}");
    rules
}

#[derive(Debug)]
struct AboveGlobalGroups(Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for AboveGlobalGroups {
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
        match is_on_global_group(&plan) {
            true => Ok(Transformed::no(plan)),
            false => self.0.rewrite(plan, config),
        }
    }
}

/// True for a filter, or several, right on an aggregate without groups: the rule makes one of several before it hands them down.
fn is_on_global_group(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Filter(filter) = plan else { return false };
    let mut below = &*filter.input;
    while let LogicalPlan::Filter(filter) = below {
        below = &filter.input;
    }
    matches!(below, LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty())
}
