//! A cluster that is served: its databases once they are asked for, and who may come in over TCP.
//!
//! Invariant: a database is opened once, however many clients ask for it at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pagemill_cluster::{Cluster, DirectoryChange};
use pagemill_sql::named_workers::NamedWorkers;
use pagemill_sql::roles::Role;
use pagemill_sql::session::{Client, Session, SessionOptions};
use pagemill_sql::{SqlState, StatementError};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;

use crate::access::Access;

/// `cannot_connect_now`.
const CANNOT_CONNECT: SqlState = SqlState("57P03");
/// `system_error`, of the class for what comes from outside.
const SYSTEM_ERROR: SqlState = SqlState("58000");

/// A database, and a user where it is not the first superuser.
type SessionKey = (String, Option<String>);

/// A cluster, as it was when it was opened.
#[derive(Debug)]
pub struct ServedCluster {
    name: Arc<str>,
    cluster: Cluster,
    options: SessionOptions,
    workers: NamedWorkers,
    access: Option<Access>,
    databases: Mutex<HashMap<SessionKey, Arc<OnceCell<Arc<Session>>>>>,
}

impl ServedCluster {
    /// A cluster under a name. Without `access`, nobody comes in over TCP.
    pub fn new(
        name: &str,
        cluster: Cluster,
        options: SessionOptions,
        access: Option<Access>,
    ) -> Self {
        let (workers, databases) = (NamedWorkers::default(), Mutex::default());
        Self { name: name.into(), cluster, options, workers, access, databases }
    }

    /// With workers that statements on it may run on.
    #[must_use]
    pub fn with_workers(self, workers: NamedWorkers) -> Self {
        Self { workers, ..self }
    }

    /// The name of its directory.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Its roles, for clients of TCP.
    pub(crate) fn access(&self) -> Option<&Access> {
        self.access.as_ref()
    }

    /// The major version as clients are told it. Which minor version wrote the files is not in them.
    pub(crate) fn version(&self) -> String {
        format!("{} (Pagemill {})", self.major(), env!("CARGO_PKG_VERSION"))
    }

    /// The major version of the files.
    pub(crate) fn major(&self) -> u32 {
        self.cluster.version().major()
    }

    /// Whether it has a database of this name. Looks into files.
    pub(crate) fn has(&self, database: &str) -> bool {
        let rows = self.cluster.databases();
        rows.is_ok_and(|rows| rows.iter().any(|row| *row.name == *database.as_bytes()))
    }

    /// Whether it can be read on. Looks into files, on a thread of `compute`.
    ///
    /// # Errors
    /// When its directory has changed since it was opened.
    pub(crate) async fn check_connect(&self, compute: &Handle) -> Result<(), StatementError> {
        let cluster = self.cluster.clone();
        let failed = |_| StatementError::new(SqlState("XX000"), "a directory was not looked at");
        compute.spawn_blocking(move || unchanged(&cluster, CANNOT_CONNECT)).await.map_err(failed)?
    }

