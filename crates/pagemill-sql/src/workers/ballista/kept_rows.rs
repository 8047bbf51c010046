//! A step of a stage that begins with the rows of an earlier one: from files of the worker itself, and of others by asking them.
//!
//! Invariant: rows that cannot be had are told as lost, with the worker and the stage that they are of, which is what they are made
//! again by.

use std::fmt;
use std::sync::Arc;

use ballista_core::execution_plans::ShuffleReaderExec;
use ballista_core::serde::scheduler::PartitionLocation;
use datafusion::common::Result as QueryResult;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::{StreamExt as _, TryStreamExt as _, stream};

use super::kept::KeptFiles;
use super::rpc::fetch;

/// Files that are asked for at a time.
const AT_A_TIME: usize = 4;

/// The rows of an earlier stage.
pub(super) struct KeptRows {
    /// For each part, the files that have its rows.
    parts: Vec<Vec<PartitionLocation>>,
    /// Each part is all rows.
    is_broadcast: bool,
    properties: Arc<PlanProperties>,
    kept: Arc<KeptFiles>,
}

impl fmt::Debug for KeptRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptRows").finish_non_exhaustive()
    }
}

impl KeptRows {
    /// # Errors
    /// Where files of other jobs are among them.
    pub(super) fn new(reader: &ShuffleReaderExec, kept: Arc<KeptFiles>) -> QueryResult<Self> {
        let (parts, is_broadcast) = (reader.partition.clone(), reader.broadcast);
        for file in parts.iter().flatten() {
            kept.require_job(file.partition_id.job_id.as_str())?;
        }
        Ok(Self { parts, is_broadcast, properties: reader.properties().clone(), kept })
    }
}

impl DisplayAs for KeptRows {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptRows")
    }
}

impl ExecutionPlan for KeptRows {
    fn name(&self) -> &str {
        "KeptRows"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> QueryResult<TreeNodeRecursion>,
    ) -> QueryResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> QueryResult<SendableRecordBatchStream> {
        let part = if self.is_broadcast { 0 } else { partition };
        let files = self.parts.get(part).cloned().unwrap_or_default(); // default: a part of no files has no rows
        let (schema, kept) = (self.schema(), self.kept.clone());
        let rows = stream::iter(files).map(move |file| {
            let (kept, schema, context) = (kept.clone(), schema.clone(), context.clone());
            async move {
                match file.executor_meta.id == kept.names.worker {
                    true => kept.read(file, schema, context),
                    false => fetch(&kept.connections, file, schema).await,
                }
            }
        });
        // In the order of the files: of those of a sorted part there is one.
        let rows = rows.buffered(AT_A_TIME).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
