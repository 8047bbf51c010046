//! The flags of a program that opens a data directory: which one, how it is read, up to where its WAL is redone, and which
//! database is meant.
//!
//! Each struct is flattened into the arguments of a command (`#[command(flatten)]`), so that every program spells these flags
//! the same; a [`Session`](crate::session::Session) does what they say.
//!
//! Invariant: no flag here is one of a single command; such a flag is defined beside its command.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use pagemill_cluster::recovery::plan::{PlanOptions, RecoveryTarget, TargetPlace, TimelineChoice};
use pagemill_cluster::tablespace_mapping::{MappingError, TablespaceMapping};
use pagemill_cluster::{BackupName, Passphrase};

use crate::progress::ProgressMode;
use crate::read_arguments::ReadArguments;
use crate::remote_arguments::RemoteArguments;
use crate::values::{database_name, maybe_empty, memory_size, shared_buffers};

impl CommonArguments {
    /// What it reads: the data directory, and the backups below it.
    pub fn paths(&self) -> Vec<&Path> {
        self.pgdata.iter().chain(&self.base).map(PathBuf::as_path).collect()
    }
}

/// Where pgBackRest itself takes from what a repository is encrypted by. It is no flag: others on a machine see those.
pub const REPOSITORY_PASSPHRASE: &str = "PGBACKREST_REPO1_CIPHER_PASS";

/// What a repository of pgBackRest is encrypted by, as the environment says.
pub fn repository_passphrase() -> Option<Passphrase> {
    let found = std::env::var_os(REPOSITORY_PASSPHRASE).filter(|found| !found.is_empty());
    found.map(|found| Passphrase::new(found.into_vec()))
}

/// What every command that opens a data directory takes.
#[derive(Debug, Clone, Args)]
pub struct CommonArguments {
    /// The data directory: the one with PG_VERSION in it, a backup's with base.tar in it, or a repository with --backup;
    /// also a URL of an object store (s3://, gs://, az://, https://) or of a file
    #[arg(short = 'D', long, value_name = "DIR", env = "PGDATA", hide_env_values = true, value_parser = maybe_empty())]
    pub pgdata: Option<PathBuf>,
    /// A backup that the incremental one in -D builds on, up to the full one; repeatable, in any order
    #[arg(long, value_name = "DIR", value_parser = maybe_empty())]
    pub base: Vec<PathBuf>,
    /// The backup of the repository in -D (of pgBackRest, Barman or WAL-G): its label, or latest
    #[arg(long, value_name = "LABEL", conflicts_with = "live")]
    pub backup: Option<BackupName>,
    /// The stanza of the pgBackRest repository in -D [default: its only one]; the environment's
    /// PGBACKREST_REPO1_CIPHER_PASS decrypts it
    #[arg(long, value_name = "NAME")]
    pub stanza: Option<String>,
    /// Read although a server is running; the result is only advisory
    #[arg(long)]
    pub live: bool,
    /// Read a cluster that was not shut down cleanly as its files are, without redoing its WAL
    #[arg(long)]
    pub allow_unclean: bool,
    /// Do not verify page checksums
    #[arg(long)]
    pub no_verify_checksums: bool,
    /// Print what was done and how to standard error, after the work
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "table"
    )]
    pub stats: Option<StatsForm>,
    /// Report on standard error what is being read
    #[arg(short, long)]
    pub verbose: bool,
    /// Show a progress bar on standard error, if that is a terminal
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub progress: ProgressMode,
    /// Pages that all threads share: kB, MB or GB, or a number of 8 kB blocks (at least 16)
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "128MB",
        value_parser = shared_buffers
    )]
    pub shared_buffers: NonZeroUsize,
    /// Threads that scan
    #[arg(
        short,
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=256)
    )]
    pub jobs: u16,
    /// Whether damage ends the work, or is left out and named at the end
    #[arg(long, value_enum, value_name = "WHAT", default_value = "stop")]
    pub on_damage: DamageChoice,
    /// How blocks are read.
    #[command(flatten)]
    pub reading: ReadArguments,
    /// What is kept of object stores.
    #[command(flatten)]
    pub remote: RemoteArguments,
}

/// Up to where WAL is redone, in front of files that lack it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Recovery")]
pub struct RecoveryArguments {
    /// A directory with archived WAL, looked at before pg_wal; repeatable
    #[arg(long, value_name = "DIR", value_parser = maybe_empty())]
    pub wal: Vec<PathBuf>,
    /// Where to stop: lsn:LSN, xid:XID, time:TIME (in UTC unless it says otherwise), name:NAME or consistent
    #[arg(long, value_name = "TARGET")]
    pub until: Option<TargetPlace>,
    /// Stop just before the target, not behind it
    #[arg(long, requires = "until")]
    pub exclusive: bool,
    /// The timeline to follow: a number, latest or current [default: latest with --wal or a signal file, else current]
    #[arg(long, value_name = "TLI", default_value = "auto", hide_default_value = true)]
    pub timeline: TimelineChoice,
    /// The tablespace that the cluster has in OLDDIR is in NEWDIR now; write \= for a = in a name; repeatable
    #[arg(long, value_name = "OLDDIR=NEWDIR", value_parser = OsStringValueParser::new().try_map(tablespace_mapping))]
    pub tablespace_mapping: Vec<TablespaceMapping>,
    /// Continue with a warning where a copy contradicts its WAL: files of several moments, links to a running server's
    /// files, WAL that is damaged or too short
    #[arg(long)]
    pub allow_inconsistent: bool,
    /// Memory for WAL and for what it changes, from 1MB on; the places of records that do not fit go to temporary files
    #[arg(long, value_name = "SIZE", default_value = "256MB", value_parser = memory_size)]
    pub wal_memory: usize,
}

fn tablespace_mapping(given: OsString) -> Result<TablespaceMapping, MappingError> {
    TablespaceMapping::parse(&given)
}

impl RecoveryArguments {
    /// What is read beside the data directory: archives, and tablespaces where they are now.
    pub fn paths(&self) -> Vec<&Path> {
        let tablespaces = self.tablespace_mapping.iter().map(|mapping| &mapping.new);
        self.wal.iter().chain(tablespaces).map(PathBuf::as_path).collect()
    }

    /// What was asked for, for a plan.
    pub fn plan_options(&self) -> PlanOptions {
        let place = self.until.clone();
        let target = place.map(|place| RecoveryTarget { place, inclusive: !self.exclusive });
        PlanOptions {
            archives: self.wal.clone(),
            target,
            timeline: self.timeline,
            memory: self.wal_memory,
        }
    }
}

/// The form of `--stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatsForm {
    /// One name and value per line
    Table,
    /// One JSON object on one line
    Json,
}

/// What damage does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DamageChoice {
    /// The first damage in a table is an error
    Stop,
    /// Damaged pages and rows are left out and reported at the end
    Skip,
}

/// What texts are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TextOrderChoice {
    /// The collation's library here, if it has the version that the cluster recorded; else the statement is refused
    Recorded,
    /// The C library here, whatever its version, with a notice
    Here,
    /// Their bytes, as with servers on Alpine Linux and macOS, with a notice
    Bytes,
}

/// The database that is read.
#[derive(Debug, Args)]
pub struct DatabaseArgument {
    /// The database
    #[arg(
        short,
        long,
        value_name = "DBNAME",
        env = "PGDATABASE",
        hide_env_values = true,
        default_value = "postgres",
        value_parser = database_name
    )]
    pub dbname: String,
}
