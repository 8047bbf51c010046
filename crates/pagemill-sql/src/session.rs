//! One database opened for statements: text in, batches out.
//!
//! Invariant: a statement reads; whatever would change something is refused before it is planned.

mod answer;
mod engine;
mod explain;
#[cfg(feature = "workers")]
mod on_workers;
mod parsing;
mod planning;
mod prepared;
mod server_facts;
mod shown_settings;
mod styles;

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::execution::context::SessionContext;
use pagemill_cluster::database::SessionNames;
use pagemill_cluster::settings::parse_search_path;
use pagemill_cluster::time_zones::NamedZone;
use pagemill_cluster::{Cluster, Database};
use pagemill_engine::{OnDamage, Progress, ScanOptions};
use pagemill_format::Oid;
use pagemill_types::encoding::encoding_name;
use pagemill_types::time_zone::Zone;
use pagemill_types::value_styles::ValueStyles;
use sqlparser::ast::{DescribeAlias, Statement};

use crate::bind::type_of_text;
use crate::catalog::Catalog;
pub use crate::catalog::TextOrder;
use crate::databases::Databases;
use crate::error::{Result, SqlState, StatementError, fail, unsupported};
use crate::files::{Files, NamedFile};
use crate::named_workers::NamedWorkers;
use crate::parameters::{ParameterValue, Parameters};
use crate::rights::By;
use crate::rows::Rows;
pub use crate::statement_memory::StatementMemory;
pub use crate::typed::ColumnOrigin;

pub use answer::{Answer, AnswerColumn, AnswerSink};
use explain::Explained;
use parsing::refuse;
pub use prepared::Prepared;
use prepared::ShapePlans;
pub use server_facts::{ServerFacts, SessionFacts, Sessions, TlsFacts};
pub use styles::StyleSettings;

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
    /// What texts are ordered by where that is not certain.
    pub text_order: TextOrder,
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
    /// What its server tells it, where there is one.
    server: Option<Arc<ServerFacts>>,
    shape_plans: Arc<ShapePlans>,
    /// In which zone moments are printed and read.
    time_zone: Arc<str>,
    /// Whose it is, if it was made for a client.
    client: Option<Client>,
    /// Machines that may run its statements.
    workers: NamedWorkers,
}

/// Who a session is for, and what it set that the meaning of names and values depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "workers", derive(serde::Serialize, serde::Deserialize))]
pub struct Client {
    /// Who connected.
    pub user: String,
    /// Whose rights it has instead of its own, by `SET ROLE`.
    pub role: Option<String>,
    /// Where it set one.
    pub search_path: Option<String>,
    /// The zone of the setting `TimeZone`, where it set one.
    pub time_zone: Option<String>,
    /// How values are printed, where it set that.
    pub styles: Option<StyleSettings>,
}

/// Zones that show UTC, by that abbreviation.
const UTC_NAMES: [&str; 8] =
    ["UTC", "Etc/UTC", "UCT", "Etc/UCT", "Zulu", "Etc/Zulu", "Universal", "Etc/Universal"];

/// Settings of a session, by their names in small letters.
pub type SettingValues = BTreeMap<String, String>;

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("catalog", &self.catalog).finish_non_exhaustive()
    }
}

