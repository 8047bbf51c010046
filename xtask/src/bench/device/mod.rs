//! `cargo xtask bench device`: the cells of the lab's experiment `device` held against fio and pg_test_fsync.
//!
//! Both sides have one file, written in full, on the same device, and take turns; who begins changes with each round. So a
//! ratio that is far from one is a difference of the two programs, and not of files, caches or hours.
//!
//! Invariants: before each turn everything is written back and free memory is filled; files are removed at the end.

mod report;
mod rows;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::{environment, kept};
use crate::workspace;
use rows::{Row, Side};

const HELP: &str = "usage: cargo xtask bench device [OPTION]...

Holds the cells of the lab's experiment `device` against fio and pg_test_fsync, in turns, on one file. Keeps the result
under runs/.

options:
  --size-mib N      size of the file (1024)
  --seconds N       how long a turn lasts that does not end with the file (2)
  --repetitions N   rounds (5)
  --quick           64 MiB, one second, one round, result not kept under runs/
  --dir DIR         where the file lies (target/bench-device)
  --name NAME       name of the result (device)";

/// What to do, in full.
#[derive(Debug, Clone, PartialEq)]
struct Options {
    mib: u64,
    seconds: u64,
    repetitions: usize,
    quick: bool,
    directory: Option<PathBuf>,
    name: String,
}

impl Options {
    /// The options, or none when help was asked for and printed.
    fn parse(arguments: &[String]) -> Result<Option<Self>> {
        let quick = arguments.iter().any(|argument| argument == "--quick");
        let (mib, seconds, repetitions) = if quick { (64, 1, 1) } else { (1024, 2, 5) };
        let (directory, name) = (None, "device".to_owned());
        let mut options = Self { mib, seconds, repetitions, quick, directory, name };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} wants a value"));
            match word.as_str() {
                "--help" => {
                    println!("{HELP}");
                    return Ok(None);
                }
                "--quick" => {}
                "--size-mib" => options.mib = value()?.parse()?,
                "--seconds" => options.seconds = value()?.parse()?,
                "--repetitions" => options.repetitions = value()?.parse()?,
                "--dir" => options.directory = Some(value()?.into()),
                "--name" => options.name.clone_from(value()?),
                _ => bail!("unknown option {word}; see --help"),
            }
        }
        ensure!(options.repetitions > 0 && options.seconds > 0, "at least 1 round of 1 second");
        ensure!(options.mib > 0, "--size-mib: at least 1");
        Ok(Some(options))
    }
}

/// A row with what its turns gave: bytes, or operations, a second.
struct Outcome {
    row: Row,
    ours: Vec<f64>,
    others: Vec<f64>,
    failure: Option<String>,
}

/// Runs the benchmark with these arguments; false when a turn failed.
pub(super) fn run(arguments: &[String]) -> Result<bool> {
    let Some(options) = Options::parse(arguments)? else { return Ok(true) };
    let root = workspace::root();
    let program = program(&root)?;
    let beside = || workspace::target_directory(&root).join("bench-device");
    let directory = options.directory.clone().unwrap_or_else(beside);
    std::fs::create_dir_all(&directory)?;
    let mut environment = environment::of_directory(&directory, None, None, &root);
    environment.push(("fio", rows::fio_version()?));
    let outcomes = measure(&options, &program, &directory)?;
    let page = report::markdown(&options, &environment, &outcomes);
    println!("\n{page}");
    let place = if options.quick { directory } else { root.join("runs") };
    let numbers = report::raw(&options, &environment, &outcomes);
    for path in kept::keep(&place, &options.name, &environment, &page, &numbers)? {
        println!("kept: {}", path.display());
    }
    Ok(outcomes.iter().all(|outcome| outcome.failure.is_none()))
}

/// All rows, round after round.
fn measure(options: &Options, program: &Path, directory: &Path) -> Result<Vec<Outcome>> {
    let ground = rows::Ground::new(program, directory, options.mib, options.seconds)?;
    let begin = |row| Outcome { row, ours: Vec::new(), others: Vec::new(), failure: None };
    let mut outcomes: Vec<Outcome> = rows::all().into_iter().map(begin).collect();
    for round in 1..=options.repetitions {
        let others_first = round % 2 == 0;
        for outcome in outcomes.iter_mut().filter(|outcome| outcome.failure.is_none()) {
            eprintln!("round {round}: {}", outcome.row.name);
            let mut sides = [Side::Ours, Side::Other];
            if others_first {
                sides.reverse();
            }
            for side in sides {
                match (ground.turn(&outcome.row, side, round), side) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_makes_it_small_and_wrong_usage_is_refused() {
        let parse = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Options::parse(&words)
        };
        let quick = parse("--quick --seconds 3").unwrap().unwrap();
        assert_eq!((quick.mib, quick.seconds, quick.repetitions), (64, 3, 1));
        for line in ["--seconds", "--repetitions 0", "--size-mib 0", "--what"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
