//! One database opened for statements: text in, batches out.
//!
//! Invariant: a statement reads; whatever would change something is refused before it is planned.

#[cfg(feature = "workers")]
mod on_workers;
mod prepared;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNode as _;
use datafusion::execution::TaskContext;
use datafusion::execution::context::{SessionConfig, SessionContext};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::{ExecutionPlan, displayable, execute_stream};
use futures::StreamExt as _;
use object_store::memory::InMemory;
use pagemill_cluster::database::SessionNames;
use pagemill_cluster::settings::parse_search_path;
use pagemill_cluster::{Cluster, Database};
use pagemill_engine::{OnDamage, Progress, ScanOptions};
use pagemill_format::Oid;
use pagemill_types::encoding::encoding_name;
use sqlparser::ast::{DescribeAlias, Query, Statement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Tokenizer;

use crate::admission::Turn;
use crate::bind::{Binder, Bound, BoundColumn, type_of_text};
use crate::catalog::Catalog;
use crate::databases::Databases;
use crate::error::{Result, SqlState, StatementError, fail, unsupported};
use crate::expand::Planner;
use crate::files::{Files, NamedFile};
use crate::functions::row_forms::shown_row;
use crate::global_groups;
use crate::interruption::interruptible;
use crate::lexical;
use crate::long_sorts::LongSorts;
use crate::named_workers::NamedWorkers;
use crate::nested::Nested;
use crate::parameters::{ParameterValue, Parameters};
use crate::rows::Rows;
use crate::scan::{
    GuardedConditions, ScanContext, StatementTables, accounts, with_runtime_filters,
};
pub use crate::statement_memory::StatementMemory;
pub use crate::typed::ColumnOrigin;
use crate::types::PgType;

pub use prepared::Prepared;
use prepared::ShapePlans;

/// A table is cut for another thread from here on.
const LEAST_SHARE_BYTES: usize = 4 << 20;

/// Merging sorted runs holds some batches of each, and their rows can be wide: where memory is limited, a batch has a row for each so
/// many bytes of it, and never less than so many rows.
const MEMORY_PER_BATCH_ROW: usize = 256 << 10;
const LEAST_ROWS: usize = 512;

/// The column of EXPLAIN.
const PLAN: &str = "QUERY PLAN";

/// How statements run.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// Threads.
    pub jobs: usize,
    /// What sorts, joins and aggregates may take before they spill; `None` for no limit.
    pub memory: Option<StatementMemory>,
    /// How blocks are read.
    pub scan: ScanOptions,
    /// What damage does.
    pub on_damage: OnDamage,
}

/// A database that answers statements.
pub struct Session {
    catalog: Arc<Catalog>,
    databases: Databases,
    files: Files,
    options: SessionOptions,
    context: SessionContext,
    /// False where policies that would leave out rows are errors.
    row_security: bool,
    /// What a client set, where there is one.
    settings: Option<Arc<SettingValues>>,
    shape_plans: Arc<ShapePlans>,
    /// Whose it is, if it was made for a client.
    client: Option<Client>,
    /// Machines that may run its statements.
    workers: NamedWorkers,
}

/// Who a session is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "workers", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Client {
    pub(crate) user: String,
    /// Where it set one.
    pub(crate) search_path: Option<String>,
}

/// Settings of a session, by their names in small letters.
pub type SettingValues = BTreeMap<String, String>;

/// A column of an answer.
#[derive(Debug, Clone)]
pub struct AnswerColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: PgType,
    /// Where it comes from, if it is a column of a relation as it stands.
    pub origin: Option<ColumnOrigin>,
}

impl AnswerColumn {
    /// One that is no column of a relation.
    pub fn computed(name: impl Into<String>, ty: PgType) -> Self {
        Self { name: name.into(), ty, origin: None }
    }
}

/// What a statement gave.
pub struct Answer {
    /// The columns.
    pub columns: Arc<[AnswerColumn]>,
    /// How many rows were handed out.
    pub rows: u64,
    /// How many pages of tables were scanned.
    pub pages: u64,
    /// Damage that was left out, each with its place.
    pub losses: Vec<String>,
    /// What there is to say of how it ran.
    pub notices: Vec<String>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("catalog", &self.catalog).finish_non_exhaustive()
    }
}

