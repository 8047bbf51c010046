//! `cargo xtask ci`: everything a change must pass, in one command, the same here as on a machine that
//! watches the repository.
//!
//! Every step runs even after one has failed, so that one run shows all that is wrong. The count of
//! tests at the end is summed from what the test programs print, and is left out when one of them
//! did not live to print its own.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::{test_programs, tidy, workspace};

/// What became of one step.
struct StepResult {
    name: String,
    passed: bool,
    took: Duration,
}

/// One thing that a change must pass, in the order in which all are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    Fmt,
    Clippy,
    Fuzz,
    Tidy,
    Test,
    Sql,
    Methods,
    Lean,
    Loom,
    Doc,
}

impl Step {
    fn name(self) -> String {
        let value = self.to_possible_value().expect("a step has a name"); // infallible: none is hidden
        value.get_name().to_owned()
    }

    fn run(self, root: &Path, tally: &mut Tally) -> Result<bool> {
        match self {
            Self::Fmt => quiet(root, &["fmt", "--all", "--check"]),
            Self::Clippy => {
                let all =
                    ["clippy", "--workspace", "--all-targets", RELEASED, "--", "-D", "warnings"];
                quiet(root, &all)
            }
            Self::Fuzz => fuzz_targets(root),
            Self::Tidy => tidy::run(),
            Self::Test => test(root, tally),
            Self::Sql => sql(root, tally),
            Self::Methods => methods(root, tally),
            Self::Lean => lean(root, tally),
            Self::Loom => loom(root),
            Self::Doc => documentation(root),
        }
    }
}

/// Runs steps, all of them if none is named, and says whether all passed.
pub(crate) fn run(named: &[Step]) -> Result<bool> {
    let root = workspace::root();
    let mut tally = Tally::default();
    let steps = if named.is_empty() { Step::value_variants() } else { named };
    let outcomes: Vec<StepResult> =
        steps.iter().map(|step| timed(*step, &root, &mut tally)).collect::<Result<_>>()?;
    println!();
    for outcome in &outcomes {
        let word = if outcome.passed { "ok" } else { "FAILED" };
        println!("{:<8}{:>8.1} s  {word}", outcome.name, outcome.took.as_secs_f64());
    }
    println!("{}", tally.summary());
    Ok(outcomes.iter().all(|outcome| outcome.passed))
}

/// What is released has every feature, so this is what is checked and tested.
const RELEASED: &str = "--features=pagemill/arrow,pagemill/remote";

/// The same of the programs that answer SQL.
const SQL_RELEASED: &str = "--features=pagemill-sql/ballista,pagemill-serve/ballista";

/// What clippy is told where cargo does not tell it: warnings are errors.
const DENY_WARNINGS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

fn timed(step: Step, root: &Path, tally: &mut Tally) -> Result<StepResult> {
    let name = step.name();
    println!("== {name}");
    let start = Instant::now();
    let passed = step.run(root, tally).with_context(|| name.clone())?;
    Ok(StepResult { name, passed, took: start.elapsed() })
}

fn quiet(root: &Path, arguments: &[&str]) -> Result<bool> {
    Ok(workspace::cargo().args(arguments).current_dir(root).status()?.success())
}

/// The fuzz targets are a workspace of their own, so nothing else notices when a changed function leaves one
/// behind. They are checked and not run, which needs neither a nightly toolchain nor a C++ compiler.
fn fuzz_targets(root: &Path) -> Result<bool> {
    let mut command = workspace::cargo();
    command.args(["clippy", "--locked", "--bins", "--no-default-features"]);
    command.arg("--target-dir").arg(workspace::target_directory(root));
    Ok(command.args(["--", "-D", "warnings"]).current_dir(root.join("fuzz")).status()?.success())
}

/// The program that answers SQL is a workspace of its own too, as what it needs is many times as large as all the rest. Its crates are
/// checked by clippy as they are built for the tests: for a check alone all that they need would have to be checked before.
fn sql(root: &Path, tally: &mut Tally) -> Result<bool> {
    let place = root.join("crates/pagemill-sql");
    let target = workspace::target_directory(root).join("sql");
    let cargo = |arguments: &[&str]| {
        let mut command = workspace::cargo();
        command.args(arguments).arg("--locked").arg("--target-dir").arg(&target);
        command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver").env("CLIPPY_ARGS", DENY_WARNINGS);
        command.current_dir(&place);
        command
    };
    let mut passed =
        workspace::cargo().args(["fmt", "--check"]).current_dir(&place).status()?.success();
    passed &= run_programs(&mut cargo(&["test", SQL_RELEASED]), tally)?;
    passed &= run_counted(&mut cargo(&["test", "--doc", SQL_RELEASED]), tally)?;
    // The same without what asks for it. Not built, as what it needs would have to be built anew with fewer features.
    passed &= cargo(&["check", "--package=pagemill-sql"]).status()?.success();
    Ok(passed)
}

fn documentation(root: &Path) -> Result<bool> {
    let mut command = workspace::cargo();
    command.args(["doc", "--workspace", "--no-deps", "--document-private-items", RELEASED]);
    Ok(command.env("RUSTDOCFLAGS", "-D warnings").current_dir(root).status()?.success())
}

