//! `cargo xtask bench tables`: pagemill against PostgreSQL 15 on whole commands, on the same rows, in turns.
//!
//! Known unevenness, stated in each report: PostgreSQL is timed by psql's `\timing`, so it pays for one
//! round trip over a Unix socket and not for its start; pagemill is timed from outside as a whole
//! process, start included. The two read twin directories with equal contents, since a data
//! directory whose server runs is not one pagemill should read; with `--same-directory` they read one, and the
//! server is stopped whenever pagemill runs.

mod cache;
mod options;
mod pagemill;
mod report;
mod rows;
mod runs;
mod twins;

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};

use super::{environment, output_of, settling};
use crate::workspace;
pub(super) use options::Options;
use pagemill::Pagemill;
use rows::Row;
use runs::Measured;
use twins::{Host, Twins};

/// Everything a report is made of.
struct Bench {
    options: Options,
    environment: Vec<(&'static str, String)>,
    measured: Vec<Measured>,
    /// Seconds of a clean release build, when asked for.
    build_s: Option<f64>,
    /// Share of the tables' files that was in the page cache before the first run.
    cached_share: Option<f64>,
}

/// Runs the benchmark with these options; false when a row failed or its answers differed. A missed
/// target is a result like another, and stands in the report.
pub(crate) fn run(options: Options) -> Result<bool> {
    let root = workspace::root();
    let rows = rows::selected(&options.selected, options.jobs_cores().is_some())?;
    let twins = Twins::prepare(&options)?;
    let pagemill = match options.server_only {
        true => None,
        false => Some(Pagemill::find(&options, &twins, &root)?),
    };
    let bench = measure(options, &rows, &twins, pagemill.as_ref(), &root)?;
    println!("\n{}", report::markdown(&bench));
    let is_result = !bench.options.run.quick && !bench.options.server_only;
    let place = if is_result { root.join("runs") } else { twins.cluster.directory.clone() };
    for path in report::keep(&bench, &place)? {
        println!("kept: {}", path.display());
    }
    Ok(bench.measured.iter().all(|measured| measured.fault.is_none()))
}

fn measure(
    options: Options,
    rows: &[Row],
    twins: &Twins,
    pagemill: Option<&Pagemill>,
    root: &Path,
) -> Result<Bench> {
    let cluster = &twins.cluster;
    let build_s = if options.build { Some(build_seconds(&cluster.directory, root)?) } else { None };
    let version = pagemill.and_then(Pagemill::version);
    let mut environment = environment::collect(cluster, version, root);
    environment.push(settling::told());
    let cached_share = cache::warm(&twins.directories(&options), !options.as_written)?;
    let host = Host::new(twins, &options);
    let mut measured = Vec::new();
    for row in rows {
        eprintln!("{} ...", row.id);
        measured.push(runs::measure(row, &options, &host, pagemill)?);
    }
    drop(host);
    Ok(Bench { options, environment, measured, build_s, cached_share })
}

/// Builds the release binary from nothing, in a directory of its own.
fn build_seconds(directory: &Path, root: &Path) -> Result<f64> {
    let target = directory.join("build");
    if target.exists() {
        std::fs::remove_dir_all(&target)?;
    }
    let start = Instant::now();
    let status = workspace::cargo()
        .args(["build", "--release", "--quiet", "-p", "pagemill"])
        .env("CARGO_TARGET_DIR", &target)
        .current_dir(root)
        .status()?;
    let took = start.elapsed().as_secs_f64();
    std::fs::remove_dir_all(&target).ok();
    if !status.success() {
        bail!("the release build failed");
    }
    Ok(took)
}
