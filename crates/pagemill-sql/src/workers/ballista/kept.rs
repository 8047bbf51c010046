//! The files in which a worker keeps rows of a statement's stages until other stages have them.
//!
//! Invariant: they are in a directory of their own, which goes with the last that knows it.

use std::sync::Arc;

use ballista_core::execution_plans::ShuffleReaderExec;
use ballista_core::serde::scheduler::PartitionLocation;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result as QueryResult;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{ExecutionPlan as _, Partitioning};
use tempfile::TempDir;

use super::super::channels::Connections;

/// What a worker has of a statement, and how it reaches those that have the rest.
#[derive(Debug)]
pub(super) struct KeptFiles {
    directory: TempDir,
    /// What the coordinator calls this worker.
    pub(super) worker: String,
    pub(super) connections: Arc<Connections>,
}

impl KeptFiles {
    /// # Errors
    /// When no directory can be made for them.
    pub(super) fn new(worker: String, connections: Arc<Connections>) -> QueryResult<Self> {
        let directory = tempfile::Builder::new().prefix("pagemill-stages-").tempdir();
        let directory = directory.map_err(DataFusionError::IoError)?;
        Ok(Self { directory, worker, connections })
    }

    pub(super) fn directory(&self) -> String {
        self.directory.path().to_string_lossy().into_owned()
    }

    /// The rows of a file of its own.
    pub(super) fn read(
        &self,
        location: PartitionLocation,
        schema: SchemaRef,
        context: Arc<TaskContext>,
    ) -> QueryResult<SendableRecordBatchStream> {
        let stage = location.partition_id.stage_id;
        let one = Partitioning::UnknownPartitioning(1);
        let reader = ShuffleReaderExec::try_new(stage, vec![vec![location]], schema, one)?;
        reader.with_work_dir(self.directory()).execute(0, context)
    }
}
