//! `cargo xtask bench load`: `pagemill load` against COPY of PostgreSQL 15, durable at the end.
//!
//! ```text
//! ground (cluster, inputs) ──► row by row: COPY and load in turns, rows counted ──► claims ──► runs/
//! ```
//!
//! Both sides fill tables of one cluster from one file. The server is started for its turn, and to look at what
//! pagemill has loaded; its start and stop are in nobody's time. Invariant: at the end the cluster and the inputs are
//! gone, whatever became of a row.

mod bench_cluster;
mod loader;
mod options;
mod report;
mod rows;
mod turns;

use anyhow::Result;

use super::{artifact, binary, environment, settling, version_of};
use crate::workspace;
use bench_cluster::BenchCluster;
use loader::Loader;
pub(super) use options::Options;
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
    let bench_cluster = BenchCluster::make(&options)?;
    let directory = bench_cluster.cluster.directory.clone();
    let mut environment = environment::collect(&bench_cluster.cluster, version_of(&binary), &root);
    environment.push(settling::told());
    let loader = Loader { binary, data: bench_cluster.cluster.data() };
    let stand = Stand { options: &options, bench_cluster: &bench_cluster, loader: &loader };
    let measure = |row: &rows::Row| {
        eprintln!("{} ...", row.id);
        stand.measure(row)
    };
    let measured = rows.iter().map(measure).collect();
    bench_cluster.remove()?;
    let bench = Bench { options, environment, measured };
    let page = report::markdown(&bench);
    println!("\n{page}");
    let place = if bench.options.run.quick { directory } else { root.join("runs") };
    let (name, numbers) = (&bench.options.run.name, report::raw(&bench));
    for path in artifact::keep(&place, name, &bench.environment, &page, &numbers)? {
        println!("kept: {}", path.display());
    }
    Ok(bench.measured.iter().all(|measured| measured.fault.is_none()))
}
