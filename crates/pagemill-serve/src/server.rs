//! What all connections share: the cluster, its databases once they are asked for, and where statements are computed.
//!
//! Invariant: a database is opened once, however many clients ask for it at a time.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pagemill_cli::failure::say;
use pagemill_cluster::Cluster;
use pagemill_sql::roles::Role;
use pagemill_sql::session::{Session, SessionOptions};
use pagemill_sql::{SqlState, StatementError};
use tokio::runtime::Handle;
use tokio::sync::{OnceCell, Semaphore, watch};

use crate::access::Access;
use crate::connection;
use crate::endpoints::Endpoints;
use crate::registry::Registry;
use crate::tls::Tls;

/// Clients of TCP that have yet to prove who they are, for each that may be there at a time; as of `MaxLivePostmasterChildren`.
const ARRIVING: usize = 2;

/// How a server answers.
#[derive(Debug)]
pub struct ServerOptions {
    /// How statements run.
    pub session: SessionOptions,
    /// How many clients there may be at a time.
    pub most_connections: usize,
    /// How long a client may take to say and prove who it is; `authentication_timeout`.
    pub authentication_timeout: Duration,
    /// How clients of TCP are let in; `None` where nothing listens there.
    pub network: Option<Network>,
    /// Whether it is told who comes in, and why others do not.
    pub is_verbose: bool,
}

/// How clients of TCP are let in.
#[derive(Debug)]
pub struct Network {
    access: Access,
    tls: Option<Tls>,
    allows_plaintext: bool,
}

impl Network {
    /// By these roles, in the clear: where only this machine can connect.
    pub fn within_machine(access: Access) -> Self {
        Self { access, tls: None, allows_plaintext: true }
    }

    /// By these roles, within TLS, and in the clear too only where that is allowed.
    pub fn with_tls(access: Access, tls: Tls, allows_plaintext: bool) -> Self {
        Self { access, tls: Some(tls), allows_plaintext }
    }

    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    pub(crate) fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    pub(crate) fn allows_plaintext(&self) -> bool {
        self.allows_plaintext
    }
}

/// A database, and a user where it is not the first superuser.
type SessionKey = (String, Option<String>);

/// A server.
pub struct Server {
    cluster: Cluster,
    options: SessionOptions,
    databases: Mutex<HashMap<SessionKey, Arc<OnceCell<Arc<Session>>>>>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) network: Option<Network>,
    pub(crate) authentication_timeout: Duration,
    /// Places for clients of TCP that are not let in yet.
    pub(crate) arriving: Arc<Semaphore>,
    is_verbose: bool,
    /// Statements run here, and never on the threads that speak with clients: a cancel request would wait for a sort.
    pub(crate) compute: Handle,
    ending: watch::Sender<bool>,
}

impl Server {
    /// A server for a cluster.
    pub fn new(cluster: Cluster, options: ServerOptions, compute: Handle) -> Arc<Self> {
        Arc::new(Self {
            cluster,
            options: options.session,
            databases: Mutex::default(),
            registry: Registry::new(options.most_connections),
            network: options.network,
            authentication_timeout: options.authentication_timeout,
            arriving: Arc::new(Semaphore::new(options.most_connections * ARRIVING)),
            is_verbose: options.is_verbose,
            compute,
            ending: watch::Sender::new(false),
        })
    }

    /// Answers clients until `end` comes, then ends their statements.
    pub async fn run(self: Arc<Self>, endpoints: Endpoints, end: impl Future<Output = ()>) {
        tokio::pin!(end);
        loop {
            let arrival = tokio::select! {
                () = &mut end => break,
                arrival = endpoints.accept() => arrival,
            };
            match arrival {
                Ok(arrival) => {
                    let server = self.clone();
                    tokio::spawn(connection::serve(server, arrival));
                }
                // No descriptors are left, or the client is gone already: others can still be answered.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
        drop(endpoints);
        self.ending.send_replace(true);
        self.registry.cancel_all();
        // Clients are told within a moment; those that read nothing are left.
        let told = async {
            while self.registry.count() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = tokio::time::timeout(Duration::from_millis(500), told).await;
    }

    /// Waits until the server ends.
    pub(crate) async fn ended(&self) {
        let mut ending = self.ending.subscribe();
        // The sender lives as long as the server.
        let _ = ending.wait_for(|is_ending| *is_ending).await;
    }

    /// Says something on standard error, where that is asked for. No client sees it.
    pub(crate) fn tell(&self, message: impl FnOnce() -> String) {
        if self.is_verbose {
            say(message());
        }
    }

    /// The major version as clients are told it. Which minor version wrote the files is not in them.
    pub(crate) fn version(&self) -> String {
        format!("{} (Pagemill {})", self.major(), env!("CARGO_PKG_VERSION"))
    }

    /// The major version of the files.
    pub(crate) fn major(&self) -> u32 {
        self.cluster.version().major()
    }

    /// A database by its name.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub(crate) async fn database(&self, name: &str) -> Result<Arc<Session>, StatementError> {
        let (cluster, options, wanted) = (self.cluster.clone(), self.options, name.to_owned());
        self.opened((name.to_owned(), None), move || open(&cluster, &wanted, options)).await
    }

    /// A database as a user sees it who may connect.
    ///
    /// # Errors
    /// When its catalogs cannot be read.
    pub(crate) async fn database_of(
        &self,
        database: Arc<Session>,
        user: &str,
    ) -> Result<Arc<Session>, StatementError> {
        let told = |error: pagemill_sql::Error| error.report();
        let shared = database.catalog().database();
        let first = shared.session_user().map_err(|error| told(error.into()))?;
        if *first == *user.as_bytes() {
            return Ok(database);
        }
        let name = String::from_utf8_lossy(&shared.row().name).into_owned();
        let (key, user) = ((name, Some(user.to_owned())), user.to_owned());
        self.opened(key, move || database.for_client(&user, None).map_err(told)).await
    }

    /// What `open` gives, for all who ask by the same key.
    async fn opened(
        &self,
        key: SessionKey,
        open: impl FnOnce() -> Result<Session, StatementError> + Send + 'static,
    ) -> Result<Arc<Session>, StatementError> {
        let cell = {
            let mut databases = self.databases.lock().unwrap_or_else(PoisonError::into_inner);
            databases.entry(key.clone()).or_default().clone()
        };
        let opened = cell.get_or_try_init(|| async {
            let failed = |_| StatementError::new(SqlState("XX000"), "a database was not opened");
            self.compute.spawn_blocking(open).await.map_err(failed)?.map(Arc::new)
        });
        let opened = opened.await.cloned();
        if opened.is_err() {
            // Names that there are no databases of are not kept.
            self.databases.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        }
        opened
    }
}

fn open(cluster: &Cluster, name: &str, options: SessionOptions) -> Result<Session, StatementError> {
    let database = cluster.database(name).map_err(|error| match error {
        pagemill_cluster::Error::NotFound { .. } => {
            let message = format!("database \"{name}\" does not exist");
            StatementError::new(SqlState("3D000"), message)
        }
        other => pagemill_sql::Error::from(other).report(),
    })?;
    Session::open(&database, options).map_err(|error| error.report())
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
