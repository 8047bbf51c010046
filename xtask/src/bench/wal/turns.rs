//! One row: the two sides in turns, each with the files in the state that was asked for, answers compared.
//!
//! What pagemill takes to read the WAL is its own account of it (`wal_s`), where a row is about that, or about what comes
//! behind it. Invariant: no time is kept of a count that differs from the other side's.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::bench_cluster::{BenchCluster, settle};
use super::rows::{BYTES_PER_CORE, Row, Work};
use crate::bench::figures::verdict;
use crate::bench::process::{self, Said};
use crate::bench::read::fio;
use crate::bench::server::Cluster;

/// One row with everything that was found out about it.
pub(super) struct Measured {
    pub(super) row: Row,
    pub(super) other_ms: Vec<f64>,
    pub(super) pagemill_ms: Vec<f64>,
    /// Of the last run: reading the WAL, how long it is, and how many records it has.
    pub(super) wal_ms: f64,
    pub(super) wal_bytes: u64,
    pub(super) wal_records: u64,
    pub(super) peak_memory_mib: Option<f64>,
    pub(super) fault: Option<String>,
}

impl Measured {
    /// The other side's time over pagemill's, pair by pair.
    pub(super) fn ratios(&self) -> Vec<f64> {
        let pairs = self.other_ms.iter().zip(&self.pagemill_ms);
        pairs.map(|(other, own)| other / own).collect()
    }

    pub(super) fn verdict(&self) -> &'static str {
        match self.fault {
            Some(_) => "failed",
            None => verdict(&self.ratios(), |ratio| ratio >= self.row.target),
        }
    }

    /// Bytes of WAL a second, of the last run.
    pub(super) fn gigabytes_per_second(&self) -> Option<f64> {
        (self.wal_ms > 0.0).then(|| self.wal_bytes as f64 / 1e6 / self.wal_ms)
    }
}

/// Everything a turn needs to know.
pub(super) struct Stand<'a> {
    pub(super) bench_cluster: &'a BenchCluster,
    pub(super) binary: &'a Path,
    pub(super) repetitions: usize,
}

