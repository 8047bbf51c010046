//! Conditions of a query on the row around it, brought to the forms that the engine makes joins of.
//!
//! ```text
//! (SELECT v FROM t WHERE t.a = outer.a AND outer.b AND outer.a < t.c)
//!   → CASE WHEN outer.b THEN (SELECT v FROM t WHERE t.a = outer.a AND t.a < t.c) END
//! ```
//!
//! Invariant: what is moved depends on the row around alone, and what is put in its place is equal to it in every row that
//! is left.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Operator, lit};

use crate::error::Result;
use crate::nested::has_query;

/// The query without the conditions that are on the row around alone, and these, as conditions there.
pub(super) fn without_guards(plan: LogicalPlan) -> Result<(LogicalPlan, Vec<Expr>)> {
    match plan {
        LogicalPlan::Projection(shown) => {
            let (below, guards) = without_guards(Arc::unwrap_or_clone(shown.input))?;
            Ok((LogicalPlanBuilder::from(below).project(shown.expr)?.build()?, guards))
        }
        LogicalPlan::Filter(filter) => {
            let parts = split_conjunction_owned(filter.predicate);
            let (guards, rest): (Vec<Expr>, Vec<Expr>) = parts.into_iter().partition(is_guard);
            let rest = with_equals(rest)?;
            let below = Arc::unwrap_or_clone(filter.input);
            let condition = conjunction(rest).unwrap_or_else(|| lit(true));
            let plan = LogicalPlanBuilder::from(below).filter(condition)?.build()?;
            let guards = guards.into_iter().map(outside).collect::<Result<Vec<Expr>>>()?;
            Ok((plan, guards))
        }
        other => Ok((other, Vec::new())),
    }
}

/// The query with what it holds against the row around, where that is computed of its own rows, as a column of these: the engine makes
/// a join of `column = outer` alone. Conditions that do not refer to the row around stay before it, as they may keep rows from it
/// of which it cannot be computed.
pub(super) fn with_computed_keys(
    plan: LogicalPlan,
    fresh: &mut impl FnMut() -> String,
) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::Projection(shown) => {
            let below = with_computed_keys(Arc::unwrap_or_clone(shown.input), fresh)?;
            LogicalPlanBuilder::from(below).project(shown.expr)?.build()?
        }
        LogicalPlan::Aggregate(groups) => {
            let below = with_computed_keys(Arc::unwrap_or_clone(groups.input), fresh)?;
            let (keys, values) = (groups.group_expr, groups.aggr_expr);
            LogicalPlanBuilder::from(below).aggregate(keys, values)?.build()?
        }
        LogicalPlan::Filter(filter) => {
            let parts = split_conjunction_owned(filter.predicate.clone());
            let (mut outer, own): (Vec<Expr>, Vec<Expr>) =
                parts.into_iter().partition(Expr::contains_outer);
            let mut columns = Vec::new();
            for side in outer.iter_mut().filter_map(computed_side) {
                let name = fresh();
                let key = std::mem::replace(side, Expr::Column(Column::new_unqualified(&name)));
                columns.push(key.alias(name));
            }
            if columns.is_empty() {
                return Ok(LogicalPlan::Filter(filter));
            }
            let mut rows = LogicalPlanBuilder::from(Arc::unwrap_or_clone(filter.input));
            if let Some(own) = conjunction(own) {
                rows = rows.filter(own)?;
            }
            let given = rows.schema().columns().into_iter().map(Expr::Column);
            let all: Vec<Expr> = given.chain(columns).collect();
            let condition = conjunction(outer).unwrap_or_else(|| lit(true));
            rows.project(all)?.filter(condition)?.build()?
        }
        other => other,
    })
}

/// The side of an equality that is computed of a query's own columns, where the other is of the row around alone.
fn computed_side(part: &mut Expr) -> Option<&mut Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = part else { return None };
    let is_outer = |side: &Expr| side.contains_outer() && side.column_refs().is_empty();
    let own = match (is_outer(left), is_outer(right)) {
        (true, false) => right,
        (false, true) => left,
        _ => return None,
    };
    let is_computed = !own.contains_outer() && !own.is_volatile() && !has_query(own);
    (is_computed && !matches!(&**own, Expr::Column(_)) && !own.column_refs().is_empty())
        .then_some(&mut **own)
}

/// True for a condition on the row around alone.
fn is_guard(condition: &Expr) -> bool {
    condition.contains_outer()
        && condition.column_refs().is_empty()
        && !condition.is_volatile()
        && !has_query(condition)
}

/// The same, seen from the query around.
fn outside(condition: Expr) -> Result<Expr> {
    let turned = condition.transform_up(|part| {
        Ok(match part {
            Expr::OuterReferenceColumn(_, column) => Transformed::yes(Expr::Column(column)),
            other => Transformed::no(other),
        })
    });
    Ok(turned?.data)
}

/// In conditions that are no equalities, what is of the row around becomes what equals it.
fn with_equals(parts: Vec<Expr>) -> Result<Vec<Expr>> {
    let equal: Vec<(Column, Expr)> = parts.iter().filter_map(equality).collect();
    let one = |part: Expr| {
        if equality(&part).is_some() {
            return Ok(part);
        }
        let replaced = part.transform_up(|inner| {
            let found = match &inner {
                Expr::OuterReferenceColumn(_, column) => {
                    equal.iter().find(|(outer, _)| outer == column).map(|(_, own)| own.clone())
                }
                _ => None,
            };
            Ok(found.map_or(Transformed::no(inner), Transformed::yes))
        });
        Ok(replaced?.data)
    };
    parts.into_iter().map(one).collect()
}

/// True where the tables of a query belong together only by the row around it: as a join it would pair all of their rows.
pub(super) fn is_product(plan: &LogicalPlan) -> bool {
    fn count(plan: &LogicalPlan, tables: &mut usize, links: &mut usize) {
        match plan {
            LogicalPlan::TableScan(_) => *tables += 1,
            LogicalPlan::Join(join) => {
                // Before the engine has looked at it, what ON says is a condition.
                let parts = join.filter.iter().flat_map(|filter| split_conjunction(filter));
                let is_linked = !join.on.is_empty() || parts.into_iter().any(is_link);
                *links += usize::from(is_linked);
            }
            LogicalPlan::Filter(filter) => {
                let parts = split_conjunction(&filter.predicate).into_iter();
                *links += parts.filter(|part| is_link(part)).count();
            }
            _ => {}
        }
        plan.inputs().into_iter().for_each(|input| count(input, tables, links));
    }
    let (mut tables, mut links) = (0, 0);
    count(plan, &mut tables, &mut links);
    tables > links + 1
}

/// `own = own`.
fn is_link(part: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = part else { return false };
    let is_own = |side: &Expr| !side.column_refs().is_empty() && !side.contains_outer();
    is_own(left) && is_own(right)
}

/// `own = outer`, both of them columns as they are.
fn equality(part: &Expr) -> Option<(Column, Expr)> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = part else { return None };
    match (&**left, &**right) {
        (own @ Expr::Column(_), Expr::OuterReferenceColumn(_, outer))
        | (Expr::OuterReferenceColumn(_, outer), own @ Expr::Column(_)) => {
            Some((outer.clone(), own.clone()))
        }
        _ => None,
    }
}
