//! The flags of `pagemill clone` and `pagemill drop`, spelled as those of `createdb` and `dropdb`.
//!
//! Help, completions and the manual page come from here.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pagemill_cli::cluster_arguments::StatsForm;
use pagemill_cli::progress::ProgressMode;
use pagemill_cli::values::maybe_empty;
use pagemill_engine::clone::database::CloneStrategy;

use crate::options::write::{CompressionChoice, WriteArguments};

/// Make databases from a template in a stopped cluster, or copy a whole cluster
///
/// What CREATE DATABASE … TEMPLATE does, with no server, atomic and crash-safe: each new database is durable when
/// the command succeeds, and a server started at any moment, even after a kill or a power failure, finds
/// all of it or nothing. Several targets are made one after the other, with a commit for each. The
/// cluster must have been shut down; while the command runs, no server can start on it.
///
/// With --cluster, SOURCE is the data directory of a stopped cluster, and TARGET one that is not there or is empty.
/// A server starts on the copy without recovery. Left out is what a base backup leaves out: replication slots
/// (create them again), temporary files and relations, the contents of pg_stat_tmp, pg_notify, pg_serial,
/// pg_snapshots, pg_subtrans and pg_dynshmem, WAL before the last checkpoint, and symbolic links other than those
/// of tablespaces and pg_wal. Unlogged tables are empty, as after a crash. The copy has the source's system
/// identifier and settings, its port among them. Sparse files stay sparse. When it fails or is interrupted, what it
/// made is removed; a copy that was killed has no global/pg_control, so no server can start on it, and the next one to the
/// same place, or `clean`, removes it.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pagemill clone --cluster --verify /var/lib/postgresql/15/main /srv/copy
  pagemill clone --cluster \\
      --tablespace-mapping /mnt/fast=/mnt/fast-copy main copy
  pagemill clone -D /var/lib/postgresql/15/main shop shop_test
  pagemill clone -D data --strategy reflink template1 test1 test2 test3
  pagemill clone -D data --dry-run --tablespace fast shop shop_copy")]
pub(crate) struct CloneArguments {
    /// The data directory: the one with PG_VERSION in it
    #[arg(short = 'D', long, value_name = "DIR", env = "PGDATA", hide_env_values = true, value_parser = maybe_empty())]
    pub(crate) pgdata: Option<PathBuf>,
    /// The database to copy; with --cluster, a data directory
    #[arg(value_name = "SOURCE")]
    pub(crate) source: OsString,
    /// The new databases; with --cluster, the directory of the copy
    #[arg(value_name = "TARGET", required = true)]
    pub(crate) targets: Vec<OsString>,

    /// Copy a whole cluster
    #[arg(
        long,
        conflicts_with_all = [
            "tablespace", "owner", "connection_limit", "is_template", "wal_compression",
            "no_verify_checksums", "allow_connections", "io_method", "direct", "file_extend_method",
        ],
        help_heading = "Whole clusters"
    )]
    pub(crate) cluster: bool,
    /// Where the copy has the tablespace in OLDDIR; write \= for a = in a name; repeatable
    #[arg(
        short = 'T',
        long,
        value_name = "OLDDIR=NEWDIR",
        requires = "cluster",
        help_heading = "Whole clusters"
    )]
    pub(crate) tablespace_mapping: Vec<OsString>,

    /// How to copy: auto takes reflink where files can share blocks, else what writes the least
    #[arg(
        long,
        value_enum,
        value_name = "STRATEGY",
        default_value = "auto",
        help_heading = "Copying"
    )]
    pub(crate) strategy: StrategyChoice,
    /// Compress page images in the WAL [default: the cluster's wal_compression]
    #[arg(long, value_enum, value_name = "METHOD", help_heading = "Copying")]
    pub(crate) wal_compression: Option<CompressionChoice>,
    /// Read the copy back and compare it with the source; with --cluster, also check each page's checksum and header
    #[arg(long, help_heading = "Copying")]
    pub(crate) verify: bool,
    /// Copy damaged pages as they are instead of stopping at the first
    #[arg(long, help_heading = "Copying")]
    pub(crate) no_verify_checksums: bool,
    /// Threads that copy files [default: one for each processor, at most 8]
    #[arg(
        short,
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=256),
        help_heading = "Copying"
    )]
    pub(crate) jobs: Option<u16>,
    /// Show what would be done, written and logged, and do nothing
    #[arg(short = 'n', long, help_heading = "Copying")]
    pub(crate) dry_run: bool,

    /// The tablespace of the new databases [default: that of the source]
    #[arg(long, value_name = "TABLESPACE", help_heading = "New databases")]
    pub(crate) tablespace: Option<String>,
    /// Their owner [default: the first superuser]
    #[arg(short = 'O', long, value_name = "ROLE", help_heading = "New databases")]
    pub(crate) owner: Option<String>,
    /// Whether sessions can connect to them
    #[arg(
        long,
        value_name = "BOOLEAN",
        default_value_t = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        help_heading = "New databases"
    )]
    pub(crate) allow_connections: bool,
    /// How many sessions each may have at once, -1 for any number
    #[arg(
        long,
        value_name = "N",
        default_value_t = -1,
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(i32).range(-1..),
        help_heading = "New databases"
    )]
    pub(crate) connection_limit: i32,
    /// Make them templates, which cannot be dropped
    #[arg(long, help_heading = "New databases")]
    pub(crate) is_template: bool,

    #[command(flatten)]
    pub(crate) writing: WriteArguments,

    /// Print what was done and how to standard error, after the work
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "table"
    )]
    pub(crate) stats: Option<StatsForm>,
    /// Report on standard error what is being done
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Show a progress bar on standard error, if that is a terminal
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) progress: ProgressMode,
}

