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

use std::path::Path;

use anyhow::Result;

use super::twin_clusters::TwinClusters;
use super::{artifact, binary, environment, output_of, sql_program, version_of};
use crate::workspace;
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
    let pagemill_sql = sql_program(options.pagemill_sql.as_deref(), &root, "pagemill-sql")?;
    let default = || workspace::target_directory(&root).join("bench-sql");
    let directory = options.run.directory.clone().unwrap_or_else(default);
    let cluster = bench_cluster::make(&options, &directory)?;
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
    cluster: &TwinClusters,
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
