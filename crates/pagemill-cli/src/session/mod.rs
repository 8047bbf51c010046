//! An open data directory for one command: opened as the flags say, with the warnings these
//! flags call for, and closed with the statistics that were asked for, whether the work was done or
//! failed.
//!
//! ```text
//! Session::new(common)? ─► .recovered(recovery)? ─► .cluster() or .database(name) ─► work ─► .finish(&work)
//! ```
//!
//! What it says goes to standard error; the statistics follow when it is dropped, so nothing may be left to say by then.

pub mod stats;
#[cfg(feature = "remote")]
mod stores;
#[cfg(not(feature = "remote"))]
#[path = "stores_missing.rs"]
mod stores;

use std::cell::{Cell, OnceCell};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use pagemill_cluster::change::has_leftovers;
use pagemill_cluster::recovery::plan::PlanOptions;
use pagemill_cluster::{
    ArchiveToUnpack, BackupChoice, Cluster, Database, DirectoryState, OpenBackup, OpenOptions,
    Recovery, UnpackNotice, backup_storage,
};
use pagemill_engine::{DamageLog, OnDamage, ScanOptions, ScanOrder};
use pagemill_format::Lsn;
use pagemill_io::{Output, Storage, is_url};
use pagemill_stream::MethodUse;

use self::stats::{WalWork, Work};
use self::stores::Stores;
use crate::cluster_arguments::{
    CommonArguments, DamageChoice, RecoveryArguments, repository_passphrase,
};
use crate::failure::{UsageError, say};

/// More shared buffers than a thread ever pins at a time.
const BUFFERS_PER_JOB: usize = 4;

/// One command's view of a data directory.
pub struct Session<'a> {
    common: &'a CommonArguments,
    /// Up to where WAL is redone; `None` for what looks at no relation.
    recovery: Option<&'a RecoveryArguments>,
    /// The directory, and what it is read through.
    opened: OpenBackup,
    stores: Stores,
    /// What was opened.
    cluster: OnceCell<Cluster>,
    start: Instant,
    work: Cell<Work>,
    /// What was redone, where anything was.
    redone: Cell<Option<WalWork>>,
    /// Up to where WAL was redone, where any was.
    redo_end: Cell<Option<Lsn>>,
}

impl<'a> Session<'a> {
    /// A session on the directory that the flags name, which is not opened yet.
    ///
    /// # Errors
    /// When the flags contradict each other, or ask for a way to read that the platform has not got; archives of a backup
    /// that are damaged.
    pub fn new(common: &'a CommonArguments) -> Result<Self> {
        let start = Instant::now();
        let (opened, stores) = opened(common, &[])?;
        let (cluster, work, redone) = (OnceCell::new(), Cell::default(), Cell::default());
        let redo_end = Cell::default();
        Ok(Self { common, recovery: None, opened, stores, cluster, start, work, redone, redo_end })
    }

    /// The same for relations as they are after redo up to where these arguments say.
    ///
    /// # Errors
    /// As [`Self::new`], where what is read beside the data directory needs more than that.
    pub fn recovered(mut self, recovery: &'a RecoveryArguments) -> Result<Self> {
        self.recovery = Some(recovery);
        let beside = recovery.paths();
        if !self.stores.are_there() && beside.iter().any(|path| is_url(path)) {
            (self.opened, self.stores) = opened(self.common, &beside)?;
        }
        Ok(self)
    }

