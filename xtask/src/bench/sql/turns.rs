//! One row: the contestants in turns on the same bytes, in the page cache, answers compared first.
//!
//! Pagemill's time is that of its whole process; the server's and DuckDB's are those of the statement alone, in a session that
//! stands: what pagemill takes to start counts against it. Invariant: no time is kept of an answer that differs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::rows::{MEMORY_MIB, Row, Work};
use super::tpch::TABLES;
use crate::bench::figures::verdict;
use crate::bench::server::Server;
use crate::bench::twin_clusters::TwinClusters;
use crate::bench::{output_of, process, shown};

/// One row with everything that was found out about it.
pub(super) struct Measured {
    pub(super) row: Row,
    pub(super) server_ms: Vec<f64>,
    pub(super) pagemill_ms: Vec<f64>,
    pub(super) duckdb_ms: Vec<f64>,
    pub(super) peak_memory_mib: Option<f64>,
    pub(super) fault: Option<String>,
}

impl Measured {
    /// The server's time over pagemill's, pair by pair.
    pub(super) fn ratios(&self) -> Vec<f64> {
        ratios(&self.server_ms, &self.pagemill_ms)
    }

    /// DuckDB's time over pagemill's, pair by pair.
    pub(super) fn of_duckdb(&self) -> Vec<f64> {
        ratios(&self.duckdb_ms, &self.pagemill_ms)
    }

    pub(super) fn verdict(&self) -> &'static str {
        let target = self.row.target;
        match (&self.fault, self.row.work) {
            (Some(_), _) => "failed",
            (None, Work::Time) => verdict(&self.pagemill_ms, |time| time <= target),
            (None, Work::Memory) => match self.peak_memory_mib {
                Some(peak) if peak <= target * MEMORY_MIB as f64 => "met",
                _ => "missed",
            },
            (None, _) => verdict(&self.ratios(), |ratio| ratio >= target),
        }
    }
}

fn ratios(others: &[f64], own: &[f64]) -> Vec<f64> {
    others.iter().zip(own).map(|(other, own)| other / own).collect()
}

/// Everything a turn needs to know.
pub(super) struct Stand<'a> {
    pub(super) cluster: &'a TwinClusters,
    pub(super) server: &'a Server<'a>,
    pub(super) pagemill_sql: &'a Path,
    pub(super) pagemill: &'a Path,
    /// Parquet files of all tables, where DuckDB takes part.
    pub(super) parquet: Option<&'a Path>,
    pub(super) repetitions: usize,
}

