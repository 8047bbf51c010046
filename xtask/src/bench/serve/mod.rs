//! `cargo xtask bench serve`: what clients get of `pagemill serve`, against PostgreSQL 18 on a copy of the same files.
//!
//! ```text
//! server fills, stops ──► copy ──► server on the copy ┐
//!                    └──► stopped ──► pagemill serve  ┴─ pgbench and psql, in turns ──► runs/
//! ```
//!
//! Invariants: both servers run all the time, and one alone is asked at a time; at the end the clusters are gone, whatever became
//! of a row.

mod bench_cluster;
mod idle_client;
mod options;
mod report;
mod rows;
mod serving;
mod turns;

use std::path::Path;

use anyhow::Result;

use super::twin_clusters::TwinClusters;
use super::{artifact, environment, sql_program, version_of};
use crate::workspace;
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
    let program = sql_program(options.pagemill_serve.as_deref(), &root, "pagemill-serve")?;
    let default = || workspace::target_directory(&root).join("bench-serve");
    let directory = options.run.directory.clone().unwrap_or_else(default);
    let cluster = bench_cluster::make(&options, &directory)?;
    let environment = environment::collect(&cluster.served, version_of(&program), &root);
    let mut bench = Bench { options, environment, measured: Vec::new() };
    let done = measure(&mut bench, &cluster, &rows, &program);
    cluster.remove()?;
    done?;
    let page = report::markdown(&bench);
    println!("\n{page}");
    let place = if bench.options.run.quick { directory } else { root.join("runs") };
    let (name, numbers) = (&bench.options.run.name, report::raw(&bench));
    for path in artifact::keep(&place, name, &bench.environment, &page, &numbers)? {
        println!("kept: {}", path.display());
    }
    Ok(bench.measured.iter().all(|measured| measured.fault.is_none()))
}

fn measure(
    bench: &mut Bench,
    cluster: &TwinClusters,
    rows: &[rows::Row],
    program: &Path,
) -> Result<()> {
    let server = cluster.start()?;
    cluster.cache()?;
    let stand = Stand { cluster, server: &server, program, options: &bench.options };
    for row in rows {
        eprintln!("{} ...", row.id);
        bench.measured.push(stand.measure(row));
    }
    Ok(())
}
