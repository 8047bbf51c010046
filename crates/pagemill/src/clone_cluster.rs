//! `pagemill clone --cluster`: a whole stopped cluster copied to another directory.
//!
//! The source is kept from being started while it is copied, where this process may write to it; a read-only source
//! is looked at again at the end. Nothing of the source is changed.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use pagemill_cluster::{Cluster, ClusterLock, Error as ClusterError, OpenOptions};
use pagemill_engine::clone::cluster::{TablespaceMapping, UnfinishedCopy};
use pagemill_engine::{
    ClusterCopy, CopyClusterOptions, CopyClusterSummary, CopyStrategy, Progress,
};
use pagemill_io::{CopyMethod, ErrorKind, Storage};

use crate::changing::refuse_url;
use crate::clone_arguments::{CloneArguments, StrategyChoice};
use crate::failure::{Completion, UsageError, say};
use crate::progress::{ProgressDisplay, is_wanted};
use crate::session::stats::{self, CopyWork, Work};
use crate::standard_output::print;
use crate::text_table::{Align, pretty_size, table};

/// Threads that copy unless told otherwise, at most: more wait for the device.
const MOST_DEFAULT_JOBS: usize = 4;

/// What the flags of `clone` mean for a cluster.
struct CloneCluster<'a> {
    arguments: &'a CloneArguments,
    source: &'a Path,
    destination: &'a Path,
}

pub(crate) fn run(arguments: &CloneArguments) -> Result<Completion> {
    let start = Instant::now();
    let storage = Storage::real();
    let [destination] = &arguments.targets[..] else {
        let reason = "with --cluster there is one directory to copy to: name one TARGET";
        return Err(UsageError(reason.into()).into());
    };
    let (source, destination) = (Path::new(&arguments.source), Path::new(destination));
    let clone = CloneCluster { arguments, source, destination };
    [source, destination].into_iter().try_for_each(refuse_url)?;
    let cloned = clone_with(&clone, &storage);
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
    Ok(Completion::Done)
}

/// Nothing is returned of what would only be done.
fn clone_with(clone: &CloneCluster<'_>, storage: &Storage) -> Result<Option<CopyWork>> {
    let arguments = clone.arguments;
    let options = options(clone)?;
    let progress = options.progress.clone();
    // Held until the copy is whole.
    let (cluster, _lock) = open(clone, storage)?;
    if !arguments.dry_run
        && let Some(unfinished) = UnfinishedCopy::find(storage, clone.destination)?
    {
        remove_unfinished(storage, unfinished)?;
    }
    let copy = ClusterCopy::plan(cluster, options)?;
    for what in copy.left_out() {
        say(format!("left out: {what}"));
    }
    if arguments.dry_run {
        print(description(&copy))?;
        return Ok(None);
    }
    // Without it an interruption ends the process, and what was made stays.
    let _ = pagemill_io::watch_interrupts();
    let pages = is_wanted(arguments.progress).then(|| copy.pages());
    let display = ProgressDisplay::start_bytes(pages, &progress);
    let summary = copy.run()?;
    drop(display);
    Ok(Some(work(&copy, summary)))
}

/// Removes a copy that an earlier run began and did not end, and says where it was.
fn remove_unfinished(storage: &Storage, unfinished: UnfinishedCopy) -> Result<()> {
    let what = match unfinished.is_whole() {
        true => "an earlier copy is whole, and its mark is removed",
        false => "an earlier copy was cut short, and is removed",
    };
    for directory in unfinished.directories(storage)? {
        say(format!("{}: {what}", directory.display()));
    }
    Ok(unfinished.remove(storage)?)
}

fn options(clone: &CloneCluster<'_>) -> Result<CopyClusterOptions> {
    let arguments = clone.arguments;
    let mappings = arguments.tablespace_mapping.iter().map(|given| {
        TablespaceMapping::parse(given)
            .map_err(|error| UsageError(format!("--tablespace-mapping {error}")))
    });
    let jobs =
        || std::thread::available_parallelism().map_or(1, usize::from).min(MOST_DEFAULT_JOBS);
    Ok(CopyClusterOptions {
        destination: clone.destination.to_owned(),
        mappings: mappings.collect::<Result<_, _>>()?,
        strategy: match arguments.strategy {
            StrategyChoice::Auto => CopyStrategy::Auto,
            StrategyChoice::FileCopy => CopyStrategy::FileCopy,
            StrategyChoice::Reflink => CopyStrategy::Reflink,
            StrategyChoice::WalLog => {
                let reason =
                    "a whole cluster has no WAL to log its copy in: use --strategy file_copy";
                return Err(UsageError(reason.into()).into());
            }
        },
        verify: arguments.verify,
        jobs: arguments.jobs.map_or_else(jobs, usize::from),
        progress: Progress::default(),
        interrupted: pagemill_io::interrupted,
    })
}

/// Opens the source, and keeps servers from starting on it where that can be done.
fn open(clone: &CloneCluster<'_>, storage: &Storage) -> Result<(Cluster, Option<ClusterLock>)> {
    let (source, options) = (clone.source, OpenOptions::default());
    let lock = if clone.arguments.dry_run { None } else { lock(storage, source)? };
    let cluster = match &lock {
        Some(lock) => Cluster::open_locked(storage.clone(), lock, options),
        None => Cluster::open(storage.clone(), source, options),
    };
    Ok((cluster?, lock))
}

fn lock(storage: &Storage, source: &Path) -> Result<Option<ClusterLock>> {
    match ClusterLock::take(storage, source) {
        Ok(lock) => Ok(Some(lock)),
        Err(ClusterError::Io(error))
            if matches!(error.kind(), ErrorKind::Permission | ErrorKind::ReadOnly) =>
        {
            Ok(None)
        }
        Err(error) => Err(error.into()),
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
    let row = |(part, method): (&pagemill_engine::clone::cluster::Part, CopyMethod)| {
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
