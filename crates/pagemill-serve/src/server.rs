//! What all connections share: the cluster, its databases once they are asked for, and where statements are computed.
//!
//! Invariant: a database is opened once, however many clients ask for it at a time.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use pagemill_cluster::Cluster;
use pagemill_sql::roles::Role;
use pagemill_sql::session::{Session, SessionOptions};
use pagemill_sql::{SqlState, StatementError};
use tokio::runtime::Handle;
use tokio::sync::{OnceCell, watch};

use crate::connection;
use crate::endpoints::Endpoints;
use crate::registry::Registry;

/// How a server answers.
#[derive(Debug, Clone, Copy)]
pub struct ServerOptions {
    /// How statements run.
    pub session: SessionOptions,
    /// How many clients there may be at a time.
    pub most_connections: usize,
}

/// A database, and a user where it is not the first superuser.
type SessionKey = (String, Option<String>);

/// A server.
pub struct Server {
    cluster: Cluster,
    options: SessionOptions,
    databases: Mutex<HashMap<SessionKey, Arc<OnceCell<Arc<Session>>>>>,
    pub(crate) registry: Arc<Registry>,
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
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            }
        }
        drop(endpoints);
        self.ending.send_replace(true);
        self.registry.cancel_all();
        // Clients are told within a moment; those that read nothing are left.
        let told = async {
            while self.registry.count() > 0 {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        let _ = tokio::time::timeout(std::time::Duration::from_millis(500), told).await;
    }

    /// Waits until the server ends.
    pub(crate) async fn ended(&self) {
        let mut ending = self.ending.subscribe();
        // The sender lives as long as the server.
        let _ = ending.wait_for(|is_ending| *is_ending).await;
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
/// When there is none, it may not log in, or it has not all rights: rights on single tables are not looked at yet.
pub(crate) fn role(session: &Session, name: &str) -> Result<Role, StatementError> {
    let denied = |message: String| StatementError::new(SqlState("28000"), message);
    let roles = session.catalog().roles().map_err(|error| error.report())?;
    let Some(role) = roles.into_iter().find(|role| role.name == name) else {
        return Err(denied(format!("role \"{name}\" does not exist")));
    };
    if !role.can_login {
        return Err(denied(format!("role \"{name}\" is not permitted to log in")));
    }
    match role.is_superuser {
        true => Ok(role),
        false => Err(denied(format!("role \"{name}\" is no superuser"))
            .with_hint("Connect as a superuser of the cluster: rights on single tables are not told apart here.")),
    }
}
