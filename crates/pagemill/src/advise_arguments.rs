//! The flags of `pagemill advise`.
//!
//! Invariant: without `--from` it measures itself, quickly, and says first what that takes; it never changes a setting.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pagemill_lab::Version;

use crate::option_values::lab_size;

/// Turn measurements of this storage into settings for PostgreSQL
///
/// Each setting comes with its evidence: which contestants of which group, by what factor, with what confidence. One is
/// changed only where the whole interval of the factor is beyond a threshold in both passes of the run, and left at its
/// default where nothing was seen or measured. Without --from the experiments that matter are run first, quickly: some
/// minutes, announced before, in a directory pagemill-lab.N in DIR that is removed afterwards. Nothing is changed: neither the server nor the device.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pagemill advise /var/lib/postgresql --pg-version 17
  pagemill lab /var/lib/postgresql --json results.json
  pagemill advise --from results.json --pg-version 18.4 --format conf >> advised.conf
  pagemill advise --from results.json --pg-version 18.4 --format sql | psql")]
pub(crate) struct AdviseArguments {
    /// A directory on the storage that PostgreSQL uses, to measure there [default: the current directory]
    #[arg(value_name = "DIR", conflicts_with = "from")]
    pub(crate) dir: Option<PathBuf>,
    /// The results of a run, as `pagemill lab --json` wrote them: nothing is measured
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Size of each experiment's main file: kB, MB, GB, or bytes, at least 1MB [default: 64MB]
    #[arg(long, value_name = "SIZE", value_parser = lab_size, conflicts_with = "from")]
    pub(crate) size: Option<u64>,
    /// The version of the server: 14 to 18, or with its minor version, as 17.8, for settings that came with one
    #[arg(long, value_name = "N", default_value = "18")]
    pub(crate) pg_version: Version,
    /// The form of the advice
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: AdviceFormat,
}

/// The forms of advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AdviceFormat {
    /// A table, and the evidence for each setting
    Text,
    /// Lines for postgresql.conf
    Conf,
    /// ALTER SYSTEM statements
    #[value(alias = "alter-system")]
    Sql,
    /// All of it, for programs
    Json,
}
