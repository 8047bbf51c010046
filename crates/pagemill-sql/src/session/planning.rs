//! From a parsed statement to its rows: bound, planned, begun in its turn.
//!
//! Invariant: a statement that is tried in a second way has shown nothing of the first.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode as _;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use datafusion::physical_plan::common::spawn_buffered;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use pagemill_engine::{Progress, ScanOptions};
use sqlparser::ast::Query;

use super::answer::columns;
use super::engine::{batch_size, is_shared};
#[cfg(feature = "workers")]
use super::on_workers;
use super::{AnswerColumn, Session, SessionOptions};
use crate::admission::Turn;
use crate::bind::{Binder, Bound};
use crate::error::{Error, Result, unsupported};
use crate::functions::row_forms::shown_row;
use crate::in_order::in_order;
use crate::interruption::interruptible;
use crate::long_constants::most_rows;
use crate::nested::{Nested, plan_runs_queries};
use crate::parameters::Parameters;
use crate::rows::Rows;
use crate::scan::{ScanContext, StatementTables, with_runtime_filters};
use crate::statement_memory::StatementMemory;

/// The column of EXPLAIN.
pub(super) const PLAN: &str = "QUERY PLAN";

impl Session {
    pub(super) fn scans(&self, cancel: &Progress) -> ScanContext {
        let &SessionOptions { jobs, scan, on_damage, .. } = &self.options;
        let options = ScanOptions { jobs, ..scan };
        let scans = ScanContext::new(&self.catalog, options, on_damage, cancel);
        let scans = scans.of_batch_size(batch_size(self.options.memory.as_ref()));
        #[cfg(feature = "workers")]
        if self.workers.known().is_some() {
            return scans.with_counts_cut();
        }
        scans
    }

    pub(super) fn bind(
        &self,
        (query, parameters): (&Query, &Parameters),
        scans: &Arc<ScanContext>,
        nests: bool,
    ) -> Result<Bound> {
        let Self { databases, files, options, .. } = self;
        let memory = options.memory.as_ref().map(StatementMemory::bytes);
        let mut state = self.context.state();
        // Such a query has few rows, or is run often.
        state.config_mut().options_mut().execution.target_partitions = 1;
        let nested =
            Arc::new(Nested { state, progress: scans.progress.clone(), scans: scans.clone() });
        let tables = StatementTables { scans, databases, files, memory, nested };
        let mut binder = Binder::new(&self.catalog, &tables, scans.start, parameters);
        if nests {
            binder = binder.nesting();
        }
        if !self.row_security {
            binder = binder.without_row_security();
        }
        if let Some(settings) = &self.settings {
            binder = binder.with_session_settings(settings);
        }
        if let Some(facts) = &self.server {
            binder = binder.in_server(facts);
        }
        let mut bound = binder.statement(query)?;
        for column in bound.columns.iter_mut().filter(|column| column.typed.is_row()) {
            if column.typed.row.is_none() {
                let what = format!("the row \"{}\" as a value that is shown", column.name);
                return unsupported(what);
            }
            column.typed = shown_row(&self.catalog, &column.typed);
        }
        // The shown columns, in their order, whatever lies beside them in the plan.
        let shown: Vec<Expr> = bound.columns.iter().map(|c| c.typed.expr.clone()).collect();
        bound.plan = LogicalPlanBuilder::from(bound.plan).project(shown)?.build()?;
        Ok(bound)
    }

    /// How a statement runs, and what it runs in.
    pub(super) async fn plan(
        &self,
        bound: &Bound,
        scans: &ScanContext,
    ) -> Result<(Arc<dyn ExecutionPlan>, Arc<TaskContext>)> {
        self.plan_as(bound, scans, is_shared(&bound.plan)?).await
    }

    async fn plan_as(
        &self,
        bound: &Bound,
        scans: &ScanContext,
        is_shared: bool,
    ) -> Result<(Arc<dyn ExecutionPlan>, Arc<TaskContext>)> {
        let mut state = self.context.state();
        if !is_shared {
            scans.show_order();
            state.config_mut().options_mut().execution.target_partitions = 1;
        }
        let mut plan = state.create_physical_plan(&bound.plan).await?;
        let rows = state.config().batch_size();
        let most = most_rows(&plan, rows)?;
        if most < rows {
            // Steps note when they are planned how many rows they make at once.
            *state.config_mut() = state.config().clone().with_batch_size(most);
            plan = state.create_physical_plan(&bound.plan).await?;
        }
        let (plan, task) = with_runtime_filters(plan, &state)?;
        let plan = if is_shared { plan } else { in_order(&plan)? };
        Ok((interruptible(plan, &scans.progress)?, task))
    }

