//! Queries in expressions of which one row matters, brought to what the engine makes joins of: it has no `LIMIT` for each row around.
//!
//! ```text
//! (SELECT v FROM t WHERE t.a = outer.a ORDER BY k LIMIT 1)  →  (SELECT first_value(v ORDER BY k) FROM t WHERE t.a = outer.a)
//! EXISTS (SELECT … LIMIT 1)                                →  EXISTS (SELECT …)
//! ```
//!
//! Invariant: of rows that are equal in the order any may come first, as with the server; without an order a query stays as it is.

use std::sync::Arc;

use datafusion::functions_aggregate::expr_fn::first_value;
use datafusion::logical_expr::{
    Expr, FetchType, LogicalPlan, LogicalPlanBuilder, SkipType, SortExpr,
};

use super::subqueries::below_one_value;
use crate::error::Result;

/// The value that a query of one column has in its first row, as an aggregate of this name; `None` for a query of another shape.
pub(super) fn first_as_aggregate(plan: &LogicalPlan, name: &str) -> Result<Option<LogicalPlan>> {
    let Some((rows, value, order)) = first_in_order(plan) else { return Ok(None) };
    let first = first_value(value, order).alias(name);
    let plan = LogicalPlanBuilder::from(rows).aggregate(Vec::<Expr>::new(), [first])?;
    Ok(Some(plan.build()?))
}

/// The rows in whose order the first one matters, and its value.
fn first_in_order(plan: &LogicalPlan) -> Option<(LogicalPlan, Expr, Vec<SortExpr>)> {
    let whole = || Some((plan.clone(), Expr::Column(plan.schema().columns().into_iter().next()?)));
    let (plan, value) = below_one_value(plan).or_else(whole)?;
    let LogicalPlan::Limit(limit) = plan else { return None };
    let is_first = matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(1))))
        && matches!(limit.get_skip_type(), Ok(SkipType::Literal(0)));
    match Arc::unwrap_or_clone(limit.input) {
        LogicalPlan::Sort(sort) if is_first && sort.fetch.is_none() => {
            Some((Arc::unwrap_or_clone(sort.input), value, sort.expr))
        }
        _ => None,
    }
}

/// The query without a limit that leaves it a row if it has any.
pub(super) fn without_limit(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::Limit(limit)
            if matches!(limit.get_fetch_type(), Ok(FetchType::Literal(fetch)) if fetch != Some(0))
                && matches!(limit.get_skip_type(), Ok(SkipType::Literal(0))) =>
        {
            Arc::unwrap_or_clone(limit.input)
        }
        LogicalPlan::Projection(shown) => {
            let input = without_limit(Arc::unwrap_or_clone(shown.input))?;
            LogicalPlanBuilder::from(input).project(shown.expr)?.build()?
        }
        other => other,
    })
}
