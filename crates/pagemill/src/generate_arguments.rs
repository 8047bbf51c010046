//! The flags of `pagemill generate`.
//!
//! Invariant: tables and sizes have no defaults: what is made fills a disk.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pagemill_cli::cluster_arguments::StatsForm;

use crate::options::write::WriteArguments;

/// Make the files of a table, without a cluster
///
/// For experiments on machines without PostgreSQL: relation files as a server would have written them
/// after COPY with FREEZE, named after the table. t has one column, filler text, of 601 to 620 bytes;
/// bigtable has three integers, random by --seed. The same options make the same files. A server reads
/// them in the place of the files of a table with such columns.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pagemill generate /mnt/test --table t --rows 2000000
  pagemill generate /mnt/test --table bigtable --rows 1500000 \\
      --seed 7 --checksums")]
pub(crate) struct GenerateArguments {
    /// Where to make them; the directory is created if it does not exist
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The table
    #[arg(short, long, value_enum, value_name = "TABLE")]
    pub(crate) table: TableChoice,
    /// How many rows
    #[arg(long, value_name = "N")]
    pub(crate) rows: u64,
    /// How full pages are made, in percent
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 100,
        value_parser = clap::value_parser!(u8).range(10..=100)
    )]
    pub(crate) fillfactor: u8,
    /// Give pages checksums, as in a cluster that has them
    #[arg(long)]
    pub(crate) checksums: bool,
    /// Seed of the random integers
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Threads that form rows [default: one for each processor, at most 8]
    #[arg(
        short,
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=256)
    )]
    pub(crate) jobs: Option<u16>,
    #[command(flatten)]
    pub(crate) writing: WriteArguments,
    /// Print what was done and how to standard error, after the work
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "table"
    )]
    pub(crate) stats: Option<StatsForm>,
}

/// What can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableChoice {
    /// One wide text column
    T,
    /// Three random integers
    Bigtable,
}
