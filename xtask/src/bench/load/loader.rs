//! `pagemill load` as a process: its time from start to exit, its own account, and its memory.
//!
//! Peak memory is asked in a run of its own, which is not timed: asking costs a little.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::rows::Row;

/// How often the process is asked for its peak memory.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// The binary, and the cluster it loads into.
pub(super) struct Loader {
    pub(super) binary: PathBuf,
    pub(super) data: PathBuf,
}

/// What a run told of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Account {
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
    pub(super) fn timed(&self, row: &Row, file: &Path) -> Result<(f64, Account)> {
        let mut command = self.command(row, file);
        let start = Instant::now();
        let output = command.output().context("could not start pagemill")?;
        let milliseconds = start.elapsed().as_secs_f64() * 1000.0;
        Ok((milliseconds, account(&output)?))
    }

    /// Runs it, and gives its peak memory in MiB.
    pub(super) fn watched(&self, row: &Row, file: &Path) -> Result<f64> {
        let mut command = self.command(row, file);
        let mut child =
            command.stderr(Stdio::piped()).spawn().context("could not start pagemill")?;
        let status = PathBuf::from(format!("/proc/{}/status", child.id()));
        let mut peak = 0.0;
        let exit = loop {
            if let Some(exit) = child.try_wait()? {
                break exit;
            }
            let told = std::fs::read_to_string(&status).ok();
            peak = told.and_then(|text| high_water(&text)).unwrap_or(peak);
            std::thread::sleep(ASK_EVERY);
        };
        let mut stderr = Vec::new();
        // What it says is short, and waits in the pipe.
        child.stderr.take().context("no standard error")?.read_to_end(&mut stderr)?;
        account(&Output { status: exit, stdout: Vec::new(), stderr })?;
        Ok(peak / 1024.0)
    }
}

/// What `--stats=json` printed, among warnings.
fn account(output: &Output) -> Result<Account> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "pagemill load: {} ({})", said.trim(), output.status);
    let record = said.lines().find(|line| line.starts_with('{')).context("no record of --stats")?;
    let record: Value = serde_json::from_str(record)?;
    let number = |name: &str| record[name].as_u64().with_context(|| format!("no {name}"));
    Ok(Account {
        write_calls: number("write_calls")?,
        bytes_written: number("bytes_written")?,
        sync_calls: number("sync_calls")?,
    })
}

/// `VmHWM` in KiB: the mark only grows, so the last answer counts.
fn high_water(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn output(status: i32, stderr: &str) -> Output {
        let (status, stdout) = (ExitStatus::from_raw(status), Vec::new());
        Output { status, stdout, stderr: stderr.into() }
    }

    #[test]
    fn the_account_stands_among_warnings() {
        let said = "pagemill: --no-wal: careful\n{\"write_calls\":3,\"bytes_written\":8192,\"sync_calls\":2}\n";
        let expected = Account { write_calls: 3, bytes_written: 8192, sync_calls: 2 };
        assert_eq!(account(&output(0, said)).unwrap(), expected);
        assert!(account(&output(0, "")).is_err());
        assert!(account(&output(256, said)).is_err());
    }

    #[test]
    fn the_high_water_mark_is_read_from_the_status() {
        assert_eq!(high_water("VmPeak:\t 9 kB\nVmHWM:\t    1234 kB\n"), Some(1234.0));
    }
}
