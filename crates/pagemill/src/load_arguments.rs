//! The flags of `pagemill load`, spelled as those of `export` and as COPY's options.
//!
//! Help, completions and the manual page come from here.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pagemill_cli::cluster_arguments::{DatabaseArgument, StatsForm};
use pagemill_cli::progress::ProgressMode;
use pagemill_cli::values::maybe_empty;

use crate::arguments::FormatChoice;
use crate::options::write::{CompressionChoice, WriteArguments};

/// Load files into a table of a stopped cluster
///
/// A load is atomic and crash-safe: the rows are durable when the command succeeds, and a server started at any
/// moment, even after a kill or a power failure, finds all of them or none. The cluster must have been shut down; while the command
/// runs, no server can start on it. Rows are appended in the order of the files; those of a partitioned table go to
/// its partitions. Columns that the files do not have get their defaults: constants, the current time, values of
/// sequences. What only a server can do (triggers, foreign keys, all but simple check expressions) is refused before
/// anything is written. An unlogged table is emptied by a crash, even one at the very end of its load.
///
/// Standbys that replay the load take ACCESS EXCLUSIVE locks until its commit: on the indexes of the table, and
/// on the table itself if it was empty, or --truncate or --no-wal was given; in a database of very many relations
/// on the indexes of pg_class too. Queries there that use the table wait meanwhile, and those that already run
/// are canceled after max_standby_streaming_delay (max_standby_archive_delay).
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pagemill load -D /var/lib/postgresql/15/main -d shop -t orders \\
      --format csv --header=skip orders.csv
  zcat orders.csv.gz | pagemill load -D data -d shop -t orders --format csv -
  pagemill load -D data -t big --truncate --freeze --no-wal \\
      --format csv big-1.csv big-2.csv.zst")]
pub(crate) struct LoadArguments {
    /// The data directory: the one with PG_VERSION in it
    #[arg(short = 'D', long, value_name = "DIR", env = "PGDATA", hide_env_values = true, value_parser = maybe_empty())]
    pub(crate) pgdata: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    /// The table ([SCHEMA.]TABLE, quotes as in SQL)
    #[arg(short, long, value_name = "TABLE")]
    pub(crate) table: String,
    /// The columns that the input has, in its order, separated by commas; the others get their defaults
    #[arg(long, value_name = "LIST")]
    pub(crate) columns: Option<String>,
    /// The files, .gz and .zst among them; - for standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// COPY's format
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Format"
    )]
    pub(crate) format: FormatChoice,
    /// What separates columns [default: a tab, in CSV a comma]
    #[arg(long, value_name = "CHARACTER", help_heading = "Format")]
    pub(crate) delimiter: Option<String>,
    /// What stands for null [default: \N, in CSV nothing]
    #[arg(long, value_name = "STRING", help_heading = "Format")]
    pub(crate) null: Option<String>,
    /// What the first line of each file is
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "skip",
        default_value = "none",
        help_heading = "Format"
    )]
    pub(crate) header: HeaderChoice,
    /// What quotes values in CSV [default: "]
    #[arg(long, value_name = "CHARACTER", help_heading = "Format")]
    pub(crate) quote: Option<String>,
    /// What precedes a quote in a quoted value [default: the quote]
    #[arg(long, value_name = "CHARACTER", help_heading = "Format")]
    pub(crate) escape: Option<String>,
    /// The encoding of the files [default: that of the database]
    #[arg(long, value_name = "NAME", help_heading = "Format")]
    pub(crate) encoding: Option<String>,
    /// Columns in which a quoted null string is null too; * for all (17 and later)
    #[arg(long, value_name = "LIST", help_heading = "Format")]
    pub(crate) force_null: Option<String>,
    /// Columns in which the null string is a value; * for all (17 and later)
    #[arg(long, value_name = "LIST", help_heading = "Format")]
    pub(crate) force_not_null: Option<String>,

    /// Log everything, so that standbys and archives follow (the default)
    #[arg(long, conflicts_with = "no_wal", help_heading = "Writing")]
    pub(crate) wal: bool,
    /// Log only that the table got new files: faster, and lost to standbys and archives
    #[arg(long, help_heading = "Writing")]
    pub(crate) no_wal: bool,
    /// Compress page images in the WAL [default: the cluster's wal_compression]
    #[arg(
        long,
        value_enum,
        value_name = "METHOD",
        conflicts_with = "no_wal",
        help_heading = "Writing"
    )]
    pub(crate) wal_compression: Option<CompressionChoice>,
    /// Remove the table's rows first
    #[arg(long, help_heading = "Writing")]
    pub(crate) truncate: bool,
    /// Read back what was written, after the commit, and compare it
    #[arg(long, help_heading = "Writing")]
    pub(crate) verify: bool,
    /// Freeze the rows, so that no VACUUM has to visit them; the table must be empty, or --truncate given
    #[arg(long, help_heading = "Writing")]
    pub(crate) freeze: bool,
    /// Threads that read rows [default: one for each processor, at most 8]
    #[arg(
        short,
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=256),
        help_heading = "Writing"
    )]
    pub(crate) jobs: Option<u16>,

    #[command(flatten)]
    pub(crate) writing: WriteArguments,

    /// Write rejected rows to this new file, and continue with the next row
    #[arg(long, value_name = "FILE", help_heading = "Errors")]
    pub(crate) log_errors: Option<PathBuf>,
    /// Replace the file of --log-errors if it exists
    #[arg(long, requires = "log_errors", help_heading = "Errors")]
    pub(crate) force: bool,
    /// Stop after more than this many rejected rows
    #[arg(long, value_name = "N", requires = "log_errors", help_heading = "Errors")]
    pub(crate) max_errors: Option<u64>,

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

/// What the first line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeaderChoice {
    /// A row
    None,
    /// Column names, which are ignored
    Skip,
    /// Column names, which must match
    Match,
}
