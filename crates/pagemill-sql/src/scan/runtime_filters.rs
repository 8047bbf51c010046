//! Filters that come up while a statement runs: the keys that a hash join has built on, and the rows that a sorted list of a few
//! begins with. They spare a scan the rows that would be dropped above it.
//!
//! They are handed down only where that changes neither an answer nor an error: everything between the join or the sort and the
//! scans must be harmless on the rows that are kept from it, and hold no limit, which would be filled by other rows.
//!
//! Invariant: a plan of which a part is not known here hands down nothing through that part.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{NullEquality, Result as QueryResult};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::TaskContext;
use datafusion::execution::session_state::SessionState;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule as _;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use super::account::relation_source;
use super::first_rows_hints::with_first_rows;
use super::harmless::is_harmless;

/// Keys of a join that are listed one by one, and their size.
const LISTED_KEYS: usize = 10_000;
const LISTED_BYTES: usize = 1 << 20;
/// Aggregates that cannot fail, whatever the rows.
const TOTAL_AGGREGATES: [&str; 4] = ["count", "first_value", "max", "min"];
/// Aggregates that cannot fail over exact numbers: the server computes their sums with more digits than any table fills.
const EXACT_AGGREGATES: [&str; 3] = ["pg_avg", "pg_sum", "sum"];

/// A plan whose joins and sorts hand down filters where they may, and what it runs in.
pub(crate) fn with_runtime_filters(
    plan: Arc<dyn ExecutionPlan>,
    session: &SessionState,
) -> QueryResult<(Arc<dyn ExecutionPlan>, Arc<TaskContext>)> {
    let plan = with_first_rows(plan)?;
    let mut config = session.config().clone();
    let optimizer = &mut config.options_mut().optimizer;
    // What hands nothing down by its plan does not begin to while it runs.
    optimizer.enable_join_dynamic_filter_pushdown = true;
    optimizer.enable_topk_dynamic_filter_pushdown = true;
    // An index may be searched for so many.
    optimizer.hash_join_inlist_pushdown_max_distinct_values = LISTED_KEYS;
    optimizer.hash_join_inlist_pushdown_max_size = LISTED_BYTES;
    let plan = handed_down(plan, config.options())?;
    let task = TaskContext::from(session).with_session_config(config);
    Ok((plan, Arc::new(task)))
}

/// The plan with filters in its largest parts of which every join may hand down, or every short sort.
fn handed_down(
    plan: Arc<dyn ExecutionPlan>,
    options: &ConfigOptions,
) -> QueryResult<Arc<dyn ExecutionPlan>> {
    let is_short_sort = |node: &dyn ExecutionPlan| node.is::<SortExec>() && node.fetch().is_some();
    let joins = holds_everywhere(&*plan, &|node| {
        node.downcast_ref::<HashJoinExec>().is_none_or(may_join_hand_down)
    });
    let sorts = holds_everywhere(&*plan, &|node| {
        !is_short_sort(node) || node.children().into_iter().all(|child| lets_through(&**child))
    });
    let has_sorts = !holds_everywhere(&*plan, &|node| !is_short_sort(node));
    if !(joins || (sorts && has_sorts)) {
        let children = plan.children().into_iter().cloned();
        let children = children.map(|child| handed_down(child, options));
        let children = children.collect::<QueryResult<Vec<_>>>()?;
        return replace_children_if_necessary(plan, children);
    }
    let mut options = options.clone();
    options.optimizer.enable_join_dynamic_filter_pushdown = joins;
    options.optimizer.enable_topk_dynamic_filter_pushdown = sorts;
    FilterPushdown::new_post_optimization().optimize(plan, &options)
}

fn holds_everywhere(plan: &dyn ExecutionPlan, test: &dyn Fn(&dyn ExecutionPlan) -> bool) -> bool {
    test(plan) && plan.children().into_iter().all(|child| holds_everywhere(&**child, test))
}

/// True for a join that compares keys as its filters do, on a side where nothing can fail.
fn may_join_hand_down(join: &HashJoinExec) -> bool {
    let schema = join.right().schema();
    let is_exact = |key: QueryResult<DataType>| key.is_ok_and(|key| !key.is_floating());
    join.null_equality() == NullEquality::NullEqualsNothing
        && join.on().iter().all(|(_, key)| is_exact(key.data_type(&schema)))
        && lets_through(&**join.right())
}

/// True where nothing can fail on a row and nothing is cut off, down to the scans.
fn lets_through(plan: &dyn ExecutionPlan) -> bool {
    is_known(plan)
        && plan.fetch().is_none()
        && are_expressions_harmless(plan)
        && plan.children().into_iter().all(|child| lets_through(&**child))
}

fn is_known(plan: &dyn ExecutionPlan) -> bool {
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        // A total of several groups has rows of groups that are not wanted.
        return aggregate.group_expr().is_single()
            && aggregate.aggr_expr().iter().all(|call| is_total(call));
    }
    if plan.is::<DataSourceExec>() {
        return relation_source(plan).is_some();
    }
    plan.is::<FilterExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<HashJoinExec>()
        || plan.is::<SortExec>()
}

/// True for an aggregate that cannot fail. What is summed is carried as it is stored, a numeric as bytes or as a decimal.
fn is_total(call: &AggregateFunctionExpr) -> bool {
    let name = call.fun().name();
    let is_exact = || !call.field().data_type().is_floating();
    TOTAL_AGGREGATES.contains(&name) || (EXACT_AGGREGATES.contains(&name) && is_exact())
}

fn are_expressions_harmless(plan: &dyn ExecutionPlan) -> bool {
    let schema = input_schema(plan);
    let mut are_harmless = true;
    let walked = plan.apply_expressions(&mut |expr| {
        are_harmless &= is_harmless(expr, &schema);
        Ok(TreeNodeRecursion::Continue)
    });
    walked.is_ok() && are_harmless
}

/// What a node's expressions look at; nothing, where they look at several inputs, so that no cast is taken for harmless.
fn input_schema(plan: &dyn ExecutionPlan) -> SchemaRef {
    match (relation_source(plan), &plan.children()[..]) {
        (Some(source), _) => source.table_columns().clone(),
        (None, [input]) => input.schema(),
        _ => Arc::new(Schema::empty()),
    }
}
