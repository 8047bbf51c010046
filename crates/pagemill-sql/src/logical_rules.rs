//! The engine's rules for plans, and what they leave alone, as they would change an answer.
//!
//! - A condition goes below an aggregate where it names nothing but what the rows are grouped by. Without GROUP BY that is a condition
//!   that names nothing, or a constant: below it leaves out all rows, and the one row over nothing stays.
//! - Of inner joins that stand in each other others are made, over the same inputs. Whether NULL equals NULL is taken for all of them
//!   from the topmost: `(a JOIN b ON a.x IS NOT DISTINCT FROM b.x) JOIN c USING (y)` lost the rows where both are NULL, and the other way
//!   around rows would be joined that `=` keeps apart.
//!
//! Invariant: a filter on an aggregate without groups stays where it is, and a plan with a join for which NULL equals NULL keeps its
//! joins; all else is the engine's own.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::{ApplyOrder, Optimizer};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::correlated_aggregates::CorrelatedAggregates;

/// Whether a rule leaves a plan alone.
type Spares = fn(&LogicalPlan) -> Result<bool, DataFusionError>;

/// Rules by the names that they give themselves, and what each leaves alone.
const SPARED: [(&str, Spares); 2] =
    [("push_down_filter", is_on_global_group), ("eliminate_cross_join", joins_nulls)];

/// The rule that makes joins of queries that give one value.
const OF_QUERIES: &str = "scalar_subquery_to_join";

/// The engine's rules, and one of our own.
pub(crate) fn logical_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = Optimizer::new().rules;
    for (name, spares) in SPARED {
        let found = rules.iter_mut().filter(|rule| rule.name() == name);
        let sparing =
            found.map(|rule| *rule = Arc::new(Sparing { rule: Arc::clone(rule), spares }));
        assert!(sparing.count() > 0, "the engine has a rule {name}");
    }
    let of_queries = rules.iter().position(|rule| rule.name() == OF_QUERIES);
    let of_queries = of_queries.expect("the engine has this rule"); // infallible: it is one of its first
    rules.insert(of_queries, Arc::new(CorrelatedAggregates));
    rules
}

#[derive(Debug)]
struct Sparing {
    rule: Arc<dyn OptimizerRule + Send + Sync>,
    spares: Spares,
}

impl OptimizerRule for Sparing {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>, DataFusionError> {
        match (self.spares)(&plan)? {
            true => Ok(Transformed::no(plan)),
            false => self.rule.rewrite(plan, config),
        }
    }
}

/// True for a filter, or several, right on an aggregate without groups: the rule makes one of several before it hands them down.
fn is_on_global_group(plan: &LogicalPlan) -> Result<bool, DataFusionError> {
    let LogicalPlan::Filter(filter) = plan else { return Ok(false) };
    let mut below = &*filter.input;
    while let LogicalPlan::Filter(filter) = below {
        below = &filter.input;
    }
    Ok(matches!(below, LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty()))
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
