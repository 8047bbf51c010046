//! `pagemill worker`: what listens for stages of statements.
//!
//! Invariants: a request without the secret goes no further than its headers; only this machine can reach a worker that has neither a secret
//! nor certificates; a message and its headers are of bounded size.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion_distributed::Worker;
use http::header::AUTHORIZATION;
use object_store::memory::InMemory;
use pagemill_cluster::Cluster;
use pagemill_engine::ScanOptions;
use tokio::net::TcpListener;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::{Request, Status};

use super::PROTOCOL;
use super::arrived::{Arrivals, SharedArrivals};
#[cfg(feature = "ballista")]
use super::ballista::{Stages, StagesService};
use super::channels::{Access, Connections};
use super::export::Exporter;
use super::listening::connections;
use super::one_question::OneQuestion;
use super::requests::Watching;
use super::secret::Secret;
use super::travelling::MOST_BYTES;
use crate::statement_memory::StatementMemory;

/// Bytes of a message that a worker takes: plans, which are small.
const MOST_MESSAGE: usize = 16 << 20;
/// What the other headers of a request take.
const OTHER_HEADERS: usize = 64 << 10;
/// Requests at a time on one connection.
const MOST_STREAMS: u32 = 1024;
/// A coordinator that is gone for so long gets no more rows.
const PING_EVERY: Duration = Duration::from_secs(10);

/// A data directory that a worker serves.
pub struct ServedDirectory {
    /// What statements call it: [`directory_name`](super::directory_name).
    pub name: String,
    /// Opens the cluster in it, watched.
    pub opener: Box<dyn Fn() -> anyhow::Result<Cluster> + Send + Sync>,
}

impl fmt::Debug for ServedDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedDirectory").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ServedDirectory {
    pub(super) fn open(&self) -> anyhow::Result<Cluster> {
        (self.opener)()
    }
}

/// How a worker works.
#[derive(Debug)]
pub struct WorkerOptions {
    /// What it serves.
    pub directories: Vec<ServedDirectory>,
    /// Bytes that sorts, joins and aggregates may take before they spill.
    pub memory: Option<usize>,
    /// How blocks are read.
    pub scan: ScanOptions,
    /// What whoever asks has to know and to show, and what this worker shows others.
    pub access: Access,
    /// Paths and URLs below which exports may write.
    pub export_to: Vec<PathBuf>,
}

/// A worker that is ready.
#[derive(Debug)]
pub struct WorkerServer {
    arrivals: Arc<Arrivals>,
    exporter: Arc<Exporter>,
    runtime: Arc<RuntimeEnv>,
    access: Access,
    #[cfg(feature = "ballista")]
    stages: Arc<Stages>,
}

impl WorkerServer {
    /// Opens the directories.
    ///
    /// # Errors
    /// When one cannot be opened.
    pub fn new(options: WorkerOptions) -> anyhow::Result<Self> {
        let WorkerOptions { directories, memory, scan, access, export_to } = options;
        let connections = Arc::new(Connections::new(access.clone()));
        let arrivals = Arc::new(Arrivals::new(directories, scan, connections.clone())?);
        let exporter = Arc::new(Exporter::new(arrivals.clone(), scan, export_to));
        let mut runtime = RuntimeEnvBuilder::new();
        if let Some(bytes) = memory {
            runtime = runtime.with_memory_pool(StatementMemory::new(bytes).pool());
        }
        let runtime = Arc::new(runtime.build()?);
        // Scans open their files themselves; the engine wants to know a store for their address.
        let url = ObjectStoreUrl::parse(crate::scan::NO_STORE)?;
        runtime.register_object_store(url.as_ref(), Arc::new(InMemory::new()));
        #[cfg(feature = "ballista")]
        let stages = Arc::new(Stages::new(arrivals.clone(), runtime.clone(), connections));
        Ok(Self {
            arrivals,
            exporter,
            runtime,
            access,
            #[cfg(feature = "ballista")]
            stages,
        })
    }

    /// Whether it may listen there: without a secret and certificates only this machine may reach it.
    ///
    /// # Errors
    /// Where it may not, in words.
    pub fn check_address(&self, address: SocketAddr) -> Result<(), String> {
        let Access { secret, tls } = &self.access;
        match secret.is_some() || tls.is_some() || address.ip().is_loopback() {
            true => Ok(()),
            false => Err(format!(
                "{address}: whoever reaches this address could read all of the data directories: give \
                 certificates by --tls-cert, --tls-key and --tls-ca, or a secret by --secret-file or {}, or listen at a \
                 loopback address",
                super::SECRET_VARIABLE
            )),
        }
    }

    /// Takes requests until `end`.
    ///
    /// # Errors
    /// When it cannot listen any more.
    pub async fn run(
        self,
        listener: TcpListener,
        end: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        #[cfg(feature = "ballista")]
        let stages =
            InterceptedService::new(StagesService(self.stages), Gate(self.access.secret.clone()));
        let Self { arrivals, exporter, runtime, access: Access { secret, tls }, .. } = self;
        let requests = arrivals.requests.clone();
        let accounts = OneQuestion(arrivals.accounts.clone());
        let accounts = InterceptedService::new(accounts, Gate(secret.clone()));
        let worker = Worker::from_session_builder(SharedArrivals(arrivals))
            .with_runtime_env(runtime)
            .with_version(PROTOCOL);
        let service = worker.into_worker_server().max_decoding_message_size(MOST_MESSAGE);
        let exports = InterceptedService::new(OneQuestion(exporter), Gate(secret.clone()));
        let guarded = InterceptedService::new(service, Gate(secret));
        let guarded = Watching { inner: guarded, requests };
        let headers = u32::try_from(MOST_BYTES + OTHER_HEADERS)?;
        let server = Server::builder()
            .http2_max_header_list_size(headers)
            .max_concurrent_streams(MOST_STREAMS)
            .http2_keepalive_interval(Some(PING_EVERY))
            .http2_adaptive_window(Some(true))
            .add_service(guarded)
            .add_service(exports)
            .add_service(accounts);
        #[cfg(feature = "ballista")]
        let server = server.add_service(stages);
        server.serve_with_incoming_shutdown(connections(listener, tls), end).await?;
        Ok(())
    }
}

/// Lets requests in that know the secret.
#[derive(Debug, Clone)]
struct Gate(Option<Secret>);

impl tonic::service::Interceptor for Gate {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let Some(secret) = &self.0 else { return Ok(request) };
        let (headers, extensions, body) = request.into_parts();
        let given = headers.get(AUTHORIZATION.as_str()).map(|value| value.as_bytes());
        match secret.is_proven_by(given) {
            true => Ok(Request::from_parts(headers, extensions, body)),
            false => Err(Status::unauthenticated("the secret is not the worker's")),
        }
    }
}
