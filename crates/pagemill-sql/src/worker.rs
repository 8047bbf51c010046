//! `pagemill worker`: from flags to what the library has.
//!
//! Invariant: a worker that others could reach listens only with a secret or certificates.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use pagemill_cli::failure::{self, Completion, UsageError};
use pagemill_cli::served_directories::ServedDirectory as Named;
use pagemill_cli::session::Session as Opened;
use pagemill_cli::worker_arguments::WorkerArguments;
use pagemill_cluster::{Cluster, DirectoryWitness};
use pagemill_engine::ScanOrder;
use pagemill_sql::PLANNING_STACK;
use pagemill_sql::named_workers::access;
use pagemill_sql::workers::{ServedDirectory, Tls, WorkerOptions, WorkerServer, directory_name};
use tokio::net::{TcpListener, lookup_host};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Threads beside those that compute: one that speaks with others while all compute.
const SPEAKING: usize = 1;

pub(crate) fn run(arguments: &WorkerArguments) -> Result<Completion> {
    let directories: &'static [Named] = arguments.directories()?.leak();
    let access = access(arguments.secret_file.as_deref(), arguments.tls())?;
    let tls = access.tls.clone();
    let first = directories.first().context("no data directory: name it with -D, or set PGDATA")?;
    let scan = Opened::new(&first.common)?.scan_options(ScanOrder::default());
    let served = directories.iter().map(served).collect::<Result<Vec<_>>>()?;
    let names: Vec<String> = served.iter().map(|directory| directory.name.clone()).collect();
    let memory = arguments.memory;
    let export_to = arguments.export_to.iter().map(|place| export_place(place)).collect();
    let options = WorkerOptions { directories: served, memory, scan, access, export_to };
    let server = WorkerServer::new(options)?;
    let jobs = usize::from(arguments.common.jobs);
    let runtime = Builder::new_multi_thread()
        .worker_threads(jobs + SPEAKING)
        .thread_stack_size(PLANNING_STACK)
        .enable_all()
        .build()?;
    let ended = runtime.block_on(async {
        if let Some(tls) = tls {
            tokio::spawn(read_again(signal(SignalKind::hangup())?, tls));
        }
        listen(server, &arguments.listen, &names).await
    });
    runtime.shutdown_background();
    ended.map(|()| Completion::Done)
}

/// Reads certificates anew whenever the signal comes.
async fn read_again(mut hangup: Signal, tls: Tls) {
    while hangup.recv().await.is_some() {
        match tls.load_again() {
            Ok(()) => failure::say("the certificates were read anew"),
            Err(error) => {
                failure::complain(format!("the certificates stay what they were: {error}"))
            }
        }
    }
}

/// A place as those who export name it.
fn export_place(path: &Path) -> PathBuf {
    PathBuf::from(directory_name(path))
}

async fn listen(server: WorkerServer, place: &str, names: &[String]) -> Result<()> {
    let found = lookup_host(place).await.with_context(|| format!("--listen {place}"))?;
    let addresses: Vec<SocketAddr> = found.collect();
    for address in &addresses {
        let refused = |why| UsageError(format!("--listen {why}"));
        server.check_address(*address).map_err(refused)?;
    }
    let listener =
        TcpListener::bind(&addresses[..]).await.with_context(|| format!("--listen {place}"))?;
    let address = listener.local_addr()?;
    failure::say(format!("parts of statements on {} are run at {address}", names.join(", ")));
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let end = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    tokio::select! {
        ended = server.run(listener, std::future::pending()) => ended,
        () = end => Ok(()),
    }
}

/// A directory that can be opened at any time. What was opened last is kept until it is opened again.
fn served(directory: &'static Named) -> Result<ServedDirectory> {
    let path = directory.common.pgdata.as_deref();
    let path = path.context("no data directory: name it with -D, or set PGDATA")?;
    let open: Mutex<Option<Opened<'static>>> = Mutex::new(None);
    let opener = move || {
        let opened = Opened::new(&directory.common)?.recovered(&directory.recovery)?;
        let cluster = watched(&opened)?;
        *open.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
        Ok(cluster)
    };
    Ok(ServedDirectory { name: directory_name(path), opener: Box::new(opener) })
}

/// The cluster, watched from before it was opened.
fn watched(opened: &Opened<'_>) -> Result<Cluster> {
    let witness = DirectoryWitness::read(opened.storage(), opened.directory()?);
    // What is no data directory is told by who opens it.
    let cluster = opened.cluster()?;
    cluster.watch(witness?);
    cluster.check_unchanged().with_context(|| {
        format!("{}: the data directory has changed while it was opened", cluster.path().display())
    })?;
    Ok(cluster)
}
