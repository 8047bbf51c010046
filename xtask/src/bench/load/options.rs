//! The flags of `cargo xtask bench load`.
//!
//! Invariant: every number is at least 1.

use clap::Args;

use crate::bench::options::{PG15, RunOptions, SidesOptions, number};

const NOTE: &str =
    "From the same files into the same cluster, durable at the end; the result is kept under runs/.

";

/// Measure `pagemill load` against COPY of PostgreSQL 15
#[derive(Debug, Clone, PartialEq, Args)]
#[command(
    mut_arg("repetitions", |arg| arg.default_value_if("quick", "true", "3")
        .help("Timed pairs of runs for each row, after one warm-up")),
    mut_arg("name", |arg| arg.default_value("load")),
    mut_arg("directory", |arg| {
        arg.help("Where cluster and inputs lie, removed at the end [default: target/bench-load]")
    }),
    after_help = [NOTE, PG15].concat()
)]
pub(crate) struct Options {
    /// The beginning of a row's name; all rows without one
    #[arg(value_name = "ROW")]
    pub(super) selected: Vec<String>,
    /// List the rows; nothing is measured
    #[arg(long)]
    pub(super) list: bool,
    /// Rows of table t (2000000 are 1.2 GB)
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    #[arg(default_value = "2000000", default_value_if("quick", "true", "20000"))]
    pub(in crate::bench) rows: u64,
    /// Rows of table bigtable
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    #[arg(default_value = "1500000", default_value_if("quick", "true", "15000"))]
    pub(in crate::bench) bigtable_rows: u64,
    #[command(flatten)]
    pub(in crate::bench) run: RunOptions,
    #[command(flatten)]
    pub(super) sides: SidesOptions,
}
