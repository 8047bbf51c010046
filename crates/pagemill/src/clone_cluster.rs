//! `pagemill clone --cluster`: a whole stopped cluster copied to another directory.
//!
//! The source is kept from being started while it is copied, where this process may write to it; a read-only source
//! is looked at again at the end. Nothing of the source is changed.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use clap::{Args, ValueEnum};
use pagemill_cluster::{Cluster, ClusterLock, Error as ClusterError, OpenOptions};
use pagemill_engine::copy_cluster::TablespaceMapping;
use pagemill_engine::{
    ClusterCopy, CopyClusterOptions, CopyClusterSummary, CopyStrategy, Progress,
};
use pagemill_io::{CopyMethod, ErrorKind, Storage};

use crate::arguments::{ProgressMode, StatsForm};
use crate::failure::{Outcome, UsageError, say};
use crate::load::for_writing;
use crate::progress::{ProgressDisplay, is_wanted};
use crate::stats::{self, CopyWork, Work};
use crate::text_table::{Align, pretty_size, table};

/// Threads that copy unless told otherwise, at most: more wait for the device.
const MOST_DEFAULT_JOBS: usize = 4;

/// Copy a whole stopped cluster to another directory
///
/// A server starts on the copy without recovery, and finds what the source had. Left out is what a base backup leaves
/// out: replication slots (create them anew), temporary files and relations, the contents of pg_stat_tmp, pg_notify,
/// pg_serial, pg_snapshots, pg_subtrans and pg_dynshmem, WAL before the last checkpoint, and symbolic links other
/// than those of tablespaces and pg_wal. Unlogged tables are empty, as after a crash. The copy has the source's system
/// identifier and settings, its port among them.
///
/// When the command ends with success, the copy is durable. When it fails or is interrupted, what it made is removed;
/// a copy that was killed has no global/pg_control, and no server starts on it.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pagemill clone --cluster /var/lib/postgresql/15/main /srv/copy
  pagemill clone --cluster --strategy reflink /srv/main /srv/copy
  pagemill clone --cluster --tablespace-mapping /mnt/fast=/mnt/fast-copy main copy")]
pub(crate) struct CloneClusterArguments {
    /// The data directory of the stopped cluster
    #[arg(value_name = "SOURCE_DIR")]
    pub(crate) source: PathBuf,
    /// The directory of the copy: one that is not there, or is empty
    #[arg(value_name = "TARGET_DIR")]
    pub(crate) destination: PathBuf,
    /// Where the copy has the tablespace in OLDDIR; write \= for a = in a name; repeatable
    #[arg(short = 'T', long, value_name = "OLDDIR=NEWDIR")]
    pub(crate) tablespace_mapping: Vec<OsString>,
    /// How the bytes come to the copy
    #[arg(long, value_enum, value_name = "STRATEGY", default_value = "auto")]
    pub(crate) strategy: StrategyChoice,
    /// Check each page of tables and indexes: its checksum, where the cluster has them, and its header
    #[arg(long)]
    pub(crate) verify: bool,
    /// Threads that copy [default: one for each processor, at most 4]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) jobs: Option<u16>,
    /// Only print what would be copied, and how
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
    /// Tell on standard error what was done
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Show a progress bar on standard error, if that is a terminal
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) progress: ProgressMode,
}

/// How the bytes come to the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum StrategyChoice {
    /// By sharing blocks where the file system does that (XFS, btrfs), else by copying
    Auto,
    /// By copying
    FileCopy,
    /// By sharing blocks, or not at all
    Reflink,
}

pub(crate) fn run(arguments: &CloneClusterArguments) -> Result<Outcome> {
    let start = Instant::now();
    let storage = Storage::real();
    let cloned = clone_with(arguments, &storage);
    if let Some(form) = arguments.stats {
        let copied = cloned.as_ref().ok().copied().flatten();
        stats::print(form, start.elapsed(), &storage, &Work { copied, ..Work::default() });
    }
    if let Some(copied) = cloned?.filter(|_| arguments.verbose) {
        say(format!(
            "{} files, {} bytes by {}, {:.3} s",
            copied.files,
            copied.bytes,
            copied.method,
            start.elapsed().as_secs_f64()
        ));
    }
    Ok(Outcome::Done)
}