impl Stand<'_> {
    /// Measures one row; a failure is part of the result.
    pub(super) fn measure(&self, row: &Row) -> Measured {
        let mut measured = Measured {
            row: *row,
            other_ms: Vec::new(),
            pagemill_ms: Vec::new(),
            wal_ms: 0.0,
            wal_bytes: 0,
            wal_records: 0,
            peak_memory_mib: None,
            fault: None,
        };
        if let Err(error) = self.take_turns(&mut measured) {
            eprintln!("{}: {error:#}", row.id);
            let fault = self.bench_cluster.without_places(&format!("{error:#}"));
            measured.fault = Some(fault.trim().replace('\n', " "));
        }
        measured
    }

    fn take_turns(&self, measured: &mut Measured) -> Result<()> {
        let row = &measured.row;
        settle(&self.killed(), row.is_cached)?;
        measured.peak_memory_mib = Some(process::watched(&mut self.command(row, &self.killed()))?);
        if row.work == Work::Tenth {
            return self.beside_a_running_server(measured);
        }
        for _ in 0..self.repetitions {
            let (other, rows) = self.other(&measured.row)?;
            let (milliseconds, said) = self.pagemill(&measured.row)?;
            measured.keep(other, milliseconds, &said, rows)?;
        }
        Ok(())
    }

    /// Both sides in turns while one server runs, on a copy that it has recovered.
    fn beside_a_running_server(&self, measured: &mut Measured) -> Result<()> {
        let copy = self.bench_cluster.copy()?;
        let server = self.bench_cluster.start(&copy)?;
        let count = format!("select count(*) from {}", table(measured.row.work));
        server.timed(&count)?;
        for _ in 0..self.repetitions {
            let (rows, other) = server.timed(&count)?;
            let (milliseconds, said) = self.pagemill(&measured.row)?;
            measured.keep(other, milliseconds, &said, Some(rows.parse()?))?;
        }
        Ok(())
    }

    fn killed(&self) -> PathBuf {
        self.bench_cluster.killed.data()
    }

    /// The other side's milliseconds, and the rows that it counted.
    fn other(&self, row: &Row) -> Result<(f64, Option<u64>)> {
        match row.work {
            Work::Start => self.recovery(row),
            Work::IndexRate { cores } => {
                let bytes = self.wal_bytes()?;
                Ok((bytes / BYTES_PER_CORE / f64::from(cores) * 1000.0, None))
            }
            Work::IndexOfDevice => self.device(row),
            Work::UntouchedCount | Work::UntouchedExport => {
                let data = self.bench_cluster.clean.data();
                settle(&data, row.is_cached)?;
                let (milliseconds, said) = process::timed(&mut self.command(row, &data))?;
                Ok((milliseconds, Some(said.number("rows")?)))
            }
            Work::Tenth => anyhow::bail!("this row has a server that runs all the time"),
        }
    }

    /// From the start of a server on a fresh copy to its answer.
    fn recovery(&self, row: &Row) -> Result<(f64, Option<u64>)> {
        let copy: Cluster = self.bench_cluster.copy()?;
        settle(&copy.data(), row.is_cached)?;
        let start = Instant::now();
        let server = self.bench_cluster.start(&copy)?;
        let rows = server.psql(&["select count(*) from accounts"])?;
        let milliseconds = start.elapsed().as_secs_f64() * 1000.0;
        // Its shutdown is nobody's concern.
        server.kill()?;
        Ok((milliseconds, Some(rows.trim().parse()?)))
    }

    /// What the device takes to give the bytes that pagemill reads of the WAL.
    fn device(&self, row: &Row) -> Result<(f64, Option<u64>)> {
        let files = self.bench_cluster.wal()?;
        let lengths = files.iter().map(|file| Ok(std::fs::metadata(file)?.len()));
        let all: u64 = lengths.sum::<Result<u64>>()?;
        settle(&self.killed(), row.is_cached)?;
        let milliseconds = fio::best_ms(&files)?;
        Ok((milliseconds * self.wal_bytes()? / all as f64, None))
    }

    /// Bytes of WAL that are redone.
    fn wal_bytes(&self) -> Result<f64> {
        let row = Row { work: Work::IndexRate { cores: 1 }, ..super::rows::selected(&[])?[0] };
        let (_, said) = process::timed(&mut self.command(&row, &self.killed()))?;
        Ok(said.number("wal_bytes")? as f64)
    }

    fn pagemill(&self, row: &Row) -> Result<(f64, Said)> {
        settle(&self.killed(), row.is_cached)?;
        process::timed(&mut self.command(row, &self.killed()))
    }

    fn command(&self, row: &Row, data: &Path) -> Command {
        let mut command = match row.work {
            Work::IndexRate { cores: 1 } => {
                let mut taskset = Command::new("taskset");
                taskset.args(["-c", "1"]).arg(self.binary);
                taskset
            }
            _ => Command::new(self.binary),
        };
        let name = command_name(row.work);
        command
            .args([name, "--stats=json", "-d", "postgres", "-t", table(row.work), "-D"])
            .arg(data);
        if row.work == Work::UntouchedExport {
            command.args(["--format", "csv", "-o", "/dev/null"]);
        }
        command
    }

    /// The command line of a row, for the report.
    pub(super) fn spelled(row: &Row) -> String {
        let (name, table) = (command_name(row.work), table(row.work));
        format!("pagemill {name} -D DATA -d postgres -t {table}")
    }
}

impl Measured {
    fn keep(&mut self, other: f64, own: f64, said: &Said, rows: Option<u64>) -> Result<()> {
        if let Some(expected) = rows {
            let counted = said.number("rows")?;
            ensure!(counted == expected, "{counted} rows, where the other side has {expected}");
        }
        self.wal_bytes = said.number("wal_bytes")?;
        self.wal_records = said.number("wal_records")?;
        self.wal_ms = said.stats["wal_s"].as_f64().context("no wal_s")? * 1000.0;
        self.other_ms.push(other);
        self.pagemill_ms.push(match self.row.work {
            Work::Start => own,
            Work::IndexRate { .. } | Work::IndexOfDevice => self.wal_ms,
            Work::UntouchedCount | Work::UntouchedExport | Work::Tenth => own - self.wal_ms,
        });
        Ok(())
    }
}

fn command_name(work: Work) -> &'static str {
    if work == Work::UntouchedExport { "export" } else { "count" }
}

/// The table that is read.
fn table(work: Work) -> &'static str {
    match work {
        Work::Start => "accounts",
        Work::IndexRate { .. } | Work::IndexOfDevice => "tiny",
        Work::UntouchedCount | Work::UntouchedExport => "untouched",
        Work::Tenth => "tenth",
    }
}
