//! A statement that came to a worker: which directory it is about, whether that is the cluster that was pinned, and its plan.
//!
//! Invariant: nothing is read of a directory that the worker was not started with, and nothing runs on a cluster or by a plan other
//! than the sender's.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use datafusion::error::DataFusionError;
use datafusion::execution::session_state::SessionState;
use datafusion_distributed::{DistributedExt as _, WorkerQueryContext, WorkerSessionBuilder};
use http::HeaderMap;
use pagemill_cluster::Cluster;
use pagemill_engine::{OnDamage, ScanOptions};

use super::accounts::Accounts;
use super::channels::{Connections, StatementChannels};
use super::errors::to_send;
use super::plan_codec::{PlanCodec, PlanParts};
use super::requests::Requests;
use super::server::ServedDirectory;
use super::snapshot::Snapshot;
use super::stage::{EnvelopeCodec, StageOpener};
use super::travelling::{Asker, HEADER, Planning, Travelling};
use crate::error::{Error, Result, SqlState, StatementError};
use crate::session::{Client, Session, SessionOptions, StatementMemory, TextOrder};

/// Sessions that are kept.
const MOST_SESSIONS: usize = 64;
/// A worker that is no use for what is asked.
pub(super) const REFUSED: SqlState = SqlState("55000");

/// Opens statements.
pub(super) struct Arrivals {
    directories: Vec<OpenedDirectory>,
    scan: ScanOptions,
    connections: Arc<Connections>,
    /// That keep stages open.
    pub(super) requests: Arc<Requests>,
    /// What scans met, for who asks.
    pub(super) accounts: Arc<Accounts>,
}

impl fmt::Debug for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrivals").finish_non_exhaustive()
    }
}

/// A directory that the worker serves, and what of it is open.
struct OpenedDirectory {
    served: ServedDirectory,
    open: Mutex<Option<OpenedCluster>>,
}

struct OpenedCluster {
    cluster: Cluster,
    snapshot: Snapshot,
    sessions: HashMap<SessionKey, Arc<Session>>,
}

/// What a session is opened for.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SessionKey {
    database: String,
    planning: Planning,
    client: Option<Client>,
    row_security: bool,
}

/// Whose session something is asked of.
#[derive(Debug)]
pub(super) struct Wanted<'w> {
    pub(super) directory: &'w str,
    pub(super) snapshot: &'w Snapshot,
    pub(super) database: &'w str,
    pub(super) planning: Planning,
    pub(super) asker: &'w Asker,
}

/// A statement that is planned.
pub(super) struct OpenedStatement {
    pub(super) session: Arc<Session>,
    pub(super) opener: StageOpener,
}

impl Travelling {
    fn wanted(&self) -> Wanted<'_> {
        let Self { directory, snapshot, database, planning, asker, .. } = self;
        Wanted { directory, snapshot, database, planning: *planning, asker }
    }
}

impl Arrivals {
    /// Opens all directories once, so that what cannot be opened is told at the start.
    ///
    /// # Errors
    /// When one cannot be.
    pub(super) fn new(
        directories: Vec<ServedDirectory>,
        scan: ScanOptions,
        connections: Arc<Connections>,
    ) -> anyhow::Result<Self> {
        let open = |served: ServedDirectory| {
            let cluster = served.open()?;
            let snapshot = Snapshot::of(&cluster);
            let opened = OpenedCluster { cluster, snapshot, sessions: HashMap::new() };
            Ok(OpenedDirectory { served, open: Mutex::new(Some(opened)) })
        };
        let directories = directories.into_iter().map(open).collect::<anyhow::Result<_>>()?;
        let (requests, accounts) = Default::default();
        Ok(Self { directories, scan, connections, requests, accounts })
    }