    /// The flags it follows.
    pub fn common(&self) -> &'a CommonArguments {
        self.common
    }

    /// The files of the directory, read as the flags say.
    pub fn storage(&self) -> &Storage {
        &self.opened.storage
    }

    /// The data directory that was named, or that of the backup that was chosen.
    ///
    /// # Errors
    /// When none was.
    pub fn directory(&self) -> Result<&Path> {
        match &*self.opened.directory {
            path if path.as_os_str().is_empty() => {
                let message = "no data directory: name it with -D, or set PGDATA";
                Err(UsageError(message.into()).into())
            }
            path => Ok(path),
        }
    }

    /// Where the WAL of the backup is that was chosen.
    pub fn archives(&self) -> &[PathBuf] {
        &self.opened.archives
    }

    /// How far WAL is redone, with the archive that belongs to a backup of a repository.
    pub fn plan_options(&self) -> PlanOptions {
        let mut options = self.recovery.map(RecoveryArguments::plan_options).unwrap_or_default();
        options.archives.extend(self.opened.archives.iter().cloned());
        options
    }

    /// Opens the data directory.
    ///
    /// # Errors
    /// When a server is running on it, its WAL cannot be redone as the flags say, or a file cannot be read.
    pub fn cluster(&self) -> Result<Cluster> {
        self.cluster_as(self.common.live)
    }

    /// Opens the data directory, also while a server is running: for who looks up names only, whose files seldom change.
    ///
    /// # Errors
    /// As [`Self::cluster`], but for the server.
    pub fn cluster_for_names(&self) -> Result<Cluster> {
        let is_running = |error: &anyhow::Error| {
            matches!(error.downcast_ref(), Some(pagemill_cluster::Error::Running { .. }))
        };
        match self.cluster() {
            Err(error) if is_running(&error) => self.cluster_as(true),
            opened => opened,
        }
    }

    fn cluster_as(&self, live: bool) -> Result<Cluster> {
        refuse_few_buffers(self.common)?;
        let options = OpenOptions { live, ..self.open_options() };
        let cluster = self.open(options)?;
        let _ = self.cluster.set(cluster.clone());
        warn_of_advisory_results(&cluster);
        warn_of_leftovers(&cluster)?;
        self.tell(|| {
            let checksums = if cluster.verify_checksums() { "verified" } else { "not verified" };
            let path = cluster.path().display();
            format!("{path}: PostgreSQL {}, checksums {checksums}", cluster.version())
        });
        Ok(cluster)
    }

    fn open_options(&self) -> OpenOptions {
        OpenOptions {
            live: self.common.live,
            allow_unclean: self.common.allow_unclean,
            allow_inconsistent: self.recovery.is_some_and(|recovery| recovery.allow_inconsistent),
            verify_checksums: !self.common.no_verify_checksums,
            shared_buffers: self.common.shared_buffers,
        }
    }

    /// Opens the data directory; one that lacks WAL as recovery would make it, with a line that says so.
    fn open(&self, options: OpenOptions) -> Result<Cluster> {
        let (path, live) = (self.directory()?, options.live);
        let read = if live { DirectoryState::read_live } else { DirectoryState::read };
        let state = self.with_tablespaces(read(self.storage(), path)?)?;
        let given = self.recovery.map(RecoveryArguments::plan_options).unwrap_or_default();
        let wanted = self.plan_options();
        if (live || options.allow_unclean) && given.are_given() {
            let what = "--live and --allow-unclean read files as they are: leave out --wal, --until and --timeline";
            return Err(UsageError(what.into()).into());
        }
        let start = Instant::now();
        let (recovery, redone) = Recovery::for_reading(&state, &options, &wanted)?;
        if let Some(redone) = redone {
            let bytes = redone.end.lsn.0.saturating_sub(redone.start.0);
            let (records, elapsed) = (redone.records, start.elapsed());
            self.redone.set(Some(WalWork { bytes, records, elapsed }));
            self.redo_end.set(Some(redone.end.lsn));
            for warning in &redone.warnings {
                say(format!("{}: {warning}", path.display()));
            }
            say(format!("{}: {redone}", path.display()));
        }
        Ok(Cluster::open_recovered(state, recovery, options))
    }

    /// The same directory with its tablespaces where they lie; what changes a cluster takes them where the links lead.
    ///
    /// # Errors
    /// When a tablespace is nowhere, or in use by a running server.
    pub fn with_tablespaces(&self, state: DirectoryState) -> Result<DirectoryState> {
        let Some(recovery) = self.recovery else { return Ok(state) };
        let state = state.with_tablespaces(&recovery.tablespace_mapping, &self.open_options())?;
        for warning in state.warnings() {
            say(warning);
        }
        for place in state.tablespaces().iter().filter(|place| place.is_elsewhere()) {
            self.tell(|| {
                let (named, read) = (place.named.display(), place.directory.display());
                format!("tablespace {} of {named} is read in {read}", place.oid)
            });
        }
        Ok(state)
    }

    /// Opens a database of the data directory.
    ///
    /// # Errors
    /// As [`Self::cluster`], or when there is no such database.
    pub fn database(&self, name: &str) -> Result<Database> {
        Ok(self.cluster()?.database(name)?)
    }

    /// Says something if `--verbose` asks for it.
    pub fn tell(&self, message: impl FnOnce() -> String) {
        if self.common.verbose {
            say(message());
        }
    }

    /// How a table is scanned: as the flags say, in this order.
    pub fn scan_options(&self, order: ScanOrder) -> ScanOptions {
        ScanOptions {
            io_combine_limit: self.common.reading.io_combine_limit,
            jobs: usize::from(self.common.jobs),
            order,
        }
    }

    /// An account of damage, with the policy that was asked for.
    pub fn damage_log(&self) -> DamageLog {
        DamageLog::new(match self.common.on_damage {
            DamageChoice::Stop => OnDamage::Stop,
            DamageChoice::Skip => OnDamage::Skip,
        })
    }

    /// Standard output, with its calls counted.
    ///
    /// # Errors
    /// When it is closed.
    pub fn standard_output(&self) -> Result<Output> {
        Ok(Output::standard(self.storage()).map_err(pagemill_engine::Error::Output)?)
    }

    /// Writes a text to standard output.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn print(&self, text: &str) -> Result<()> {
        let written = self.standard_output()?.write_all(text.as_bytes());
        Ok(written.map_err(pagemill_engine::Error::Output)?)
    }

    /// Up to where the WAL is in what is read: to where it was redone, or to the checkpoint of a clean shutdown. `None`
    /// where files are read as they lie.
    pub fn end_of_wal(&self, cluster: &Cluster) -> Option<Lsn> {
        let checkpoint = || cluster.state().control().checkpoint_location;
        self.redo_end.get().or_else(|| cluster.is_clean().then(checkpoint))
    }

    /// Takes note of what was done, for the statistics.
    pub fn finish(&self, work: &Work) {
        self.work.set(*work);
    }
}

