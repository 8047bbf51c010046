//! Conditions of joins, in which what stands behind AND or OR is computed only for the pairs that need it.
//!
//! Invariant: the same pairs pass.

use std::sync::Arc;

use datafusion::common::Result as QueryResult;
use datafusion::common::tree_node::Transformed;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder, SortMergeJoinExec,
};

use super::guards::stepwise;

/// The join that reads its condition step by step; `node` where it is none, or there is nothing to guard.
pub(super) fn guarded_join(
    node: Arc<dyn ExecutionPlan>,
) -> QueryResult<Transformed<Arc<dyn ExecutionPlan>>> {
    let join: Option<Arc<dyn ExecutionPlan>> =
        if let Some(join) = node.downcast_ref::<HashJoinExec>() {
            match guarded(join.filter())? {
                None => None,
                filter => Some(join.builder().with_filter(filter).build_exec()?),
            }
        } else if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
            match guarded(join.filter())? {
                None => None,
                filter => {
                    let builder = NestedLoopJoinExecBuilder::from(join).with_filter(filter);
                    Some(Arc::new(builder.build()?))
                }
            }
        } else if let Some(join) = node.downcast_ref::<SortMergeJoinExec>() {
            match guarded(join.filter().as_ref())? {
                None => None,
                filter => Some(Arc::new(merging(join, filter)?)),
            }
        } else {
            None
        };
    Ok(join.map_or_else(|| Transformed::no(node), Transformed::yes))
}

/// The condition, if something in it is to be guarded.
fn guarded(filter: Option<&JoinFilter>) -> QueryResult<Option<JoinFilter>> {
    let Some(filter) = filter else { return Ok(None) };
    let condition = stepwise(filter.expression(), filter.schema())?;
    Ok(condition.transformed.then(|| {
        let columns = filter.column_indices().to_vec();
        JoinFilter::new(condition.data, columns, filter.schema().clone())
    }))
}

/// The join with another condition.
fn merging(join: &SortMergeJoinExec, filter: Option<JoinFilter>) -> QueryResult<SortMergeJoinExec> {
    SortMergeJoinExec::try_new(
        join.left().clone(),
        join.right().clone(),
        join.on().to_vec(),
        filter,
        join.join_type(),
        join.sort_options().to_vec(),
        join.null_equality(),
    )
}
