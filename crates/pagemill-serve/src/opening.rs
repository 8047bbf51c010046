//! From the flags to what is served: at the start, and again whenever a signal asks for it.
//!
//! Invariant: what was opened before is let go only once all of it could be opened anew.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use pagemill_cli::cluster_arguments::{CommonArguments, DamageChoice};
use pagemill_cli::serve_arguments::ServeArguments;
use pagemill_cli::served_directories::ServedDirectory;
use pagemill_cli::session::Session;
use pagemill_cli::worker_arguments::{OnWorkersArguments, WorkerStatementArguments};
use pagemill_cluster::{Cluster, DirectoryWitness};
use pagemill_engine::{OnDamage, ScanOrder};
use pagemill_io::HostFiles;
use pagemill_sql::named_workers::NamedWorkers;
use pagemill_sql::session::{SessionOptions, StatementMemory, TextOrder};
use pagemill_sql::shell::told;

use crate::access::Access;
use crate::opened::Opened;
use crate::served_cluster::ServedCluster;
use crate::tls::Tls;

/// What is to be opened.
pub struct Opener {
    directories: &'static [ServedDirectory],
    /// Of all databases together.
    memory: Option<StatementMemory>,
    text_order: TextOrder,
    /// Files with the certificate and its key.
    certificate: Option<(PathBuf, PathBuf)>,
    /// Whether clients come over TCP, too, and roles are needed before databases are.
    is_networked: bool,
    on_workers: &'static OnWorkersArguments,
    dividing: &'static WorkerStatementArguments,
    /// The directories that are open, for what is said of each when it is let go.
    open: Mutex<Vec<Session<'static>>>,
}

impl Opener {
    /// What the flags name. They are kept until the process ends.
    ///
    /// # Errors
    /// When a directory has no name of its own.
    pub fn new(arguments: &'static ServeArguments) -> Result<Self> {
        let certificate = arguments.tls_cert.clone().zip(arguments.tls_key.clone());
        Ok(Self {
            directories: arguments.directories()?.leak(),
            memory: arguments.memory.map(StatementMemory::new),
            text_order: arguments.text_order.into(),
            certificate,
            is_networked: !arguments.listen.is_empty(),
            on_workers: &arguments.on_workers,
            dividing: &arguments.dividing,
            open: Mutex::default(),
        })
    }

    /// Opens all of it, as it is now.
    ///
    /// # Errors
    /// When one of the directories cannot be opened, or the certificate not be used.
    pub fn open(&self) -> Result<Opened> {
        let certificate = self.certificate.as_ref();
        let tls = certificate.map(|(certificate, key)| Tls::load(certificate, key)).transpose()?;
        let (mut sessions, mut clusters) = (Vec::new(), Vec::new());
        for directory in self.directories {
            let (session, cluster) = self.directory(directory)?;
            sessions.push(session);
            clusters.push(cluster);
        }
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = sessions;
        Ok(Opened::new(clusters, tls))
    }

    fn directory(
        &self,
        directory: &'static ServedDirectory,
    ) -> Result<(Session<'static>, ServedCluster)> {
        let common = resolved(&directory.common);
        let session = Session::new(common)?.recovered(&directory.recovery)?;
        let cluster = watched(&session)?;
        let options = SessionOptions {
            jobs: usize::from(common.jobs),
            memory: self.memory.clone(),
            scan: session.scan_options(ScanOrder::default()),
            on_damage: match common.on_damage {
                DamageChoice::Stop => OnDamage::Stop,
                DamageChoice::Skip => OnDamage::Skip,
            },
            text_order: self.text_order,
        };
        // Workers know the directory by the name that links lead to, which may be another by now than when it was resolved.
        let path = common.pgdata.as_deref().map_or_else(|| session.directory(), Ok)?;
        let workers = NamedWorkers::of(self.on_workers, self.dividing.into(), path, &cluster)?;
        let access = self.is_networked.then(|| Access::read(&cluster).map_err(told)).transpose()?;
        let served = ServedCluster::new(&directory.name, cluster, options, access);
        Ok((session, served.with_workers(workers)))
    }

    /// Lets all directories go, and says what there is to say of them: nothing is opened any more.
    pub fn close(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// The cluster, watched from before it was opened; under a running server it changes all the time.
fn watched(session: &Session<'_>) -> Result<Cluster> {
    if session.common().live {
        return session.cluster();
    }
    let witness = DirectoryWitness::read(session.storage(), session.directory()?);
    // What is no data directory is told by who opens it.
    let cluster = session.cluster()?;
    cluster.watch(witness?);
    cluster.check_unchanged().with_context(|| {
        format!("{}: the data directory has changed while it was opened", cluster.path().display())
    })?;
    Ok(cluster)
}

/// The directory that links lead to now: what is opened stays the same where they lead elsewhere later. One for each time that it is
/// opened is kept until the process ends.
fn resolved(common: &CommonArguments) -> &'static CommonArguments {
    let mut common = common.clone();
    // Where it leads nowhere, that is said of the name that was given.
    common.pgdata = common.pgdata.map(|path| HostFiles::real().resolve(&path).unwrap_or(path));
    Box::leak(Box::new(common))
}