/// The tests that try every order in which threads can meet. Its own directory, because the flag
/// makes everything else be built anew.
fn loom(root: &Path) -> Result<bool> {
    let mut command = workspace::cargo();
    command.args(["test", "--package", "pagemill-stream", "--release", "--lib", "loom_"]);
    command.arg("--target-dir").arg(workspace::target_directory(root).join("loom"));
    Ok(command.env("RUSTFLAGS", "--cfg loom").current_dir(root).status()?.success())
}

fn test(root: &Path, tally: &mut Tally) -> Result<bool> {
    let cargo = |kind| {
        let mut command = workspace::cargo();
        command.args(["test", "--workspace", kind, RELEASED]).current_dir(root);
        command
    };
    Ok(run_programs(&mut cargo("--tests"), tally)? & run_counted(&mut cargo("--doc"), tally)?)
}

fn run_programs(command: &mut Command, tally: &mut Tally) -> Result<bool> {
    test_programs::run(command, |line| tally.read(line))
}

/// The command as it is built unless features are asked for: without warnings, and with an answer to what it lacks.
fn lean(root: &Path, tally: &mut Tally) -> Result<bool> {
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    let mut command = workspace::cargo();
    command
        .args(["test", "--workspace", "--test=arrow_missing", "--test=remote_missing"])
        .current_dir(root);
    Ok(quiet(root, &clippy)? & run_counted(&mut command, tally)?)
}

/// Every way to read that the suite is run over once more, on one version of PostgreSQL: the rows must not
/// depend on it. The default, `auto`, is what the step before ran.
const WAYS_TO_READ: [&str; 7] = [
    "--io-method seek",
    "--io-method pread",
    "--io-method preadv",
    "--io-method mmap",
    "--io-method worker",
    "--io-method io_uring",
    "--direct",
];

fn methods(root: &Path, tally: &mut Tally) -> Result<bool> {
    let mut passed = true;
    for flags in WAYS_TO_READ {
        println!("== methods: {flags}");
        let mut command = workspace::cargo();
        // Of the whole workspace, for the features it was built with: of one package, all would be built anew.
        command.args(["test", "--workspace", RELEASED]).current_dir(root);
        command.args(
            ["oracle", "damage", "export", "value_types"].map(|suite| format!("--test={suite}")),
        );
        command.env("PAGEMILL_TEST_READ", flags).env("PAGEMILL_TEST_MAJORS", "15");
        passed &= run_programs(&mut command, tally)?;
    }
    Ok(passed)
}

/// Tests that run at a time, for each processor: much of their time they wait for servers and disks.
const TESTS_PER_PROCESSOR: usize = 2;

/// Runs a command, passing its standard output on line by line, and counts the tests in it.
fn run_counted(command: &mut Command, tally: &mut Tally) -> Result<bool> {
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        command.env("RUST_TEST_THREADS", (TESTS_PER_PROCESSOR * processors).to_string());
    }
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("no pipe to the tests")?;
    let mut reader = BufReader::new(output);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        std::io::stdout().write_all(&line)?;
        tally.read(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(child.wait()?.success())
}

/// The tests counted so far.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    begun: usize,
    ended: usize,
    passed: usize,
    failed: usize,
    ignored: usize,
}

impl Tally {
    /// Reads one line of a test program: `running N tests`, or
    /// `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
    fn read(&mut self, line: &str) {
        let line = line.trim();
        if line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test")) {
            self.begun += 1;
        }
        let Some(result) = line.strip_prefix("test result: ") else { return };
        self.ended += 1;
        for part in result.split([';', '.']) {
            let mut words = part.split_whitespace();
            let (Some(count), Some(word)) = (words.next(), words.next()) else { continue };
            let Ok(count) = count.parse::<usize>() else { continue };
            match word {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }

    fn summary(&self) -> String {
        if self.ended == 0 {
            return "no test ran".to_owned();
        }
        if self.begun != self.ended {
            let lost = self.begun.abs_diff(self.ended);
            return format!("tests not counted: {lost} test programs ended without a result");
        }
        let Self { passed, failed, ignored, .. } = self;
        format!("{passed} passed, {failed} failed, {ignored} ignored")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        lines.iter().for_each(|line| tally.read(line));
        tally
    }

    #[test]
    fn counts_of_several_programs_are_summed() {
        let counted = tally(&[
            "running 4 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "running 1 test",
            "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        ]);
        assert_eq!(counted.summary(), "3 passed, 1 failed, 1 ignored");
    }

    #[test]
    fn a_program_that_died_leaves_the_count_unsaid() {
        let counted = tally(&[
            "running 4 tests",
            "running 0 tests",
            "test result: ok. 0 passed; 0 failed; 0 ignored",
        ]);
        assert!(counted.summary().contains("1 test programs"), "{}", counted.summary());
    }

    #[test]
    fn nothing_run_is_said_so() {
        assert_eq!(tally(&["error: could not compile"]).summary(), "no test ran");
    }
}
