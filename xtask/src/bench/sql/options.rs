//! The flags of `cargo xtask bench sql`.
//!
//! Invariant: every number is at least 1; the scale is above 0.

use std::path::PathBuf;

use clap::Args;

use crate::bench::options::RunOptions;

const NOTE: &str = "TPC-H's tables are loaded into PostgreSQL 18, with a primary key each, an index on each foreign key and one on lower(c_name); the
server answers from a copy of the stopped cluster that pagemill reads. The result is kept under runs/. DuckDB takes part
where python3 has its module.

Environment:
  PAGEMILL_PG18_BINDIR  the directory of the server's programs";

/// Measure statements against PostgreSQL 18 with two workers, and DuckDB on Parquet of the same rows
#[derive(Debug, Clone, PartialEq, Args)]
#[command(
    mut_arg("repetitions", |arg| arg.default_value_if("quick", "true", "3")
        .help("Timed turns of each contestant, after one that makes sure that answers agree")),
    mut_arg("name", |arg| arg.default_value("sql")),
    mut_arg("directory", |arg| {
        arg.help("Where the clusters lie, removed at the end [default: target/bench-sql]")
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
    /// TPC-H's scale factor: 1 is 8.7 million rows, 2 GB with indexes
    #[arg(long, value_name = "FACTOR", value_parser = scale)]
    #[arg(default_value = "1", default_value_if("quick", "true", "0.05"))]
    pub(in crate::bench) scale: f64,
    /// The server's shared_buffers
    #[arg(long, value_name = "SIZE", default_value = "2GB")]
    pub(super) shared_buffers: String,
    /// Measure this program instead of building one
    #[arg(long, value_name = "PATH")]
    pub(super) pagemill_sql: Option<PathBuf>,
    /// Export with this program instead of building one
    #[arg(long, value_name = "PATH")]
    pub(super) pagemill: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::bench) run: RunOptions,
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(scale) if scale > 0.0 && scale <= 100.0 => Ok(scale),
        _ => Err("a number above 0, and at most 100".to_owned()),
    }
}
