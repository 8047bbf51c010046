//! Aggregates of rows that are held against the row around by more than equality, as a join instead of a query for each row.
//!
//! ```text
//! rows ── (SELECT agg(b.v) FROM b WHERE b.k = rows.k AND b.at < rows.at)
//!
//! rows ──► different (k, at) ──⋈ b.k = k AND b.at < at──► agg, grouped by (k, at)
//!   └───────── left join by (k, at), where NULL is NULL ────────┘
//! ```
//!
//! The engine makes a join of equalities alone. Where there is none, each row would be held against all others; that is left to the
//! query for each row, which may find them by an index.
//!
//! Invariants: the rows around are read twice and kept in memory once, so they are only such as come the same again, and of tables
//! that are not large; values are joined by their bytes, so they are of types whose different bytes may be equal, but never the
//! other way around.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, NullEquality, Result, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, lit, when,
};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::nested::has_query;

/// Has to come before the engine's own rule for such queries.
#[derive(Debug)]
pub(crate) struct CorrelatedAggregates;

impl OptimizerRule for CorrelatedAggregates {
    fn name(&self) -> &str {
        "correlated_aggregates"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let mut fresh = || config.alias_generator().next("aggregate");
        match plan {
            LogicalPlan::Filter(filter) => {
                let given: Vec<Expr> = columns(&filter.input);
                let (input, exprs) = joined(&filter.input, &[&filter.predicate], &mut fresh)?;
                let Some(input) = input else {
                    return Ok(Transformed::no(LogicalPlan::Filter(filter)));
                };
                let [predicate] = <[Expr; 1]>::try_from(exprs).expect("it has one"); // infallible: one went in
                let rows = LogicalPlanBuilder::from(input).filter(predicate)?;
                Ok(Transformed::yes(rows.project(given)?.build()?))
            }
            LogicalPlan::Projection(shown) => {
                let exprs: Vec<&Expr> = shown.expr.iter().collect();
                let (input, exprs) = joined(&shown.input, &exprs, &mut fresh)?;
                let Some(input) = input else {
                    return Ok(Transformed::no(LogicalPlan::Projection(shown)));
                };
                let names = NamePreserver::new_for_projection();
                let exprs = shown.expr.iter().zip(exprs);
                let exprs = exprs.map(|(before, expr)| names.save(before).restore(expr));
                let exprs: Vec<Expr> = exprs.collect();
                Ok(Transformed::yes(LogicalPlanBuilder::from(input).project(exprs)?.build()?))
            }
            other => Ok(Transformed::no(other)),
        }
    }
}

fn named(name: &String) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

fn columns(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}

/// The rows with what queries in these expressions give beside them, and the expressions over that; none where there is no such query.
fn joined(
    rows: &Arc<LogicalPlan>,
    exprs: &[&Expr],
    fresh: &mut impl FnMut() -> String,
) -> Result<(Option<LogicalPlan>, Vec<Expr>)> {
    if !exprs.iter().any(|expr| has_query(expr)) {
        return Ok((None, Vec::new()));
    }
    let mut with_values: Option<LogicalPlan> = None;
    let mut known: Vec<(Expr, Expr)> = Vec::new();
    let mut over = Vec::with_capacity(exprs.len());
    for expr in exprs {
        let replaced = (*expr).clone().transform_down(|inner| {
            let Expr::ScalarSubquery(query) = &inner else { return Ok(Transformed::no(inner)) };
            if let Some((_, value)) = known.iter().find(|(before, _)| *before == inner) {
                return Ok(Transformed::new(value.clone(), true, TreeNodeRecursion::Jump));
            }
            let Some(found) = HeldAgainst::find(query, rows)? else {
                return Ok(Transformed::no(inner));
            };
            let below = with_values.take().unwrap_or_else(|| rows.as_ref().clone());
            let (beside, value) = found.beside(below, rows, fresh)?;
            with_values = Some(beside);
            known.push((inner, value.clone()));
            Ok(Transformed::new(value, true, TreeNodeRecursion::Jump))
        })?;
        over.push(replaced.data);
    }
    Ok((with_values, over))
}

/// A query of aggregates of rows that are held against the row around.
struct HeldAgainst<'q> {
    /// What is shown of the aggregates, from the top down.
    shown: Vec<&'q [Expr]>,
    groups: &'q Aggregate,
    /// What is computed of the rows before they are aggregated, from the top down.
    computed: Vec<&'q [Expr]>,
    /// The rows, and the conditions that do not refer to the row around.
    own: LogicalPlan,
    conditions: Vec<Expr>,
    /// The columns of the row around.
    outer: Vec<Column>,
}

