//! `pagemill clone`: databases from a template, in a stopped cluster.
//!
//! The right to change the cluster is taken before anything of it is read, kept over all targets, and given back at the
//! end. Each target has its own commit: when one fails, those before it are there, and it is said so.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, anyhow};
use pagemill_cli::sizes::default_jobs;
use pagemill_cluster::change::NewDatabase;
use pagemill_cluster::{ClusterLock, Database, OpenOptions};
use pagemill_engine::Progress;
use pagemill_engine::clone::database::{
    CloneOptions, ClonePlan, CloneRequest, CloneSummary, clone_database,
};
use pagemill_engine::encoding::{encoding_name, stored_text};
use pagemill_format::BLOCK_SIZE;
use pagemill_io::{Storage, check_interrupt};

use crate::changing::{data_directory, database_row, open, open_as_it_is, take_lock, undone};
use crate::clone_arguments::CloneArguments;
use crate::clone_cluster;
use crate::failure::{Completion, UsageError, complain, say};
use crate::progress::{ProgressDisplay, is_wanted};
use crate::session::stats::{self, Work};
use crate::standard_output::print;

/// Bytes of a name at most (NAMEDATALEN without the zero).
const MOST_NAME_BYTES: usize = 63;

pub(crate) fn run(arguments: &CloneArguments) -> Result<Completion> {
    if arguments.cluster {
        return clone_cluster::run(arguments);
    }
    let start = Instant::now();
    let storage = Storage::real();
    let mut total = CloneSummary::default();
    let cloned = clone_all(arguments, &storage, &mut total);
    if let Some(form) = arguments.stats {
        let work =
            Work { pages: total.blocks, write_method: total.write_method, ..Work::default() };
        stats::print(form, start.elapsed(), &storage, &work);
    }
    cloned.map(|()| Completion::Done)
}

fn clone_all(
    arguments: &CloneArguments,
    storage: &Storage,
    total: &mut CloneSummary,
) -> Result<()> {
    let directory = data_directory(arguments.pgdata.as_deref())?;
    let targets = targets(arguments)?;
    let lock = take_lock(storage, directory)?;
    for (done, target) in targets.into_iter().enumerate() {
        let cloned = clone_one(arguments, storage, &lock, target);
        if cloned.is_err() && done > 0 {
            complain(format!("\"{target}\" is not made; those named before it are there"));
        }
        if let Some(summary) = cloned? {
            add(total, &summary);
        }
    }
    Ok(())
}

fn add(total: &mut CloneSummary, one: &CloneSummary) {
    total.relations += one.relations;
    total.files += one.files;
    total.blocks += one.blocks;
    total.wal_bytes += one.wal_bytes;
    total.write_method = one.write_method.or(total.write_method);
}

/// Makes one database; nothing on a dry run.
fn clone_one(
    arguments: &CloneArguments,
    storage: &Storage,
    lock: &Arc<ClusterLock>,
    target: &str,
) -> Result<Option<CloneSummary>> {
    let start = Instant::now();
    let verify_checksums = !arguments.no_verify_checksums;
    let options = OpenOptions { verify_checksums, ..OpenOptions::default() };
    // Opened anew for each: the one before changed it.
    // What a killed run left would count as space that is taken, and is removed here.
    let open = if arguments.dry_run { open_as_it_is } else { open };
    let cluster = open(storage, lock, options)?;
    check_interrupt(cluster.path())
        .map_err(|error| undone(error.into(), &cluster, &format!("\"{target}\" was not made")))?;
    let template = Database::open(&cluster, database_row(&cluster, name(&arguments.source)?)?)?;
    let new = new_database(arguments, &template, target)?;
    let plan = ClonePlan::new(&template, new.tablespace, arguments.strategy.asked())?;
    if arguments.dry_run {
        pagemill_cluster::change::check_new_database(&template, &new)?;
        tell_plan(target, &plan)?;
        return Ok(None);
    }
    if arguments.verbose {
        say(format!("\"{target}\" by {}: {}", plan.strategy, plan.reason));
    }
    let progress = Progress::default();
    let pages = is_wanted(arguments.progress).then_some(plan.bytes / BLOCK_SIZE as u64);
    let _display = ProgressDisplay::start_bytes(pages.filter(|pages| *pages > 0), &progress);
    let options = CloneOptions {
        verify_checksums,
        verify: arguments.verify,
        compression: match arguments.wal_compression {
            Some(choice) => choice.compression(),
            None => template.wal_compression()?,
        },
        writing: arguments.writing.settings()?,
        jobs: arguments.jobs.map_or_else(default_jobs, usize::from),
        progress,
    };
    let request = CloneRequest { new, plan: &plan, options: &options };
    let made = clone_database(lock.clone(), &template, request);
    let nothing = || format!("\"{target}\" was not made");
    let summary = made.map_err(|error| undone(error.into(), &cluster, &nothing()))?;
    if arguments.verbose {
        tell_summary(target, &summary, start);
    }
    Ok(Some(summary))
}

