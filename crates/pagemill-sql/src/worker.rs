//! `pagemill worker`, and the workers of `pagemill sql`: from flags to what the library has.
//!
//! Invariant: a worker that others could reach listens only with a secret.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use pagemill_cli::cluster_arguments::CommonArguments;
use pagemill_cli::failure::{self, Completion, UsageError};
use pagemill_cli::served_directories::ServedDirectory as Named;
use pagemill_cli::session::Session as Opened;
use pagemill_cli::sql_arguments::SqlArguments;
use pagemill_cli::worker_arguments::WorkerArguments;
use pagemill_cluster::{Cluster, DirectoryWitness};
use pagemill_engine::ScanOrder;
use pagemill_io::HostFiles;
use pagemill_sql::session::Session;
use pagemill_sql::workers::{
    SECRET_VARIABLE, Secret, ServedDirectory, Snapshot, WorkerOptions, WorkerServer, Workers,
    directory_name, worker_address,
};
use tokio::net::{TcpListener, lookup_host};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// Bytes of a file with a secret.
const MOST_SECRET: u64 = 4096;
/// Threads beside those that compute: one that speaks with others while all compute.
const SPEAKING: usize = 1;

/// The secret of a file, or else of the environment.
fn secret(file: Option<&Path>) -> Result<Option<Secret>> {
    let (place, bytes) = match file {
        Some(path) => {
            let bytes = HostFiles::real().read_file(path, MOST_SECRET)?;
            (path.display().to_string(), bytes)
        }
        None => match std::env::var_os(SECRET_VARIABLE) {
            Some(text) => (SECRET_VARIABLE.to_owned(), text.into_encoded_bytes()),
            None => return Ok(None),
        },
    };
    match Secret::new(&bytes) {
        Some(secret) => Ok(Some(secret)),
        None => bail!("{place}: a secret has 16 bytes at least"),
    }
}

/// The session with the workers that were named.
pub(crate) fn with_workers(
    session: Session,
    arguments: &SqlArguments,
    opened: &Opened<'_>,
) -> Result<Session> {
    if arguments.workers.is_empty() {
        return Ok(session);
    }
    let usage = |message| UsageError(format!("--workers {message}"));
    let urls = arguments.workers.iter().map(|text| worker_address(text.trim()).map_err(usage));
    let urls = urls.collect::<Result<Vec<_>, _>>()?;
    let place = named(&arguments.common, opened)?;
    let snapshot = Snapshot::of(session.catalog().database().cluster());
    let secret = secret(arguments.secret_file.as_deref())?;
    let workers = Workers::new(urls, secret, (place, snapshot), arguments.worker_share);
    Ok(session.with_workers(Some(Arc::new(workers))))
}

/// What a data directory is called between machines: as it was given, whatever backup in it was chosen.
fn named(common: &CommonArguments, opened: &Opened<'_>) -> Result<String> {
    let given = common.pgdata.as_deref().map_or_else(|| opened.directory(), Ok)?;
    Ok(directory_name(given))
}

pub(crate) fn run(arguments: &WorkerArguments) -> Result<Completion> {
    let directories: &'static [Named] = arguments.directories()?.leak();
    let secret = secret(arguments.secret_file.as_deref())?;
    let first = directories.first().context("no data directory: name it with -D, or set PGDATA")?;
    let scan = Opened::new(&first.common)?.scan_options(ScanOrder::default());
    let served = directories.iter().map(served).collect::<Result<Vec<_>>>()?;
    let names: Vec<String> = served.iter().map(|directory| directory.name.clone()).collect();
    let memory = arguments.memory;
    let options = WorkerOptions { directories: served, memory, scan, secret };
    let server = WorkerServer::new(options)?;
    let jobs = usize::from(arguments.common.jobs);
    let runtime =
        Builder::new_multi_thread().worker_threads(jobs + SPEAKING).enable_all().build()?;
    let ended = runtime.block_on(listen(server, &arguments.listen, &names));
    runtime.shutdown_background();
    ended.map(|()| Completion::Done)
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
