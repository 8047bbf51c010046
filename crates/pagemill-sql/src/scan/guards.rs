//! What can fail is asked only about the rows for which what stands before it does not settle the matter.
//!
//! The engine asks all parts of `a <> 0 AND 10 / a > 0` about all rows of a batch, unless few of them are left, and of
//! `a = 0 OR 10 / a > 0`, too. Below a scan that cannot happen (`filters.rs`); elsewhere it would end a statement that the server
//! answers, which stops at the first part that settles it. Conditions of joins are in `guarded_joins.rs`, what aggregates take in
//! `guarded_aggregates.rs`.
//!
//! Invariants: a row passes as before, since a filter drops a row by NULL as it does by false; a value is what it was.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::Result as QueryResult;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNode as _};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, case, lit};
use datafusion::physical_expr::{conjunction, utils::split_conjunction};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use super::guarded_aggregates::guarded_aggregate;
use super::guarded_joins::guarded_join;
use super::harmless::is_harmless;
use super::stepwise::Stepwise;

/// The rule; it comes last, when conditions have been handed down.
#[derive(Debug)]
pub(crate) struct GuardedConditions;

impl PhysicalOptimizerRule for GuardedConditions {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            if let Some(filter) = node.downcast_ref::<FilterExec>() {
                return guarded(filter);
            }
            if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
                return guarded_aggregate(aggregate);
            }
            match node.downcast_ref::<ProjectionExec>() {
                Some(projection) => shown(projection),
                None => guarded_join(node),
            }
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
    let Some(can_fail) = parts.iter().rposition(|part| !is_harmless(part, &schema)) else {
        return Ok(Transformed::no(Arc::new(filter.clone())));
    };
    let stepwise = |part: &Arc<dyn PhysicalExpr>| stepwise(part, &schema).data();
    let parts = parts.into_iter().map(stepwise).collect::<QueryResult<Vec<_>>>()?;
    if can_fail == 0 {
        let one = conjunction(parts);
        let filter = FilterExecBuilder::from(filter).with_predicate(one).build()?;
        return Ok(Transformed::yes(Arc::new(filter)));
    }
    let mut parts = parts.into_iter().rev();
    let last = parts.next().expect("a condition has a part"); // infallible: split of one
    let one = parts.try_fold(last, |behind, part| -> QueryResult<Arc<dyn PhysicalExpr>> {
        case(None, vec![(part, behind)], Some(lit(false)))
    })?;
    let filter = FilterExecBuilder::from(filter).with_predicate(one).build()?;
    Ok(Transformed::yes(Arc::new(filter)))
}

fn shown(projection: &ProjectionExec) -> QueryResult<Transformed<Arc<dyn ExecutionPlan>>> {
    let schema = projection.input().schema();
    let mut is_changed = false;
    let mut exprs = Vec::with_capacity(projection.expr().len());
    for shown in projection.expr() {
        let expr = stepwise(&shown.expr, &schema)?;
        is_changed |= expr.transformed;
        exprs.push(ProjectionExpr { expr: expr.data, alias: shown.alias.clone() });
    }
    if !is_changed {
        return Ok(Transformed::no(Arc::new(projection.clone())));
    }
    let projection = ProjectionExec::try_new(exprs, projection.input().clone())?;
    Ok(Transformed::yes(Arc::new(projection)))
}

/// The expression, with each second part of AND and OR that can fail only for the rows that need it.
pub(super) fn stepwise(
    expr: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> QueryResult<Transformed<Arc<dyn PhysicalExpr>>> {
    expr.clone().transform_up(|expr| {
        let steps = expr.downcast_ref::<BinaryExpr>().and_then(Stepwise::of);
        Ok(match steps {
            Some(steps) if !is_harmless(&steps.second, schema) => {
                Transformed::yes(Arc::new(steps) as _)
            }
            _ => Transformed::no(expr),
        })
    })
}
