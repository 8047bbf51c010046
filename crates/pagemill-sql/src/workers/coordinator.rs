//! The coordinator: which statements workers run, and the plan that has them do it.
//!
//! Invariant: a statement either runs on workers as it would here, or here.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result as QueryResult;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::context::{QueryPlanner, SessionState};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{
    DistributedExec, DistributedExt as _, SessionStateBuilderExt as _, WorkerResolver,
};
use http::HeaderValue;
use pagemill_cli::worker_arguments::WorkerEngine;
use url::Url;

#[cfg(feature = "ballista")]
use super::ballista::keeps_order_between;
use super::channels::{Access, Connections, StatementChannels};
use super::plan_codec::{PlanCodec, PlanParts};
use super::shares::{RangesOfTasks, TaskPerBytes, WorkersInOrder, has_large_scan};
use super::snapshot::Snapshot;
use super::stage::EnvelopeCodec;
use super::steps::{goes_by_columns, lost_on_the_way, unknown_step};
use super::travelling::{Asked, Travelling};
pub(crate) use super::whole_statement::Distributed;
use crate::named_workers::Dividing;
use crate::scan::ScanContext;

/// Workers that statements may run on.
pub struct Workers {
    pub(super) urls: Vec<Url>,
    pub(super) connections: Arc<Connections>,
    /// What they call the data directory.
    pub(super) directory: String,
    pub(super) snapshot: Snapshot,
    pub(crate) dividing: Dividing,
}

/// What runs, and what it runs in.
pub(super) type Planned = (Arc<dyn ExecutionPlan>, Arc<TaskContext>);

/// A statement as workers get it.
#[derive(Clone)]
pub(super) struct Sent {
    pub(super) statement: HeaderValue,
    /// The name by which they are asked what its scans met.
    pub(super) account: Option<HeaderValue>,
    /// How plans of its stages are written.
    pub(super) codec: Arc<PlanCodec>,
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").field("urls", &self.urls).finish_non_exhaustive()
    }
}

/// The address of a worker, `HOST:PORT`, as a URL.
///
/// # Errors
/// Where it is none.
pub fn worker_address(text: &str) -> Result<Url, String> {
    let url = Url::parse(&format!("http://{text}")).map_err(|error| format!("{text}: {error}"))?;
    let is_plain = url.path() == "/" && url.query().is_none() && url.username().is_empty();
    // Of a URL the port of its protocol is left out.
    let has_port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match is_plain && has_port && url.host_str().is_some_and(|host| !host.is_empty()) {
        true => Ok(url),
        false => Err(format!("{text}: HOST:PORT is expected")),
    }
}

impl Workers {
    /// Those at these addresses, for a data directory of this name that is at this moment.
    pub fn new(
        urls: Vec<Url>,
        access: Access,
        (directory, snapshot): (String, Snapshot),
        dividing: Dividing,
    ) -> Self {
        let connections = Arc::new(Connections::new(access));
        Self { urls, connections, directory, snapshot, dividing }
    }

    /// Whether a plan has enough to read for several of them.
    pub(crate) fn are_worth(&self, plan: &Arc<dyn ExecutionPlan>) -> bool {
        has_large_scan(plan, self.dividing.share_bytes)
    }

    /// The plan by which workers run a statement, and what it runs in; or why they do not.
    pub(crate) async fn distributed(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        state: &SessionState,
        (asked, scans): (Asked, &Arc<ScanContext>),
    ) -> QueryResult<Result<Planned, String>> {
        if let Some(step) = unknown_step(plan) {
            return Ok(Err(format!("it has a step that one machine does, {step}")));
        }
        if !goes_by_columns(plan) {
            return Ok(Err("its rows are told apart by more than columns".to_owned()));
        }
        #[cfg(feature = "ballista")]
        if self.dividing.engine == WorkerEngine::Ballista && keeps_order_between(plan) {
            return Ok(Err("its rows go from step to step in an order".to_owned()));
        }
        let codec = PlanCodec(Arc::new(PlanParts::of(plan)?));
        if let Some(lost) = lost_on_the_way(plan, &codec, &TaskContext::from(state)) {
            return Ok(Err(format!("its plan cannot be sent: {lost}")));
        }
        let place = (self.directory.as_str(), self.snapshot.clone());
        let Some(statement) = Travelling::new(place, asked, &**plan).header() else {
            return Ok(Err("its text is too long to be sent".to_owned()));
        };
        let account = scans.account.as_deref().map(HeaderValue::from_str).transpose();
        let account = account.map_err(|error| DataFusionError::External(error.into()))?;
        let sent = Sent { statement, account, codec: Arc::new(codec) };
        let divided = match self.dividing.engine {
            WorkerEngine::Distributed => self.divided(plan, state, sent).await?,
            #[cfg(feature = "ballista")]
            WorkerEngine::Ballista => self.divided_by_ballista(plan, state, (sent, scans))?,
            #[cfg(not(feature = "ballista"))]
            WorkerEngine::Ballista => unreachable!("a build without Ballista takes no flag for it"), // infallible: refused with the flags
        };
        let Some((divided, context)) = divided else {
            let least = self.dividing.share_bytes.div_ceil(1 << 10);
            return Ok(Err(format!("no table that it scans has more than {least} kB")));
        };
        let divided = Distributed::new(divided, plan, scans.progress.clone());
        Ok(Ok((Arc::new(divided), context)))
    }

    /// The plan by which the engine runs it on workers, and what it runs in; `None` where one task is enough.
    async fn divided(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        state: &SessionState,
        sent: Sent,
    ) -> QueryResult<Option<Planned>> {
        let channels =
            StatementChannels { connections: self.connections.clone(), sent: Some(sent) };
        let config = state
            .config()
            .clone()
            .with_distributed_worker_resolver(Known(self.urls.clone()))
            .with_distributed_channel_resolver(channels)
            .with_distributed_user_codec(EnvelopeCodec(None))
            .with_distributed_desired_task_count_handler(TaskPerBytes(self.dividing.share_bytes))
            .with_distributed_scale_up_leaf_node_handler(RangesOfTasks)
            .with_distributed_route_tasks_handler(WorkersInOrder(self.urls.clone()))
            .with_distributed_metrics_collection(false)?;
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(state.runtime_env().clone())
            .with_query_planner(Arc::new(Given(plan.clone())))
            .with_distributed_planner()
            .build();
        let nothing = LogicalPlan::default();
        let plan = state.query_planner().create_physical_plan(&nothing, &state).await?;
        Ok(plan.is::<DistributedExec>().then(|| (plan, state.task_ctx())))
    }
}

struct Known(Vec<Url>);

impl WorkerResolver for Known {
    fn get_urls(&self) -> Result<Vec<Url>, DataFusionError> {
        Ok(self.0.clone())
    }
}

/// Gives the plan that is there already, for the engine to divide.
#[derive(Debug)]
struct Given(Arc<dyn ExecutionPlan>);

#[async_trait]
impl QueryPlanner for Given {
    async fn create_physical_plan(
        &self,
        _: &LogicalPlan,
        _: &dyn Session,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        Ok(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_s_address_is_a_host_and_a_port() {
        for right in ["localhost:5999", "10.0.0.1:80", "[::1]:7000"] {
            assert!(worker_address(right).is_ok(), "{right}");
        }
        for wrong in ["", "localhost", ":5999", "localhost:x", "a:1/b", "u@h:1", "h:99999"] {
            assert!(worker_address(wrong).is_err(), "{wrong}");
        }
    }
}