    /// Binds and plans: with joins for the queries in expressions, and where that cannot be, running them for each row.
    pub(super) async fn planned(
        &self,
        query: (&Query, &Parameters),
        scans: &Arc<ScanContext>,
    ) -> Result<(Bound, Arc<dyn ExecutionPlan>, Arc<TaskContext>)> {
        match self.planned_as(query, scans, false).await {
            Err(error) if error.is_unsupported() => self.planned_as(query, scans, true).await,
            planned => planned,
        }
    }

    async fn planned_as(
        &self,
        query: (&Query, &Parameters),
        scans: &Arc<ScanContext>,
        nests: bool,
    ) -> Result<(Bound, Arc<dyn ExecutionPlan>, Arc<TaskContext>)> {
        let bound = self.bind(query, scans, nests)?;
        #[cfg(feature = "workers")]
        {
            let (query, parameters) = query;
            let candidate = on_workers::Candidate { query, parameters, scans, nests };
            if let Some((plan, task)) = self.planned_on_workers(&bound, &candidate).await? {
                return Ok((bound, plan, task));
            }
        }
        let (plan, task) = self.plan(&bound, scans).await?;
        Ok((bound, plan, task))
    }

    pub(super) async fn query(
        &self,
        query: (&Query, &Parameters),
        scans: ScanContext,
    ) -> Result<Rows> {
        let scans = Arc::new(scans);
        let (bound, plan, task) = self.planned(query, &scans).await?;
        match self.begin(columns(bound).into(), (plan, task), scans.clone()).await {
            // Perhaps of a row that nobody asks for: run for each row, the query tells.
            Err(error) if error.is_of_several_rows() || error.is_of_values() => {
                self.begin_for_each_row(query, &scans, error).await
            }
            // Joins of one thread hold one side whole; those of several sort both in files where memory is limited.
            Err(error) if self.options.memory.is_some() && error.is_of_memory() => {
                self.begin_shared(query, &scans, error).await
            }
            rows => rows,
        }
    }

    /// The same by all threads, where it was run by one; otherwise the error stays.
    async fn begin_shared(
        &self,
        query: (&Query, &Parameters),
        scans: &ScanContext,
        error: Error,
    ) -> Result<Rows> {
        let scans = self.scans_anew(scans);
        // The error is told in any case; what is in the way of another plan is not.
        let Ok(bound) = self.bind(query, &scans, false) else { return Err(error) };
        if is_shared(&bound.plan)? {
            return Err(error);
        }
        let planned = self.plan_as(&bound, &scans, true).await?;
        self.begin(columns(bound).into(), planned, scans).await
    }

    /// For a statement that begins once more.
    fn scans_anew(&self, scans: &ScanContext) -> Arc<ScanContext> {
        let again = self.scans(&scans.progress);
        Arc::new(match scans.has_wide_numerics {
            true => again.with_wide_numerics(),
            false => again,
        })
    }

    /// The same with queries run for each row around them, where there is one that is; otherwise the error stays.
    async fn begin_for_each_row(
        &self,
        query: (&Query, &Parameters),
        scans: &ScanContext,
        error: Error,
    ) -> Result<Rows> {
        let scans = self.scans_anew(scans);
        // The error is told in any case; what is in the way of another plan is not.
        let Ok((bound, plan, task)) = self.planned_as(query, &scans, true).await else {
            return Err(error);
        };
        match plan_runs_queries(&*plan)? {
            true => self.begin(columns(bound).into(), (plan, task), scans).await,
            false => Err(error),
        }
    }

    /// Runs a plan, in its turn where memory is limited.
    pub(super) async fn begin(
        &self,
        columns: Arc<[AnswerColumn]>,
        (plan, task): (Arc<dyn ExecutionPlan>, Arc<TaskContext>),
        scans: Arc<ScanContext>,
    ) -> Result<Rows> {
        let turn = self.admit(&plan, &scans).await?;
        Rows::begin(columns, rows_of(&plan, task)?, scans, turn).await
    }

    pub(super) async fn admit(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        scans: &ScanContext,
    ) -> Result<Option<Turn>> {
        match &self.options.memory {
            Some(memory) => memory.admission().admit(plan, &scans.progress).await,
            None => Ok(None),
        }
    }
}

/// Steps that have a row soon, however many rows there are.
const SOON: [&str; 7] = [
    "CooperativeExec",
    "DataSourceExec",
    "EmptyExec",
    "GlobalLimitExec",
    "LocalLimitExec",
    "PlaceholderRowExec",
    "ProjectionExec",
];

/// The rows of a plan. One of a single thread is computed by another than who asks for them, who hears of a cancellation then while a step
/// computes.
pub(super) fn rows_of(
    plan: &Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let is_single = plan.properties().output_partitioning().partition_count() == 1;
    let rows = execute_stream(plan.clone(), task)?;
    match is_single && plan.exists(|step| Ok(!SOON.contains(&step.name())))? {
        true => Ok(spawn_buffered(rows, 1)),
        false => Ok(rows),
    }
}
