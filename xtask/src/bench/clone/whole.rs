//! Whole clusters: `pagemill clone --cluster` beside `cp -a` with a sync, and `pg_basebackup`, in turns.
//!
//! All copy the same cluster, with the database of table t in the page cache or out of it: two of them while it is stopped,
//! `pg_basebackup` from a server that was started before. Its checkpoint and its own sync are in its time.
//! Invariant: no time is kept of a copy from which a server did not read what is in the cluster.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Result, ensure};

use super::bench_cluster::launch;
use super::rows::{Template, WHOLE_TARGET, WholeRow};
use super::turns::{Stand, answer_in, oid_of, over};
use crate::bench::figures::verdict;
use crate::bench::server::Cluster;
use crate::bench::{output_of, process};

const SETTINGS: &[&str] = &["wal_level=replica", "max_wal_senders=4"];

/// One row with everything that was found out about it.
pub(super) struct MeasuredWhole {
    pub(super) row: WholeRow,
    pub(super) cp_ms: Vec<f64>,
    pub(super) basebackup_ms: Vec<f64>,
    pub(super) pagemill_ms: Vec<f64>,
    pub(super) peak_memory_mib: Option<f64>,
    pub(super) fault: Option<String>,
}

impl MeasuredWhole {
    fn new(row: &WholeRow) -> Self {
        Self {
            row: *row,
            cp_ms: Vec::new(),
            basebackup_ms: Vec::new(),
            pagemill_ms: Vec::new(),
            peak_memory_mib: None,
            fault: None,
        }
    }

    /// A row for which there is no cluster.
    pub(super) fn failed(row: &WholeRow, error: &anyhow::Error) -> Self {
        Self { fault: Some(format!("no cluster: {}", error.root_cause())), ..Self::new(row) }
    }

    /// Each of the others, with its times and their ratios to pagemill's.
    pub(super) fn others(&self) -> [(&'static str, &[f64], Vec<f64>); 2] {
        let other = |name, times| (name, times, over(times, &self.pagemill_ms));
        [other("cp -a, sync", &self.cp_ms[..]), other("pg_basebackup", &self.basebackup_ms[..])]
    }

    pub(super) fn verdict(&self, ratios: &[f64]) -> &'static str {
        if self.fault.is_some() { "failed" } else { verdict(ratios, |ratio| ratio >= WHOLE_TARGET) }
    }
}

/// Measures a row; a failure is part of the result.
pub(super) fn measure(stand: &Stand<'_>, row: &WholeRow) -> MeasuredWhole {
    eprintln!("{} ...", row.id);
    let mut measured = MeasuredWhole::new(row);
    if let Err(error) = take_turns(stand, &mut measured) {
        eprintln!("{}: {error:#}", row.id);
        let fault = stand.bench_cluster.without_places(&format!("{error:#}"));
        measured.fault = Some(fault.trim().replace('\n', " "));
    }
    measured
}

fn take_turns(stand: &Stand<'_>, measured: &mut MeasuredWhole) -> Result<()> {
    let course = Course::new(stand, measured.row)?;
    course.cp()?;
    course.basebackup()?;
    measured.peak_memory_mib =
        Some(course.stopped(|course| process::watched(&mut course.command()))?);
    for _ in 0..stand.options.run.repetitions {
        measured.cp_ms.push(course.cp()?);
        measured.basebackup_ms.push(course.basebackup()?);
        let timed = course.stopped(|course| process::timed(&mut course.command()))?;
        measured.pagemill_ms.push(timed.0);
    }
    Ok(())
}

/// What the turns of a row have in common.
struct Course<'a> {
    stand: &'a Stand<'a>,
    row: WholeRow,
    /// Where copies are made, each in the place of the one before.
    copy: Cluster,
    oid: u32,
    fingerprint: String,
}

impl<'a> Course<'a> {
    fn new(stand: &'a Stand<'a>, row: WholeRow) -> Result<Self> {
        let cluster = &stand.bench_cluster.cluster;
        let name = Template::Large.database();
        let server = cluster.start(launch(stand.options, SETTINGS))?;
        let directory = cluster.directory.join("copy");
        cluster.own_directory(&directory)?;
        Ok(Self {
            stand,
            row,
            copy: Cluster::open(&directory, row.major)?,
            oid: oid_of(&server, name)?,
            fingerprint: answer_in(&server, name, Template::Large.fingerprint())?,
        })
    }

    fn source(&self) -> PathBuf {
        self.stand.bench_cluster.cluster.data()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.stand.binary);
        command.args(["clone", "--cluster", "--stats=json"]);
        command.args(self.stand.options.jobs.map(|jobs| format!("--jobs={jobs}")));
        command.arg(self.source()).arg(self.copy.data()).stdin(Stdio::null());
        command
    }

    fn cp(&self) -> Result<f64> {
        self.stopped(|course| {
            let start = Instant::now();
            let mut cp = Command::new("cp");
            output_of(
                cp.args(["-a", "--reflink=never"]).arg(course.source()).arg(course.copy.data()),
            )?;
            output_of(Command::new("sync").arg("-f").arg(course.copy.data()))?;
            Ok(start.elapsed().as_secs_f64() * 1000.0)
        })
    }

    fn basebackup(&self) -> Result<f64> {
        let cluster = &self.stand.bench_cluster.cluster;
        let server = cluster.start(launch(self.stand.options, SETTINGS))?;
        self.settle()?;
        let start = Instant::now();
        output_of(&mut server.basebackup(&self.copy.data()))?;
        let milliseconds = start.elapsed().as_secs_f64() * 1000.0;
        drop(server);
        self.compare_and_remove()?;
        Ok(milliseconds)
    }

    /// Makes a copy of the stopped cluster, and looks at it.
    fn stopped<T>(&self, make: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        self.settle()?;
        let made = make(self)?;
        self.compare_and_remove()?;
        Ok(made)
    }

    fn settle(&self) -> Result<()> {
        self.stand.bench_cluster.settle(self.stand.options, Template::Large, self.oid)
    }

    fn compare_and_remove(&self) -> Result<()> {
        let server = self.copy.start(launch(self.stand.options, SETTINGS))?;
        let found = answer_in(&server, Template::Large.database(), Template::Large.fingerprint())?;
        let id = self.row.id;
        ensure!(found == self.fingerprint, "{id}: a copy says {found}, not {}", self.fingerprint);
        drop(server);
        remove(&self.copy.data())
    }
}

impl Drop for Course<'_> {
    fn drop(&mut self) {
        // What is left of it goes with the cluster it lies beside.
        let _ = std::fs::remove_dir_all(&self.copy.directory);
    }
}

fn remove(data: &Path) -> Result<()> {
    std::fs::remove_dir_all(data)?;
    Ok(())
}
