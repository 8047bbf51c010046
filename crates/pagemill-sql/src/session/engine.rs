//! The engine that plans and runs statements, as a session has it: its settings, its memory, its rules without those that change answers.
//!
//! Invariant: a rule that is left out by its name is one that the engine has.

use std::sync::Arc;

use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::execution::context::{SessionConfig, SessionContext};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use object_store::memory::InMemory;
use pagemill_arrow::BatchSize;

use super::SessionOptions;
use crate::error::Result;
use crate::expand::{Expand, ExpandRows, Planner};
use crate::logical_rules::logical_rules;
use crate::long_sorts::LongSorts;
use crate::scan::{GuardedConditions, RelationTable};
use crate::statement_memory::StatementMemory;
use crate::unordered_limits::{MOVES_SORTS, UnorderedLimits};

/// A table is cut for another thread from here on.
pub(super) const LEAST_SHARE_BYTES: usize = 4 << 20;

/// A side of a join of so few bytes, or rows where those are not known, is held in one table that all threads look into. Cutting
/// both sides by their keys takes longer on the cores of one machine, and a scan that is handed the keys asks one table then.
const ONE_TABLE_BYTES: usize = 16 << 20;
const ONE_TABLE_ROWS: usize = 400_000;

/// Merging sorted runs holds some batches of each, and their rows can be wide: where memory is limited, a batch has a row for each so
/// many bytes of it, and never less than so many rows.
const MEMORY_PER_BATCH_ROW: usize = 256 << 10;
const LEAST_ROWS: usize = 128;
/// A batch of a scan takes at most one of so many parts of the memory. Sorts count all of it for each part that they are handed.
const BATCH_SHARE: usize = 64;
/// What a sort keeps for its merge is at most one of so many parts of the memory: what the sorts of all threads keep has to leave some.
const MERGE_SHARE: usize = 16;

/// An engine for a session.
pub(super) fn context(options: &SessionOptions) -> Result<SessionContext> {
    let mut config = SessionConfig::new()
        .with_target_partitions(options.jobs)
        .with_collect_statistics(false)
        .with_repartition_file_min_size(LEAST_SHARE_BYTES);
    let optimizer = &mut config.options_mut().optimizer;
    optimizer.prefer_hash_join = options.memory.is_none();
    optimizer.hash_join_single_partition_threshold = ONE_TABLE_BYTES;
    optimizer.hash_join_single_partition_threshold_rows = ONE_TABLE_ROWS;
    // Filters that come up while a statement runs are handed down later, where nothing can fail.
    optimizer.enable_dynamic_filter_pushdown = false;
    optimizer.enable_join_dynamic_filter_pushdown = false;
    optimizer.enable_topk_dynamic_filter_pushdown = false;
    optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    // Its plans say that `IS TRUE` is never NULL, and its operators do not; it would take the difference for an error.
    config.options_mut().execution.skip_physical_aggregate_schema_check = true;
    let mut runtime = RuntimeEnvBuilder::new();
    if let Some(memory) = &options.memory {
        config = config.with_batch_size(batch_size(Some(memory)).rows);
        let execution = &mut config.options_mut().execution;
        let kept_free = (memory.bytes() / MERGE_SHARE).min(execution.sort_spill_reservation_bytes);
        execution.sort_spill_reservation_bytes = kept_free;
        runtime = runtime.with_memory_pool(memory.pool());
    }
    let runtime = Arc::new(runtime.build()?);
    // Scans open their files themselves; the engine wants to know a store for their address.
    let url = ObjectStoreUrl::parse("pagemill://files")?;
    runtime.register_object_store(url.as_ref(), Arc::new(InMemory::new()));
    // Those that the engine's own rules put in place of others, and no more.
    let aggregates = datafusion::functions_aggregate::all_default_aggregate_functions();
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_aggregate_functions(aggregates)
        .with_optimizer_rules(logical_rules())
        .with_physical_optimizer_rules(physical_rules(options.memory.is_some()))
        .with_query_planner(Arc::new(Planner))
        .build();
    Ok(SessionContext::new_with_state(state))
}

/// How large batches are where statements may take so much.
pub(super) fn batch_size(memory: Option<&StatementMemory>) -> BatchSize {
    let most = BatchSize::default();
    let Some(memory) = memory.map(StatementMemory::bytes) else { return most };
    BatchSize {
        rows: (memory / MEMORY_PER_BATCH_ROW).clamp(LEAST_ROWS, most.rows),
        bytes: (memory / BATCH_SHARE).min(most.bytes),
    }
}

/// Rules of the engine that change an answer, by the names that they give themselves.
const WRONG_RULES: [&str; 5] = [
    // Moves a projection below a filter: an expression would be computed for rows that the conditions leave out, and fail on
    // their values. Which columns are read is settled before these rules.
    "ProjectionPushdown",
    // Stop grouping at a LIMIT, and look through windows that count all groups.
    "LimitAggregation",
    "LimitedDistinctAggregation",
    // Move a LIMIT below windows.
    "LimitPushPastWindows",
    "WindowTopN",
];

/// The engine's rules but those, and ours; is memory limited, with one for sorts.
fn physical_rules(is_limited: bool) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    for name in WRONG_RULES {
        assert!(rules.iter().any(|rule| rule.name() == name), "the engine has a rule {name}");
    }
    rules.retain(|rule| !WRONG_RULES.contains(&rule.name()));
    let moving = rules.iter_mut().find(|rule| rule.name() == MOVES_SORTS);
    let moving = moving.expect("the engine has a rule that moves sorts"); // infallible: of this version
    *moving = Arc::new(UnorderedLimits(moving.clone()));
    rules.push(Arc::new(GuardedConditions));
    if is_limited {
        rules.push(Arc::new(LongSorts));
    }
    rules
}

/// Whether there is more to do than to scan, to expand rows and to print. Else one reader is enough, and rows come in the order of the
/// files. Without any table they come in that of the functions that make them, as nobody expects another.
pub(super) fn gains_by_jobs(plan: &LogicalPlan) -> Result<bool> {
    let mut has_table = false;
    plan.apply_with_subqueries(|node| {
        has_table |= matches!(node, LogicalPlan::TableScan(_));
        Ok(if has_table { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(has_table && plan.exists(|node| Ok(!is_light(node)))?)
}

/// Whether threads of this machine share the work.
pub(super) fn is_shared(plan: &LogicalPlan) -> Result<bool> {
    Ok(gains_by_jobs(plan)? && has_large_table(plan)?)
}

/// Whether a table of a plan is one of which threads are worth a share. Of small ones, as catalogs are, rows come in an order that is the same
/// each time, and mostly that of the files, as clients of a server are used to.
fn has_large_table(plan: &LogicalPlan) -> Result<bool> {
    let mut is_large = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let provider = source_as_provider(&scan.source)?;
            let table = provider.downcast_ref::<RelationTable>();
            let is_known_small = match table {
                Some(table) => table.bytes() < LEAST_SHARE_BYTES as u64,
                // What a recursion had last comes from tables that are looked at here, too.
                None => provider.is::<CteWorkTable>(),
            };
            is_large |= !is_known_small;
        }
        Ok(if is_large { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(is_large)
}

fn is_light(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::TableScan(_)
        | LogicalPlan::EmptyRelation(_)
        | LogicalPlan::Values(_) => true,
        LogicalPlan::Extension(extension) => {
            let node = extension.node.as_any();
            node.is::<Expand>() || node.is::<ExpandRows>()
        }
        _ => false,
    }
}