impl Session {
    /// Opens a database.
    ///
    /// # Errors
    /// When its catalogs cannot be read, or it is in an encoding that is not supported here.
    pub fn open(database: &Database, options: SessionOptions) -> Result<Self> {
        let encoding = database.row().encoding;
        if !matches!(encoding_name(encoding), Some("UTF8" | "SQL_ASCII")) {
            let name = encoding_name(encoding).unwrap_or("an unknown encoding");
            return unsupported(format!("SQL on a database in {name}"));
        }
        let catalog = Arc::new(Catalog::read(database)?);
        let mut config = SessionConfig::new()
            .with_target_partitions(options.jobs)
            .with_collect_statistics(false)
            .with_repartition_file_min_size(LEAST_SHARE_BYTES);
        let optimizer = &mut config.options_mut().optimizer;
        optimizer.prefer_hash_join = options.memory.is_none();
        // Filters that come up while a statement runs are handed down later, where nothing can fail.
        optimizer.enable_dynamic_filter_pushdown = false;
        optimizer.enable_join_dynamic_filter_pushdown = false;
        optimizer.enable_topk_dynamic_filter_pushdown = false;
        optimizer.enable_aggregate_dynamic_filter_pushdown = false;
        let mut runtime = RuntimeEnvBuilder::new();
        if let Some(memory) = &options.memory {
            let (bytes, rows) = (memory.bytes(), config.batch_size());
            config = config.with_batch_size((bytes / MEMORY_PER_BATCH_ROW).clamp(LEAST_ROWS, rows));
            runtime = runtime.with_memory_pool(memory.pool());
        }
        let runtime = Arc::new(runtime.build()?);
        // Scans open their files themselves; the engine wants to know a store for their address.
        let url = ObjectStoreUrl::parse("pagemill://files")?;
        runtime.register_object_store(url.as_ref(), Arc::new(InMemory::new()));
        // Those that the engine's own rules put in place of others, and no more.
        let aggregates = datafusion::functions_aggregate::all_default_aggregate_functions();
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_aggregate_functions(aggregates)
            .with_optimizer_rules(global_groups::logical_rules())
            .with_physical_optimizer_rules(physical_rules(options.memory.is_some()))
            .with_query_planner(Arc::new(Planner))
            .build();
        let databases = Databases::new(&catalog, Arc::default());
        let (files, context) = (Files::default(), SessionContext::new_with_state(state));
        Ok(Self {
            catalog,
            databases,
            files,
            options,
            context,
            row_security: true,
            settings: None,
            shape_plans: Arc::default(),
            client: None,
            workers: NamedWorkers::default(),
        })
    }

    /// The same with other clusters, by names that stand before `database.schema.table`.
    #[must_use]
    pub fn beside(self, clusters: Arc<[(String, Cluster)]>) -> Self {
        Self { databases: Databases::new(&self.catalog, clusters), ..self }
    }

    /// The same with workers that may run its statements.
    #[must_use]
    pub fn with_workers(self, workers: NamedWorkers) -> Self {
        Self { workers, ..self }
    }

    /// The workers that may run its statements.
    pub fn workers(&self) -> &NamedWorkers {
        &self.workers
    }

    /// The same with files as tables.
    #[must_use]
    pub fn with_files(self, named: Arc<[NamedFile]>) -> Self {
        Self { files: Files::new(named), ..self }
    }

    /// The same for a client of this name, by this search path where it set one, with the rights that the role has. It shares the memory
    /// that statements may take.
    ///
    /// # Errors
    /// When there is no such role, the path is no list of names, or the catalogs cannot be read.
    pub fn for_client(&self, user: &str, search_path: Option<&str>) -> Result<Self> {
        let invalid = |path: &str| {
            let message = format!("invalid value for parameter \"search_path\": \"{path}\"");
            StatementError::new(SqlState::INVALID_PARAMETER, message)
        };
        let parsed = |path| parse_search_path(str::as_bytes(path)).ok_or_else(|| invalid(path));
        let client =
            Some(Client { user: user.to_owned(), search_path: search_path.map(str::to_owned) });
        let search_path = search_path.map(parsed).transpose()?;
        let names = SessionNames { user: Some(user.as_bytes().into()), search_path };
        let mut catalog = Catalog::read(&self.catalog.database().for_session(names))?;
        if let Some(role) = catalog.restricted_role(user.as_bytes())? {
            catalog.restrict(role)?;
        }
        let catalog = Arc::new(catalog);
        let databases = Databases::new(&catalog, self.clusters().clone());
        let (row_security, settings, shape_plans) = (true, None, Arc::default());
        let again = self.again();
        Ok(Self { catalog, databases, row_security, settings, shape_plans, client, ..again })
    }

