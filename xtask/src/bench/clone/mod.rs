//! `cargo xtask bench clone`: `pagemill clone` against CREATE DATABASE of PostgreSQL 15 and 18, durable at the end.
//!
//! ```text
//! ground (a cluster) ──► row by row: CREATE DATABASE and clone in turns, copies compared ──► claims ──► runs/
//! ```
//!
//! Both sides copy the same database of one cluster. The server is started for its turn, and to look at what pagemill
//! has made; its start and stop are in nobody's time. Whole clusters are copied beside `cp -a` and `pg_basebackup`. One cluster lies on the disk at a time: rows of the same version
//! and file system share it. Invariant: at the end the clusters are gone, whatever became of a row.

mod bench_cluster;
mod calls;
mod cloner;
mod options;
mod report;
mod rows;
mod turns;
mod whole;

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{artifact, binary, environment, settling, version_of};
use crate::workspace;
use bench_cluster::BenchCluster;
pub(super) use options::Options;
use rows::Selected;
use turns::{Measured, Stand};
use whole::MeasuredWhole;

type Environment = Vec<(&'static str, String)>;

/// Everything a report is made of.
struct Bench {
    options: Options,
    environment: Environment,
    measured: Vec<Measured>,
    wholes: Vec<MeasuredWhole>,
}

impl Bench {
    fn has_fault(&self) -> bool {
        self.measured.iter().any(|measured| measured.fault.is_some())
            || self.wholes.iter().any(|measured| measured.fault.is_some())
    }
}

/// Runs the benchmark with these options; false when a row failed. A missed target is a result like others.
pub(super) fn run(options: Options) -> Result<bool> {
    let rows = rows::selected(&options.selected)?;
    if options.list {
        rows.names().iter().for_each(|name| println!("{name}"));
        return Ok(true);
    }
    let root = workspace::root();
    let binary = binary(options.sides.pagemill.as_deref(), &root)?;
    let bench = measure(options, &rows, &binary, &root)?;
    let page = report::markdown(&bench);
    println!("\n{page}");
    let place = if bench.options.run.quick { place(&bench.options) } else { root.join("runs") };
    let (name, numbers) = (&bench.options.run.name, report::raw(&bench));
    for path in artifact::keep(&place, name, &bench.environment, &page, &numbers)? {
        println!("kept: {}", path.display());
    }
    Ok(!bench.has_fault())
}

/// Where clusters lie.
fn place(options: &Options) -> PathBuf {
    options.run.directory.clone().unwrap_or_else(|| workspace::root().join("target/bench-clone"))
}

fn measure(options: Options, rows: &Selected, binary: &Path, root: &Path) -> Result<Bench> {
    let mut bench = Bench {
        options,
        environment: Environment::new(),
        measured: Vec::new(),
        wholes: Vec::new(),
    };
    let mut versions = Vec::new();
    for kind in rows.grounds() {
        let databases = rows.rows.iter().filter(|row| row.bench_cluster() == kind);
        let wholes = rows.wholes.iter().filter(|row| row.bench_cluster() == kind);
        let bench_cluster = match BenchCluster::make(&bench.options, kind, &place(&bench.options)) {
            Ok(Ok(bench_cluster)) => bench_cluster,
            Ok(Err(unavailable)) => {
                let reason = unavailable.to_string();
                bench.measured.extend(databases.map(|row| Measured::absent(row, &reason)));
                continue;
            }
            Err(error) => {
                bench.wholes.extend(wholes.map(|row| MeasuredWhole::failed(row, &error)));
                bench.measured.extend(databases.map(|row| Measured::failed(row, &error)));
                continue;
            }
        };
        if bench.environment.is_empty() {
            let directory = &bench_cluster.cluster.directory;
            bench.environment =
                environment::of_directory(directory, None, version_of(binary), root);
        }
        versions.push(bench_cluster.cluster.version());
        let stand = Stand { options: &bench.options, bench_cluster: &bench_cluster, binary };
        // First, as the others leave WAL behind, which not everybody copies.
        bench.wholes.extend(wholes.map(|row| whole::measure(&stand, row)));
        bench.measured.extend(databases.map(|row| stand.measure(row)));
        bench_cluster.remove()?;
    }
    versions.dedup();
    bench.environment.push(("postgresql", versions.join("; ")));
    bench.environment.push(settling::told());
    Ok(bench)
}
