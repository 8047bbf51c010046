//! `cargo xtask bench clone`: `pagemill clone` against CREATE DATABASE of PostgreSQL 15 and 18, durable at the end.
//!
//! ```text
//! ground (a cluster) ──► row by row: CREATE DATABASE and clone in turns, copies compared ──► claims ──► runs/
//! ```
//!
//! Both sides copy the same database of one cluster. The server is started for its turn, and to look at what pagemill
//! has made; its start and stop are in nobody's time. One cluster lies on the disk at a time: rows of the same version
//! and file system share it. Invariant: at the end the clusters are gone, whatever became of a row.

mod calls;
mod cloner;
mod ground;
mod options;
mod report;
mod rows;
mod turns;

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{binary, environment, kept, version_of};
use crate::workspace;
use ground::{Ground, Made};
use options::Options;
use rows::{Place, Row};
use turns::{Measured, Stand};

type Environment = Vec<(&'static str, String)>;

/// Everything a report is made of.
struct Bench {
    options: Options,
    environment: Environment,
    measured: Vec<Measured>,
}

/// Runs the benchmark with these arguments; false when a row failed. A missed target is a result like others.
pub(super) fn run(arguments: &[String]) -> Result<bool> {
    let Some(options) = Options::parse(arguments)? else { return Ok(true) };
    let rows = rows::selected(&options.selected)?;
    if options.list {
        rows.iter().for_each(|row| println!("{}", row.id));
        return Ok(true);
    }
    let root = workspace::root();
    let binary = binary(options.pagemill.as_deref(), &root)?;
    let bench = measure(options, &rows, &binary, &root)?;
    let page = report::markdown(&bench);
    println!("\n{page}");
    let place = if bench.options.quick { place(&bench.options) } else { root.join("runs") };
    let (name, numbers) = (&bench.options.name, report::raw(&bench));
    for path in kept::keep(&place, name, &bench.environment, &page, &numbers)? {
        println!("kept: {}", path.display());
    }
    Ok(bench.measured.iter().all(|measured| measured.fault.is_none()))
}

/// Where clusters lie.
fn place(options: &Options) -> PathBuf {
    options.directory.clone().unwrap_or_else(|| workspace::root().join("target/bench-clone"))
}

fn measure(options: Options, rows: &[Row], binary: &Path, root: &Path) -> Result<Bench> {
    let mut environment = Environment::new();
    let mut versions = Vec::new();
    let mut measured = Vec::new();
    for group in rows.chunk_by(|a, b| a.ground() == b.ground()) {
        let Some(first) = group.first() else { continue };
        let ground = match Ground::make(&options, first, &place(&options)) {
            Ok(Made::Ground(ground)) => ground,
            Ok(Made::Unavailable(reason)) => {
                measured.extend(group.iter().map(|row| Measured::absent(row, &reason)));
                continue;
            }
            Err(error) => {
                measured.extend(group.iter().map(|row| Measured::failed(row, &error)));
                continue;
            }
        };
        if environment.is_empty() || first.place == Place::Here && versions.is_empty() {
            let directory = &ground.cluster.directory;
            environment = environment::of_directory(directory, None, version_of(binary), root);
        }
        versions.extend(ground.cluster.version());
        let stand = Stand { options: &options, ground: &ground, binary };
        for row in group {
            eprintln!("{} ...", row.id);
            measured.push(stand.measure(row));
        }
        ground.remove()?;
    }
    versions.dedup();
    environment.push(("postgresql", versions.join("; ")));
    Ok(Bench { options, environment, measured })
}
