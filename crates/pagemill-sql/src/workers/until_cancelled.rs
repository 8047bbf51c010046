//! Plans whose steps end when the statement is cancelled. Both engines have tasks of their own going on a worker, which nobody ends when
//! the request of the statement does: the rows that they wait for have to.
//!
//! Invariant: rows are what they are below.

use std::sync::Arc;

use datafusion::common::Result as QueryResult;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt as _;
use pagemill_engine::Progress;

use super::changed_rows::{ChangedRows, Rows};
use crate::error::Error;

/// The plan, in which whatever gives way to others ends when the statement is cancelled.
pub(super) fn until_cancelled(
    plan: Arc<dyn ExecutionPlan>,
    cancel: &Progress,
) -> QueryResult<Arc<dyn ExecutionPlan>> {
    let changed = plan.transform_up(|node| {
        if !node.is::<CooperativeExec>() {
            return Ok(Transformed::no(node));
        }
        let cancel = cancel.clone();
        let watched = move |rows: Rows| rows.map(|rows| rows_until_cancelled(rows, cancel.clone()));
        Ok(Transformed::yes(ChangedRows::over(node, "UntilCancelled", watched)))
    })?;
    Ok(changed.data)
}

/// The rows, up to where the statement is cancelled, which is an error.
pub(super) fn rows_until_cancelled(
    rows: SendableRecordBatchStream,
    cancel: Progress,
) -> SendableRecordBatchStream {
    let schema = rows.schema();
    let rows = rows.map(move |batch| match cancel.is_cancelled() {
        true => Err(Error::from(pagemill_engine::Error::Cancelled).into()),
        false => batch,
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}