impl<'q> HeldAgainst<'q> {
    /// `None` for a query that is to stay as it is.
    fn find(query: &'q Subquery, rows: &LogicalPlan) -> Result<Option<Self>> {
        let is_within = !rows.all_out_ref_exprs().is_empty();
        if is_within || !comes_again(rows)? || !is_kept(rows)? {
            return Ok(None);
        }
        let (shown, below) = projections(&query.subquery);
        let LogicalPlan::Aggregate(groups) = below else { return Ok(None) };
        let (computed, below) = projections(&groups.input);
        let LogicalPlan::Filter(filter) = below else { return Ok(None) };
        let aggregated = groups.aggr_expr.iter();
        let above = shown.iter().chain(&computed).copied().flatten().chain(aggregated);
        let refers = above.into_iter().any(Expr::contains_outer);
        if refers || !groups.group_expr.is_empty() || !filter.input.all_out_ref_exprs().is_empty() {
            return Ok(None);
        }
        let parts = split_conjunction_owned(filter.predicate.clone());
        let (conditions, own): (Vec<Expr>, Vec<Expr>) =
            parts.into_iter().partition(Expr::contains_outer);
        let is_plain = |part: &Expr| !part.is_volatile() && !has_query(part);
        let keys = conditions.iter().filter(|part| is_key(part)).count();
        // Of equalities alone the engine makes a join itself.
        if keys == 0 || keys == conditions.len() || !conditions.iter().all(is_plain) {
            return Ok(None);
        }
        let Some(outer) = columns_around(&conditions, rows)? else { return Ok(None) };
        let own_rows = LogicalPlanBuilder::from(filter.input.as_ref().clone());
        let own = match conjunction(own) {
            Some(own) => own_rows.filter(own)?.build()?,
            None => own_rows.build()?,
        };
        Ok(Some(Self { shown, groups, computed, own, conditions, outer }))
    }

    /// The value beside each of these rows, and the expression that gives it there.
    fn beside(
        self,
        below: LogicalPlan,
        rows: &LogicalPlan,
        fresh: &mut impl FnMut() -> String,
    ) -> Result<(LogicalPlan, Expr)> {
        let names: Vec<String> = self.outer.iter().map(|_| fresh()).collect();
        let (value, marker) = (fresh(), fresh());
        let (found, shown) = self.of_each(rows, &names)?;
        let all = names.iter().map(named).chain([shown.alias(&value), lit(true).alias(&marker)]);
        let found = found.project(all.collect::<Vec<_>>())?.build()?;
        let (value, marker) = (named(&value), named(&marker));
        let value = match self.of_no_rows()? {
            Expr::Literal(null, _) if null.is_null() => value,
            of_none => when(marker.is_null(), of_none).otherwise(value)?,
        };
        let names = names.iter().map(Column::new_unqualified).collect();
        let (keys, nulls) = ((self.outer, names), NullEquality::NullEqualsNull);
        let joined = LogicalPlanBuilder::from(below);
        Ok((joined.join_detailed(found, JoinType::Left, keys, None, nulls)?.build()?, value))
    }

    /// What the query gives for all different values of the columns around, beside these under their names; and the column of it.
    fn of_each(&self, rows: &LogicalPlan, names: &[String]) -> Result<(LogicalPlanBuilder, Expr)> {
        let given: Vec<Expr> = names.iter().map(named).collect();
        let around = self.outer.iter().zip(names);
        let around = around.map(|(column, name)| Expr::Column(column.clone()).alias(name));
        let different = LogicalPlanBuilder::from(rows.clone()).project(around)?;
        let different = different.aggregate(given.clone(), Vec::<Expr>::new())?;
        let conditions = self.conditions.iter().cloned();
        let conditions = conditions.map(|part| with_names(part, &self.outer, &given));
        let conditions = conditions.collect::<Result<Vec<Expr>>>()?;
        let mut found = different.join_on(self.own.clone(), JoinType::Inner, conditions)?;
        for exprs in self.computed.iter().rev() {
            found = found.project(exprs.iter().chain(&given).cloned())?;
        }
        found = found.aggregate(given.clone(), self.groups.aggr_expr.clone())?;
        for exprs in self.shown.iter().rev() {
            found = found.project(exprs.iter().chain(&given).cloned())?;
        }
        // What is shown comes before what it is grouped by, and bare aggregates behind it.
        let place = if self.shown.is_empty() { given.len() } else { 0 };
        let shown = Expr::Column(found.schema().columns().swap_remove(place));
        Ok((found, shown))
    }

