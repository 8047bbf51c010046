//! Which steps may be done by several tasks, each with a part of the rows; and whether a plan is what it was once it was written and
//! read again.
//!
//! Invariant: what is not known here makes a statement run on one machine.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result as QueryResult;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning, displayable};
use datafusion_distributed::{
    BroadcastExec, NetworkBroadcastExec, NetworkCoalesceExec, NetworkShuffleExec,
};
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};

use super::plan_codec::PlanCodec;
use crate::barrier::is_barrier;
use crate::scan::is_relation_scan;

/// Expressions of a step.
type Expressions = Vec<Arc<dyn PhysicalExpr>>;

fn is_known(node: &dyn ExecutionPlan) -> bool {
    is_relation_scan(node)
        || is_barrier(node)
        || node.is::<AggregateExec>()
        || node.is::<CoalescePartitionsExec>()
        || node.is::<CooperativeExec>()
        || node.is::<FilterExec>()
        || node.is::<GlobalLimitExec>()
        || node.is::<HashJoinExec>()
        || node.is::<LocalLimitExec>()
        || node.is::<ProjectionExec>()
        || node.is::<RepartitionExec>()
        || node.is::<SortExec>()
        || node.is::<SortPreservingMergeExec>()
}

fn is_between_stages(node: &dyn ExecutionPlan) -> bool {
    node.is::<BroadcastExec>()
        || node.is::<NetworkBroadcastExec>()
        || node.is::<NetworkCoalesceExec>()
        || node.is::<NetworkShuffleExec>()
}

/// The name of the first step of a statement that only one machine can do.
pub(super) fn unknown_step(plan: &Arc<dyn ExecutionPlan>) -> Option<String> {
    first_other(plan, &is_known)
}

/// The name of the first step that is neither known nor one of those beside.
#[cfg(feature = "ballista")]
pub(super) fn step_beside(
    plan: &Arc<dyn ExecutionPlan>,
    is_beside: &dyn Fn(&dyn ExecutionPlan) -> bool,
) -> Option<String> {
    first_other(plan, &|node| is_known(node) || is_beside(node))
}

/// The name of the first step of a stage that no stage has.
pub(super) fn foreign_step(plan: &Arc<dyn ExecutionPlan>) -> Option<String> {
    first_other(plan, &|node| is_known(node) || is_between_stages(node))
}

fn first_other(
    plan: &Arc<dyn ExecutionPlan>,
    is_one: &dyn Fn(&dyn ExecutionPlan) -> bool,
) -> Option<String> {
    if !is_one(&**plan) {
        return Some(plan.name().to_owned());
    }
    plan.children().into_iter().find_map(|child| first_other(child, is_one))
}

/// Whether rows go from one stage to the next by columns alone: what else would tell their place stays within one.
pub(super) fn goes_by_columns(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let own = match repartitioning(plan) {
        Some(Partitioning::Hash(exprs, _)) => exprs.iter().all(|expr| expr.is::<Column>()),
        _ => true,
    };
    let join = plan.downcast_ref::<HashJoinExec>().is_none_or(|join| {
        join.on().iter().all(|(left, right)| left.is::<Column>() && right.is::<Column>())
    });
    own && join && plan.children().into_iter().all(goes_by_columns)
}

/// The partitioning that a step makes.
fn repartitioning(plan: &Arc<dyn ExecutionPlan>) -> Option<&Partitioning> {
    plan.downcast_ref::<RepartitionExec>().map(RepartitionExec::partitioning)
}

/// Why a plan does not survive being written and read; `None` where it does.
pub(super) fn lost_on_the_way(
    plan: &Arc<dyn ExecutionPlan>,
    codec: &PlanCodec,
    context: &TaskContext,
) -> Option<String> {
    let bytes = physical_plan_to_bytes_with_extension_codec(plan.clone(), codec);
    let read = bytes
        .and_then(|bytes| physical_plan_from_bytes_with_extension_codec(&bytes, context, codec));
    match read {
        Ok(read) => difference(plan, &read),
        Err(error) => {
            Some(error.to_string().lines().next().unwrap_or("it cannot be written").to_owned())
        }
    }
}

fn difference(a: &Arc<dyn ExecutionPlan>, b: &Arc<dyn ExecutionPlan>) -> Option<String> {
    let shown = |plan: &Arc<dyn ExecutionPlan>| displayable(&**plan).one_line().to_string();
    let is_same = a.name() == b.name()
        && a.schema() == b.schema()
        && shown(a) == shown(b)
        && same_partitioning(a, b)
        && expressions(a).is_some_and(|a| expressions(b) == Some(a))
        && same_aggregates(a, b)
        && same_join(a, b)
        && a.children().len() == b.children().len();
    if !is_same {
        return Some(format!("{} does not come out as it went in", a.name()));
    }
    a.children().into_iter().zip(b.children()).find_map(|(a, b)| difference(a, b))
}

/// Of steps that keep the partitions of what is below them, how rows are told apart follows from that.
fn same_partitioning(a: &Arc<dyn ExecutionPlan>, b: &Arc<dyn ExecutionPlan>) -> bool {
    let count = |plan: &Arc<dyn ExecutionPlan>| plan.properties().partitioning.partition_count();
    count(a) == count(b)
        && match (repartitioning(a), repartitioning(b)) {
            (Some(Partitioning::Hash(a, _)), Some(Partitioning::Hash(b, _))) => all_same(a, b),
            (Some(Partitioning::RoundRobinBatch(_)), Some(Partitioning::RoundRobinBatch(_)))
            | (None, None) => true,
            _ => false,
        }
}

