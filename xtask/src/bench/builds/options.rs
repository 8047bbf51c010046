//! The flags of `cargo xtask bench builds`.
//!
//! Invariant: every number is at least 1.

use std::path::PathBuf;

use clap::Args;

use crate::bench::options::{PG15, RunOptions, number};

/// Measure this build of pagemill against an earlier one, in turns on the same files
#[derive(Debug, Clone, PartialEq, Args)]
#[command(
    mut_arg("repetitions", |arg| arg.default_value("7").default_value_if("quick", "true", "3")
        .help("Timed pairs of turns for each row, after one of each that is not timed")),
    mut_arg("name", |arg| arg.default_value("builds")),
    mut_arg("directory", |arg| arg.help("Where the cluster lies [default: target/bench-builds]")),
    after_help = PG15
)]
pub(crate) struct Options {
    /// The beginnings of names of rows; all rows without one
    #[arg(value_name = "ROW")]
    pub(super) selected: Vec<String>,
    /// The earlier build
    #[arg(long, value_name = "PATH")]
    pub(super) before: PathBuf,
    /// The later build, instead of one of this tree
    #[arg(long, value_name = "PATH")]
    pub(super) after: Option<PathBuf>,
    /// Rows of table t
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    #[arg(default_value = "1000000", default_value_if("quick", "true", "20000"))]
    pub(in crate::bench) rows: u64,
    /// Rows of table bigtable
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    #[arg(default_value = "1500000", default_value_if("quick", "true", "15000"))]
    pub(in crate::bench) bigtable_rows: u64,
    #[command(flatten)]
    pub(in crate::bench) run: RunOptions,
}
