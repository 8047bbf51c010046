//! A statement on workers by Ballista, as the coordinator sees it: streams to all workers, a scheduler, and the rows of the last stage.
//!
//! Invariants: rows come in the order of the last stage's parts; what the scheduler and the workers have of the statement goes when its
//! rows are pulled no more.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use ballista_core::JobId;
use ballista_core::error::BallistaError;
use ballista_core::ids::new_instance_id;
use ballista_core::serde::protobuf::{self, JobStatus, TaskStatus};
use ballista_core::serde::protobuf::{failed_task::FailedReason, job_status, task_status};
use ballista_core::serde::scheduler::PartitionLocation;
use ballista_scheduler::planner::{DefaultDistributedPlanner, DistributedPlanner as _};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result as QueryResult;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    ReplaceChildrenOptions, displayable,
};
use datafusion::prelude::SessionConfig;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use prost::Message as _;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::task::JoinSet;
use tonic::Streaming;
use url::Url;

use super::super::channels::Connections;
use super::super::coordinator::{Planned, Sent, Workers};
use super::super::errors::{CONNECTION_FAILURE, LostRows, received};
use super::codec::StagesCodec;
use super::cut::Cutting;
use super::rpc::{Job, fetch, run, worker_name};
use super::scheduler::{Reports, Scheduled, Scheduler};
use crate::error::{Error, StatementError};
use crate::scan::ScanContext;

/// The statement as a step.
pub(in super::super) struct OnBallista {
    statement: Statement,
    properties: Arc<PlanProperties>,
}

/// What is run, and on what.
#[derive(Clone)]
struct Statement {
    plan: Arc<dyn ExecutionPlan>,
    config: SessionConfig,
    sent: Sent,
    /// Of the workers that are not lost.
    urls: Vec<Url>,
    connections: Arc<Connections>,
    /// Of a plan, that each worker works on at a time.
    partitions: usize,
    /// Where is told what workers are lost.
    scans: Arc<ScanContext>,
}

impl Workers {
    /// The plan by which Ballista runs it on workers, and what its rows are pulled in; `None` where one task is enough.
    pub(in super::super) fn divided_by_ballista(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        state: &SessionState,
        (sent, scans): (Sent, &Arc<ScanContext>),
    ) -> QueryResult<Option<Planned>> {
        let workers = self.urls.len();
        let cutting = Cutting { share_bytes: self.dividing.share_bytes, workers };
        let Some(plan) = cutting.plan(plan)? else { return Ok(None) };
        let partitions = state.config().target_partitions();
        let mut config = state.config().clone().with_target_partitions(partitions * workers);
        // Stages are what the plan says: their steps are not divided once more.
        config.options_mut().optimizer.enable_round_robin_repartition = false;
        config.options_mut().optimizer.repartition_file_scans = false;
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(plan.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        let statement = Statement {
            plan,
            config,
            sent,
            urls: self.urls.clone(),
            connections: self.connections.clone(),
            partitions,
            scans: scans.clone(),
        };
        let divided = OnBallista { statement, properties };
        Ok(Some((Arc::new(divided), state.task_ctx())))
    }
}

impl OnBallista {
    /// The stages, for EXPLAIN.
    pub(in super::super) fn stages(&self) -> String {
        let (job, options) = (JobId::new("explain"), self.statement.config.options());
        let mut planner = DefaultDistributedPlanner::new();
        match planner.plan_query_stages(&job, self.statement.plan.clone(), options) {
            Ok(stages) => {
                let shown = stages.iter().map(|stage| {
                    let plan: &dyn ExecutionPlan = &**stage;
                    format!("Stage {}\n{}", stage.stage_id(), displayable(plan).indent(false))
                });
                shown.collect()
            }
            Err(error) => error.to_string(),
        }
    }
}

impl fmt::Debug for OnBallista {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnBallista").finish_non_exhaustive()
    }
}

impl DisplayAs for OnBallista {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnBallista")
    }
}

