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
use crate::error::{SqlState, StatementError};

/// What the coordinator calls a worker, and the statement's job.
#[derive(Debug)]
pub(super) struct StatementNames {
    pub(super) worker: String,
    pub(super) job: String,
}

/// What a worker has of a statement, and how it reaches those that have the rest.
#[derive(Debug)]
pub(super) struct KeptFiles {
    directory: TempDir,
    pub(super) names: StatementNames,
    pub(super) connections: Arc<Connections>,
}

impl KeptFiles {
    /// # Errors
    /// When no directory can be made for them.
    pub(super) fn new(names: StatementNames, connections: Arc<Connections>) -> QueryResult<Self> {
        let directory = tempfile::Builder::new().prefix("pagemill-stages-").tempdir();
        let directory = directory.map_err(DataFusionError::IoError)?;
        Ok(Self { directory, names, connections })
    }

    /// Names of jobs become names of directories: no other one is taken.
    ///
    /// # Errors
    /// Where it is another job's.
    pub(super) fn require_job(&self, name: &str) -> QueryResult<()> {
        match name == self.names.job {
            true => Ok(()),
            false => Err(StatementError::new(SqlState::DENIED, "a part of another job").into()),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_job_of_the_statement_has_files_here() {
        let names = StatementNames { worker: "w:1".to_owned(), job: "a-1".to_owned() };
        let kept = KeptFiles::new(names, Arc::new(Connections::default())).unwrap();
        assert!(kept.require_job("a-1").is_ok());
        for other in ["", "a-2", "../a-1", "/tmp", "a-1/.."] {
            assert!(kept.require_job(other).is_err(), "{other}");
        }
    }
}