/// The directory and its storage as the flags ask for them, with the stores that they name and these paths.
fn opened(common: &CommonArguments, beside: &[&Path]) -> Result<(OpenBackup, Stores)> {
    // `serve` has flags of several directories on one line, so that these two are told apart here.
    if common.backup.is_some() && !common.base.is_empty() {
        let message =
            "--base does not go with --backup: the repository tells what its backups build on";
        return Err(UsageError(message.into()).into());
    }
    let storage = common.reading.storage(common.live)?;
    let storage = if common.stats.is_some() { storage } else { storage.untimed() };
    let paths = [&common.paths(), beside].concat();
    let laid = Stores::laid_over(&storage, &paths, &common.remote)?;
    #[allow(clippy::default_constructed_unit_structs)] // With the feature it has fields.
    let (storage, stores) = laid.unwrap_or_else(|| (storage, Stores::default()));
    let opened = match &common.pgdata {
        Some(directory) => {
            let (bases, stanza) = (&common.base, common.stanza.as_deref());
            let (backup, passphrase) = (common.backup.as_ref(), repository_passphrase());
            let choice = BackupChoice { bases, stanza, backup, passphrase: passphrase.as_ref() };
            backup_storage(&storage, directory, choice, &UnpackNotice::to(say_archive))?
        }
        None => OpenBackup { storage, directory: PathBuf::new(), archives: Vec::new() },
    };
    Ok((opened, stores))
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.stores.finish();
        if let Some(newer) = self.cluster.get().and_then(Cluster::newer_page) {
            say(format!("{newer}; it is read as it lies, and so is every other one like it"));
        }
        for reason in MethodUse::of(self.storage()).reasons() {
            self.tell(|| format!("io_method {reason}"));
        }
        if let Some(form) = self.common.stats {
            let work = Work { redone: self.redone.get(), ..self.work.get() };
            let record = stats::record(self.start.elapsed(), self.storage(), &work);
            stats::print_with(form, record, self.stores.record());
        }
    }
}

fn say_archive(archive: &ArchiveToUnpack) {
    say(archive);
}

/// Refuses buffers that the threads could pin all at once: they would then fail by chance.
fn refuse_few_buffers(common: &CommonArguments) -> Result<()> {
    let least = BUFFERS_PER_JOB * usize::from(common.jobs);
    if common.shared_buffers.get() >= least {
        return Ok(());
    }
    let jobs = common.jobs;
    let reason = format!("--jobs {jobs} needs --shared-buffers of at least {least} blocks of 8 kB");
    Err(UsageError(reason).into())
}

/// Files that nobody needs take space, and a server does not know of them.
fn warn_of_leftovers(cluster: &Cluster) -> Result<()> {
    // Beside whoever is changing it, there is always a list.
    if !cluster.is_live() && cluster.is_clean() && has_leftovers(cluster)? {
        say(format!(
            "{0}: a load or clone was cut short here, and files of it may be left: pagemill clean -D {0} removes them",
            cluster.path().display()
        ));
    }
    Ok(())
}

fn warn_of_advisory_results(cluster: &Cluster) {
    let path: PathBuf = cluster.path().into();
    if cluster.is_live() {
        say(format!(
            "{}: the result is advisory: a server may be changing these files, and its newest \
             changes are not in them",
            path.display()
        ));
    } else if !cluster.is_complete() {
        say(format!(
            "{}: the result is advisory: the cluster's state is \"{}\", and its WAL is not \
             replayed",
            path.display(),
            cluster.control().state
        ));
    }
}
