//! Sorts of which many of the first rows are wanted: all rows are sorted, which spills.
//!
//! The engine keeps the first rows of a sort in memory, however many `LIMIT` and `OFFSET` come to; where memory is limited, more than a few
//! would end a statement that the server answers by sorting in files.
//!
//! Invariant: the same rows come, in the same order.
//!
//! Source: `tuplesort_set_bound` in `src/backend/utils/sort/tuplesort.c`, which is a hint there, too, PostgreSQL 18.

use std::sync::Arc;

use datafusion::common::Result as QueryResult;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNode as _};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::sorts::sort::SortExec;

/// So many rows are kept in memory.
const MOST_KEPT: usize = 10_000;

/// The rule, for where memory is limited.
#[derive(Debug)]
pub(crate) struct LongSorts;

impl PhysicalOptimizerRule for LongSorts {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let long = node.downcast_ref::<SortExec>().and_then(|sort| {
                let rows = sort.fetch().filter(|rows| *rows > MOST_KEPT)?;
                Some((sort, rows))
            });
            Ok(match long {
                None => Transformed::no(node),
                Some((sort, rows)) => Transformed::yes(cut_above(sort, rows)),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "LongSorts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The sort of all rows, and the first of them.
fn cut_above(sort: &SortExec, rows: usize) -> Arc<dyn ExecutionPlan> {
    let whole = SortExec::new(sort.expr().clone(), sort.input().clone());
    let whole = Arc::new(whole.with_preserve_partitioning(sort.preserve_partitioning()));
    match sort.preserve_partitioning() {
        true => Arc::new(LocalLimitExec::new(whole, rows)),
        false => Arc::new(GlobalLimitExec::new(whole, 0, Some(rows))),
    }
}