    /// The session that something is to be asked of.
    pub(super) fn session(&self, wanted: &Wanted<'_>) -> Result<Arc<Session>> {
        let is_it = |directory: &&OpenedDirectory| directory.served.name == wanted.directory;
        let directory = self.directories.iter().find(is_it).ok_or_else(|| {
            let name = wanted.directory;
            let message = format!("the worker does not serve the data directory {name}");
            StatementError::new(SqlState::DENIED, message)
                .with_hint("Start it with this directory, by -D.")
        })?;
        let mut open = directory.open.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = directory.pinned(&mut open, wanted.snapshot)?;
        let asker = wanted.asker;
        let key = SessionKey {
            database: wanted.database.to_owned(),
            planning: wanted.planning,
            client: asker.client.clone(),
            row_security: asker.row_security,
        };
        if let Some(known) = opened.sessions.get(&key) {
            return Ok(known.clone());
        }
        let Planning { jobs, memory, .. } = wanted.planning;
        // It decides how statements are planned; what they take is the worker's.
        let memory = memory.map(StatementMemory::new);
        let scan = self.scan;
        let options = SessionOptions {
            jobs,
            memory,
            scan,
            on_damage: OnDamage::Stop,
            text_order: TextOrder::default(),
        };
        let session = Session::open(&opened.cluster.database(wanted.database)?, options)?;
        let session = Arc::new(session.for_asker(asker)?);
        if opened.sessions.len() >= MOST_SESSIONS {
            opened.sessions.clear();
        }
        opened.sessions.insert(key, session.clone());
        Ok(session)
    }

    /// The statement of a request, planned as it was where it comes from.
    pub(super) async fn opened(&self, headers: &HeaderMap) -> Result<OpenedStatement> {
        let statement = statement(headers)?;
        let session = tokio::task::block_in_place(|| self.session(&statement.wanted()))?;
        let session = match &statement.asker.settings {
            Some(settings) => Arc::new(session.with_settings(settings.clone())),
            None => session,
        };
        let progress = self.requests.progress(headers);
        let (plan, scans) = session.plan_arrived(&statement, &progress).await?;
        if !statement.is_planned_as(&*plan) {
            let message = "the worker plans the statement otherwise than who sent it";
            let error = StatementError::new(REFUSED, message);
            return Err(error.with_hint("Is it of another version, or another machine's?").into());
        }
        self.accounts.keep(headers, &plan, &scans);
        let codec = PlanCodec(Arc::new(PlanParts::of(&plan)?));
        Ok(OpenedStatement { session, opener: StageOpener { codec, scans } })
    }

    async fn state(&self, context: WorkerQueryContext) -> Result<SessionState> {
        let WorkerQueryContext { mut builder, headers } = context;
        let OpenedStatement { session, opener } = self.opened(&headers).await?;
        let channels = StatementChannels { connections: self.connections.clone(), sent: None };
        let config = builder.config().take().unwrap_or_default();
        let config = session
            .execution_config(config)
            .with_distributed_channel_resolver(channels)
            .with_distributed_user_codec(EnvelopeCodec(Some(opener)));
        Ok(builder.with_config(config).build())
    }
}

fn statement(headers: &HeaderMap) -> Result<Travelling> {
    Travelling::of_header(headers.get(HEADER)).map_err(|why| {
        let message = format!("the worker does not take the statement: {why}");
        StatementError::new(REFUSED, message).into()
    })
}

impl OpenedDirectory {
    /// The cluster at this moment, opened anew where the directory has changed since.
    fn pinned<'o>(
        &self,
        open: &'o mut Option<OpenedCluster>,
        wanted: &Snapshot,
    ) -> Result<&'o mut OpenedCluster> {
        let is_current = open.as_ref().is_some_and(|opened| {
            opened.snapshot == *wanted && opened.cluster.check_unchanged_lately().is_ok()
        });
        if !is_current {
            let cluster = self.served.open().map_err(|error| self.not_opened(&error))?;
            let snapshot = Snapshot::of(&cluster);
            *open = Some(OpenedCluster { cluster, snapshot, sessions: HashMap::new() });
        }
        let opened = open.as_mut().ok_or_else(|| self.not_opened(&"it is not open"))?;
        match opened.snapshot == *wanted {
            true => Ok(opened),
            false => Err(self.another(&opened.snapshot, wanted)),
        }
    }

    fn not_opened(&self, why: &dyn fmt::Display) -> Error {
        let message = format!("the worker cannot open {}: {why}", self.served.name);
        StatementError::new(REFUSED, message).into()
    }

    fn another(&self, found: &Snapshot, wanted: &Snapshot) -> Error {
        let name = &self.served.name;
        let message = format!(
            "the worker sees another cluster in {name}: it has {found}; the statement is about {wanted}"
        );
        StatementError::new(REFUSED, message).into()
    }
}

/// For all requests of a worker.
#[derive(Clone)]
pub(super) struct SharedArrivals(pub(super) Arc<Arrivals>);

#[async_trait]
impl WorkerSessionBuilder for SharedArrivals {
    async fn build_session_state(
        &self,
        context: WorkerQueryContext,
    ) -> Result<SessionState, DataFusionError> {
        self.0.state(context).await.map_err(|error| to_send(error.into()))
    }
}
