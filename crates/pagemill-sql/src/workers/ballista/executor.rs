//! What a worker does of statements that Ballista divides: it plans them as they were planned where they come from, runs tasks on the
//! parts of that plan, and keeps their rows for whoever has the secret.
//!
//! Invariants: what a task runs is of steps that stages have; files are handed out only of jobs that are open here; when the stream of a
//! statement ends, its tasks end and its files go.

use std::collections::HashMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_flight::flight_service_server::FlightService as _;
use arrow_flight::{FlightData, Ticket};
use ballista_core::JobId;
use ballista_core::serde::protobuf::{self, MultiTaskDefinition, ShuffleWritePartition, TaskId};
use ballista_core::serde::protobuf::{TaskStatus, failed_task, task_status};
use ballista_core::serde::scheduler::{Action, ShuffleFileKind, ShuffleLayout};
use ballista_executor::execution_engine::{DefaultExecutionEngine, ExecutionEngine as _};
use ballista_executor::flight_service::BallistaFlightService;
use datafusion::common::Result as QueryResult;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
use datafusion::prelude::SessionConfig;
use datafusion_proto::bytes::physical_plan_from_bytes_with_extension_codec;
use futures::FutureExt as _;
use futures::stream::{BoxStream, StreamExt as _, unfold};
use http::HeaderMap;
use prost::Message as _;
use tokio::task::JoinSet;
use tonic::{Request, Status, Streaming};

use super::super::arrived::{Arrivals, REFUSED};
use super::super::channels::Connections;
use super::super::errors::{LostRows, to_send};
use super::super::stage::end_of_stage;
use super::super::steps::step_beside;
use super::super::until_cancelled::until_cancelled;
use super::codec::{StagesCodec, is_writer};
use super::kept::{KeptFiles, StatementNames};
use super::kept_rows::KeptRows;
use super::rpc::AskedFile;
use crate::error::{Result, SqlState, StatementError};
use crate::interruption::interruptible;
use crate::scan::ScanContext;

/// Characters of a job's name.
const LONGEST_NAME: usize = 64;

/// The statements that are open on a worker.
pub(in super::super) struct Stages {
    arrivals: Arc<Arrivals>,
    runtime: Arc<RuntimeEnv>,
    connections: Arc<Connections>,
    /// By the names of their jobs.
    kept: Mutex<HashMap<String, Arc<KeptFiles>>>,
}

impl fmt::Debug for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stages").finish_non_exhaustive()
    }
}

impl Stages {
    pub(in super::super) fn new(
        arrivals: Arc<Arrivals>,
        runtime: Arc<RuntimeEnv>,
        connections: Arc<Connections>,
    ) -> Self {
        Self { arrivals, runtime, connections, kept: Mutex::default() }
    }

    /// The statement of a stream, planned.
    pub(super) async fn open(
        self: Arc<Self>,
        (worker, job): (String, String),
        headers: &HeaderMap,
    ) -> Result<OpenStatement> {
        let opened = self.arrivals.opened(headers).await?;
        let config = opened.session.execution_config(SessionConfig::new());
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(self.runtime.clone())
            .build();
        let names = StatementNames { worker, job: job.clone() };
        let kept = Arc::new(KeptFiles::new(names, self.connections.clone())?);
        let codec = StagesCodec { plan: Arc::new(opened.opener.codec), kept: Some(kept.clone()) };
        let (context, scans) = (state.task_ctx(), opened.opener.scans);
        let registered = self.register(job, kept.clone())?;
        let tasks = Tasks { kept, codec, scans, context };
        Ok(OpenStatement {
            tasks: Arc::new(tasks),
            running: JoinSet::new(),
            _registered: registered,
        })
    }

    fn register(self: Arc<Self>, job: String, kept: Arc<KeptFiles>) -> Result<Registered> {
        let is_name = job.len() <= LONGEST_NAME
            && job.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let mut known = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_name || job.is_empty() || known.contains_key(&job) {
            return Err(StatementError::new(REFUSED, "a job of another statement").into());
        }
        known.insert(job.clone(), kept);
        drop(known);
        Ok(Registered { stages: self, job })
    }

    /// The rows of a file.
    pub(super) async fn rows(
        &self,
        asked: &AskedFile,
    ) -> Result<BoxStream<'static, Result<FlightData, Status>>, Status> {
        let known =
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(&asked.job).cloned();
        let kept = known.ok_or_else(|| Status::not_found("the rows of that statement are gone"))?;
        let action = Action::FetchPartition {
            job_id: JobId::new(asked.job.as_str()),
            stage_id: asked.stage,
            partition_id: asked.part,
            host: String::new(),
            port: 0,
            file_id: asked.file,
            layout: if asked.is_sorted { ShuffleLayout::Sort } else { ShuffleLayout::Passthrough },
            file_kind: ShuffleFileKind::Data,
            byte_ranges: Vec::new(),
        };
        let action: protobuf::Action =
            action.try_into().map_err(|_| Status::invalid_argument("a file of another program"))?;
        let ticket = Ticket { ticket: action.encode_to_vec().into() };
        let service = BallistaFlightService::new(kept.directory());
        let rows = service.do_get(Request::new(ticket)).await?.into_inner();
        // They stay as long as somebody reads them.
        let rows = rows.inspect(move |_| {
            let _ = &kept;
        });
        Ok(rows.boxed())
    }
}

/// A job that is open; its rows are gone when this goes.
struct Registered {
    stages: Arc<Stages>,
    job: String,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.stages.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.job);
    }
}

/// A statement whose stream is open.
pub(super) struct OpenStatement {
    tasks: Arc<Tasks>,
    running: JoinSet<TaskStatus>,
    _registered: Registered,
}