    /// The same with the setting `row_security` off: where a policy would leave out rows, a statement is refused.
    #[must_use]
    pub fn without_row_security(&self) -> Self {
        Self { row_security: false, shape_plans: Arc::default(), ..self.again() }
    }

    /// The same for a client that has these settings.
    #[must_use]
    pub fn with_settings(&self, settings: SettingValues) -> Self {
        Self { settings: Some(Arc::new(settings)), ..self.again() }
    }

    fn again(&self) -> Self {
        Self {
            catalog: self.catalog.clone(),
            databases: Databases::new(&self.catalog, self.clusters().clone()),
            files: Files::new(self.files().clone()),
            options: self.options.clone(),
            context: self.context.clone(),
            row_security: self.row_security,
            settings: self.settings.clone(),
            shape_plans: self.shape_plans.clone(),
            client: self.client.clone(),
            workers: self.workers.clone(),
        }
    }

    /// Whether nothing is kept from its user.
    pub fn is_superuser(&self) -> bool {
        self.catalog.role().is_none()
    }

    /// Refuses a user who may not connect to the database.
    ///
    /// # Errors
    /// When it is one.
    pub fn check_connect(&self) -> Result<()> {
        if self.catalog.may_connect()? {
            return Ok(());
        }
        let name = String::from_utf8_lossy(&self.catalog.database().row().name);
        fail(SqlState::DENIED, format!("permission denied for database \"{name}\""))
    }

    /// The type that a name means, as in a cast; `None` when there is none.
    ///
    /// # Errors
    /// When the text is no name of a type.
    pub fn type_named(&self, name: &str) -> Result<Option<Oid>> {
        Ok(type_of_text(&self.catalog, name)?.map(|found| found.oid))
    }

    /// The files that are tables.
    pub fn files(&self) -> &Arc<[NamedFile]> {
        self.files.named()
    }

    /// The clusters that have names.
    pub fn clusters(&self) -> &Arc<[(String, Cluster)]> {
        self.databases.clusters()
    }

    /// The catalogs of the database.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The statements of a text.
    ///
    /// # Errors
    /// Where it is no SQL.
    pub fn parse(text: &str) -> Result<Vec<Statement>> {
        let labels = lexical::check_tokens(text)?;
        let statements = Self::parse_unchecked(text)?;
        statements.iter().try_for_each(|statement| lexical::check_statement(statement, &labels))?;
        Ok(statements)
    }

    pub(crate) fn parse_unchecked(text: &str) -> Result<Vec<Statement>> {
        let dialect = PostgreSqlDialect {};
        let tokens = Tokenizer::new(&dialect, text).tokenize_with_location();
        let parsed = tokens.map_err(ParserError::from).and_then(|tokens| {
            let tokens = lexical::spelled(tokens);
            Parser::new(&dialect).with_tokens_with_locations(tokens).parse_statements()
        });
        parsed.map_err(|error| {
            let message = error.to_string();
            let message = message.trim_start_matches("sql parser error: ");
            let (message, position) = parted(message);
            // The parser does not know all that PostgreSQL's grammar does.
            let message =
                format!("a syntax error, or a syntax that is not supported here: {message}");
            StatementError { position, ..StatementError::new(SqlState::SYNTAX_ERROR, message) }
                .into()
        })
    }

    /// Runs a statement. The sink's `begin` is told the columns first, then `take` each batch of rows.
    ///
    /// # Errors
    /// When the statement is wrong, changes something, is not supported here, or fails; what the functions return.
    pub async fn run(&self, statement: &Statement, sink: &mut dyn AnswerSink) -> Result<Answer> {
        self.run_with(statement, sink, &Progress::default()).await
    }

    /// The same, ended from elsewhere when `cancel` is cancelled.
    ///
    /// # Errors
    /// As [`Self::run`], and [`Cancelled`](pagemill_engine::Error::Cancelled).
    pub async fn run_with(
        &self,
        statement: &Statement,
        sink: &mut dyn AnswerSink,
        cancel: &Progress,
    ) -> Result<Answer> {
        let mut rows = self.start(statement, cancel).await?;
        sink.begin(&self.catalog, rows.columns())?;
        while let Some(batch) = rows.next().await? {
            if let Err(error) = sink.take(&batch) {
                rows.cancel();
                return Err(error);
            }
        }
        let answer = rows.finish().await;
        sink.end(answer.rows)?;
        Ok(answer)
    }

