//! What aggregates take, and what rows are grouped by, in which what stands behind AND or OR is computed only for the rows that need it.
//!
//! That an argument is not computed for rows that `FILTER` leaves out is in the argument itself
//! ([`aggregate`](crate::functions::aggregates::aggregate)).
//!
//! Invariant: values and groups are what they were.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::Result as QueryResult;
use datafusion::common::tree_node::Transformed;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode, PhysicalGroupBy};

use super::guards::stepwise;

/// The step that takes rows, not what other steps made of them.
pub(super) fn guarded_aggregate(
    aggregate: &AggregateExec,
) -> QueryResult<Transformed<Arc<dyn ExecutionPlan>>> {
    let unchanged = || Ok(Transformed::no(Arc::new(aggregate.clone()) as Arc<dyn ExecutionPlan>));
    if aggregate.mode().input_mode() != AggregateInputMode::Raw {
        return unchanged();
    }
    let schema = aggregate.input().schema();
    let groups = guarded_groups(aggregate.group_expr(), &schema)?;
    let functions = aggregate.aggr_expr().iter().map(|function| guarded_call(function, &schema));
    let functions = functions.collect::<QueryResult<Vec<_>>>()?;
    let filters =
        aggregate.filter_expr().iter().map(|filter| guarded_filter(filter.as_ref(), &schema));
    let filters = filters.collect::<QueryResult<Vec<_>>>()?;
    let is_changed = groups.transformed
        || functions.iter().any(|function| function.transformed)
        || filters.iter().any(|filter| filter.transformed);
    if !is_changed {
        return unchanged();
    }
    let changed = AggregateExec::try_new(
        *aggregate.mode(),
        groups.data,
        functions.into_iter().map(|function| function.data).collect(),
        filters.into_iter().map(|filter| filter.data).collect(),
        aggregate.input().clone(),
        aggregate.input_schema(),
    )?;
    let changed = changed.with_limit_options(aggregate.limit_options());
    // A rule may have given the step names of its own for its columns, which are not made again; then it stays as it is.
    if changed.schema() != aggregate.schema() {
        return unchanged();
    }
    Ok(Transformed::yes(Arc::new(changed)))
}

fn guarded_groups(
    groups: &PhysicalGroupBy,
    schema: &Schema,
) -> QueryResult<Transformed<PhysicalGroupBy>> {
    let mut is_changed = false;
    let mut exprs = Vec::with_capacity(groups.expr().len());
    for (expr, name) in groups.expr() {
        let guarded = stepwise(expr, schema)?;
        is_changed |= guarded.transformed;
        exprs.push((guarded.data, name.clone()));
    }
    let (nulls, sets) = (groups.null_expr().to_vec(), groups.groups().to_vec());
    let groups = PhysicalGroupBy::new(exprs, nulls, sets, groups.has_grouping_set());
    Ok(Transformed::new_transformed(groups, is_changed))
}

fn guarded_filter(
    filter: Option<&Arc<dyn PhysicalExpr>>,
    schema: &Schema,
) -> QueryResult<Transformed<Option<Arc<dyn PhysicalExpr>>>> {
    let Some(filter) = filter else { return Ok(Transformed::no(None)) };
    let guarded = stepwise(filter, schema)?;
    Ok(Transformed::new_transformed(Some(guarded.data), guarded.transformed))
}

fn guarded_call(
    function: &Arc<AggregateFunctionExpr>,
    schema: &Schema,
) -> QueryResult<Transformed<Arc<AggregateFunctionExpr>>> {
    let expressions = function.all_expressions();
    let mut is_changed = false;
    let mut guarded = |expr: &Arc<dyn PhysicalExpr>| -> QueryResult<Arc<dyn PhysicalExpr>> {
        let expr = stepwise(expr, schema)?;
        is_changed |= expr.transformed;
        Ok(expr.data)
    };
    let arguments = expressions.args.iter().map(&mut guarded).collect::<QueryResult<_>>()?;
    let order = expressions.order_by_exprs.iter().map(&mut guarded).collect::<QueryResult<_>>()?;
    match function.with_new_expressions(arguments, order) {
        Some(changed) if is_changed => Ok(Transformed::yes(Arc::new(changed))),
        _ => Ok(Transformed::no(function.clone())),
    }
}
