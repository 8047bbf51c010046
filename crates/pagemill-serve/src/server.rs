//! What all connections share: what is served, how they are let in, and where statements are computed.
//!
//! Invariant: what is served is replaced as a whole, and by what could be opened only.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use pagemill_cli::failure::say;
use pagemill_sql::statement_texts::StatementTexts;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use crate::connection;
use crate::endpoints::Endpoints;
use crate::metrics::Metrics;
use crate::opened::Opened;
use crate::registry::Registry;
use crate::status::since_1970;

/// Clients of TCP that have yet to prove who they are, for each that may be there at a time; as of `MaxLivePostmasterChildren`.
const ARRIVING: usize = 2;

/// How a server answers.
#[derive(Debug)]
pub struct ServerOptions {
    /// How many clients there may be at a time.
    pub most_connections: usize,
    /// How long a client may take to say and prove who it is; `authentication_timeout`.
    pub authentication_timeout: Duration,
    /// Whether clients of TCP are let in without TLS: where only this machine can connect, or where that is wanted.
    pub allows_plaintext: bool,
    /// Whether it is told who comes in, and why others do not.
    pub is_verbose: bool,
}

/// How often directories were to be opened anew.
#[derive(Debug, Clone, Default)]
pub struct Reloads {
    /// Times that they were.
    pub done: u64,
    /// Times that one of them could not be.
    pub failed: u64,
    /// When that was, since 1970, and why, where none followed that was done.
    pub last_failure: Option<(Duration, String)>,
}

/// A server.
pub struct Server {
    opened: RwLock<Arc<Opened>>,
    reloads: Mutex<Reloads>,
    pub(crate) metrics: Arc<Metrics>,
    /// Statements that came before, of whatever client.
    pub(crate) texts: Arc<StatementTexts>,
    started: SystemTime,
    pub(crate) registry: Arc<Registry>,
    pub(crate) authentication_timeout: Duration,
    pub(crate) allows_plaintext: bool,
    /// Places for clients of TCP that are not let in yet.
    pub(crate) arriving: Arc<Semaphore>,
    is_verbose: bool,
    /// Statements run here, and never on the threads that speak with clients: a cancel request would wait for a sort.
    pub(crate) compute: Handle,
    ending: watch::Sender<bool>,
}

impl Server {
    /// A server of what was opened.
    pub fn new(opened: Opened, options: ServerOptions, compute: Handle) -> Arc<Self> {
        Arc::new(Self {
            opened: RwLock::new(Arc::new(opened)),
            reloads: Mutex::default(),
            metrics: Arc::default(),
            texts: Arc::default(),
            started: SystemTime::now(),
            registry: Registry::new(options.most_connections),
            authentication_timeout: options.authentication_timeout,
            allows_plaintext: options.allows_plaintext,
            arriving: Arc::new(Semaphore::new(options.most_connections * ARRIVING)),
            is_verbose: options.is_verbose,
            compute,
            ending: watch::Sender::new(false),
        })
    }

    /// What clients that come now are served.
    pub fn opened(&self) -> Arc<Opened> {
        self.opened.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Serves this to all clients that come from now on. Those that are there keep what they have.
    pub fn replace(&self, opened: Opened) {
        *self.opened.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(opened);
        let mut reloads = self.reloads.lock().unwrap_or_else(PoisonError::into_inner);
        *reloads = Reloads { done: reloads.done + 1, failed: reloads.failed, last_failure: None };
    }

    /// Keeps what is served: it could not be opened anew.
    pub fn not_replaced(&self, why: &str) {
        let mut reloads = self.reloads.lock().unwrap_or_else(PoisonError::into_inner);
        reloads.failed += 1;
        reloads.last_failure = Some((since_1970(SystemTime::now()), why.to_owned()));
    }

    /// How often it was to be opened anew.
    pub fn reloads(&self) -> Reloads {
        self.reloads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// When it was started.
    pub fn started(&self) -> SystemTime {
        self.started
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
}
