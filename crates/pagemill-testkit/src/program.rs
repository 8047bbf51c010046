//! The program under test, run on a prepared cluster of each installed version.
//!
//! The kit is told the program's path by the test, because only the package that builds it knows it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

use crate::install::PgInstall;
use crate::prepared::Prepared;
use crate::requests::Request;
use crate::versions::each_of;

/// Runs a check on the prepared cluster of every installed version, and fails with all that failed.
///
/// # Panics
/// When the required version is not installed, or the check fails.
pub fn every_version(check: impl Fn(&Prepared) -> Result<()> + Sync) {
    each_of(&PgInstall::all(), |install| check(&Prepared::shared(install)?));
}

/// Runs a check as [`every_version`] does, on two of them: see [`PgInstall::two`].
///
/// # Panics
/// As it does.
pub fn two_versions(check: impl Fn(&Prepared) -> Result<()> + Sync) {
    each_of(&PgInstall::two(), |install| check(&Prepared::shared(install)?));
}

/// The signals that ask a program for its end, as `kill` spells them, with their numbers. One that is ignored here is left out,
/// and that is said, since programs that the tests start ignore it, too: SIGHUP under `nohup`, SIGINT in the background of a
/// script.
pub fn end_signals() -> Vec<(&'static str, i32)> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let mut signals = vec![("-INT", 2), ("-TERM", 15), ("-HUP", 1)];
    signals.retain(|(name, number)| {
        let is_ignored = ignored >> (number - 1) & 1 != 0;
        if is_ignored {
            eprintln!("SKIPPED: SIG{}, which is ignored here", &name[1..]);
        }
        !is_ignored
    });
    signals
}

/// The variable whose flags every command gets: one suite for every way to read, such as
/// `PAGEMILL_TEST_READ="--io-method mmap"`.
pub const READ_VARIABLE: &str = "PAGEMILL_TEST_READ";

/// The flags of [`READ_VARIABLE`].
fn reading() -> Vec<String> {
    let flags = std::env::var(READ_VARIABLE).unwrap_or_default();
    flags.split_whitespace().map(str::to_owned).collect()
}

/// The built program.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
}

impl Program {
    /// The program at this path.
    pub fn new(path: impl Into<PathBuf>) -> Program {
        Program { path: path.into() }
    }

    /// A command line on a data directory, free of the caller's settings. The first argument is the command.
    pub fn command<S: AsRef<OsStr>>(&self, data_dir: &Path, args: &[S]) -> Command {
        let mut command = Command::new(&self.path);
        if let Some((verb, rest)) = args.split_first() {
            command.arg(verb).arg("-D").arg(data_dir).args(reading()).args(rest);
        }
        command.env_remove("PGDATA").env_remove("PGDATABASE");
        command
    }

    /// Runs it.
    pub fn run<S: AsRef<OsStr>>(&self, data_dir: &Path, args: &[S]) -> Result<Output> {
        self.command(data_dir, args).output().context("starting the program")
    }

    /// What it prints; anything but success is an error.
    pub fn succeed<S: AsRef<OsStr>>(&self, data_dir: &Path, args: &[S]) -> Result<Vec<u8>> {
        let output = self.run(data_dir, args)?;
        ensure!(
            output.status.success(),
            "pagemill {:?} ended with {}: {}",
            args.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(output.stdout)
    }

    /// What it prints for a request, with further flags.
    pub fn answer(&self, prepared: &Prepared, request: &Request, more: &[&str]) -> Result<Vec<u8>> {
        let mut args: Vec<&str> = request.args.iter().map(String::as_str).collect();
        args.extend(["-d", request.database]);
        args.extend(more);
        self.succeed(&prepared.data_dir(), &args)
    }
}