    /// A database by its name; `asked` is how its client spelled that. Catalogs are read on a thread of `compute`.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub(crate) async fn database(
        &self,
        name: &str,
        asked: &str,
        compute: &Handle,
    ) -> Result<Arc<Session>, StatementError> {
        let (cluster, options) = (self.cluster.clone(), self.options.clone());
        let (wanted, asked, workers) = (name.to_owned(), asked.to_owned(), self.workers.clone());
        let open = move || {
            let opened = open(&cluster, &wanted, &asked, options);
            // What was read while something changed is not kept.
            unchanged(&cluster, CANNOT_CONNECT)?;
            opened.map(|session| session.with_workers(workers))
        };
        self.opened((name.to_owned(), None), open, compute).await
    }

    /// A database as a user sees it who may connect.
    ///
    /// # Errors
    /// When its catalogs cannot be read.
    pub(crate) async fn database_of(
        &self,
        database: Arc<Session>,
        user: &str,
        compute: &Handle,
    ) -> Result<Arc<Session>, StatementError> {
        let told = |error: pagemill_sql::Error| error.report();
        let shared = database.catalog().database();
        let first = shared.session_user().map_err(|error| told(error.into()))?;
        if *first == *user.as_bytes() {
            return Ok(database);
        }
        let name = String::from_utf8_lossy(&shared.row().name).into_owned();
        let (key, user) = ((name, Some(user.to_owned())), user.to_owned());
        let open = move || {
            let opened = database.for_client(Client { user, ..Client::default() }).map_err(told);
            unchanged(database.catalog().database().cluster(), CANNOT_CONNECT)?;
            opened
        };
        self.opened(key, open, compute).await
    }

    /// What `open` gives, for all who ask by the same key.
    async fn opened(
        &self,
        key: SessionKey,
        open: impl FnOnce() -> Result<Session, StatementError> + Send + 'static,
        compute: &Handle,
    ) -> Result<Arc<Session>, StatementError> {
        let cell = {
            let mut databases = self.databases.lock().unwrap_or_else(PoisonError::into_inner);
            databases.entry(key.clone()).or_default().clone()
        };
        let opened = cell.get_or_try_init(|| async {
            let failed = |_| StatementError::new(SqlState("XX000"), "a database was not opened");
            compute.spawn_blocking(open).await.map_err(failed)?.map(Arc::new)
        });
        let opened = opened.await.cloned();
        if opened.is_err() {
            // Names that there are no databases of are not kept.
            self.databases.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        }
        opened
    }
}

fn open(
    cluster: &Cluster,
    name: &str,
    asked: &str,
    options: SessionOptions,
) -> Result<Session, StatementError> {
    let database = cluster.database(name).map_err(|error| match error {
        pagemill_cluster::Error::NotFound { .. } => missing(asked),
        other => pagemill_sql::Error::from(other).report(),
    })?;
    let session = Session::open(&database, options).and_then(Session::as_configured);
    session.map_err(|error| error.report())
}

/// Refuses to read on in files that are no longer those that were opened.
///
/// # Errors
/// With this SQLSTATE, when they are not.
fn unchanged(cluster: &Cluster, state: SqlState) -> Result<(), StatementError> {
    cluster.check_unchanged().map_err(|change| changed(&change, state))
}

fn changed(change: &DirectoryChange, state: SqlState) -> StatementError {
    let message = format!("the data directory has changed since it was opened: {change}");
    let hint = "When nothing changes it any more, SIGHUP has the server open it anew.";
    StatementError::new(state, message).with_hint(hint)
}

/// The same for a statement, once it has ended: an answer of files of two moments is none.
///
/// # Errors
/// Likewise.
pub fn check_unchanged(session: &Session) -> Result<(), StatementError> {
    unchanged(session.catalog().database().cluster(), SYSTEM_ERROR)
}

/// The same before a statement begins, whose end is checked: unless it was found so a moment ago.
///
/// # Errors
/// Likewise.
pub fn check_unchanged_lately(session: &Session) -> Result<(), StatementError> {
    let checked = session.catalog().database().cluster().check_unchanged_lately();
    checked.map_err(|change| changed(&change, SYSTEM_ERROR))
}

/// There is no database of this name.
pub(crate) fn missing(asked: &str) -> StatementError {
    StatementError::new(SqlState("3D000"), format!("database \"{asked}\" does not exist"))
}

/// The role that a client connects as.
///
/// # Errors
/// When there is none, or it may not log in.
pub(crate) fn role(session: &Session, name: &str) -> Result<Role, StatementError> {
    let denied = |message: String| StatementError::new(SqlState("28000"), message);
    let roles = session.catalog().roles().map_err(|error| error.report())?;
    let Some(role) = roles.into_iter().find(|role| role.name == name) else {
        return Err(denied(format!("role \"{name}\" does not exist")));
    };
    match role.can_login {
        true => Ok(role),
        false => Err(denied(format!("role \"{name}\" is not permitted to log in"))),
    }
}
