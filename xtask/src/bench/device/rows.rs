//! What is compared, and one turn of each side.
//!
//! Both sides do the same: the same calls in the same blocks at the same depth on the same file, which is overwritten in
//! place and never grows. fio is told to give no advice to the kernel and to lay nothing out anew; where it writes through the
//! page cache, the sync at its end is in its time, as it is in ours. Its start is in neither side's time.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::PgInstall;
use serde_json::Value;

use crate::bench::output_of;
use crate::bench::settling::settle;

/// Who takes a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Ours,
    Other,
}

/// A comparison.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) name: String,
    /// The words for `device_cell`.
    ours: String,
    other: Other,
}

/// Whom we are held against.
#[derive(Debug, Clone, PartialEq)]
enum Other {
    Fio {
        rw: &'static str,
        kilobytes: u32,
        engine: &'static str,
        depth: u32,
        direct: bool,
    },
    /// The method, as pg_test_fsync names it.
    TestFsync(&'static str),
}

/// All rows, in the order of the report.
pub(super) fn all() -> Vec<Row> {
    let mut rows = Vec::new();
    for (rw, method) in [("read", "pread"), ("write", "pwrite")] {
        for direct in [true, false] {
            rows.extend([8, 128, 1024].map(|size| in_order(rw, method, size, direct)));
        }
    }
    rows.extend([("pread", 1), ("io_uring", 16), ("io_uring", 64)].map(here_and_there));
    rows.extend(["open_datasync", "fdatasync", "fsync", "open_sync"].map(synced));
    rows
}

/// The rows whose names begin as one of these; all without any.
pub(super) fn selected(beginnings: &[String]) -> Result<Vec<Row>> {
    let is_wanted = |row: &Row| {
        let mut wanted = beginnings.iter();
        beginnings.is_empty() || wanted.any(|beginning| row.name.starts_with(&**beginning))
    };
    let rows: Vec<Row> = all().into_iter().filter(is_wanted).collect();
    ensure!(!rows.is_empty(), "no row begins with {}", beginnings.join(", "));
    Ok(rows)
}

fn in_order(rw: &'static str, method: &str, kilobytes: u32, direct: bool) -> Row {
    // What goes through the page cache ends with the file: a block that came is not read again.
    let (caching, order) = if direct { ("direct", "around") } else { ("buffered", "once") };
    Row {
        name: format!("{rw} in order, {kilobytes} kB, {caching}"),
        ours: format!("{rw} {method} {kilobytes} {caching} 1 {order}"),
        other: Other::Fio { rw, kilobytes, engine: "psync", depth: 1, direct },
    }
}

fn here_and_there((method, depth): (&str, u32)) -> Row {
    let engine = if depth == 1 { "psync" } else { "io_uring" };
    Row {
        name: format!("read here and there, 8 kB, direct, depth {depth}"),
        ours: format!("read {method} 8 direct {depth} random"),
        other: Other::Fio { rw: "randread", kilobytes: 8, engine, depth, direct: true },
    }
}

fn synced(method: &'static str) -> Row {
    Row {
        name: format!("8 kB made to last, {method}"),
        ours: format!("sync {method}"),
        other: Other::TestFsync(method),
    }
}

impl Row {
    /// Whether its figures are operations a second, not bytes.
    pub(super) fn is_sync(&self) -> bool {
        matches!(self.other, Other::TestFsync(_))
    }

    /// The other program.
    pub(super) fn against(&self) -> String {
        match &self.other {
            Other::Fio { engine, depth, .. } => format!("fio {engine} depth {depth}"),
            Other::TestFsync(_) => "pg_test_fsync".to_owned(),
        }
    }
}

/// The file, the programs, and how long a turn lasts.
pub(super) struct BenchFiles {
    program: PathBuf,
    directory: PathBuf,
    seconds: u64,
    /// What pg_test_fsync printed, with its round: it measures all methods at once.
    printed: RefCell<(usize, String)>,
}

impl BenchFiles {
    /// Writes the files.
    pub(super) fn new(program: &Path, directory: &Path, mib: u64, seconds: u64) -> Result<Self> {
        let (program, directory) = (program.into(), directory.into());
        let files = Self { program, directory, seconds, printed: RefCell::default() };
        files.remove();
        files.make("file", mib)?;
        // As large as a WAL segment, as pg_test_fsync has it.
        files.make("segment", 16)?;
        Ok(files)
    }

    fn make(&self, name: &str, mib: u64) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.arg(self.directory.join(name)).args(["make", &(mib << 20).to_string()]);
        output_of(&mut command).map(drop)
    }

    fn remove(&self) {
        for name in ["file", "segment", "tested"] {
            // It may not be there.
            let _ = std::fs::remove_file(self.directory.join(name));
        }
    }

