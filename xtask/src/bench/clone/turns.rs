//! The two sides in turns: CREATE DATABASE on a server that was started before, and `pagemill clone` in the same
//! cluster, stopped.
//!
//! Each turn begins without a copy, with the page cache in the state that was asked for, and nothing left to be written.
//! Invariant: no time is kept of a run after which the copy did not hold what its template holds.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::bench_cluster::BenchCluster;
use super::calls::{self, Counted};
use super::cloner::{self, RunStats};
use super::options::Options;
use super::rows::{REFLINK_TARGET_MS, Row, SHARED_TARGET, Strategy, Template};
use crate::bench::figures::verdict;
use crate::bench::fio_writes;
use crate::bench::output_of;
use crate::bench::process;
use crate::bench::server::Server;
use crate::bench::statistics::median;

/// One row with everything that was found out about it.
pub(super) struct Measured {
    pub(super) row: Row,
    pub(super) create_ms: Vec<f64>,
    pub(super) checkpoint_ms: Vec<f64>,
    pub(super) pagemill_ms: Vec<f64>,
    /// What fio takes to write as many bytes, where it is installed.
    pub(super) fio_ms: Vec<f64>,
    /// Of the last run.
    pub(super) stats: RunStats,
    pub(super) peak_memory_mib: Option<f64>,
    /// Of the template, and their bytes.
    pub(super) files: usize,
    pub(super) bytes: u64,
    /// Of the largest file of the copy, the share that lies in shared blocks, as `filefrag` shows it.
    pub(super) shared: Option<f64>,
    /// As strace counts them.
    pub(super) counted: Option<Counted>,
    /// Why there are no figures on this machine.
    pub(super) absence: Option<String>,
    pub(super) fault: Option<String>,
}

impl Measured {
    fn new(row: &Row) -> Self {
        Self {
            row: *row,
            create_ms: Vec::new(),
            checkpoint_ms: Vec::new(),
            pagemill_ms: Vec::new(),
            fio_ms: Vec::new(),
            stats: RunStats::default(),
            peak_memory_mib: None,
            files: 0,
            bytes: 0,
            shared: None,
            counted: None,
            absence: None,
            fault: None,
        }
    }

    /// A row that this machine cannot run.
    pub(super) fn absent(row: &Row, reason: &str) -> Self {
        Self { absence: Some(reason.to_owned()), ..Self::new(row) }
    }

    /// A row for which there is no cluster.
    pub(super) fn failed(row: &Row, error: &anyhow::Error) -> Self {
        eprintln!("{}: {error:#}", row.id);
        Self { fault: Some(format!("no cluster: {}", error.root_cause())), ..Self::new(row) }
    }

    /// What the server took until all of it was on the device.
    pub(super) fn server_ms(&self) -> Vec<f64> {
        self.create_ms.iter().zip(&self.checkpoint_ms).map(|(a, b)| a + b).collect()
    }

    /// The server's time over pagemill's, pair by pair.
    pub(super) fn ratios(&self) -> Vec<f64> {
        over(&self.server_ms(), &self.pagemill_ms)
    }

    /// The same without the server's checkpoint.
    pub(super) fn ratios_of_create(&self) -> Vec<f64> {
        over(&self.create_ms, &self.pagemill_ms)
    }

    pub(super) fn verdict(&self) -> &'static str {
        if self.fault.is_some() {
            return "failed";
        }
        if self.row.strategy == Strategy::Reflink {
            return self.reflink_verdict();
        }
        match self.row.target() {
            None if self.pagemill_ms.is_empty() => "not run",
            None => "no target",
            Some(target) => verdict(&self.ratios(), |ratio| ratio >= target),
        }
    }

    fn reflink_verdict(&self) -> &'static str {
        let Some(milliseconds) = median(&self.pagemill_ms) else { return "not run" };
        let is_shared = self.shared.is_some_and(|share| share >= SHARED_TARGET);
        if milliseconds < REFLINK_TARGET_MS && is_shared { "met" } else { "missed" }
    }
}

pub(super) fn over(server: &[f64], pagemill: &[f64]) -> Vec<f64> {
    server.iter().zip(pagemill).map(|(server, pagemill)| server / pagemill).collect()
}

/// Everything a turn needs to know.
pub(super) struct Stand<'a> {
    pub(super) options: &'a Options,
    pub(super) bench_cluster: &'a BenchCluster,
    pub(super) binary: &'a Path,
}

/// The template, as a copy has to be.
struct Original {
    template: Template,
    oid: u32,
    fingerprint: String,
}

