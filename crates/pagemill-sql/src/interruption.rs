//! Steps that compute for long before they have a row are made to stop when the statement is cancelled, and to let others go on.
//!
//! The engine's steps give way to others when they ask a scan for more, which a join does once for any number of pairs. Here each
//! join, and whatever makes rows, gives way by the batch; the condition of a nested loop, which may be true for no pair at all,
//! looks whether it was cancelled each time.
//!
//! Invariant: a plan means what it meant.

use std::fmt::{self, Display, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::common::Result as QueryResult;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder, SortMergeJoinExec,
};
use pagemill_engine::Progress;

use crate::error::Error;
use crate::expand::ExpandRows;

/// A plan that ends soon when it is cancelled.
pub(crate) fn interruptible(
    plan: Arc<dyn ExecutionPlan>,
    cancel: &Progress,
) -> QueryResult<Arc<dyn ExecutionPlan>> {
    let changed = plan.transform_up(|node| {
        let gives_way = node.is::<HashJoinExec>()
            || node.is::<CrossJoinExec>()
            || node.is::<SortMergeJoinExec>()
            || node.is::<NestedLoopJoinExec>()
            || node.is::<ExpandRows>();
        if !gives_way {
            return Ok(Transformed::no(node));
        }
        let node = match node.downcast_ref::<NestedLoopJoinExec>() {
            Some(join) => checked(join, cancel)?,
            None => node,
        };
        Ok(Transformed::yes(Arc::new(CooperativeExec::new(node))))
    })?;
    Ok(changed.data)
}

/// The join with a condition that looks.
fn checked(join: &NestedLoopJoinExec, cancel: &Progress) -> QueryResult<Arc<dyn ExecutionPlan>> {
    let filter = join.filter().map(|filter| {
        let (inner, cancel) = (filter.expression().clone(), cancel.clone());
        let expression = Arc::new(Checked { inner, cancel });
        JoinFilter::new(expression, filter.column_indices().to_vec(), filter.schema().clone())
    });
    let (left, right) = (join.left().clone(), join.right().clone());
    let builder = NestedLoopJoinExecBuilder::new(left, right, *join.join_type());
    let builder = builder.with_filter(filter).with_projection_ref(join.projection().clone());
    Ok(Arc::new(builder.build()?))
}

/// A condition that fails once it is cancelled.
#[derive(Debug, Clone)]
struct Checked {
    inner: Arc<dyn PhysicalExpr>,
    cancel: Progress,
}

impl PartialEq for Checked {
    fn eq(&self, other: &Self) -> bool {
        self.inner.eq(&other.inner)
    }
}

impl Eq for Checked {}

impl Hash for Checked {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl Display for Checked {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PhysicalExpr for Checked {
    fn data_type(&self, schema: &Schema) -> QueryResult<DataType> {
        self.inner.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> QueryResult<bool> {
        self.inner.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> QueryResult<FieldRef> {
        self.inner.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> QueryResult<ColumnarValue> {
        match self.cancel.is_cancelled() {
            true => Err(Error::from(pagemill_engine::Error::Cancelled).into()),
            false => self.inner.evaluate(batch),
        }
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> QueryResult<Arc<dyn PhysicalExpr>> {
        assert_eq!(children.len(), 1, "a condition that looks has the one below it");
        Ok(Arc::new(Self { inner: children.remove(0), cancel: self.cancel.clone() }))
    }

    fn fmt_sql(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}
