//! Queries in FROM that refer to what is before them.
//!
//! ```text
//! t, LATERAL (SELECT t.a + 1)                          → a projection of t
//! t, LATERAL (SELECT u.x FROM u WHERE u.a = t.a)       → t JOIN u ON u.a = t.a
//! t, LATERAL (SELECT u.x FROM u … ORDER BY … LIMIT 3)  → the query, run for each row of t
//! ```
//!
//! Source: `pull_up_simple_subquery` in `src/backend/optimizer/prep/prepjointree.c`, PostgreSQL 18.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::common::{Column, ExprSchema as _, JoinType};
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use sqlparser::ast::Query;

use super::from::joined;
use super::scope::{Level, Scope};
use super::{Binder, Bound};
use crate::error::{Result, unsupported};
use crate::for_each_row::RowQuery;
use crate::nested::has_query;

impl Binder<'_> {
    /// A query that sees the columns before it.
    pub(super) fn lateral(&mut self, query: &Query, before: Scope) -> Result<Bound> {
        self.levels.push(Level { scope: before, ..Level::default() });
        let bound = self.query(query);
        self.levels.pop();
        let mut bound = bound?;
        if bound.plan.schema().fields().len() > bound.columns.len() {
            let shown = bound.columns.iter().map(|column| column.typed.expr.clone());
            bound.plan =
                LogicalPlanBuilder::from(bound.plan).project(shown.collect::<Vec<_>>())?.build()?;
        }
        Ok(bound)
    }

    /// The rows on the left, each beside those of a query that refers to it.
    pub(super) fn joined_to_query(
        &mut self,
        left: LogicalPlan,
        query: LogicalPlan,
        kind: JoinType,
        conditions: Vec<Expr>,
    ) -> Result<LogicalPlan> {
        let conditions: Vec<Expr> =
            conditions.into_iter().filter(|condition| *condition != lit(true)).collect();
        let keeps_all = match kind {
            JoinType::Inner => false,
            JoinType::Left => true,
            _ => return unsupported("RIGHT or FULL JOIN to a query that refers to what is before"),
        };
        if !keeps_all || conditions.is_empty() {
            let plan = match pulled_up(&left, &query, kind)? {
                Some(plan) => plan,
                None => self.for_each(left, query, keeps_all)?,
            };
            return Ok(match conditions.into_iter().reduce(Expr::and) {
                None => plan,
                Some(condition) => LogicalPlanBuilder::from(plan).filter(condition)?.build()?,
            });
        }
        let inside = conditions.into_iter().map(|condition| inside(condition, &left));
        let condition = inside.collect::<Result<Vec<_>>>()?.into_iter().reduce(Expr::and);
        let condition = condition.unwrap_or_else(|| lit(true));
        let query = LogicalPlanBuilder::from(query).filter(condition)?.build()?;
        self.for_each(left, query, keeps_all)
    }

    /// The query, run for each row.
    fn for_each(
        &mut self,
        left: LogicalPlan,
        plan: LogicalPlan,
        keeps_all: bool,
    ) -> Result<LogicalPlan> {
        let outer = outer_columns(&plan);
        let value = |(column, carrier): &(Column, DataType)| {
            if left.schema().has_column(column) {
                return Expr::Column(column.clone());
            }
            let field = Field::new(column.name(), carrier.clone(), true);
            Expr::OuterReferenceColumn(Arc::new(field), column.clone())
        };
        let values = outer.iter().map(value).collect();
        let (name, nested) = (self.fresh("query"), self.tables.nested()?);
        Ok(RowQuery { name, plan, outer, keeps_all, nested }.over(left, values)?)
    }
}

/// What a query refers to of those around it, each once.
pub(super) fn outer_columns(plan: &LogicalPlan) -> Vec<(Column, DataType)> {
    let mut outer: Vec<(Column, DataType)> = Vec::new();
    for expr in plan.all_out_ref_exprs() {
        if let Expr::OuterReferenceColumn(field, column) = expr
            && outer.iter().all(|(known, _)| *known != column)
        {
            outer.push((column, field.data_type().clone()));
        }
    }
    outer
}

