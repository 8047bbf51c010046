//! Constants that are so long that few rows have room for them in a batch.
//!
//! What computes batches repeats a constant for each of their rows, and the offsets of texts in a batch have 31 bits.
//!
//! Invariant: in a batch of as many rows as are told here, each constant of the plan can stand in every row.

use std::sync::Arc;

use datafusion::common::Result as QueryResult;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::scalar::ScalarValue;

/// Bytes that a constant may take in all rows of a batch.
const MOST_BYTES: usize = 256 << 20;

/// How many rows may have this constant, of so many.
pub(crate) fn rows_with(constant: &ScalarValue, rows: usize) -> usize {
    let bytes = match constant {
        ScalarValue::Utf8(Some(text)) => text.len(),
        ScalarValue::Binary(Some(bytes)) => bytes.len(),
        other => other.size(),
    };
    rows.min(MOST_BYTES / bytes.max(1)).max(1)
}

/// How many rows a batch of a plan may have, of so many.
pub(crate) fn most_rows(plan: &Arc<dyn ExecutionPlan>, rows: usize) -> QueryResult<usize> {
    let mut most = rows;
    plan.apply(|node| {
        node.apply_expressions(&mut |expr| {
            expr.apply(|part| {
                if let Some(constant) = part.downcast_ref::<Literal>() {
                    most = rows_with(constant.value(), most);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(most)
}