impl Drop for OpenStatement {
    fn drop(&mut self) {
        // What computes looks at this from time to time; what waits is ended with the set of tasks.
        self.tasks.scans.progress.cancel();
    }
}

impl OpenStatement {
    /// Runs the tasks that come, and says of each how it ended.
    pub(super) fn answers(
        self,
        tasks: Streaming<Vec<u8>>,
    ) -> BoxStream<'static, Result<Vec<u8>, Status>> {
        unfold((self, tasks), |(mut open, mut tasks)| async move {
            loop {
                tokio::select! {
                    task = tasks.message() => {
                        // Whoever ends the stream wants nothing any more.
                        let task = MultiTaskDefinition::decode(&task.ok()??[..]);
                        match task {
                            Ok(task) => drop(open.running.spawn(open.tasks.clone().run(task))),
                            Err(error) => {
                                let refused = Status::invalid_argument(error.to_string());
                                return Some((Err(refused), (open, tasks)));
                            }
                        }
                    }
                    // None is ended from without, and none panics.
                    Some(Ok(ended)) = open.running.join_next() => {
                        return Some((Ok(ended.encode_to_vec()), (open, tasks)));
                    }
                }
            }
        })
        .boxed()
    }
}

/// What the tasks of a statement run on.
struct Tasks {
    kept: Arc<KeptFiles>,
    codec: StagesCodec,
    scans: Arc<ScanContext>,
    context: Arc<TaskContext>,
}

impl Tasks {
    async fn run(self: Arc<Self>, task: MultiTaskDefinition) -> TaskStatus {
        let start = now();
        let [id] = &task.task_ids[..] else {
            let none = TaskId::default();
            let error = DataFusionError::Execution("a message has one task".to_owned());
            return ended(&task, &none, (start, self.failed(error)));
        };
        // A defect of a step ends the statement, and not the worker.
        let result = AssertUnwindSafe(self.stage(&task, id)).catch_unwind().await;
        let result = result.unwrap_or_else(|_| {
            Err(DataFusionError::Internal("a step of the statement has panicked".to_owned()))
        });
        let status = match result {
            Ok(partitions) => task_status::Status::Successful(protobuf::SuccessfulTask {
                executor_id: self.kept.names.worker.clone(),
                partitions,
                ..Default::default()
            }),
            Err(error) => self.failed(error),
        };
        ended(&task, id, (start, status))
    }

    async fn stage(
        &self,
        task: &MultiTaskDefinition,
        id: &TaskId,
    ) -> QueryResult<Vec<ShuffleWritePartition>> {
        self.kept.require_job(&task.job_id)?;
        let plan = self.plan(&task.plan)?;
        let (stage, number) = (task.stage_id as usize, id.task_id as usize);
        let parts = id.global_output_partition_ids.iter().map(|part| *part as usize).collect();
        let (job, directory) = (JobId::new(task.job_id.as_str()), self.kept.directory());
        let config = self.context.session_config();
        let engine = DefaultExecutionEngine::new();
        let stage =
            engine.create_query_stage_exec(job, stage, number, parts, plan, &directory, config)?;
        stage.execute_query_stage(number, self.context.clone()).await
    }

    /// The plan of a task: below what keeps its rows stands what looks whether the cluster is still what it was.
    fn plan(&self, bytes: &[u8]) -> QueryResult<Arc<dyn ExecutionPlan>> {
        let plan =
            physical_plan_from_bytes_with_extension_codec(bytes, &self.context, &self.codec)?;
        let (true, [input]) = (is_writer(&*plan), &plan.children()[..]) else {
            let message = "a plan whose rows nobody keeps";
            return Err(StatementError::new(SqlState::DENIED, message).into());
        };
        if let Some(step) = step_beside(input, &|node| node.is::<KeptRows>()) {
            let message = format!("a plan with the step {step}, which no worker does");
            return Err(StatementError::new(SqlState::DENIED, message).into());
        }
        let input = interruptible((*input).clone(), &self.scans.progress)?;
        let input = until_cancelled(input, &self.scans.progress)?;
        let input = end_of_stage(input, &self.scans);
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        plan.replace_children(vec![input], options)
    }

    fn failed(&self, error: DataFusionError) -> task_status::Status {
        let (error, reason) = match LostRows::of(&error) {
            Some(lost) => {
                let reason = protobuf::FetchPartitionError {
                    executor_id: lost.worker.clone(),
                    map_stage_id: u32::try_from(lost.stage).unwrap_or(u32::MAX),
                    map_partition_id: u32::try_from(lost.part).unwrap_or(u32::MAX),
                };
                (lost.message.clone(), failed_task::FailedReason::FetchPartitionError(reason))
            }
            None => {
                let reason = failed_task::FailedReason::ExecutionError(protobuf::ExecutionError {});
                (to_send(error).to_string(), reason)
            }
        };
        task_status::Status::Failed(protobuf::FailedTask {
            error,
            retryable: false,
            count_to_failures: false,
            failed_reason: Some(reason),
        })
    }
}

fn ended(
    task: &MultiTaskDefinition,
    id: &TaskId,
    (start, status): (u64, task_status::Status),
) -> TaskStatus {
    TaskStatus {
        task_id: id.task_id,
        job_id: task.job_id.clone(),
        stage_id: task.stage_id,
        stage_attempt_num: task.stage_attempt_num,
        launch_time: task.launch_time,
        start_exec_time: start,
        end_exec_time: now(),
        metrics: Vec::new(),
        status: Some(status),
    }
}

/// Milliseconds since 1970, which Ballista shows and nothing is decided by.
fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