impl ExecutionPlan for OnBallista {
    fn name(&self) -> &str {
        "OnBallista"
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

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> QueryResult<SendableRecordBatchStream> {
        let rows = stream::once(self.statement.clone().rows()).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

/// What became of something that workers are needed for.
enum Attempt<T> {
    Done(T),
    /// The worker of this name is lost.
    Lost(String, DataFusionError),
}

/// What a worker's stream told.
enum Told {
    /// The statement cannot go on.
    Failed(DataFusionError),
    /// The worker of this name is lost.
    Lost(String, DataFusionError),
}

impl Statement {
    async fn rows(mut self) -> QueryResult<SendableRecordBatchStream> {
        loop {
            match self.attempt().await? {
                Attempt::Done(rows) => return Ok(rows),
                Attempt::Lost(worker, error) => {
                    let before = self.urls.len();
                    self.urls.retain(|url| worker_name(url) != worker);
                    if self.urls.is_empty() || self.urls.len() == before {
                        return Err(error);
                    }
                    let error = Error::from(error);
                    self.scans
                        .note(format!("the statement has begun anew without a worker: {error}"));
                }
            }
        }
    }

    async fn attempt(&self) -> QueryResult<Attempt<SendableRecordBatchStream>> {
        let Sent { statement, account, codec } = self.sent.clone();
        let job = Job { name: new_instance_id(), statement, account };
        let (mut lanes, mut answers) = (HashMap::new(), Vec::new());
        for url in &self.urls {
            let (tasks, sent) = mpsc::unbounded_channel();
            let sent =
                stream::unfold(sent, async |mut sent| sent.recv().await.map(|task| (task, sent)));
            match run(&self.connections, url, &job, sent).await? {
                Ok(stream) => answers.push((url.clone(), stream)),
                Err(lost) => return Ok(Attempt::Lost(worker_name(url), lost)),
            }
            lanes.insert(worker_name(url), tasks);
        }
        let codec = StagesCodec { plan: codec, kept: None };
        let scheduled = Scheduled { job: job.name, partitions: self.partitions, codec };
        let scheduler = Scheduler::start(lanes, scheduled).await?;
        let (teller, told) = mpsc::unbounded_channel();
        let mut streams = JoinSet::new();
        for (url, answers) in answers {
            streams.spawn(listen(url, answers, (scheduler.reports(), teller.clone())));
        }
        let statuses = scheduler.submit(self.plan.clone(), self.config.clone()).await?;
        let files = match finished(statuses, told).await? {
            Attempt::Done(files) => files,
            Attempt::Lost(worker, error) => return Ok(Attempt::Lost(worker, error)),
        };
        let schema = self.plan.schema();
        let rows = fetched(self.connections.clone(), files, schema.clone());
        // Both have to be there until the last row: with the streams the files go.
        let kept = (scheduler, streams);
        let rows = rows.inspect(move |_| {
            let _ = &kept;
        });
        Ok(Attempt::Done(Box::pin(RecordBatchStreamAdapter::new(schema, rows))))
    }
}

fn fetched(
    connections: Arc<Connections>,
    files: Vec<PartitionLocation>,
    schema: SchemaRef,
) -> SendableRecordBatchStream {
    let own = schema.clone();
    let rows = stream::iter(files).then(move |file| {
        let (connections, schema) = (connections.clone(), own.clone());
        async move { fetch(&connections, file, schema).await }
    });
    // Rows were handed out: it is too late to begin anew.
    let rows = rows.try_flatten().map_err(|error| match LostRows::of(&error) {
        Some(lost) => StatementError::new(CONNECTION_FAILURE, lost.message.clone()).into(),
        None => error,
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

/// Hands on what a worker says of its tasks, until it is gone.
async fn listen(
    url: Url,
    mut answers: Streaming<Vec<u8>>,
    (reports, teller): (Reports, UnboundedSender<Told>),
) {
    let worker = worker_name(&url);
    let why = loop {
        let status = match answers.message().await {
            Ok(Some(message)) => TaskStatus::decode(&message[..]),
            Ok(None) => break DataFusionError::External("it has ended".into()),
            Err(status) => break DataFusionError::External(Box::new(status)),
        };
        match status {
            Ok(status) => match failure(&url, &status) {
                // The statement has ended already where nobody listens to what is told.
                Some(failure) => drop(teller.send(failure)),
                None => reports.task_ended(&worker, status).await,
            },
            Err(error) => break DataFusionError::External(error.into()),
        }
    };
    drop(teller.send(Told::Lost(worker, received(&url, &why))));
}

/// What a task failed with.
fn failure(url: &Url, status: &TaskStatus) -> Option<Told> {
    let Some(task_status::Status::Failed(failed)) = &status.status else { return None };
    let error = received(url, &DataFusionError::External(failed.error.clone().into()));
    Some(match &failed.failed_reason {
        Some(FailedReason::FetchPartitionError(lost)) => {
            Told::Lost(lost.executor_id.clone(), error)
        }
        _ => Told::Failed(error),
    })
}

/// The files with the rows of the last stage, in their order.
async fn finished(
    mut statuses: mpsc::Receiver<JobStatus>,
    mut told: mpsc::UnboundedReceiver<Told>,
) -> QueryResult<Attempt<Vec<PartitionLocation>>> {
    loop {
        tokio::select! {
            // First what went wrong: nothing that the scheduler says after that counts.
            biased;
            Some(told) = told.recv() => return match told {
                Told::Failed(error) => Err(error),
                Told::Lost(worker, error) => Ok(Attempt::Lost(worker, error)),
            },
            Some(JobStatus { status, .. }) = statuses.recv() => match status {
                Some(job_status::Status::Successful(job)) => return in_order(job).map(Attempt::Done),
                Some(job_status::Status::Failed(job)) => {
                    return Err(DataFusionError::External(job.error.into()));
                }
                _ => {}
            },
            else => return Err(DataFusionError::External("the scheduler has ended".into())),
        }
    }
}

fn in_order(job: protobuf::SuccessfulJob) -> QueryResult<Vec<PartitionLocation>> {
    let files = job.partition_location.into_iter().map(TryInto::try_into);
    let files = files.collect::<Result<Vec<PartitionLocation>, BallistaError>>();
    let mut files = files.map_err(|error| DataFusionError::External(error.to_string().into()))?;
    files.sort_by_key(|file| file.partition_id.partition_id);
    Ok(files)
}
