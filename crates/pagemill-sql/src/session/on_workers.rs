//! Statements of a session that workers run, on both sides: planned to be divided, and planned again where they arrive.
//!
//! Invariant: both sides plan with the same settings, which travel.

use std::sync::Arc;

use datafusion::common::config::OptimizerOptions;
use datafusion::common::tree_node::TreeNode as _;
use datafusion::execution::TaskContext;
use datafusion::execution::context::{SessionConfig, SessionState};
use datafusion::physical_plan::ExecutionPlan;
use pagemill_engine::{OnDamage, Progress};
use sqlparser::ast::{Query, Statement};

use super::engine::{LEAST_SHARE_BYTES, gains_by_jobs};
use super::{Session, StatementMemory};
use crate::bind::Bound;
use crate::catalog::TextOrder;
use crate::error::{Result, unsupported};
use crate::parameters::{ParameterValue, Parameters};
use crate::scan::{ScanContext, counts, is_relation_scan, is_scan_of};
use crate::workers::{Asked, Asker, Distributed, Planning, Travelling, Workers};

/// Partitions of each task at least: of one, the engine makes steps that cannot be divided.
const LEAST_PARTITIONS: usize = 2;

/// What a plan runs by.
type Planned = (Arc<dyn ExecutionPlan>, Arc<TaskContext>);

/// What is planned, and how it was asked.
pub(super) struct Candidate<'q> {
    pub(super) query: &'q Query,
    pub(super) parameters: &'q Parameters,
    pub(super) scans: &'q Arc<ScanContext>,
    /// True where queries run for each row of others.
    pub(super) nests: bool,
}

impl Session {
    /// The plan by which workers run the statement; `None` where it runs here, which is noted.
    pub(super) async fn planned_on_workers(
        &self,
        bound: &Bound,
        candidate: &Candidate<'_>,
    ) -> Result<Option<Planned>> {
        let Some(workers) = self.workers.known() else { return Ok(None) };
        match self.on_workers(workers, bound, candidate).await? {
            Ok(planned) => Ok(Some(planned)),
            Err(why) => {
                candidate.scans.note(format!("the statement runs here, not on workers: {why}"));
                Ok(None)
            }
        }
    }

    async fn on_workers(
        &self,
        workers: &Workers,
        bound: &Bound,
        candidate: &Candidate<'_>,
    ) -> Result<Result<Planned, String>> {
        let (text, values) = match self.text_to_send(bound, candidate)? {
            Ok(found) => found,
            Err(why) => return Ok(Err(why.to_owned())),
        };
        let Candidate { scans, .. } = candidate;
        let planning = Planning {
            jobs: self.options.jobs,
            memory: self.options.memory.as_ref().map(StatementMemory::bytes),
            share_bytes: workers.dividing.share_bytes,
        };
        let state = self.dividing_state(planning);
        let plan = state.create_physical_plan(&bound.plan).await?;
        let own = self.catalog.database().cluster().path();
        if plan.exists(|step| Ok(is_relation_scan(&**step) && !is_scan_of(&**step, own)))? {
            return Ok(Err("it reads another cluster, too".to_owned()));
        }
        let database = self.catalog.database().row().name.clone();
        let asked = Asked {
            database: String::from_utf8_lossy(&database).into_owned(),
            text,
            start: scans.start,
            has_wide_numerics: scans.has_wide_numerics,
            planning,
            asker: self.asker(),
            values,
        };
        Ok(workers.distributed(&plan, &state, (asked, scans)).await?)
    }

    /// A line for each scan of a plan that workers have run; `None` for other plans.
    pub(super) async fn met_on_workers(
        &self,
        plan: &dyn ExecutionPlan,
        scans: &ScanContext,
    ) -> Option<Vec<String>> {
        let whole = plan.downcast_ref::<Distributed>()?.whole();
        let (workers, account) = (self.workers.known()?, scans.account.as_deref()?);
        Some(workers.met(account, counts(&**whole)).await)
    }

