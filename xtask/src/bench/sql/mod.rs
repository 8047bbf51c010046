//! `cargo xtask bench sql`: statements on a stopped cluster, against PostgreSQL 18 on a copy of it, and DuckDB on Parquet.
//!
//! ```text
//! TPC-H's rows ──► server fills, stops ──► copy ──► server on the copy ┐
//!                                     └──► stopped ──► pagemill-sql    ├ row by row, in turns, answers compared ──► runs/
//!                                                 └──► Parquet, DuckDB ┘
//! ```
//!
//! Invariant: at the end the clusters are gone, whatever became of a row.

mod bench_cluster;
mod options;
mod report;
mod rows;
mod tpch;
mod turns;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::{artifact, binary, environment, output_of, version_of};
use crate::workspace;
use bench_cluster::BenchCluster;
pub(super) use options::Options;
use turns::{Measured, Stand};

/// Everything a report is made of.
struct Bench {
    options: Options,
    environment: Vec<(&'static str, String)>,
    /// What the server runs with.
    settings: String,
    duckdb: Option<String>,
    measured: Vec<Measured>,
}

/// Runs the benchmark with these options; false when a row failed. A missed target is a result like others.
pub(super) fn run(options: Options) -> Result<bool> {
    let rows = rows::selected(&options.selected, options.scale)?;
    if options.list {
        rows.iter().for_each(|row| println!("{}", row.id));
        return Ok(true);
    }
    let root = workspace::root();
    let pagemill = binary(options.pagemill.as_deref(), &root)?;
    let pagemill_sql = sql_binary(options.pagemill_sql.as_deref(), &root)?;
    let default = || workspace::target_directory(&root).join("bench-sql");
    let directory = options.run.directory.clone().unwrap_or_else(default);
    let cluster = BenchCluster::make(&options, &directory)?;
    let environment = environment::collect(&cluster.served, version_of(&pagemill), &root);
    let (settings, duckdb) = (cluster.settings(), turns::duckdb_version());
    let mut bench = Bench { options, environment, settings, duckdb, measured: Vec::new() };
    let done = measure(&mut bench, &cluster, &rows, (&pagemill, &pagemill_sql));
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
    cluster: &BenchCluster,
    rows: &[rows::Row],
    (pagemill, pagemill_sql): (&Path, &Path),
) -> Result<()> {
    let server = cluster.start()?;
    let parquet = cluster.scratch()?.join("parquet");
    let parquet = bench.duckdb.is_some().then_some(parquet.as_path());
    let repetitions = bench.options.run.repetitions;
    let stand = Stand { cluster, server: &server, pagemill_sql, pagemill, parquet, repetitions };
    if let Some(parquet) = parquet {
        std::fs::create_dir_all(parquet)?;
        for table in &tpch::TABLES {
            output_of(
                &mut stand.exporting(table.name, &parquet.join(format!("{}.parquet", table.name))),
            )?;
        }
    }
    cluster.cache()?;
    for row in rows {
        eprintln!("{} ...", row.id);
        bench.measured.push(stand.measure(row));
    }
    Ok(())
}

/// The given program, or a release build of the one for SQL.
fn sql_binary(given: Option<&Path>, root: &Path) -> Result<PathBuf> {
    if given.is_some() {
        return binary(given, root);
    }
    eprintln!("building pagemill-sql, release: 10 minutes from nothing on two cores ...");
    let target = workspace::target_directory(root).join("sql");
    let mut command = workspace::cargo();
    command.args(["build", "--release", "--locked", "--quiet", "--target-dir"]).arg(&target);
    command.current_dir(root.join("crates/pagemill-sql"));
    if !command.status()?.success() {
        bail!("failed: {}", super::shown(&command));
    }
    Ok(target.join("release/pagemill-sql"))
}
