//! `cargo xtask bench device`: the cells of the lab's experiment `device` held against fio and pg_test_fsync.
//!
//! Both sides have one file, written in full, on the same device, and take turns; who begins changes with each round. So a
//! ratio that is far from one is a difference of the two programs, and not of files, caches or hours.
//!
//! Invariants: before each turn everything is written back and free memory is filled; files are removed at the end.

mod options;
mod report;
mod rows;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::{artifact, environment};
use crate::workspace;
pub(super) use options::Options;
use rows::{Row, Side};

/// A row with what its turns gave: bytes, or operations, a second.
struct RowResult {
    row: Row,
    ours: Vec<f64>,
    others: Vec<f64>,
    failure: Option<String>,
}

/// Runs the benchmark with these options; false when a turn failed.
pub(super) fn run(options: &Options) -> Result<bool> {
    let root = workspace::root();
    let program = program(&root)?;
    let beside = || workspace::target_directory(&root).join("bench-device");
    let directory = options.run.directory.clone().unwrap_or_else(beside);
    std::fs::create_dir_all(&directory)?;
    let mut environment = environment::of_directory(&directory, None, None, &root);
    environment.push(("fio", rows::fio_version()?));
    let outcomes = measure(options, &program, &directory)?;
    let page = report::markdown(options, &environment, &outcomes);
    println!("\n{page}");
    let place = if options.run.quick { directory } else { root.join("runs") };
    let numbers = report::raw(options, &environment, &outcomes);
    for path in artifact::keep(&place, &options.run.name, &environment, &page, &numbers)? {
        println!("kept: {}", path.display());
    }
    Ok(outcomes.iter().all(|outcome| outcome.failure.is_none()))
}

/// All rows, round after round.
fn measure(options: &Options, program: &Path, directory: &Path) -> Result<Vec<RowResult>> {
    let files = rows::BenchFiles::new(program, directory, options.mib, options.seconds)?;
    let begin = |row| RowResult { row, ours: Vec::new(), others: Vec::new(), failure: None };
    let mut outcomes: Vec<RowResult> =
        rows::selected(&options.selected)?.into_iter().map(begin).collect();
    for round in 1..=options.run.repetitions {
        let others_first = round % 2 == 0;
        for outcome in outcomes.iter_mut().filter(|outcome| outcome.failure.is_none()) {
            eprintln!("round {round}: {}", outcome.row.name);
            let mut sides = [Side::Ours, Side::Other];
            if others_first {
                sides.reverse();
            }
            for side in sides {
                match (files.turn(&outcome.row, side, round), side) {
                    (Ok(figure), Side::Ours) => outcome.ours.push(figure),
                    (Ok(figure), Side::Other) => outcome.others.push(figure),
                    (Err(error), _) => outcome.failure = Some(format!("{error:#}")),
                }
            }
        }
    }
    Ok(outcomes)
}

/// A release build of the program that takes one turn of a cell.
fn program(root: &Path) -> Result<PathBuf> {
    eprintln!("building device_cell, release ...");
    let mut command = workspace::cargo();
    command.args(["build", "--release", "--quiet", "-p", "pagemill-lab"]);
    command.args(["--example", "device_cell"]).current_dir(root);
    if !command.status()?.success() {
        bail!("failed: {}", super::shown(&command));
    }
    Ok(workspace::target_directory(root).join("release/examples/device_cell"))
}