    /// The text of a statement that may be sent, and its parameters' values; or why it may not.
    fn text_to_send(
        &self,
        bound: &Bound,
        candidate: &Candidate<'_>,
    ) -> Result<Result<(String, Vec<ParameterValue>), &'static str>> {
        let Candidate { query, parameters, nests, .. } = candidate;
        if *nests {
            return Ok(Err("it has a query that runs for each row of another"));
        }
        let Parameters::Given(values) = parameters else {
            return Ok(Err("its parameters have no values"));
        };
        if self.options.on_damage == OnDamage::Skip {
            return Ok(Err("damage is to be skipped"));
        }
        if self.catalog.text_order() != TextOrder::Recorded {
            return Ok(Err("the order of texts is taken for granted"));
        }
        if self.catalog.database().cluster().is_live() {
            return Ok(Err("a server may be changing the files"));
        }
        if !gains_by_jobs(&bound.plan)? {
            return Ok(Err("it reads no table, or only shows what it reads"));
        }
        // What is sent is what was understood.
        let text = query.to_string();
        let is_same = match Self::parse_unchecked(&text).as_deref() {
            Ok([Statement::Query(read)]) => **read == **query,
            _ => false,
        };
        Ok(if is_same { Ok((text, values.sent.clone())) } else { Err("its text cannot be sent") })
    }

    /// Whose rights, path and settings its statements are bound by.
    fn asker(&self) -> Asker {
        Asker {
            client: self.client.clone(),
            row_security: self.row_security,
            settings: self.settings.as_deref().cloned(),
        }
    }

    /// The same for who asked elsewhere.
    pub(crate) fn for_asker(&self, asker: &Asker) -> Result<Self> {
        let session = match &asker.client {
            Some(client) => self.for_client(client.clone())?,
            None => self.again(),
        };
        Ok(match asker.row_security {
            true => session,
            false => session.without_row_security(),
        })
    }

    /// The session's state for a plan that is divided.
    fn dividing_state(&self, planning: Planning) -> SessionState {
        let mut state = self.context.state();
        let options = state.config_mut().options_mut();
        options.execution.target_partitions = planning.jobs.max(LEAST_PARTITIONS);
        options.optimizer.repartition_file_min_size = planning.share_bytes.min(LEAST_SHARE_BYTES);
        // What every worker has to hold a copy of has to be small.
        let plain = OptimizerOptions::default();
        let bytes = plain.hash_join_single_partition_threshold;
        options.optimizer.hash_join_single_partition_threshold = bytes;
        let rows = plain.hash_join_single_partition_threshold_rows;
        options.optimizer.hash_join_single_partition_threshold_rows = rows;
        state
    }

    /// The plan of a statement that came from elsewhere, and is ended from there.
    pub(crate) async fn plan_arrived(
        &self,
        statement: &Travelling,
        cancel: &Progress,
    ) -> Result<(Arc<dyn ExecutionPlan>, Arc<ScanContext>)> {
        let statements = Self::parse_unchecked(&statement.text)?;
        let [Statement::Query(query)] = &statements[..] else {
            return unsupported("anything but a query on workers");
        };
        let scans = self.scans(cancel).begun_at(statement.start).with_counts_cut();
        let scans = match statement.has_wide_numerics {
            true => scans.with_wide_numerics(),
            false => scans,
        };
        let scans = Arc::new(scans);
        let parameters = Parameters::given(&self.catalog, &statement.values)?;
        let plan = self.bind((query, &parameters), &scans, false)?.plan;
        let state = self.dividing_state(statement.planning);
        Ok((state.create_physical_plan(&plan).await?, scans))
    }

    /// How steps run here that were planned for this session, with what is known already of their surroundings.
    pub(crate) fn execution_config(&self, mut config: SessionConfig) -> SessionConfig {
        let own = self.context.state();
        let options = config.options_mut();
        options.execution = own.config().options().execution.clone();
        options.optimizer = own.config().options().optimizer.clone();
        config
    }
}

/// The lines of EXPLAIN for a plan that workers run.
pub(super) fn stages(plan: &dyn ExecutionPlan) -> Option<String> {
    plan.downcast_ref::<Distributed>().map(Distributed::stages)
}
