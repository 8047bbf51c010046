//! The flags of `cargo xtask bench wal`.
//!
//! Invariant: every number is at least 1.

use clap::Args;

use crate::bench::options::{PG15_AND_PG18, RunOptions, SidesOptions, number};

const NOTE: &str = "Servers are killed, and their directories read as they lie, beside servers that recover copies of
them; the result is kept under runs/.

";

/// Measure reading killed clusters against the recovery of PostgreSQL 15 and 18
#[derive(Debug, Clone, PartialEq, Args)]
#[command(
    mut_arg("repetitions", |arg| arg.default_value_if("quick", "true", "3")
        .help("Timed turns of each contestant, after one that makes sure that answers agree")),
    mut_arg("name", |arg| arg.default_value("wal")),
    mut_arg("directory", |arg| {
        arg.help("Where the clusters lie, removed at the end [default: target/bench-wal]")
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
    /// WAL since the checkpoint, at least
    #[arg(long, value_name = "MIB", value_parser = number::<u64>)]
    #[arg(default_value = "1024", default_value_if("quick", "true", "96"))]
    pub(in crate::bench) wal_mib: u64,
    /// Rows of table accounts (2000000 are 260 MB), and a quarter of those of the other two tables
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    #[arg(default_value = "2000000", default_value_if("quick", "true", "200000"))]
    pub(in crate::bench) rows: u64,
    #[command(flatten)]
    pub(in crate::bench) run: RunOptions,
    #[command(flatten)]
    pub(super) sides: SidesOptions,
}
