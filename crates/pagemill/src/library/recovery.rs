//! [`RecoveryOptions`]: which WAL is redone in front of a directory's files, up to where, and where its tablespaces are.
//!
//! Invariant: the default is what the command does without flags.

use std::path::PathBuf;

use pagemill_cluster::recovery::plan::{PlanOptions, RecoveryTarget, TargetPlace, TimelineChoice};
use pagemill_cluster::{BackupChoice, BackupName, Passphrase, TablespaceMapping};

/// How a directory that is not whole is recovered while it is read. The default is a server's own crash recovery: to the end
/// of the WAL in its `pg_wal`.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use pagemill::{Cluster, OpenOptions, RecoveryOptions, Storage};
///
/// let recovery = RecoveryOptions::new()
///     .wal_directory("/archive")
///     .until("time:2026-03-01 11:59:00+00".parse()?)
///     .tablespace_at("/mnt/fast", "/backup/fast");
/// let options = OpenOptions::default();
/// let cluster = Cluster::recover(Storage::real(), "/backup/base", options, &recovery)?;
/// println!("{}", cluster.database("shop")?.table("public.orders")?.count()?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct RecoveryOptions {
    pub(super) plan: PlanOptions,
    pub(super) tablespaces: Vec<TablespaceMapping>,
    pub(super) bases: Vec<PathBuf>,
    stanza: Option<String>,
    backup: Option<BackupName>,
    passphrase: Option<Passphrase>,
}

impl RecoveryOptions {
    /// A server's own crash recovery.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks for WAL in this directory, too: before `pg_wal`, and after those that were named before.
    #[must_use]
    pub fn wal_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.plan.archives.push(directory.into());
        self
    }

    /// The directory is an incremental backup, and builds on this one: name all of the chain, in any order.
    #[must_use]
    pub fn base(mut self, directory: impl Into<PathBuf>) -> Self {
        self.bases.push(directory.into());
        self
    }

    /// The directory is a repository of pgBackRest, Barman or WAL-G: this backup of it is read, named by its label or `latest`. WAL comes
    /// from the archive in the repository, too.
    #[must_use]
    pub fn backup(mut self, name: BackupName) -> Self {
        self.backup = Some(name);
        self
    }

    /// The backup is of this stanza of the repository; without it there has to be one only.
    #[must_use]
    pub fn stanza(mut self, name: impl Into<String>) -> Self {
        self.stanza = Some(name.into());
        self
    }

    /// The repository is one of pgBackRest that is encrypted by this (`repo1-cipher-pass`).
    #[must_use]
    pub fn passphrase(mut self, passphrase: Passphrase) -> Self {
        self.passphrase = Some(passphrase);
        self
    }

    pub(super) fn choice(&self) -> BackupChoice<'_> {
        let (stanza, backup) = (self.stanza.as_deref(), self.backup.as_ref());
        let passphrase = self.passphrase.as_ref();
        BackupChoice { bases: &self.bases, stanza, backup, passphrase }
    }

    /// What is planned where there are these archives, too.
    pub(super) fn plan_with(&self, archives: Vec<PathBuf>) -> PlanOptions {
        let mut plan = self.plan.clone();
        plan.archives.extend(archives);
        plan
    }

    /// Stops behind this place: parsed from `lsn:LSN`, `xid:XID`, `time:TIME`, `name:NAME` or `consistent`, as the command
    /// spells it.
    #[must_use]
    pub fn until(mut self, place: TargetPlace) -> Self {
        self.plan.target = Some(RecoveryTarget { place, inclusive: true });
        self
    }

    /// Stops just before this place.
    #[must_use]
    pub fn until_before(mut self, place: TargetPlace) -> Self {
        self.plan.target = Some(RecoveryTarget { place, inclusive: false });
        self
    }

    /// Follows this timeline.
    #[must_use]
    pub fn timeline(mut self, timeline: TimelineChoice) -> Self {
        self.plan.timeline = timeline;
        self
    }

    /// Takes this many bytes of memory for WAL and for what it changes, but for a few MiB; 256 MiB if nothing is said. The places of
    /// records that do not fit go to temporary files without a name, in the directory for those.
    #[must_use]
    pub fn wal_memory(mut self, bytes: usize) -> Self {
        self.plan.memory = bytes;
        self
    }

    /// Reads the tablespace in `new` that the cluster has in `old`; both are absolute.
    #[must_use]
    pub fn tablespace_at(mut self, old: impl Into<PathBuf>, new: impl Into<PathBuf>) -> Self {
        self.tablespaces.push(TablespaceMapping { old: old.into(), new: new.into() });
        self
    }
}
