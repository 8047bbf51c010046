//! Pagemill's side: its command lines, timed as whole processes, and two runs that are not timed.
//!
//! Peak memory and system calls are taken from runs of their own, since the tools that count them slow
//! the work down.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::options::Options;
use super::rows::{Row, Work};
use super::twins::Twins;
use crate::bench::{binary, floor, output_of, shown, version_of};

/// The calls that fetch file contents. A mapping fetches by page fault, which is no call.
const READ_CALLS: &str = "read,readv,pread64,preadv,preadv2,io_uring_enter";

/// How often a process is asked for its peak memory, where `time` is not installed.
const ASK_EVERY: Duration = Duration::from_millis(2);

/// The binary, and what it reads and writes.
pub(super) struct Pagemill {
    binary: PathBuf,
    /// The directory it reads.
    data: PathBuf,
    /// What that directory is called in the report.
    data_word: &'static str,
    /// Where an export goes.
    pub(super) export: PathBuf,
    core: String,
    two_cores: Option<String>,
}

impl Pagemill {
    /// The given binary, or a release build of this tree.
    pub(super) fn find(options: &Options, twins: &Twins, root: &Path) -> Result<Self> {
        Ok(Self {
            binary: binary(options.sides.pagemill.as_deref(), root)?,
            data: if options.same_directory { twins.cluster.data() } else { twins.twin() },
            data_word: if options.same_directory { "DATA" } else { "TWIN" },
            export: twins.exports().join("pagemill"),
            core: options.core.to_string(),
            two_cores: options.jobs_cores(),
        })
    }

    /// The segments of a fork, from its path below the data directory.
    pub(super) fn segments(&self, path: &str) -> Vec<PathBuf> {
        floor::segments(&self.data.join(path))
    }

    pub(super) fn version(&self) -> Option<String> {
        version_of(&self.binary)
    }

    /// Runs the row's work and gives what it printed, with the milliseconds of the whole process.
    pub(super) fn timed(&self, row: &Row) -> Result<(String, f64)> {
        let mut command = self.pinned(row, &[]);
        let start = Instant::now();
        let output = output_of(&mut command)?;
        Ok((output, start.elapsed().as_secs_f64() * 1000.0))
    }

    /// The command of a row behind a prefix, on the cores of the row. A start is not pinned: taskset's own
    /// start would be part of what is measured.
    fn pinned(&self, row: &Row, prefix: &[&str]) -> Command {
        let cores = match &self.two_cores {
            Some(cores) if row.jobs() > 1 => cores,
            _ => &self.core,
        };
        let pin = ["taskset", "-c", cores];
        let pin = if row.work == Work::Startup { &[] } else { pin.as_slice() };
        let binary = self.binary.to_string_lossy();
        let mut words = prefix.iter().chain(pin).copied().chain([&*binary]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).args(self.arguments(row));
        command
    }

    fn arguments(&self, row: &Row) -> Vec<String> {
        let data = self.data.to_string_lossy().into_owned();
        let on_table = |name: &str, table: &str| {
            [name, "-D", &data, "-d", "postgres", "-t", table].map(str::to_owned).to_vec()
        };
        match row.work {
            Work::Startup => ["ls", "-D", &data].map(str::to_owned).to_vec(),
            Work::Count(table) => on_table("count", table.name()),
            Work::Export { table, format, jobs } => {
                let mut words = on_table("export", table.name());
                let output = self.export.to_string_lossy().into_owned();
                words.extend(["--format", format.name(), "-o", &output].map(str::to_owned));
                words.extend(["-j".to_owned(), jobs.to_string()]);
                words
            }
        }
    }

    /// The command line of a row with its directories left out, for the report.
    pub(super) fn spelled(&self, row: &Row) -> String {
        self.without_places(&format!("pagemill {}", self.arguments(row).join(" ")))
    }

    /// A text with words for the directories of this machine.
    pub(super) fn without_places(&self, text: &str) -> String {
        let places =
            [(&self.data, self.data_word), (&self.export, "FILE"), (&self.binary, "pagemill")];
        places.iter().fold(text.to_owned(), |text, (place, word)| {
            text.replace(&*place.to_string_lossy(), word)
        })
    }

    /// Peak resident memory in MiB.
    pub(super) fn peak_memory_mib(&self, row: &Row) -> Result<f64> {
        let kilobytes = if Path::new("/usr/bin/time").exists() {
            let record = self.record("memory");
            let path = record.to_string_lossy();
            let prefix = ["/usr/bin/time", "-f", "%M", "-o", &path];
            output_of(&mut self.pinned(row, &prefix))?;
            take(&record)?.trim().parse()?
        } else {
            watch_peak(&mut self.pinned(row, &[]))?
        };
        Ok(kilobytes / 1024.0)
    }

    /// Calls that read, counted by strace; none where strace is missing or may not trace.
    pub(super) fn read_calls(&self, row: &Row) -> Option<u64> {
        let record = self.record("strace");
        let path = record.to_string_lossy();
        let filter = format!("trace={READ_CALLS}");
        let prefix = ["strace", "-f", "-c", "-e", &filter, "-o", &path];
        output_of(&mut self.pinned(row, &prefix)).ok()?;
        Some(sum_calls(&take(&record).ok()?))
    }

    fn record(&self, name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("pagemill-bench-{}-{name}", std::process::id()))
    }
}

fn take(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path)?;
    std::fs::remove_file(path)?;
    Ok(text)
}

/// Asks the kernel for `VmHWM` until the process ends; the mark only grows, so the last answer counts.
fn watch_peak(command: &mut Command) -> Result<f64> {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let mut peak = 0.0;
    let exit = loop {
        if let Some(exit) = child.try_wait()? {
            break exit;
        }
        peak = std::fs::read_to_string(&status)
            .ok()
            .and_then(|text| high_water(&text))
            .unwrap_or(peak);
        std::thread::sleep(ASK_EVERY);
    };
    if !exit.success() {
        bail!("failed ({exit}): {}", shown(command));
    }
    Ok(peak)
}

fn high_water(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Sums the fourth column of `strace -c`, whose last column names the call; the total is left out.
fn sum_calls(table: &str) -> u64 {
    let calls = table.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let known = READ_CALLS.split(',').any(|call| words.last() == Some(&call));
        words.get(3).filter(|_| known)?.parse::<u64>().ok()
    });
    calls.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_summed_from_the_table_of_strace() {
        let table = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000060           6        10           pread64
 40.00    0.000040          20         2         1 read
------ ----------- ----------- --------- --------- ----------------
100.00    0.000100           8        12         1 total
";
        assert_eq!(sum_calls(table), 12);
    }

    #[test]
    fn the_high_water_mark_is_read_from_the_status() {
        assert_eq!(high_water("VmPeak:\t 9 kB\nVmHWM:\t    1234 kB\n"), Some(1234.0));
        assert_eq!(high_water("State: Z\n"), None);
    }
}