impl Stand<'_> {
    /// Measures one row; a failure is part of the result.
    pub(super) fn measure(&self, row: &Row) -> Measured {
        eprintln!("{} ...", row.id);
        let mut measured = Measured::new(row);
        if let Err(error) = self.take_turns(&mut measured) {
            eprintln!("{}: {error:#}", row.id);
            let fault = self.bench_cluster.without_places(&format!("{error:#}"));
            measured.fault = Some(fault.trim().replace('\n', " "));
        }
        measured
    }

    /// A warm-up of each side, in which pagemill is asked for its memory, the timed turns, and a turn that is counted.
    fn take_turns(&self, measured: &mut Measured) -> Result<()> {
        let row = measured.row;
        let original = self.original(&row)?;
        let files = self.bench_cluster.files_of(original.oid)?;
        measured.files = files.len();
        measured.bytes = files.iter().map(|file| file.metadata().map_or(0, |m| m.len())).sum();
        self.create(&row, &original)?;
        self.bench_cluster.settle(self.options, row.template, original.oid)?;
        measured.peak_memory_mib = Some(process::watched(&mut self.command(&row))?);
        self.look(measured, &original)?;
        for _ in 0..self.options.run.repetitions {
            let (create, checkpoint) = self.create(&row, &original)?;
            measured.create_ms.push(create);
            measured.checkpoint_ms.push(checkpoint);
            self.bench_cluster.settle(self.options, row.template, original.oid)?;
            let (milliseconds, stats) = cloner::timed(&mut self.command(&row))?;
            self.look(measured, &original)?;
            measured.pagemill_ms.push(milliseconds);
            measured.stats = stats;
            measured.fio_ms.extend(self.device(&row, stats.bytes_written, &original)?);
        }
        if !self.options.no_calls && row.strategy != Strategy::Reflink {
            measured.counted = self.count(&row, &original)?;
        }
        Ok(())
    }

    /// What the device takes for so many bytes at best; nothing where that cannot be asked, or means nothing.
    fn device(&self, row: &Row, bytes: u64, original: &Original) -> Result<Option<f64>> {
        let is_asked = row.template == Template::Large && row.strategy != Strategy::Reflink;
        if !is_asked || fio_writes::version().is_none() {
            return Ok(None);
        }
        self.bench_cluster.settle(self.options, row.template, original.oid)?;
        let file = self.bench_cluster.cluster.directory.join("fio");
        let milliseconds = fio_writes::milliseconds(&file, fio_writes::BEST, bytes);
        std::fs::remove_file(&file)?;
        milliseconds.map(Some)
    }

    fn command(&self, row: &Row) -> std::process::Command {
        cloner::command(self.options, self.binary, &self.bench_cluster.cluster.data(), row)
    }

    fn original(&self, row: &Row) -> Result<Original> {
        let server = self.bench_cluster.start(self.options, row)?;
        let name = row.template.database();
        let oid = oid_of(&server, name)?;
        let fingerprint = answer_in(&server, name, row.template.fingerprint())?;
        Ok(Original { template: row.template, oid, fingerprint })
    }

    /// CREATE DATABASE's milliseconds, until its commit, and those of a checkpoint behind it.
    fn create(&self, row: &Row, original: &Original) -> Result<(f64, f64)> {
        let server = self.bench_cluster.start(self.options, row)?;
        server.psql(&["checkpoint"])?;
        self.bench_cluster.settle(self.options, row.template, original.oid)?;
        let (_, create) = server.timed(&row.statement())?;
        let (_, checkpoint) = server.timed("checkpoint")?;
        self.compare_and_drop(&server, original)?;
        Ok((create, checkpoint))
    }

    /// Starts a server on what was made, and compares.
    fn look(&self, measured: &mut Measured, original: &Original) -> Result<()> {
        let server = self.bench_cluster.start(self.options, &measured.row)?;
        if measured.row.strategy == Strategy::Reflink {
            measured.shared = self.shared(oid_of(&server, "copy")?)?;
        }
        self.compare_and_drop(&server, original)
    }

    fn compare_and_drop(&self, server: &Server<'_>, original: &Original) -> Result<()> {
        let found = answer_in(server, "copy", original.template.fingerprint())?;
        ensure!(
            found == original.fingerprint,
            "the copy says {found}, not {}",
            original.fingerprint
        );
        server.psql(&["drop database copy"])?;
        server.psql(&["checkpoint"])?;
        Ok(())
    }

    /// One more turn of each side under strace; nothing where there is none.
    fn count(&self, row: &Row, original: &Original) -> Result<Option<Counted>> {
        if !calls::can_be_counted() {
            return Ok(None);
        }
        let log = self.bench_cluster.cluster.directory.join("calls");
        let server = self.bench_cluster.start(self.options, row)?;
        server.psql(&["checkpoint"])?;
        self.bench_cluster.settle(self.options, row.template, original.oid)?;
        let of_server = calls::of_server(&self.bench_cluster.cluster.data(), &log, || {
            server.psql(&[&row.statement()])?;
            server.psql(&["checkpoint"])
        })?;
        self.compare_and_drop(&server, original)?;
        drop(server);
        self.bench_cluster.settle(self.options, row.template, original.oid)?;
        let (of_pagemill, stats) = calls::of_command(&self.command(row), &log)?;
        let server = self.bench_cluster.start(self.options, row)?;
        self.compare_and_drop(&server, original)?;
        std::fs::remove_file(&log)?;
        Ok(Some(Counted { server: of_server, pagemill: of_pagemill, stats }))
    }

    /// The share of a database's largest file that lies in blocks it shares.
    fn shared(&self, oid: u32) -> Result<Option<f64>> {
        let files = self.bench_cluster.files_of(oid)?;
        let largest = files.iter().max_by_key(|file| file.metadata().map_or(0, |m| m.len()));
        let mut filefrag = std::process::Command::new("filefrag");
        filefrag.arg("-v").arg(largest.context("a database without files")?);
        Ok(output_of(&mut filefrag).ok().and_then(|printed| shared_share(&printed)))
    }
}

