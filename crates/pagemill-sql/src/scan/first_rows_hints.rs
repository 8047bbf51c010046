//! Which scans are told that only the rows that come first are wanted of them: those below a sort that keeps a few, and below
//! min and max over all rows.
//!
//! ```text
//! sort of a few, or extremes ── expressions, put in terms of the input ──► projections, exchanges ──► scan
//! ```
//!
//! Invariant: between the one who wants and the scan nothing leaves out rows, adds some, or counts them.

use std::sync::Arc;

use datafusion::common::Result as QueryResult;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder, FileSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use super::account::relation_source;
use super::first_rows::{Nulls, SortKey};
use crate::functions::aggregates::extreme_collation;

/// The rows that come first by these keys, and how many.
type Wanted = Vec<(Vec<SortKey>, usize)>;

/// The plan with its scans told.
pub(super) fn with_first_rows(plan: Arc<dyn ExecutionPlan>) -> QueryResult<Arc<dyn ExecutionPlan>> {
    let told = plan.transform_down(|node| {
        let Some(wanted) = wanted_of_input(&*node) else { return Ok(Transformed::no(node)) };
        let Some(input) = node.children().first().copied().cloned() else {
            return Ok(Transformed::no(node));
        };
        match handed_down(&input, wanted)? {
            Some(input) => Ok(Transformed::yes(replace_children_if_necessary(node, vec![input])?)),
            None => Ok(Transformed::no(node)),
        }
    })?;
    Ok(told.data)
}

/// The rows that a node alone wants of its input.
fn wanted_of_input(node: &dyn ExecutionPlan) -> Option<Wanted> {
    if let Some(sort) = node.downcast_ref::<SortExec>() {
        let keys = sort.expr().iter().map(|key| SortKey {
            expr: key.expr.clone(),
            descending: key.options.descending,
            nulls: if key.options.nulls_first { Nulls::First } else { Nulls::Last },
            collation: None,
        });
        return Some(vec![(keys.collect(), sort.fetch()?)]);
    }
    let aggregate = node.downcast_ref::<AggregateExec>()?;
    let is_of_all_rows = aggregate.group_expr().expr().is_empty()
        && aggregate.mode().input_mode() == AggregateInputMode::Raw
        && aggregate.filter_expr().iter().all(Option::is_none);
    let calls = aggregate.aggr_expr().iter();
    let wanted = calls.map(|call| {
        let descending = match call.fun().name() {
            "min" | "pg_min" => false,
            "max" | "pg_max" => true,
            _ => return None,
        };
        // Where there is a key, it is the last.
        let expr = call.expressions().last()?.clone();
        let (nulls, collation) = (Nulls::LeftOut, extreme_collation(call.fun()));
        Some((vec![SortKey { expr, descending, nulls, collation }], 1))
    });
    let wanted: Wanted = wanted.collect::<Option<_>>()?;
    (is_of_all_rows && !wanted.is_empty()).then_some(wanted)
}

/// An input whose scan is told; `None` where there is none.
fn handed_down(
    node: &Arc<dyn ExecutionPlan>,
    wanted: Wanted,
) -> QueryResult<Option<Arc<dyn ExecutionPlan>>> {
    if node.fetch().is_some() {
        return Ok(None);
    }
    if node.is::<DataSourceExec>() {
        return told(node, wanted);
    }
    let wanted = match node.downcast_ref::<ProjectionExec>() {
        Some(projection) => {
            let exprs: Vec<_> = projection.expr().iter().map(|projected| &projected.expr).collect();
            in_terms_of(&exprs, wanted)?
        }
        None if passes_all(&**node) => wanted,
        None => return Ok(None),
    };
    let [input] = node.children()[..] else { return Ok(None) };
    let Some(input) = handed_down(input, wanted)? else { return Ok(None) };
    Ok(Some(replace_children_if_necessary(node.clone(), vec![input])?))
}

fn passes_all(node: &dyn ExecutionPlan) -> bool {
    node.is::<CoalescePartitionsExec>()
        || node.is::<RepartitionExec>()
        || node.is::<CooperativeExec>()
}

fn told(
    node: &Arc<dyn ExecutionPlan>,
    wanted: Wanted,
) -> QueryResult<Option<Arc<dyn ExecutionPlan>>> {
    let Some(source) = relation_source(&**node) else { return Ok(None) };
    let exprs: Vec<_> = source.projected().collect();
    let wanted = in_terms_of(&exprs, wanted)?;
    let (Some(source), Some(scan)) =
        (source.with_first_rows(&wanted), node.downcast_ref::<DataSourceExec>())
    else {
        return Ok(None);
    };
    let Some(config) = scan.data_source().downcast_ref::<FileScanConfig>() else {
        return Ok(None);
    };
    let source: Arc<dyn FileSource> = Arc::new(source);
    let config = FileScanConfigBuilder::from(config.clone()).with_source(source).build();
    Ok(Some(DataSourceExec::from_data_source(config)))
}

/// The same keys, on the columns that the expressions of a projection are made of.
fn in_terms_of(exprs: &[&Arc<dyn PhysicalExpr>], mut wanted: Wanted) -> QueryResult<Wanted> {
    for key in wanted.iter_mut().flat_map(|(keys, _)| keys) {
        let replaced = key.expr.clone().transform_up(|expr| {
            let column = expr.downcast_ref::<Column>().map(Column::index);
            Ok(match column.and_then(|column| exprs.get(column)) {
                Some(projected) => Transformed::yes(Arc::clone(projected)),
                None => Transformed::no(expr),
            })
        })?;
        key.expr = replaced.data;
    }
    Ok(wanted)
}
