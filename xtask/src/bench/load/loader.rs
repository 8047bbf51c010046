//! `pagemill load`: its command, and what it tells of itself.
//!
//! Peak memory is asked in a run of its own, which is not timed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;

use super::rows::Row;
use crate::bench::process;

/// The binary, and the cluster it loads into.
pub(super) struct Loader {
    pub(super) binary: PathBuf,
    pub(super) data: PathBuf,
}

/// What a run told of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RunStats {
    pub(super) write_calls: u64,
    pub(super) bytes_written: u64,
    pub(super) sync_calls: u64,
}

impl Loader {
    fn command(&self, row: &Row, file: &Path) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("load").arg("-D").arg(&self.data).args(["-d", "postgres"]);
        command.args(["-t", row.input.table(), "--format", "csv"]).args(row.flags());
        command.arg("--stats=json").arg(file);
        command.stdin(Stdio::null());
        command
    }

    /// Runs it, and gives the milliseconds of the whole process with its account.
    pub(super) fn timed(&self, row: &Row, file: &Path) -> Result<(f64, RunStats)> {
        let (milliseconds, said) = process::timed(&mut self.command(row, file))?;
        let stats = RunStats {
            write_calls: said.number("write_calls")?,
            bytes_written: said.number("bytes_written")?,
            sync_calls: said.number("sync_calls")?,
        };
        Ok((milliseconds, stats))
    }

    /// Runs it, and gives its peak memory in MiB.
    pub(super) fn watched(&self, row: &Row, file: &Path) -> Result<f64> {
        process::watched(&mut self.command(row, file))
    }
}
