//! The flags of `cargo xtask bench tables`.
//!
//! Invariant: every number is at least 1, and the core is one of this machine.

use clap::Args;

use crate::bench::options::{PG15, RunOptions, SidesOptions, core, cores, default_core, number};

/// Measure whole commands against PostgreSQL 15, and keep the result under runs/
#[derive(Debug, Clone, PartialEq, Args)]
#[command(
    mut_arg("repetitions", |arg| arg.default_value_if("quick", "true", "3")
        .help("Timed pairs of runs for each row, after one warm-up")),
    mut_arg("directory", |arg| arg.help("Where the clusters lie [default: target/bench]")),
    after_help = PG15
)]
pub(crate) struct Options {
    /// count, export, startup, or the beginning of a row's name; all rows without one
    #[arg(value_name = "ROW")]
    pub(in crate::bench) selected: Vec<String>,
    /// Rows of table t
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    #[arg(default_value = "2000000", default_value_if("quick", "true", "20000"))]
    pub(in crate::bench) rows: u64,
    /// Rows of table bigtable
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    #[arg(default_value = "1500000", default_value_if("quick", "true", "15000"))]
    pub(in crate::bench) bigtable_rows: u64,
    /// The core both sides are pinned to
    #[arg(long, value_name = "N", default_value_t = default_core(), value_parser = core)]
    pub(super) core: usize,
    /// Make the clusters again
    #[arg(long)]
    pub(super) fresh: bool,
    /// Make them with data checksums
    #[arg(long)]
    pub(super) data_checksums: bool,
    /// No copy: pagemill reads the server's own directory, the server stopped meanwhile
    #[arg(long)]
    pub(super) same_directory: bool,
    /// Leave in the page cache what writing the clusters left there (with --fresh)
    #[arg(long)]
    pub(super) as_written: bool,
    /// PostgreSQL's side alone
    #[arg(long)]
    pub(super) server_only: bool,
    /// Time a clean release build too
    #[arg(long)]
    pub(super) build: bool,
    #[command(flatten)]
    pub(in crate::bench) run: RunOptions,
    #[command(flatten)]
    pub(super) sides: SidesOptions,
}

impl Options {
    /// The two cores of the `-j 2` rows, as taskset writes them; none on a machine with one core.
    pub(super) fn jobs_cores(&self) -> Option<String> {
        let other = if self.core == 0 { 1 } else { self.core - 1 };
        (cores() > 1).then(|| format!("{other},{}", self.core))
    }
}
