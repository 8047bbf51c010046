//! Ballista's scheduler for one statement: it divides the plan into stages, and gives their tasks to workers.
//!
//! Invariant: what it has going ends with it: it has threads of its own, as some of its loops have no other end.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use ballista_core::JobId;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::{BallistaError, Result as BallistaResult};
use ballista_core::serde::BallistaCodec;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpc as _;
use ballista_core::serde::protobuf::{
    JobStatus, MultiTaskDefinition, TaskStatus, UpdateTaskStatusParams,
};
use ballista_core::serde::scheduler::{ExecutorData, ExecutorMetadata, ExecutorSpecification};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::metrics::NoopMetricsCollector;
use ballista_scheduler::scheduler_server::{JobIdGenerator, SchedulerServer};
use ballista_scheduler::state::executor_manager::ExecutorManager;
use ballista_scheduler::state::task_manager::TaskLauncher;
use datafusion::common::Result as QueryResult;
use datafusion::error::DataFusionError;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::logical_plan::DefaultLogicalExtensionCodec;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use prost::Message as _;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{Receiver, UnboundedSender, channel};
use tonic::Request;

use super::codec::StagesCodec;

/// Longer than any statement: whether workers are there is seen by their streams.
const FOREVER_SECONDS: u64 = 10 * 365 * 24 * 3600;
/// What is told of a job while nobody listens.
const MOST_STATUSES: usize = 64;

type Server = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

/// The workers by their names, each with where its tasks go.
pub(super) type Lanes = HashMap<String, UnboundedSender<Vec<u8>>>;

/// The scheduler.
pub(super) struct Scheduler {
    reports: Reports,
    runtime: Option<Runtime>,
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler").finish_non_exhaustive()
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// What a scheduler is for.
pub(super) struct Scheduled {
    pub(super) job: String,
    /// Partitions of a plan that each worker works on at a time.
    pub(super) partitions: usize,
    pub(super) codec: StagesCodec,
}

fn failed(error: &BallistaError) -> DataFusionError {
    DataFusionError::External(error.to_string().into())
}

impl Scheduler {
    pub(super) async fn start(lanes: Lanes, scheduled: Scheduled) -> QueryResult<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("ballista")
            .enable_all()
            .build()
            .map_err(DataFusionError::IoError)?;
        let started = runtime.spawn(server(lanes, scheduled)).await;
        let started = started.map_err(|error| DataFusionError::External(error.into()))?;
        let server = Arc::new(started.map_err(|error| failed(&error))?);
        Ok(Self { reports: Reports(server), runtime: Some(runtime) })
    }

    /// Begins with the plan, and tells how that goes.
    pub(super) async fn submit(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: SessionConfig,
    ) -> QueryResult<Receiver<JobStatus>> {
        let (sender, statuses) = channel(MOST_STATUSES);
        let context = Arc::new(SessionContext::new_with_config(config));
        let submitted = self.reports.0.submit_physical_plan("", context, plan, Some(sender)).await;
        submitted.map_err(|error| failed(&error))?;
        Ok(statuses)
    }

    pub(super) fn reports(&self) -> Reports {
        self.reports.clone()
    }
}

/// Tells the scheduler of tasks that have ended.
#[derive(Clone)]
pub(super) struct Reports(Arc<Server>);

impl Reports {
    pub(super) async fn task_ended(&self, worker: &str, status: TaskStatus) {
        let (executor_id, task_status) = (worker.to_owned(), vec![status]);
        let told = UpdateTaskStatusParams { executor_id, task_status };
        // It fails only where the scheduler has ended, and the statement with it.
        drop(self.0.as_ref().update_task_status(Request::new(told)).await);
    }
}

async fn server(lanes: Lanes, scheduled: Scheduled) -> BallistaResult<Server> {
    let Scheduled { job, partitions, codec } = scheduled;
    let builder = Arc::new(|config| Ok(SessionStateBuilder::new().with_config(config).build()));
    let cluster = BallistaCluster::new_memory(job.clone(), builder, Arc::new(SessionConfig::new));
    let vcores = u32::try_from(partitions).unwrap_or(u32::MAX);
    for worker in lanes.keys() {
        let (id, executor_id) = (worker.clone(), worker.clone());
        let specification = ExecutorSpecification::default().with_vcores(vcores);
        let (host, os_info) = (String::new(), Default::default());
        let metadata = ExecutorMetadata { id, host, port: 0, grpc_port: 0, specification, os_info };
        let data = ExecutorData { executor_id, total_vcores: vcores, available_vcores: vcores };
        cluster.cluster_state().register_executor(metadata, data).await?;
    }
    let codec = BallistaCodec::new(Arc::new(DefaultLogicalExtensionCodec {}), Arc::new(codec));
    let launcher = Arc::new(ToStreams(lanes));
    let metrics = Arc::new(NoopMetricsCollector::default());
    let config = Arc::new(config(job));
    let mut server = SchedulerServer::new_with_task_launcher(
        String::new(),
        cluster,
        codec,
        config,
        metrics,
        launcher,
    );
    server.init().await?;
    Ok(server)
}

fn config(job: String) -> SchedulerConfig {
    SchedulerConfig {
        scheduler_id: job.clone(),
        scheduling_policy: TaskSchedulingPolicy::PushStaged,
        task_distribution: TaskDistributionPolicy::RoundRobin,
        // Workers remove files when streams end; none listens for Ballista's own requests.
        finished_job_data_clean_up_interval_seconds: 0,
        override_create_grpc_client_endpoint: Some(Arc::new(|_| {
            Err("workers are reached by streams".into())
        })),
        executor_timeout_seconds: FOREVER_SECONDS,
        expire_dead_executor_interval_seconds: FOREVER_SECONDS,
        no_executors_grace_period_seconds: 0,
        job_id_generator: Some(Arc::new(OneJob(job))),
        ..Default::default()
    }
}

/// Names the one job as the streams do.
struct OneJob(String);

#[async_trait]
impl JobIdGenerator for OneJob {
    async fn next_id(&self) -> String {
        self.0.clone()
    }
}

/// Puts tasks on the streams of their workers.
struct ToStreams(Lanes);

#[async_trait]
impl TaskLauncher for ToStreams {
    async fn launch_tasks(
        &self,
        executor: &ExecutorMetadata,
        tasks: Vec<MultiTaskDefinition>,
        _: &ExecutorManager,
    ) -> BallistaResult<HashSet<JobId>> {
        let lane = self.0.get(&executor.id).expect("workers are registered by these names"); // infallible: `server` does so
        for task in tasks {
            // That a stream has ended is told by who listens to it, and not to the scheduler, which would do what was lost again.
            drop(lane.send(task.encode_to_vec()));
        }
        Ok(HashSet::new())
    }
}
