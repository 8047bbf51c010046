//! The flags of `pagemill serve`: for the command, whose help and completions have them, and for the program that it starts.
//!
//! Invariant: both parse the same words alike, as the one hands them to the other unread.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::cluster_arguments::{CommonArguments, RecoveryArguments};
use crate::sizes::default_jobs;
use crate::values::memory_size;

/// A thread for each processor, as a word of the command line: statements compute much for each row.
static JOBS: LazyLock<String> = LazyLock::new(|| default_jobs().to_string());

/// Answer PostgreSQL's clients from a cluster's files, read-only
///
/// psql and other clients connect to a Unix socket, and with --listen over TCP, as to a server of PostgreSQL, and ask statements as
/// `pagemill sql` answers them. To the socket only this user can connect; over TCP a client proves its password, of which the cluster
/// keeps a verifier. A role reads what it may read on the server. Nothing is changed, no file outside of the cluster is read, and a
/// statement that is not known to give the server's answer is refused. The session's TimeZone is UTC, its DateStyle ISO. SIGINT and
/// SIGTERM end the server.
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
  pagemill serve -D backup --listen '*' \\
      --tls-cert server.crt --tls-key server.key
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
    /// Listen on TCP, too, at this name or address, or at all with '*'; repeatable, or with commas between
    ///
    /// Clients authenticate by SCRAM-SHA-256 with the passwords that the cluster has. Without --tls-cert, only addresses of this
    /// machine alone can be listened at, as 127.0.0.1 and localhost.
    #[arg(long, value_name = "HOST", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub listen: Vec<String>,
    /// The certificate for TLS, as PEM, with those that lead to its root behind it; TCP is then refused without TLS
    #[arg(long, value_name = "FILE", requires = "tls_key", requires = "listen")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, as PEM; nobody but its owner may have access to the file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Let clients of TCP in without TLS, too
    #[arg(long, requires = "tls_cert")]
    pub allow_plaintext: bool,
    /// Seconds within which a client has to say and prove who it is
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=600))]
    pub authentication_timeout: u16,
    /// The port, of TCP and in the socket's name
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
    #[arg(conflicts_with_all = ["socket_dir", "port", "listen"])]
    pub exec: Vec<OsString>,
}
