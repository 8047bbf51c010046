//! `pagemill` as a process: its time from start to exit, its own account, and its memory.
//!
//! Peak memory is asked in a run of its own, which is not timed: asking costs a little.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::shown;

/// How often the process is asked for its peak memory.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// What `--stats=json` said, and what was said beside it.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) stats: Value,
    pub(super) text: String,
}

impl Said {
    /// A number of the account.
    pub(super) fn number(&self, name: &str) -> Result<u64> {
        self.stats[name].as_u64().with_context(|| format!("no {name}"))
    }
}

/// Runs it, and gives the milliseconds of the whole process with what it said.
pub(super) fn timed(command: &mut Command) -> Result<(f64, Said)> {
    let start = Instant::now();
    let output = command.output().with_context(|| format!("could not start {}", shown(command)))?;
    let milliseconds = start.elapsed().as_secs_f64() * 1000.0;
    Ok((milliseconds, said(&output)?))
}

/// Runs it, and gives its peak memory in MiB.
pub(super) fn watched(command: &mut Command) -> Result<f64> {
    let mut child = command.stderr(Stdio::piped()).spawn().context("could not start pagemill")?;
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
    said(&Output { status: exit, stdout: Vec::new(), stderr })?;
    Ok(peak / 1024.0)
}

/// What `--stats=json` printed, among warnings.
fn said(output: &Output) -> Result<Said> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "pagemill: {} ({})", said.trim(), output.status);
    let record = said.lines().find(|line| line.starts_with('{')).context("no record of --stats")?;
    Ok(Said { stats: serde_json::from_str(record)?, text: said.into_owned() })
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
        let text = "pagemill: --no-wal: careful\n{\"write_calls\":3,\"sync_calls\":2}\n";
        let account = said(&output(0, text)).unwrap();
        assert_eq!((account.number("write_calls").unwrap(), account.text), (3, text.to_owned()));
        assert!(said(&output(0, "")).is_err());
        assert!(said(&output(256, text)).is_err());
    }

    #[test]
    fn the_high_water_mark_is_read_from_the_status() {
        assert_eq!(high_water("VmPeak:\t 9 kB\nVmHWM:\t    1234 kB\n"), Some(1234.0));
    }
}
