//! `cargo xtask bench wal`: a killed cluster read as it lies, against PostgreSQL 15 and 18 that recover it first.
//!
//! ```text
//! a cluster, its server killed ──► row by row: both sides in turns, counts compared ──► runs/
//! ```
//!
//! Pagemill reads the killed cluster, which nobody changes; a server gets a fresh copy of it for each turn. One cluster lies
//! on the disk at a time: rows of the same version share it. Invariant: at the end the clusters are gone, whatever became of a
//! row.

mod bench_cluster;
mod options;
mod report;
mod rows;
mod turns;

use std::path::Path;

use anyhow::Result;

use super::{artifact, binary, environment, version_of};
use crate::workspace;
use bench_cluster::BenchCluster;
pub(super) use options::Options;
use rows::Row;
use turns::{Measured, Stand};

/// Everything a report is made of.
struct Bench {
    options: Options,
    environment: Vec<(&'static str, String)>,
    measured: Vec<Measured>,
}

/// Runs the benchmark with these options; false when a row failed. A missed target is a result like others.
pub(super) fn run(options: Options) -> Result<bool> {
    let rows = rows::selected(&options.selected)?;
    if options.list {
        rows.iter().for_each(|row| println!("{}", row.id));
        return Ok(true);
    }
    let root = workspace::root();
    let binary = binary(options.sides.pagemill.as_deref(), &root)?;
    let default = || workspace::root().join("target/bench-wal");
    let directory = options.run.directory.clone().unwrap_or_else(default);
    let mut bench = Bench { options, environment: Vec::new(), measured: Vec::new() };
    let mut versions = Vec::new();
    for rows in rows.chunk_by(|one, next| one.major == next.major) {
        let cluster = measure(&mut bench, rows, &binary, &directory)?;
        versions.push(cluster.killed.version());
        if bench.environment.is_empty() {
            bench.environment = environment::collect(&cluster.killed, version_of(&binary), &root);
        }
        cluster.remove()?;
    }
    name_versions(&mut bench.environment, &versions);
    let page = report::markdown(&bench);
    println!("\n{page}");
    let place = if bench.options.run.quick { directory } else { root.join("runs") };
    let (name, numbers) = (&bench.options.run.name, report::raw(&bench));
    for path in artifact::keep(&place, name, &bench.environment, &page, &numbers)? {
        println!("kept: {}", path.display());
    }
    Ok(bench.measured.iter().all(|measured| measured.fault.is_none()))
}

/// Measures rows of one version, on the cluster that is then given.
fn measure(
    bench: &mut Bench,
    rows: &[Row],
    binary: &Path,
    directory: &Path,
) -> Result<BenchCluster> {
    let cluster = BenchCluster::make(&bench.options, rows[0].major, directory)?;
    let stand =
        Stand { bench_cluster: &cluster, binary, repetitions: bench.options.run.repetitions };
    for row in rows {
        eprintln!("{} ...", row.id);
        bench.measured.push(stand.measure(row));
    }
    Ok(cluster)
}

/// The versions of all servers, in place of the first one's.
fn name_versions(environment: &mut [(&'static str, String)], versions: &[String]) {
    for (_, value) in environment.iter_mut().filter(|(name, _)| *name == "postgresql") {
        *value = versions.join("; ");
    }
}