/// Nothing is returned of what would only be done.
fn clone_with(arguments: &CloneClusterArguments, storage: &Storage) -> Result<Option<CopyWork>> {
    let options = options(arguments)?;
    let progress = options.progress.clone();
    // Held until the copy is whole.
    let (cluster, _lock) = open(arguments, storage)?;
    let copy = ClusterCopy::plan(cluster, options)?;
    for what in copy.left_out() {
        say(format!("left out: {what}"));
    }
    if arguments.dry_run {
        std::io::stdout().write_all(description(&copy).as_bytes())?;
        return Ok(None);
    }
    // Without it an interruption ends the process, and what was made stays.
    let _ = pagemill_io::catch_interrupts();
    let pages = is_wanted(arguments.progress).then(|| copy.pages());
    let display = ProgressDisplay::start(pages, &progress);
    let summary = copy.run()?;
    drop(display);
    Ok(Some(work(&copy, summary)))
}

fn options(arguments: &CloneClusterArguments) -> Result<CopyClusterOptions> {
    let mappings = arguments.tablespace_mapping.iter().map(|given| {
        TablespaceMapping::parse(given).map_err(|error| UsageError(error.to_string()))
    });
    let jobs =
        || std::thread::available_parallelism().map_or(1, usize::from).min(MOST_DEFAULT_JOBS);
    Ok(CopyClusterOptions {
        destination: arguments.destination.clone(),
        mappings: mappings.collect::<Result<_, _>>()?,
        strategy: match arguments.strategy {
            StrategyChoice::Auto => CopyStrategy::Auto,
            StrategyChoice::FileCopy => CopyStrategy::FileCopy,
            StrategyChoice::Reflink => CopyStrategy::Reflink,
        },
        verify: arguments.verify,
        jobs: arguments.jobs.map_or_else(jobs, usize::from),
        progress: Arc::new(Progress::default()),
        interrupted: pagemill_io::interrupted,
    })
}

/// Opens the source, and keeps servers from starting on it where that can be done.
fn open(
    arguments: &CloneClusterArguments,
    storage: &Storage,
) -> Result<(Cluster, Option<ClusterLock>)> {
    let (source, options) = (arguments.source.as_path(), OpenOptions::default());
    let lock = if arguments.dry_run { None } else { lock(storage, source)? };
    let cluster = match &lock {
        Some(lock) => Cluster::open_locked(storage.clone(), lock, options),
        None => Cluster::open(storage.clone(), source, options),
    };
    Ok((cluster.map_err(for_writing)?, lock))
}

fn lock(storage: &Storage, source: &std::path::Path) -> Result<Option<ClusterLock>> {
    match ClusterLock::take(storage, source) {
        Ok(lock) => Ok(Some(lock)),
        Err(ClusterError::Io(error))
            if matches!(error.kind(), ErrorKind::Permission | ErrorKind::ReadOnly) =>
        {
            Ok(None)
        }
        Err(error) => Err(for_writing(error)),
    }
}

fn work(copy: &ClusterCopy, summary: CopyClusterSummary) -> CopyWork {
    let mut methods = copy.parts().map(|(_, method)| method);
    let first = methods.next().unwrap_or(CopyMethod::ReadWrite);
    let method = if methods.all(|method| method == first) { first.name() } else { "mixed" };
    let CopyClusterSummary { files, bytes, shared_bytes } = summary;
    CopyWork { files, bytes, shared_bytes, method }
}

/// What would be copied, for people.
fn description(copy: &ClusterCopy) -> String {
    let header = [
        ("Tablespace", Align::Left),
        ("From", Align::Left),
        ("To", Align::Left),
        ("Files", Align::Right),
        ("Bytes", Align::Right),
        ("Size", Align::Right),
        ("Method", Align::Left),
    ];
    let row = |(part, method): (&pagemill_engine::copy_cluster::Part, CopyMethod)| {
        vec![
            part.tablespace.map_or_else(|| "-".to_owned(), |oid| oid.to_string()),
            part.from.display().to_string(),
            part.to.display().to_string(),
            part.files.to_string(),
            part.bytes.to_string(),
            pretty_size(part.bytes),
            method.name().to_owned(),
        ]
    };
    let mut text = table(&header, &copy.parts().map(row).collect::<Vec<_>>());
    for space in copy.space() {
        let (needed, free) = (pretty_size(space.needed), pretty_size(space.free));
        text += &format!("{}: {needed} needed, {free} free\n", space.directory.display());
    }
    text
}