/// The expressions of a step; `None` where one cannot be taken apart.
fn expressions(plan: &Arc<dyn ExecutionPlan>) -> Option<Expressions> {
    let mut found = Vec::new();
    let collected = plan.apply_expressions(&mut |expr| {
        // What a short sort tells of its rows while it runs is nothing yet.
        if !expr.is::<DynamicFilterPhysicalExpr>() {
            found.push(comparable(expr)?);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    collected.ok().map(|_| found)
}

/// The expression with the same settings of the engine in each call: no function here asks for them, and they differ from plan to plan.
fn comparable(expr: &Arc<dyn PhysicalExpr>) -> QueryResult<Arc<dyn PhysicalExpr>> {
    static SETTINGS: LazyLock<Arc<ConfigOptions>> = LazyLock::new(Arc::default);
    let changed = expr.clone().transform_up(|expr| {
        let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() else {
            return Ok(Transformed::no(expr));
        };
        let function = Arc::new(call.fun().clone());
        let field = call.return_field(&Schema::empty())?;
        let (name, arguments) = (call.name(), call.args().to_vec());
        let call = ScalarFunctionExpr::new(name, function, arguments, field, SETTINGS.clone());
        Ok(Transformed::yes(Arc::new(call)))
    })?;
    Ok(changed.data)
}

fn same(a: &Arc<dyn PhysicalExpr>, b: &Arc<dyn PhysicalExpr>) -> bool {
    match (comparable(a), comparable(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

fn all_same<'e>(
    a: impl IntoIterator<Item = &'e Arc<dyn PhysicalExpr>>,
    b: impl IntoIterator<Item = &'e Arc<dyn PhysicalExpr>>,
) -> bool {
    let (mut a, mut b) = (a.into_iter(), b.into_iter());
    loop {
        match (a.next(), b.next()) {
            (Some(a), Some(b)) if same(a, b) => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

fn same_aggregates(a: &Arc<dyn ExecutionPlan>, b: &Arc<dyn ExecutionPlan>) -> bool {
    match (a.downcast_ref::<AggregateExec>(), b.downcast_ref::<AggregateExec>()) {
        (Some(a), Some(b)) => {
            let same = |(a, b): (&Arc<_>, &Arc<_>)| same_aggregate(a, b);
            a.mode() == b.mode()
                && same_groups(a, b)
                && same_filters(a.filter_expr(), b.filter_expr())
                && a.limit_options() == b.limit_options()
                && a.input_schema() == b.input_schema()
                && a.aggr_expr().len() == b.aggr_expr().len()
                && a.aggr_expr().iter().zip(b.aggr_expr()).all(same)
        }
        (None, None) => true,
        _ => false,
    }
}

fn same_groups(a: &AggregateExec, b: &AggregateExec) -> bool {
    let (a, b) = (a.group_expr(), b.group_expr());
    let names = |exprs: &[(Arc<dyn PhysicalExpr>, String)]| -> Vec<String> {
        exprs.iter().map(|(_, name)| name.clone()).collect()
    };
    let exprs = |exprs: &[(Arc<dyn PhysicalExpr>, String)]| -> Expressions {
        exprs.iter().map(|(expr, _)| expr.clone()).collect()
    };
    names(a.expr()) == names(b.expr())
        && names(a.null_expr()) == names(b.null_expr())
        && a.groups() == b.groups()
        && a.has_grouping_set() == b.has_grouping_set()
        && all_same(&exprs(a.expr()), &exprs(b.expr()))
        && all_same(&exprs(a.null_expr()), &exprs(b.null_expr()))
}

fn same_filters(a: &[Option<Arc<dyn PhysicalExpr>>], b: &[Option<Arc<dyn PhysicalExpr>>]) -> bool {
    let same = |(a, b): (&Option<_>, &Option<_>)| match (a, b) {
        (Some(a), Some(b)) => same(a, b),
        (None, None) => true,
        _ => false,
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

fn same_aggregate(
    a: &datafusion::physical_expr::aggregate::AggregateFunctionExpr,
    b: &datafusion::physical_expr::aggregate::AggregateFunctionExpr,
) -> bool {
    a.name() == b.name()
        && a.fun() == b.fun()
        && a.field() == b.field()
        && all_same(&a.expressions(), &b.expressions())
        && a.order_bys() == b.order_bys()
        && a.is_distinct() == b.is_distinct()
        && a.ignore_nulls() == b.ignore_nulls()
        && a.is_reversed() == b.is_reversed()
        && a.state_fields().ok() == b.state_fields().ok()
}

fn same_join(a: &Arc<dyn ExecutionPlan>, b: &Arc<dyn ExecutionPlan>) -> bool {
    match (a.downcast_ref::<HashJoinExec>(), b.downcast_ref::<HashJoinExec>()) {
        (Some(a), Some(b)) => {
            let filter = |join: &HashJoinExec| {
                join.filter().map(|filter| {
                    let places = filter.column_indices().to_vec();
                    (comparable(filter.expression()).ok(), places, filter.schema().clone())
                })
            };
            a.on() == b.on()
                && filter(a) == filter(b)
                && a.join_type() == b.join_type()
                && a.partition_mode() == b.partition_mode()
                && a.null_equality() == b.null_equality()
                && a.null_aware == b.null_aware
                && a.projection == b.projection
        }
        (None, None) => true,
        _ => false,
    }
}