impl Session {
    /// Opens a database, for a session in UTC.
    ///
    /// # Errors
    /// When its catalogs cannot be read, or it is in an encoding that is not supported here.
    pub fn open(database: &Database, options: SessionOptions) -> Result<Self> {
        let encoding = database.row().encoding;
        if !matches!(encoding_name(encoding), Some("UTF8" | "SQL_ASCII")) {
            let name = encoding_name(encoding).unwrap_or("an unknown encoding");
            return unsupported(format!("SQL on a database in {name}"));
        }
        let catalog = Arc::new(Catalog::read(database)?.with_text_order(options.text_order));
        let databases = Databases::new(&catalog, Arc::default());
        let (files, context) = (Files::default(), engine::context(&options)?);
        Ok(Self {
            catalog,
            databases,
            files,
            options,
            context,
            row_security: true,
            settings: None,
            server: None,
            shape_plans: Arc::default(),
            time_zone: UTC_NAMES[0].into(),
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

    /// The same for a client, with the rights that it has. It shares the memory that statements may take.
    ///
    /// # Errors
    /// When there is no such role, the path is no list of names, the zone is unknown, or the catalogs cannot be read.
    pub fn for_client(&self, client: Client) -> Result<Self> {
        let invalid = |path: &str| {
            let message = format!("invalid value for parameter \"search_path\": \"{path}\"");
            StatementError::new(SqlState::INVALID_PARAMETER, message)
        };
        let parsed = |path| parse_search_path(str::as_bytes(path)).ok_or_else(|| invalid(path));
        let user = client.role.as_ref().unwrap_or(&client.user);
        let zone = match client.time_zone.as_deref() {
            Some(name) => self.zone_of_setting(name)?,
            None => self.configured_zone(),
        };
        let names = SessionNames {
            user: Some(user.as_bytes().into()),
            session_user: Some(client.user.as_bytes().into()),
            search_path: client.search_path.as_deref().map(parsed).transpose()?,
            time_zone: Some(zone.zone).filter(|_| !UTC_NAMES.contains(&&*zone.name)),
            styles: match &client.styles {
                Some(set) => set.values()?,
                None => self.configured_styles()?,
            },
        };
        let catalog = Catalog::read(&self.catalog.database().for_session(names))?;
        let mut catalog = catalog.with_text_order(self.options.text_order);
        if let Some(role) = catalog.restricted_role(user.as_bytes())? {
            catalog.restrict(role)?;
        }
        let catalog = Arc::new(catalog);
        let databases = Databases::new(&catalog, self.clusters().clone());
        let (row_security, settings, shape_plans) = (true, None, Arc::default());
        let (client, time_zone, again) = (Some(client), zone.name.into(), self.again());
        Ok(Self {
            catalog,
            databases,
            row_security,
            settings,
            shape_plans,
            time_zone,
            client,
            ..again
        })
    }

    /// The same for the first superuser in the zone and with the styles that the server's settings say.
    ///
    /// # Errors
    /// When the catalogs cannot be read.
    pub fn as_configured(self) -> Result<Self> {
        let user = self.catalog.database().session_user()?;
        let user = String::from_utf8_lossy(&user).into_owned();
        let zone = self.configured_zone();
        let is_plain = self.configured_styles()? == ValueStyles::default();
        match is_plain && UTC_NAMES.contains(&&*zone.name) {
            true => Ok(Self { time_zone: zone.name.into(), ..self }),
            false => self.for_client(Client { user, ..Client::default() }),
        }
    }

    /// How its values are printed, as settings have it.
    pub fn styles(&self) -> StyleSettings {
        StyleSettings::of(self.catalog.database().session_styles())
    }

    fn configured_styles(&self) -> Result<ValueStyles> {
        Ok(self.catalog.database().configured_styles()?)
    }

    /// The zone that moments are printed and read in, as the setting `TimeZone` has it.
    pub fn time_zone(&self) -> &str {
        &self.time_zone
    }

    fn zone_of_setting(&self, name: &str) -> Result<NamedZone> {
        let found = self.catalog.database().time_zone_of_setting(name);
        let invalid = || {
            let message = format!("invalid value for parameter \"TimeZone\": \"{name}\"");
            StatementError::new(SqlState::INVALID_PARAMETER, message).into()
        };
        found.ok_or_else(invalid)
    }

    /// The zone that sessions begin with: UTC where the setting names one that is not known here.
    fn configured_zone(&self) -> NamedZone {
        let gmt = |name: &str| NamedZone { name: name.to_owned(), zone: Arc::new(Zone::gmt()) };
        match self.catalog.database().configured_time_zone() {
            Ok(found) => found.unwrap_or_else(|| gmt("GMT")),
            // Who serves clients warns them.
            Err(_) => gmt(UTC_NAMES[0]),
        }
    }

    /// Whether its user may become this role by `SET ROLE`.
    ///
    /// # Errors
    /// When there is no such role, or the catalogs cannot be read.
    pub fn may_become(&self, role: &str) -> Result<bool> {
        let (database, members) = (self.catalog.database(), self.catalog.members()?);
        let Some(wanted) = members.named(role.as_bytes()) else {
            let message = format!("role \"{role}\" does not exist");
            return fail(SqlState::INVALID_PARAMETER, message);
        };
        let user = members.named(&database.session_user()?);
        Ok(user.is_some_and(|user| members.is_member(user, wanted, By::Set)))
    }

    /// Whether who connected may give the session to this user by `SET SESSION AUTHORIZATION`.
    ///
    /// # Errors
    /// When there is no such role, or the catalogs cannot be read.
    pub fn may_be(&self, user: &str) -> Result<bool> {
        let (database, members) = (self.catalog.database(), self.catalog.members()?);
        let Some(wanted) = members.named(user.as_bytes()) else {
            let message = format!("role \"{user}\" does not exist");
            return fail(SqlState::INVALID_PARAMETER, message);
        };
        let own = members.named(&database.session_user()?);
        Ok(own.is_some_and(|own| own == wanted || members.is_superuser(own)))
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

    /// The same in a server.
    #[must_use]
    pub fn in_server(&self, facts: Arc<ServerFacts>) -> Self {
        Self { server: Some(facts), ..self.again() }
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
            server: self.server.clone(),
            shape_plans: self.shape_plans.clone(),
            time_zone: self.time_zone.clone(),
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
                options,
                statement,
                ..
            } => {
                let Statement::Query(query) = &**statement else {
                    return unsupported("EXPLAIN of anything but a query");
                };
                let asked = Explained::of(*analyze, options.as_deref())?;
                self.explain((query, &given), asked, cancel).await
            }
            other => refuse(other),
        }
    }
}