    /// What the query gives where no row is left to aggregate.
    fn of_no_rows(&self) -> Result<Expr> {
        let schema = &self.groups.schema;
        let mut values: HashMap<Column, Expr> = HashMap::new();
        for ((column, field), expr) in
            schema.columns().into_iter().zip(schema.fields()).zip(&self.groups.aggr_expr)
        {
            let none = match expr.clone().unalias() {
                Expr::AggregateFunction(call) => call.func.default_value(field.data_type())?,
                _ => ScalarValue::try_from(field.data_type())?,
            };
            values.insert(column, Expr::Literal(none, None));
        }
        let mut first = schema.columns().first().and_then(|column| values.get(column)).cloned();
        for exprs in self.shown.iter().rev() {
            let mut above = HashMap::new();
            first = None;
            for expr in *exprs {
                let (relation, name) = expr.qualified_name();
                let of_none = expr.clone().unalias().transform_up(|inner| {
                    let found = match &inner {
                        Expr::Column(column) => values.get(column).cloned(),
                        _ => None,
                    };
                    Ok(found.map_or(Transformed::no(inner), Transformed::yes))
                })?;
                first.get_or_insert_with(|| of_none.data.clone());
                above.insert(Column::new(relation, name), of_none.data);
            }
            values = above;
        }
        Ok(first.expect("a query has a column")) // infallible: it gives a value
    }
}

/// The expressions of projections on top of each other, and what is below.
fn projections(plan: &LogicalPlan) -> (Vec<&[Expr]>, &LogicalPlan) {
    let (mut found, mut below) = (Vec::new(), plan);
    while let LogicalPlan::Projection(shown) = below {
        found.push(&shown.expr[..]);
        below = &shown.input;
    }
    (found, below)
}

/// Whether the same rows come if a plan runs again.
fn comes_again(plan: &LogicalPlan) -> Result<bool> {
    let mut comes = true;
    plan.apply(|node| {
        comes &= matches!(
            node,
            LogicalPlan::TableScan(_)
                | LogicalPlan::Filter(_)
                | LogicalPlan::Projection(_)
                | LogicalPlan::SubqueryAlias(_)
                | LogicalPlan::Join(_)
                | LogicalPlan::Union(_)
                | LogicalPlan::Values(_)
        );
        node.apply_expressions(|expr| {
            comes &= !expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if comes { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(comes)
}

/// Rows of tables that may be kept in memory, at most.
const MOST_ROWS: usize = 4_000_000;

/// Whether the rows of a plan may be kept in memory. Tables of which nothing is known are files that somebody named.
fn is_kept(plan: &LogicalPlan) -> Result<bool> {
    let mut rows: usize = 0;
    plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let known = source_as_provider(&scan.source)?.statistics();
            let known = known.and_then(|known| known.num_rows.get_value().copied());
            rows = rows.saturating_add(known.unwrap_or(0));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(rows <= MOST_ROWS)
}

/// An equality of what is of the row around alone, and what is of the query's own rows.
fn is_key(part: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = part else { return false };
    let is_outer = |side: &Expr| side.contains_outer() && side.column_refs().is_empty();
    let is_own = |side: &Expr| !side.contains_outer() && !side.column_refs().is_empty();
    is_outer(left) && is_own(right) || is_own(left) && is_outer(right)
}

/// The columns of the row around that conditions refer to, each once; `None` where one is of a row further out, or has values that
/// are not joined by their bytes.
fn columns_around(conditions: &[Expr], rows: &LogicalPlan) -> Result<Option<Vec<Column>>> {
    let (mut found, mut are_known) = (Vec::new(), true);
    for part in conditions {
        part.apply(|inner| {
            if let Expr::OuterReferenceColumn(field, column) = inner {
                are_known &= rows.schema().has_column(column) && is_joined(field.data_type());
                if !found.contains(column) {
                    found.push(column.clone());
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(are_known.then_some(found))
}

fn is_joined(carrier: &DataType) -> bool {
    let is_text = matches!(carrier, DataType::Utf8 | DataType::Binary | DataType::Boolean);
    is_text || carrier.is_integer() || carrier.is_temporal() || carrier.is_decimal()
}

/// A condition over names in place of columns of the row around.
fn with_names(part: Expr, outer: &[Column], given: &[Expr]) -> Result<Expr> {
    let named = part.transform_up(|inner| {
        let place = match &inner {
            Expr::OuterReferenceColumn(_, column) => outer.iter().position(|one| one == column),
            _ => None,
        };
        Ok(place.map_or(Transformed::no(inner), |place| Transformed::yes(given[place].clone())))
    });
    Ok(named?.data)
}