    /// Bytes, or operations, a second.
    pub(super) fn turn(&self, row: &Row, side: Side, round: usize) -> Result<f64> {
        settle(&self.directory)?;
        match (side, &row.other) {
            (Side::Ours, _) => self.ours(row, round),
            (Side::Other, Other::Fio { .. }) => self.fio(row),
            (Side::Other, Other::TestFsync(method)) => self.test_fsync(method, round),
        }
    }

    fn ours(&self, row: &Row, round: usize) -> Result<f64> {
        let file = self.directory.join(if row.is_sync() { "segment" } else { "file" });
        let mut command = Command::new(&self.program);
        command.arg(file).args([(self.seconds * 1000).to_string(), round.to_string()]);
        let printed = output_of(command.args(row.ours.split(' ')))?;
        let number = |name: &str| -> Result<f64> {
            let mut words = printed.split_whitespace();
            let word = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            Ok(word.with_context(|| format!("no {name} in {printed}"))?.parse()?)
        };
        Ok(number(if row.is_sync() { "operations" } else { "bytes" })? / number("seconds")?)
    }

    fn fio(&self, row: &Row) -> Result<f64> {
        let Other::Fio { rw, kilobytes, engine, depth, direct } = row.other else { return Ok(0.0) };
        let mut command = Command::new("fio");
        command.args(["--name=turn", "--thread", "--output-format=json", "--fallocate=none"]);
        command.args(["--overwrite=1", "--fadvise_hint=0", "--randrepeat=0"]);
        let file = self.directory.join("file").to_string_lossy().replace(':', "\\:");
        command.arg(format!("--filename={file}")).arg(format!("--rw={rw}"));
        command.arg(format!("--bs={kilobytes}k")).arg(format!("--ioengine={engine}"));
        command.arg(format!("--iodepth={depth}")).arg(format!("--direct={}", u8::from(direct)));
        if direct {
            command.args(["--time_based", &format!("--runtime={}", self.seconds)]);
        } else if rw == "write" {
            command.arg("--end_fsync=1");
        }
        rate(&output_of(&mut command)?, if rw == "write" { "write" } else { "read" })
    }

    fn test_fsync(&self, method: &str, round: usize) -> Result<f64> {
        let mut printed = self.printed.borrow_mut();
        if printed.0 != round {
            let programs = PgInstall::all();
            let mut programs = programs.iter().map(|install| install.program("pg_test_fsync"));
            let program =
                programs.find(|path| path.exists()).context("there is no pg_test_fsync")?;
            let mut command = Command::new(program);
            command.arg("-f").arg(self.directory.join("tested"));
            *printed = (round, output_of(command.args(["-s", &self.seconds.to_string()]))?);
        }
        operations(&printed.1, method)
    }
}

impl Drop for BenchFiles {
    fn drop(&mut self) {
        self.remove();
    }
}

/// What fio says its version is.
pub(super) fn fio_version() -> Result<String> {
    Ok(output_of(Command::new("fio").arg("--version"))?.trim().to_owned())
}

/// Bytes a second of the first job.
fn rate(printed: &str, direction: &str) -> Result<f64> {
    // Warnings may stand before the object.
    let object = printed.find('{').and_then(|start| printed.get(start..)).unwrap_or_default();
    let printed: Value = serde_json::from_str(object).context("fio printed no JSON")?;
    let rate = printed["jobs"][0][direction]["bw_bytes"].as_f64().context("no bw_bytes")?;
    ensure!(rate > 0.0, "fio moved nothing");
    Ok(rate)
}

/// Operations a second of a method with one write, the first of its lines.
fn operations(printed: &str, method: &str) -> Result<f64> {
    let line = printed.lines().find(|line| line.split_whitespace().next() == Some(method));
    let rate = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    rate.with_context(|| format!("pg_test_fsync has no {method}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_of_others_are_read() {
        let printed = "note\n{\"jobs\":[{\"read\":{\"bw_bytes\":0},\"write\":{\"bw_bytes\":500}}]}";
        assert_eq!(rate(printed, "write").unwrap(), 500.0);
        assert!(rate(printed, "read").is_err());
        let printed = "Compare file sync methods using one 8kB write:\n\
                       \x20       open_datasync                      1204.114 ops/sec     830 usecs/op\n\
                       \x20       fsync_writethrough                            n/a\n\
                       Compare file sync methods using two 8kB writes:\n\
                       \x20       open_datasync                       600.1 ops/sec    1660 usecs/op\n";
        assert_eq!(operations(printed, "open_datasync").unwrap(), 1204.114);
        assert!(operations(printed, "fsync_writethrough").is_err());
    }

    #[test]
    fn no_row_is_there_twice() {
        let mut names: Vec<String> = all().into_iter().map(|row| row.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!((names.len(), count), (19, 19));
    }
}