fn tell_plan(target: &str, plan: &ClonePlan) -> Result<()> {
    print(format!(
        "\"{target}\" by {} ({}): {} bytes to write, {} bytes of WAL\n",
        plan.strategy, plan.reason, plan.bytes, plan.wal_bytes
    ))
}

fn tell_summary(target: &str, summary: &CloneSummary, start: Instant) {
    let shared = summary.shared_bytes.map_or(String::new(), |b| format!(", {b} bytes shared"));
    say(format!(
        "\"{target}\": {} files with {} blocks{shared}, {} bytes of WAL, {:.3} s",
        summary.files,
        summary.blocks,
        summary.wal_bytes,
        start.elapsed().as_secs_f64()
    ));
}

/// The names, unless something can be said against them before anything is opened.
fn targets(arguments: &CloneArguments) -> Result<Vec<&str>> {
    let mut targets = Vec::new();
    for target in &arguments.targets {
        let target = name(target)?;
        let reason = if target.is_empty() {
            "a database cannot have an empty name".to_owned()
        } else if targets.contains(&target) {
            format!("\"{target}\" is named twice")
        } else if target.contains(['\n', '\r']) {
            "the name of a database cannot have an end of line in it".to_owned()
        } else {
            targets.push(target);
            continue;
        };
        return Err(UsageError(reason).into());
    }
    Ok(targets)
}

fn name(given: &OsStr) -> Result<&str> {
    given.to_str().ok_or_else(|| {
        UsageError(format!("{}: the name of a database has to be UTF-8", given.display())).into()
    })
}

fn new_database(
    arguments: &CloneArguments,
    template: &Database,
    target: &str,
) -> Result<NewDatabase> {
    let cluster = template.cluster();
    Ok(NewDatabase {
        name: stored_name(template, target)?,
        owner: match &arguments.owner {
            Some(role) => cluster.role(role)?,
            None => cluster.first_superuser()?,
        },
        tablespace: match &arguments.tablespace {
            Some(name) => Some(cluster.tablespace(name)?),
            None => None,
        },
        is_template: arguments.is_template,
        allow_connections: arguments.allow_connections,
        connection_limit: arguments.connection_limit,
    })
}

/// A name as a session in the template would store it.
fn stored_name(template: &Database, name: &str) -> Result<Box<[u8]>> {
    let encoding = template.row().encoding;
    let stored = stored_text(encoding, name.as_bytes()).ok_or_else(|| {
        anyhow!(
            "the name has characters that the encoding of \"{}\", {}, does not have",
            String::from_utf8_lossy(&template.row().name),
            encoding_name(encoding).unwrap_or("an unknown one")
        )
    })?;
    if stored.len() > MOST_NAME_BYTES {
        let reason = format!(
            "the name has {} bytes, and a name can have {MOST_NAME_BYTES}: choose a shorter one",
            stored.len()
        );
        return Err(UsageError(reason).into());
    }
    Ok(stored.into())
}
