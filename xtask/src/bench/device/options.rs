//! The flags of `cargo xtask bench device`.
//!
//! Invariant: every number is at least 1.

use clap::Args;

use crate::bench::options::{RunOptions, number};

/// Measure the lab's experiment `device` against fio and pg_test_fsync
#[derive(Debug, Clone, PartialEq, Args)]
#[command(
    mut_arg("repetitions", |arg| arg.default_value_if("quick", "true", "1").help("Rounds")),
    mut_arg("name", |arg| arg.default_value("device")),
    mut_arg("directory", |arg| arg.help("Where the file lies [default: target/bench-device]")),
    after_help = "In turns, on one file; the result is kept under runs/."
)]
pub(crate) struct Options {
    /// The beginning of a row's name; all rows without one
    #[arg(value_name = "ROW")]
    pub(in crate::bench) selected: Vec<String>,
    /// Size of the file in MiB
    #[arg(long = "size-mib", value_name = "N", value_parser = number::<u64>)]
    #[arg(default_value = "1024", default_value_if("quick", "true", "64"))]
    pub(in crate::bench) mib: u64,
    /// How many seconds a turn lasts
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    #[arg(default_value = "2", default_value_if("quick", "true", "1"))]
    pub(in crate::bench) seconds: u64,
    #[command(flatten)]
    pub(in crate::bench) run: RunOptions,
}