/// `--strategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyChoice {
    /// reflink where the file system supports it, else by size and by whether standbys follow the WAL
    Auto,
    /// Every page is logged (15 and later)
    #[value(name = "wal_log", alias = "wal-log")]
    WalLog,
    /// Files are copied, and standbys copy their own
    #[value(name = "file_copy", alias = "file-copy")]
    FileCopy,
    /// As file_copy, with files that share their blocks (XFS, btrfs)
    Reflink,
}

impl StrategyChoice {
    /// What was asked for; nothing for `auto`.
    pub(crate) fn asked(self) -> Option<CloneStrategy> {
        match self {
            Self::Auto => None,
            Self::WalLog => Some(CloneStrategy::WalLog),
            Self::FileCopy => Some(CloneStrategy::FileCopy),
            Self::Reflink => Some(CloneStrategy::Reflink),
        }
    }
}

/// Remove what a run that was cut short left in a stopped cluster
///
/// A load or clone that a signal stops undoes itself; one that is killed cannot. What it made is orphaned: new
/// files of tables, directories of databases, WAL behind the last checkpoint. They are listed in pagemill.pending, which
/// servers ignore, so they are found even after a server was started and stopped. Nothing is removed that a
/// catalog names. Every load, clone and drop begins with this; it never has to be run.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pagemill clean -D /var/lib/postgresql/15/main
  pagemill clean -D data --dry-run")]
pub(crate) struct CleanArguments {
    /// The data directory: the one with PG_VERSION in it
    #[arg(short = 'D', long, value_name = "DIR", env = "PGDATA", hide_env_values = true, value_parser = maybe_empty())]
    pub(crate) pgdata: Option<PathBuf>,
    /// Show what would be removed, and do nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

/// Drop a database of a stopped cluster
///
/// What DROP DATABASE does, with no server, atomic and crash-safe: the database is gone when the command succeeds, and a
/// server started at any moment, even after a kill or a power failure, finds all of it or nothing. Templates
/// and databases that replication depends on are refused.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pagemill drop -D /var/lib/postgresql/15/main shop_test")]
pub(crate) struct DropArguments {
    /// The data directory: the one with PG_VERSION in it
    #[arg(short = 'D', long, value_name = "DIR", env = "PGDATA", hide_env_values = true, value_parser = maybe_empty())]
    pub(crate) pgdata: Option<PathBuf>,
    /// The database
    #[arg(value_name = "DATABASE")]
    pub(crate) database: String,
    /// Succeed when there is no such database
    #[arg(long)]
    pub(crate) if_exists: bool,
    /// Show what would be removed, and do nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Print what was done and how to standard error, after the work
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "table"
    )]
    pub(crate) stats: Option<StatsForm>,
    /// Report on standard error what is being done
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
