//! Faults: a call of a change fails, and the program goes on to its end, which it has to tell rightly.
//!
//! | it says | then |
//! | --- | --- |
//! | it is done | all of it is there |
//! | that a server's start finishes the change | a server finds all of it |
//! | that it is not known whether the change is made | a server finds all of it or nothing |
//! | anything else | the files are as before, at once or after the next change |
//!
//! Invariant: nothing but the fault differs from a change that succeeds, up to the call that fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use pagemill_cluster::Error as ClusterError;
use pagemill_engine::Error as EngineError;
use pagemill_sim::WriteFault;

use crate::case::{Case, Event};
use crate::postmaster::name_a_dead_process;
use crate::recording::Recording;
use crate::trial::{ImageState, Seen, Trial};

/// How a change with a fault ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// The fault was got round.
    Done,
    /// Nothing has changed.
    AsBefore,
    /// A server's start finishes it.
    Unfinished,
    /// A server's start decides.
    Undecided,
}

/// Lets a call fail, and judges what follows.
///
/// # Errors
/// With the command that repeats it.
pub fn judge_fault(
    trial: &impl Trial,
    (call, fault): (usize, WriteFault),
    server: bool,
) -> Result<Ended> {
    let recording = trial.record(Some((call, fault)))?;
    let (major, kind) = (trial.install().major, trial.kind());
    let case = Case { major, kind, call, event: Event::Fault(fault), server };
    judge_recording(trial, &recording, server).with_context(|| {
        let said = recording.outcome.as_ref().err().map(ToString::to_string).unwrap_or_default();
        format!("{case}\n  {}\n  {said}", recording.describe(call))
    })
}

fn judge_recording(trial: &impl Trial, recording: &Recording, server: bool) -> Result<Ended> {
    let data = recording.data();
    name_a_dead_process(&data)?;
    let found = trial.read(&data)?;
    let ended = match &recording.outcome {
        Ok(()) => {
            ensure!(found == ImageState::Clean(Seen::New), "done, and {found:?}");
            Ended::Done
        }
        Err(EngineError::Cluster(ClusterError::Unfinished { .. })) => {
            ensure!(found != ImageState::Clean(Seen::Old), "unfinished, and {found:?}");
            Ended::Unfinished
        }
        Err(EngineError::Cluster(ClusterError::Undecided { .. })) => Ended::Undecided,
        Err(_) => {
            ensure!(found == ImageState::Clean(Seen::Old), "an error, and {found:?}");
            check_as_before(&trial.original(), &data)?;
            Ended::AsBefore
        }
    };
    match found {
        _ if server => check_served(trial, &data, ended, found)?,
        ImageState::Clean(seen) => trial.again(&data, seen)?,
        ImageState::InProduction => {}
    }
    Ok(ended)
}

fn check_served(trial: &impl Trial, data: &Path, ended: Ended, found: ImageState) -> Result<()> {
    let root = data.parent().context("a data directory without a parent")?;
    let seen = trial.serve(root)?;
    match (ended, found) {
        (_, ImageState::Clean(read)) if read != seen => {
            bail!("the reader had {read:?}, the server {seen:?}")
        }
        (Ended::Unfinished, _) => {
            ensure!(seen == Seen::New, "unfinished, and the server has {seen:?}")
        }
        _ => {}
    }
    Ok(())
}

/// Everything is as it was, but for WAL behind the checkpoint and files that the next change removes.
fn check_as_before(before: &Path, after: &Path) -> Result<()> {
    let (before, after) = (contents(before)?, contents(after)?);
    for (path, bytes) in &before {
        let now = after.get(path).with_context(|| format!("{} is gone", path.display()))?;
        ensure!(now == bytes, "{} has changed", path.display());
    }
    Ok(())
}

/// The files of a data directory that count.
fn contents(data: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![data.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let within = path.strip_prefix(data)?;
            if within == Path::new("pg_wal") || within == Path::new("postmaster.pid") {
                continue;
            }
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.insert(within.to_owned(), fs::read(&path)?);
            }
        }
    }
    Ok(found)
}
