//! The flags of `cargo xtask bench clone`.
//!
//! Invariant: every number is at least 1.

use clap::Args;

use crate::bench::options::{PG15_AND_PG18, RunOptions, SidesOptions, number};

const NOTE: &str = "In one cluster, durable at the end; the result is kept under runs/. Making XFS on a loop device
needs root and mkfs.xfs, counting calls needs strace; where they are missing, the result says so.

";

/// Measure `pagemill clone` against CREATE DATABASE of PostgreSQL 15 and 18
#[derive(Debug, Clone, PartialEq, Args)]
#[command(
    mut_arg("repetitions", |arg| arg.default_value_if("quick", "true", "3")
        .help("Timed pairs of runs for each row, after one warm-up")),
    mut_arg("name", |arg| arg.default_value("clone")),
    mut_arg("directory", |arg| {
        arg.help("Where the clusters lie, removed at the end [default: target/bench-clone]")
    }),
    after_help = [NOTE, PG15_AND_PG18].concat()
)]
pub(crate) struct Options {
    /// The beginning of a row's name; all rows without one
    #[arg(value_name = "ROW")]
    pub(super) selected: Vec<String>,
    /// List the rows; nothing is measured
    #[arg(long)]
    pub(super) list: bool,
    /// Rows of table t (2000000 are 1.3 GB)
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    #[arg(default_value = "2000000", default_value_if("quick", "true", "50000"))]
    pub(in crate::bench) rows: u64,
    /// The database that is copied is not in the page cache; without this flag, it is
    #[arg(long)]
    pub(super) cold: bool,
    /// Do not count calls with strace, which takes one more run of each side
    #[arg(long)]
    pub(in crate::bench) no_calls: bool,
    /// pagemill's --jobs
    #[arg(long, value_name = "N", value_parser = number::<usize>)]
    pub(super) jobs: Option<usize>,
    #[command(flatten)]
    pub(in crate::bench) run: RunOptions,
    #[command(flatten)]
    pub(super) sides: SidesOptions,
}