    /// Begins a statement, whose rows are then pulled.
    ///
    /// # Errors
    /// When it is wrong, changes something, is not supported here, or fails before its first rows.
    pub async fn start(&self, statement: &Statement, cancel: &Progress) -> Result<Rows> {
        self.start_with(statement, &[], cancel).await
    }

    /// The same with values for `$1` and those that follow.
    ///
    /// # Errors
    /// Likewise, and when a value is none of its type.
    pub async fn start_with(
        &self,
        statement: &Statement,
        values: &[ParameterValue],
        cancel: &Progress,
    ) -> Result<Rows> {
        let given = Parameters::given(&self.catalog, values)?;
        match statement {
            Statement::Query(query) => {
                match self.query((query, &given), self.scans(cancel)).await {
                    // NaN in a numeric of a declared size is rare: the statement runs once more, slower, while nothing is shown.
                    Err(error) if error.is_no_decimal() => {
                        self.query((query, &given), self.scans(cancel).with_wide_numerics()).await
                    }
                    rows => rows,
                }
            }
            Statement::Explain {
                describe_alias: DescribeAlias::Explain,
                analyze,
                statement,
                ..
            } => {
                let Statement::Query(query) = &**statement else {
                    return unsupported("EXPLAIN of anything but a query");
                };
                self.explain((query, &given), *analyze, cancel).await
            }
            other => refuse(other),
        }
    }

    fn scans(&self, cancel: &Progress) -> ScanContext {
        let &SessionOptions { jobs, scan, on_damage, .. } = &self.options;
        let options = ScanOptions { jobs, ..scan };
        let scans = ScanContext::new(&self.catalog, options, on_damage, cancel);
        #[cfg(feature = "workers")]
        if self.workers.known().is_some() {
            return scans.with_counts_cut();
        }
        scans
    }

    fn bind(
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
    async fn plan(
        &self,
        bound: &Bound,
        cancel: &Progress,
    ) -> Result<(Arc<dyn ExecutionPlan>, Arc<TaskContext>)> {
        let mut state = self.context.state();
        if !gains_by_jobs(&bound.plan)? {
            state.config_mut().options_mut().execution.target_partitions = 1;
        }
        let plan = state.create_physical_plan(&bound.plan).await?;
        let (plan, task) = with_runtime_filters(plan, &state)?;
        Ok((interruptible(plan, cancel)?, task))
    }

    /// Binds and plans: with joins for the queries in expressions, and where that cannot be, running them for each row.
    async fn planned(
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
        let (plan, task) = self.plan(&bound, &scans.progress).await?;
        Ok((bound, plan, task))
    }

    async fn query(&self, query: (&Query, &Parameters), scans: ScanContext) -> Result<Rows> {
        let scans = Arc::new(scans);
        let (bound, plan, task) = self.planned(query, &scans).await?;
        match self.begin(columns(bound).into(), (plan, task), scans.clone()).await {
            // Perhaps of a row that nobody asks for: run for each row, the query tells.
            Err(error) if error.is_of_several_rows() => {
                let again = self.scans(&scans.progress);
                let again = match scans.has_wide_numerics {
                    true => again.with_wide_numerics(),
                    false => again,
                };
                let scans = Arc::new(again);
                let (bound, plan, task) = self.planned_as(query, &scans, true).await?;
                self.begin(columns(bound).into(), (plan, task), scans).await
            }
            rows => rows,
        }
    }

    /// Runs a plan, in its turn where memory is limited.
    async fn begin(
        &self,
        columns: Arc<[AnswerColumn]>,
        (plan, task): (Arc<dyn ExecutionPlan>, Arc<TaskContext>),
        scans: Arc<ScanContext>,
    ) -> Result<Rows> {
        let turn = self.admit(&plan, &scans).await?;
        Rows::begin(columns, execute_stream(plan, task)?, scans, turn).await
    }

    async fn admit(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        scans: &ScanContext,
    ) -> Result<Option<Turn>> {
        match &self.options.memory {
            Some(memory) => memory.admission().admit(plan, &scans.progress).await,
            None => Ok(None),
        }
    }

    /// The plan as lines of text; with ANALYZE, after it has run.
    async fn explain(
        &self,
        query: (&Query, &Parameters),
        analyze: bool,
        cancel: &Progress,
    ) -> Result<Rows> {
        let scans = Arc::new(self.scans(cancel));
        let (_, plan, task) = self.planned(query, &scans).await?;
        if analyze {
            let _turn = self.admit(&plan, &scans).await?;
            let mut stream = execute_stream(plan.clone(), task)?;
            while let Some(batch) = stream.next().await {
                batch?;
            }
            drop(stream);
            scans.quiet().await;
        }
        let shown = match analyze {
            true => DisplayableExecutionPlan::with_metrics(&*plan).indent(false).to_string(),
            false => displayable(&*plan).indent(false).to_string(),
        };
        #[cfg(feature = "workers")]
        let shown = on_workers::stages(&*plan).unwrap_or(shown);
        let mut met = if analyze { accounts(&*plan) } else { Vec::new() };
        met.extend(scans.notices());
        let lines = shown.lines().chain(met.iter().map(String::as_str));
        Rows::of_lines(PLAN, lines, scans)
    }
}

/// What the parser says, and where that is, which it says as the last of it.
fn parted(message: &str) -> (&str, Option<(u64, u64)>) {
    let parted = message.rsplit_once(" at Line: ").and_then(|(message, place)| {
        let (line, column) = place.split_once(", Column: ")?;
        Some((message, (line.parse().ok()?, column.parse().ok()?)))
    });
    match parted {
        Some((message, position)) => (message, Some(position)),
        None => (message, None),
    }
}

fn columns(bound: Bound) -> Vec<AnswerColumn> {
    let columns = bound.columns.into_iter();
    let column =
        |BoundColumn { name, typed }| AnswerColumn { name, ty: typed.ty, origin: typed.origin };
    columns.map(column).collect()
}

/// Rules of the engine that change an answer, by the names that they give themselves.
const WRONG_RULES: [&str; 5] = [
    // Moves a projection below a filter: an expression would be computed for rows that the conditions leave out, and fail on
    // their values. Which columns are read is settled before these rules.
    "ProjectionPushdown",
    // Stop grouping at a LIMIT, and look through windows that count all groups.
    "LimitAggregation",
    "LimitedDistinctAggregation",
    // Move a LIMIT below windows.
    "LimitPushPastWindows",
    "WindowTopN",
];

/// The engine's rules but those, and ours; is memory limited, with one for sorts.
fn physical_rules(is_limited: bool) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    for name in WRONG_RULES {
        assert!(rules.iter().any(|rule| rule.name() == name), "the engine has a rule {name}");
    }
    rules.retain(|rule| !WRONG_RULES.contains(&rule.name()));
    rules.push(Arc::new(GuardedConditions));
    if is_limited {
        rules.push(Arc::new(LongSorts));
    }
    rules
}