impl Stand<'_> {
    /// Measures one row; a failure is part of the result.
    pub(super) fn measure(&self, row: &Row) -> Measured {
        let mut measured = Measured {
            row: row.clone(),
            server_ms: Vec::new(),
            pagemill_ms: Vec::new(),
            duckdb_ms: Vec::new(),
            peak_memory_mib: None,
            fault: None,
        };
        if let Err(error) = self.take_turns(&mut measured) {
            eprintln!("{}: {error:#}", row.id);
            let fault = self.cluster.without_places(&format!("{error:#}"));
            measured.fault = Some(fault.trim().replace('\n', " "));
        }
        measured
    }

    fn take_turns(&self, measured: &mut Measured) -> Result<()> {
        let row = measured.row.clone();
        match row.work {
            Work::Parquet => return self.export(measured),
            Work::Memory => {
                measured.peak_memory_mib = Some(process::watched(&mut self.ours(&row, true))?);
                return Ok(());
            }
            Work::Tpch(_) | Work::Statement | Work::Time => self.compare(&row)?,
        }
        for _ in 0..self.repetitions {
            measured.server_ms.push(self.server.timed(&row.statement)?.1);
            measured.pagemill_ms.push(timed(&mut self.ours(&row, false))?);
            if let (Some(parquet), Work::Tpch(_)) = (self.parquet, row.work) {
                measured.duckdb_ms.push(duckdb_query(parquet, &row.statement)?);
            }
        }
        Ok(())
    }

    /// Both answers, as CSV.
    fn compare(&self, row: &Row) -> Result<()> {
        let copy = format!("copy ({}) to stdout (format csv, header)", row.statement);
        let expected = self.server.psql(&[&copy])?;
        let answered = output_of(&mut self.ours(row, false))?;
        let lines = |text: &str| {
            // A row of one NULL is an empty line, which psql's last newline goes with.
            let text = text.trim_end_matches('\n');
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        let (expected, answered) = (lines(&expected), lines(&answered));
        let differing = expected.iter().zip(&answered).find(|(theirs, ours)| theirs != ours);
        ensure!(differing.is_none(), "the server's answer and pagemill's: {differing:?}");
        let (theirs, ours) = (expected.len(), answered.len());
        ensure!(theirs == ours, "{ours} lines, where the server has {theirs}");
        Ok(())
    }

    fn ours(&self, row: &Row, is_watched: bool) -> Command {
        let mut command = Command::new(self.pagemill_sql);
        command.args(["sql", "-d", "postgres", "--format", "csv", "-c", &row.statement, "-D"]);
        command.arg(self.cluster.stopped.data());
        if is_watched {
            command.args(["--stats=json", "--memory", &format!("{MEMORY_MIB}MB")]);
            command.stdout(Stdio::null());
        }
        command
    }

    /// A table as Parquet by both, each into a file of its own.
    fn export(&self, measured: &mut Measured) -> Result<()> {
        let scratch = self.cluster.scratch()?;
        let table = &measured.row.statement;
        for _ in 0..self.repetitions {
            if self.parquet.is_some() {
                let file = scratch.join("duckdb-copy.parquet");
                measured.server_ms.push(self.copied_to_duckdb(table, &file)?);
            }
            let mut ours = self.exporting(table, &scratch.join("pagemill.parquet"));
            measured.pagemill_ms.push(timed(&mut ours)?);
        }
        ensure!(self.parquet.is_some(), "python3 has no duckdb to compare with");
        Ok(())
    }

    pub(super) fn exporting(&self, table: &str, file: &Path) -> Command {
        let mut command = Command::new(self.pagemill);
        command.args(["export", "-q", "-d", "postgres", "-t", table, "--format", "parquet"]);
        command.arg("-D").arg(self.cluster.stopped.data()).arg("-o").arg(file);
        command
    }

    /// `COPY` into DuckDB, which writes Parquet: milliseconds of both processes.
    fn copied_to_duckdb(&self, table: &str, file: &Path) -> Result<f64> {
        let columns = TABLES.iter().find(|known| known.name == table).context("no such table")?;
        let mut duckdb = duckdb();
        duckdb.args(["parquet", &columns.types()]).arg(file);
        let copy = format!("copy {table} to stdout (format csv)");
        let begin = Instant::now();
        self.server.copy_out(&copy, duckdb)?;
        Ok(begin.elapsed().as_secs_f64() * 1000.0)
    }
}

/// Milliseconds of a whole process whose output is read.
fn timed(command: &mut Command) -> Result<f64> {
    let begin = Instant::now();
    output_of(command)?;
    Ok(begin.elapsed().as_secs_f64() * 1000.0)
}

fn script() -> PathBuf {
    crate::workspace::root().join("xtask/src/bench/sql/duckdb_turns.py")
}

fn duckdb() -> Command {
    let mut command = Command::new("python3");
    command.arg(script());
    command
}

/// The version of DuckDB, where python3 has it.
pub(super) fn duckdb_version() -> Option<String> {
    let mut command = Command::new("python3");
    command.args(["-c", "import duckdb; print(duckdb.__version__)"]);
    Some(output_of(&mut command).ok()?.trim().to_owned())
}

/// Milliseconds of the statement alone.
fn duckdb_query(parquet: &Path, statement: &str) -> Result<f64> {
    use std::io::Write as _;
    let mut command = duckdb();
    command.arg("query").arg(parquet).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| shown(&command))?;
    let mut input = child.stdin.take().context("no input")?;
    input.write_all(statement.as_bytes())?;
    drop(input);
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("DuckDB: {}", output.status);
    }
    Ok(text.split_whitespace().next().context("DuckDB printed no time")?.parse()?)
}
