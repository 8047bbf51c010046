//! The flags of `pagemill serve`: for the command, whose help and completions have them, and for the program that it starts.
//!
//! Invariant: both parse the same words alike, as the one hands them to the other unread.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::Args;

use crate::cluster_arguments::{CommonArguments, RecoveryArguments};
use crate::sizes::default_jobs;
use crate::values::memory_size;

/// A thread for each processor, as a word of the command line: statements compute much for each row.
static JOBS: LazyLock<String> = LazyLock::new(|| default_jobs().to_string());

/// Answer PostgreSQL's clients from a cluster's files, read-only
///
/// psql and other clients connect to a Unix socket as to a server of PostgreSQL, and ask statements as `pagemill sql` answers
/// them. Only this user can connect, as a superuser of the cluster. Nothing is changed, no file outside of the cluster is
/// read, and a statement that is not known to give the server's answer is refused. The session's TimeZone is UTC, its
/// DateStyle ISO. SIGINT and SIGTERM end the server.
#[derive(Debug, Args)]
#[command(mut_arg("jobs", |arg| {
    arg.default_value(JOBS.as_str())
        .hide_default_value(true)
        .help("Threads that scan and compute [default: one for each processor]")
}))]
#[command(after_long_help = "\
Examples:
  pagemill serve -D backup --socket-dir /tmp --port 5433
  psql -h /tmp -p 5433 -U postgres shop
  pagemill serve -D backup --exec psql shop -c 'select count(*) from orders'")]
pub struct ServeArguments {
    /// The data directory.
    #[command(flatten)]
    pub common: CommonArguments,
    /// Up to where WAL is redone.
    #[command(flatten)]
    pub recovery: RecoveryArguments,
    /// The directory of the Unix socket
    #[arg(short = 'k', long, value_name = "DIR", default_value = "/tmp")]
    pub socket_dir: PathBuf,
    /// The port, which is the ending of the socket's name
    #[arg(short, long, value_name = "PORT", default_value_t = 5432)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// Clients at a time
    #[arg(short = 'N', long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub max_connections: u32,
    /// Memory for sorts, joins and aggregates, which then spill to temporary files [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = memory_size)]
    pub memory: Option<usize>,
    /// Run a command, to whose end all words that follow belong, on a private socket; end with it
    ///
    /// PGHOST, PGPORT and PGUSER are set so that psql, pg_dump and whatever uses libpq connect here, and PGDATABASE to postgres
    /// where it is not set.
    #[arg(long, value_name = "COMMAND", num_args = 1.., allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["socket_dir", "port"])]
    pub exec: Vec<OsString>,
}