/// Where an answer goes.
pub trait AnswerSink: Send {
    /// The columns, before the first row.
    ///
    /// # Errors
    /// When they cannot be written.
    fn begin(&mut self, catalog: &Arc<Catalog>, columns: &[AnswerColumn]) -> Result<()>;

    /// Some rows.
    ///
    /// # Errors
    /// When they cannot be written.
    fn take(&mut self, batch: &RecordBatch) -> Result<()>;

    /// The end, after so many rows.
    ///
    /// # Errors
    /// When it cannot be written.
    fn end(&mut self, rows: u64) -> Result<()>;
}

fn refuse<T>(statement: &Statement) -> Result<T> {
    let text = statement.to_string();
    let word = text.split_whitespace().next().unwrap_or("this").to_uppercase();
    match statement {
        Statement::Insert(_)
        | Statement::Update { .. }
        | Statement::Delete(_)
        | Statement::Merge { .. }
        | Statement::Truncate { .. }
        | Statement::Drop { .. }
        | Statement::CreateTable(_)
        | Statement::CreateView { .. }
        | Statement::CreateIndex(_)
        | Statement::AlterTable { .. }
        | Statement::Copy { .. } => {
            fail(SqlState::READ_ONLY, format!("cannot execute {word} in a read-only transaction"))
        }
        _ => unsupported(word),
    }
}

/// Whether there is more to do than to scan and to print. Else one reader is enough, and rows come in the order of the files.
fn gains_by_jobs(plan: &LogicalPlan) -> Result<bool> {
    let is_light = |node: &LogicalPlan| {
        matches!(
            node,
            LogicalPlan::Projection(_)
                | LogicalPlan::SubqueryAlias(_)
                | LogicalPlan::Limit(_)
                | LogicalPlan::TableScan(_)
                | LogicalPlan::EmptyRelation(_)
                | LogicalPlan::Values(_)
        )
    };
    Ok(plan.exists(|node| Ok(!is_light(node)))?)
}
