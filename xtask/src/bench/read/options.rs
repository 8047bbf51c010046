//! The flags of `cargo xtask bench read`.
//!
//! Invariant: every number is at least 1, and the core is one of this machine.

use std::time::Duration;

use clap::Args;

use crate::bench::options::{PG15_AND_PG18, RunOptions, SidesOptions, core, default_core, number};

const NOTE: &str =
    "All on one data directory; the result is kept under runs/. Rows that need root, a program or a
device this machine has not are reported as SKIPPED.

";

/// Measure every way to read against PostgreSQL, the device and each other
#[derive(Debug, Clone, PartialEq, Args)]
#[command(
    mut_arg("repetitions", |arg| arg.default_value_if("quick", "true", "3")),
    mut_arg("name", |arg| arg.default_value("read")),
    mut_arg("directory", |arg| {
        arg.help("Where clusters and images of devices lie [default: target/bench-read]")
    }),
    after_help = [NOTE, PG15_AND_PG18].concat()
)]
pub(crate) struct Options {
    /// The beginning of a row's name; all rows without one
    #[arg(value_name = "ROW")]
    pub(super) selected: Vec<String>,
    /// List the rows, and what this binary cannot do yet; nothing is measured
    #[arg(long)]
    pub(super) list: bool,
    /// Take down what a killed run left: mounts, loop devices, control groups
    #[arg(long)]
    pub(super) clean: bool,
    /// Rows of table t (1500000 are about 1 GB)
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    #[arg(default_value = "1500000", default_value_if("quick", "true", "60000"))]
    pub(in crate::bench) rows: u64,
    /// Rows of table bigtable
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    #[arg(default_value = "1500000", default_value_if("quick", "true", "60000"))]
    pub(in crate::bench) bigtable_rows: u64,
    /// The core of the rows of one core
    #[arg(long, value_name = "N", default_value_t = default_core(), value_parser = core)]
    pub(super) core: usize,
    /// Make the clusters again
    #[arg(long)]
    pub(super) fresh: bool,
    /// Each disk of the mirror, MiB a second
    #[arg(long, value_name = "N", default_value = "60", value_parser = number::<u64>)]
    pub(super) mirror_mib_s: u64,
    /// The slow device, reads a second
    #[arg(long, value_name = "N", default_value = "2000", value_parser = number::<u64>)]
    pub(super) device_reads_s: u64,
    /// Seconds after which a run on a device or in little memory is cut off
    #[arg(long, value_name = "N", default_value = "120", value_parser = seconds)]
    pub(in crate::bench) patience: Duration,
    #[command(flatten)]
    pub(in crate::bench) run: RunOptions,
    #[command(flatten)]
    pub(super) sides: SidesOptions,
}

fn seconds(text: &str) -> Result<Duration, String> {
    number(text).map(Duration::from_secs)
}
