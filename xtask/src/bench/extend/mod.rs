//! `cargo xtask bench extend`: how files grow, how fast they are durable, and in how many pieces they lie.
//!
//! The table is that of "extending relations more efficiently" (pgsql-hackers, 1 May 2012): n blocks at a time, the
//! time until the file has its size and that of the `fdatasync` at its end, for written zeros and for `fallocate`,
//! and for this project's extension beside them. Then what the table cannot tell: filling the file as well, durable
//! at the end, against fio; and the pieces of the file against `dd bs=1M`, with one writer and with four.
//!
//! Invariants: contestants run in turns, and each turn's file is removed before the next begins; the device holds
//! everything when a time is taken.

mod contestants;
mod options;
mod report;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::{artifact, environment, settling};
use crate::workspace;
use contestants::{Contestant, Measured};
pub(super) use options::Options;

/// A contestant with what its turns gave.
struct ContestantResult {
    contestant: Contestant,
    turns: Vec<Measured>,
    /// Why it did not run, or did not run to its end.
    failure: Option<String>,
}

/// Runs the benchmark with these options; false when a run failed. A missed target is a result like others.
pub(super) fn run(options: &Options) -> Result<bool> {
    let root = workspace::root();
    let program = program(&root)?;
    let directory = options.run.directory.clone().unwrap_or_else(|| beside(&root));
    std::fs::create_dir_all(&directory)?;
    let mut environment = environment::of_directory(&directory, None, None, &root);
    environment.push(settling::told());
    let outcomes = measure(options, &program, &directory);
    let page = report::markdown(options, &environment, &outcomes);
    println!("\n{page}");
    let place = if options.run.quick { directory } else { root.join("runs") };
    let numbers = report::raw(options, &environment, &outcomes);
    for path in artifact::keep(&place, &options.run.name, &environment, &page, &numbers)? {
        println!("kept: {}", path.display());
    }
    Ok(outcomes.iter().all(|outcome| outcome.failure.is_none()))
}

/// All contestants in turns.
fn measure(options: &Options, program: &Path, directory: &Path) -> Vec<ContestantResult> {
    let contestants = contestants::all();
    let begin = |contestant| ContestantResult { contestant, turns: Vec::new(), failure: None };
    let mut outcomes: Vec<ContestantResult> = contestants.into_iter().map(begin).collect();
    for turn in 1..=options.run.repetitions {
        for outcome in outcomes.iter_mut().filter(|outcome| outcome.failure.is_none()) {
            eprintln!("turn {turn}: {}", outcome.contestant.name());
            match outcome.contestant.run(program, directory, options.blocks()) {
                Ok(measured) => outcome.turns.push(measured),
                Err(error) => outcome.failure = Some(format!("{error:#}")),
            }
        }
    }
    outcomes
}

/// A release build of the program that extends and fills.
fn program(root: &Path) -> Result<PathBuf> {
    eprintln!("building extend_fork, release ...");
    let mut command = workspace::cargo();
    command.args(["build", "--release", "--quiet", "-p", "pagemill-stream"]);
    command.args(["--example", "extend_fork"]).current_dir(root);
    if !command.status()?.success() {
        bail!("failed: {}", super::shown(&command));
    }
    Ok(workspace::target_directory(root).join("release/examples/extend_fork"))
}

fn beside(root: &Path) -> PathBuf {
    workspace::target_directory(root).join("bench-extend")
}