/// A condition on both sides as one of the query, which has the left one around it.
fn inside(condition: Expr, left: &LogicalPlan) -> Result<Expr> {
    if has_query(&condition) {
        return unsupported(
            "a query in the condition of a join to a query that refers to what is before",
        );
    }
    let turned = condition.transform_up(|part| {
        let field = match &part {
            Expr::Column(column) => left.schema().field_from_column(column).ok().cloned(),
            _ => None,
        };
        Ok(match (part, field) {
            (Expr::Column(column), Some(field)) => {
                Transformed::yes(Expr::OuterReferenceColumn(field, column))
            }
            (part, _) => Transformed::no(part),
        })
    });
    Ok(turned?.data)
}

/// The query as a join; `None` where its rows are not told one by one.
fn pulled_up(
    left: &LogicalPlan,
    query: &LogicalPlan,
    kind: JoinType,
) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Projection(shown) = query else { return Ok(None) };
    let (conditions, below) = match &*shown.input {
        LogicalPlan::Filter(filter) => {
            (split_conjunction_owned(filter.predicate.clone()), &filter.input)
        }
        _ => (Vec::new(), &shown.input),
    };
    let mut exprs: Vec<Expr> = left.schema().columns().into_iter().map(Expr::Column).collect();
    for expr in &shown.expr {
        let own = beside(expr.clone(), left)?;
        // Each has the name by which it goes in the query.
        let name = expr.schema_name().to_string();
        exprs.push(if matches!(own, Expr::Column(_) | Expr::Alias(_)) {
            own
        } else {
            own.alias(name)
        });
    }
    for expr in shown.expr.iter().chain(&conditions) {
        if has_query(expr) || expr.is_volatile() {
            return Ok(None);
        }
    }
    let conditions = conditions.into_iter().map(|condition| beside(condition, left));
    let conditions = conditions.collect::<Result<Vec<Expr>>>()?;
    if matches!(&**below, LogicalPlan::EmptyRelation(none) if none.produce_one_row)
        && (kind == JoinType::Inner || conditions.is_empty())
    {
        let mut plan = LogicalPlanBuilder::from(left.clone());
        if let Some(condition) = conditions.into_iter().reduce(Expr::and) {
            plan = plan.filter(condition)?;
        }
        return Ok(Some(plan.project(exprs)?.build()?));
    }
    if !below.all_out_ref_exprs().is_empty() {
        return Ok(None);
    }
    // Beside a row without any there are NULLs, not what is computed of NULLs: constants stand below the join.
    let mut below = below.as_ref().clone();
    if kind == JoinType::Left {
        let is_column = |expr: &Expr| match expr.clone().unalias() {
            Expr::Column(column) => below.schema().has_column(&column),
            _ => false,
        };
        let (columns, constants): (Vec<Expr>, Vec<Expr>) =
            shown.expr.iter().cloned().partition(is_column);
        if constants.iter().any(|expr| !matches!(expr.clone().unalias(), Expr::Literal(..))) {
            return Ok(None);
        }
        exprs.truncate(left.schema().fields().len());
        exprs.extend(columns);
        if !constants.is_empty() {
            let own = below.schema().columns().into_iter().map(Expr::Column);
            let all: Vec<Expr> = own.chain(constants.iter().cloned()).collect();
            below = LogicalPlanBuilder::from(below).project(all)?.build()?;
            let names = constants.iter().map(|expr| expr.schema_name().to_string());
            exprs.extend(names.map(|name| Expr::Column(Column::new_unqualified(name))));
        }
    }
    let conditions = if conditions.is_empty() { vec![lit(true)] } else { conditions };
    let plan = joined(left.clone(), below, kind, conditions)?;
    Ok(Some(LogicalPlanBuilder::from(plan).project(exprs)?.build()?))
}

/// The same, seen from beside the left side: what is of a query further out stays so.
fn beside(expr: Expr, left: &LogicalPlan) -> Result<Expr> {
    let turned = expr.transform_up(|part| {
        Ok(match part {
            Expr::OuterReferenceColumn(_, column) if left.schema().has_column(&column) => {
                Transformed::yes(Expr::Column(column))
            }
            part => Transformed::no(part),
        })
    });
    Ok(turned?.data)
}