pub(super) fn oid_of(server: &Server<'_>, name: &str) -> Result<u32> {
    let query = format!("select oid from pg_database where datname = '{name}'");
    server.psql(&[&query])?.trim().parse().with_context(|| format!("no database {name}"))
}

pub(super) fn answer_in(server: &Server<'_>, database: &str, query: &str) -> Result<String> {
    Ok(server.psql(&[&format!("\\c {database}"), query])?.trim().to_owned())
}

/// Of the extents that `filefrag -v` lists, `0: 0.. 9: 96.. 105: 10: 7: shared,eof`, the share that is marked so.
fn shared_share(printed: &str) -> Option<f64> {
    let (mut all, mut shared) = (0, 0);
    for line in printed.lines() {
        let parts: Vec<&str> = line.split(':').map(str::trim).collect();
        let [number, _, _, length, rest @ ..] = &parts[..] else { continue };
        if number.parse::<u32>().is_err() {
            continue;
        }
        let length: u64 = length.parse().ok()?;
        all += length;
        shared += if rest.last()?.contains("shared") { length } else { 0 };
    }
    (all > 0).then(|| shared as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::clone::rows;

    fn measured(id: &str, server: &[f64], pagemill: &[f64]) -> Measured {
        let row = rows::selected(&[id.to_owned()]).unwrap().rows[0];
        Measured {
            create_ms: server.to_vec(),
            checkpoint_ms: vec![0.0; server.len()],
            pagemill_ms: pagemill.to_vec(),
            ..Measured::new(&row)
        }
    }

    #[test]
    fn a_target_inside_the_interval_is_called_noise() {
        let mut row = measured("wal_log-15", &[50.0, 60.0], &[10.0, 10.0]);
        assert_eq!((row.ratios(), row.verdict()), (vec![5.0, 6.0], "met"));
        row = measured("wal_log-15", &[30.0, 50.0, 60.0], &[10.0; 3]);
        assert_eq!(row.verdict(), "met, within noise");
        row.fault = Some("no".into());
        assert_eq!(row.verdict(), "failed");
        assert_eq!(measured("small", &[1.0], &[1.0]).verdict(), "no target");
    }

    #[test]
    fn a_reflink_has_to_be_fast_and_shared() {
        let mut row = measured("reflink", &[100.0], &[900.0]);
        assert_eq!(row.verdict(), "missed");
        row.shared = Some(1.0);
        assert_eq!(row.verdict(), "met");
        row.pagemill_ms = vec![1001.0];
        assert_eq!(row.verdict(), "missed");
    }

    #[test]
    fn extents_that_are_shared_are_told_by_their_flags() {
        let printed = " ext:     logical_offset:        physical_offset: length:   expected: flags:\n   \
                       0:        0..       9:         96..       105:     10:             shared\n   \
                       1:       10..      39:        500..       529:     30:        106: last,eof\n\
                       copy: 2 extents found\n";
        assert_eq!(shared_share(printed), Some(0.25));
        assert_eq!(shared_share(""), None);
    }
}
