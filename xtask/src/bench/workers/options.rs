//! The flags of `cargo xtask bench workers`.
//!
//! Invariant: every number is at least 1.

use std::path::PathBuf;

use clap::Args;

use crate::bench::options::{PG15, RunOptions, number};

/// Measure three workers against one, each with a slow link of its own to an object store
#[derive(Debug, Clone, PartialEq, Args)]
#[command(
    mut_arg("repetitions", |arg| arg.default_value("5").default_value_if("quick", "true", "2")
        .help("Timed turns of each row, after one that is not timed")),
    mut_arg("name", |arg| arg.default_value("workers")),
    mut_arg("directory", |arg| arg.help("Where the cluster lies [default: target/bench-workers]")),
    after_help = PG15
)]
pub(crate) struct Options {
    /// Measure this program instead of building one; it has the feature ballista
    #[arg(long, value_name = "PATH")]
    pub(super) pagemill_sql: Option<PathBuf>,
    /// Serve by this binary instead of building one
    #[arg(long, value_name = "PATH")]
    pub(super) testbucket: Option<PathBuf>,
    /// Milliseconds before each answer
    #[arg(long, value_name = "MS", value_parser = number::<u64>, default_value = "30")]
    pub(super) latency: u64,
    /// What the link of each worker brings, in MB per second
    #[arg(long, value_name = "MB", value_parser = number::<u64>, default_value = "40")]
    pub(super) rate: u64,
    /// Rows of the table
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    #[arg(default_value = "1000000", default_value_if("quick", "true", "200000"))]
    pub(in crate::bench) rows: u64,
    #[command(flatten)]
    pub(in crate::bench) run: RunOptions,
}
