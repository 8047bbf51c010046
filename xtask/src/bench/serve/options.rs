//! The flags of `cargo xtask bench serve`.
//!
//! Invariant: every number is at least 1.

use std::path::PathBuf;

use clap::Args;

use crate::bench::options::{RunOptions, number};

const NOTE: &str = "Accounts as pgbench makes them are loaded into PostgreSQL 18, which answers from a copy of the stopped cluster
that pagemill serves. The result is kept under runs/. Row `soak` takes --soak-minutes, and runs only when
it is named.

Environment:
  PAGEMILL_PG18_BINDIR  the directory of the server's programs";

/// Measure what clients get of `pagemill serve` against PostgreSQL 18
#[derive(Debug, Clone, PartialEq, Args)]
#[command(
    mut_arg("repetitions", |arg| arg.default_value_if("quick", "true", "2")
        .help("Timed turns of each contestant")),
    mut_arg("name", |arg| arg.default_value("serve")),
    mut_arg("directory", |arg| {
        arg.help("Where the clusters lie, removed at the end [default: target/bench-serve]")
    }),
    after_help = NOTE
)]
pub(crate) struct Options {
    /// The beginning of a row's name; all rows without one
    #[arg(value_name = "ROW")]
    pub(super) selected: Vec<String>,
    /// List the rows; nothing is measured
    #[arg(long)]
    pub(super) list: bool,
    /// Accounts, in thousands
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    #[arg(default_value = "2000", default_value_if("quick", "true", "100"))]
    pub(in crate::bench) thousands: u64,
    /// How many seconds clients ask for in a turn
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    #[arg(default_value = "8", default_value_if("quick", "true", "1"))]
    pub(in crate::bench) seconds: u64,
    /// How long row `soak` lasts
    #[arg(long, value_name = "N", value_parser = number::<u64>, default_value = "10")]
    pub(super) soak_minutes: u64,
    /// The server's shared_buffers
    #[arg(long, value_name = "SIZE", default_value = "1GB")]
    pub(super) shared_buffers: String,
    /// Measure this program instead of building one
    #[arg(long, value_name = "PATH")]
    pub(super) pagemill_serve: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::bench) run: RunOptions,
}
