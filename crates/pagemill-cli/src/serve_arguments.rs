//! The flags of `pagemill serve`: for the command, whose help and completions have them, and for the program that it starts.
//!
//! Invariant: both parse the same words alike, as the one hands them to the other unread.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::cluster_arguments::{CommonArguments, RecoveryArguments, TextOrderChoice};
use crate::failure::UsageError;
use crate::served_directories::{DirectoryArguments, ServedDirectory, of_each_directory};
use crate::sizes::default_jobs;
use crate::values::memory_size;
use crate::worker_arguments::{OnWorkersArguments, WorkerStatementArguments};

/// A thread for each processor, as a word of the command line: statements compute much for each row.
static JOBS: LazyLock<String> = LazyLock::new(|| default_jobs().to_string());

/// Answer PostgreSQL's clients from a cluster's files, read-only
///
/// psql and other clients connect to a Unix socket, and with --listen over TCP, as to a server of PostgreSQL, and ask statements as
/// `pagemill sql` answers them. To the socket only this user can connect; over TCP a client proves its password, of which the cluster
/// keeps a verifier. A role reads what it may read on the server. Nothing is changed, no file outside of the cluster is read, and a
/// statement that is not known to give the server's answer is refused. Sessions begin with the TimeZone, the DateStyle and the like
/// that the cluster's settings say, and can set others. SIGINT and SIGTERM end the server; SIGHUP has it open its directories and its
/// certificate anew, for sessions that begin then. A service manager is told by NOTIFY_SOCKET.
///
/// With -D several times, a database is named by its directory, too: a.shop for shop in the directory a. --base, --wal, --until, --exclusive,
/// --timeline and --tablespace-mapping are then of the -D that stands before them.
#[derive(Debug, Args)]
#[command(mut_arg("pgdata", |arg| {
    arg.value_name("[NAME=]DIR")
        .help("The data directory: the one with PG_VERSION in it, or a backup's with base.tar in it; repeatable")
        .long_help("The data directory: the one with PG_VERSION in it, or a backup's with base.tar in it; repeatable\n\n\
            With several, databases are named NAME.DATABASE; without a NAME of its own it is the last name in the path.")
}))]
#[command(mut_args(of_each_directory))]
#[command(mut_arg("jobs", |arg| {
    arg.default_value(JOBS.as_str())
        .hide_default_value(true)
        .help("Threads that scan and compute [default: one for each processor]")
}))]
#[command(after_long_help = "\
Examples:
  pagemill serve -D backup --socket-dir /tmp --port 5433
  psql -h /tmp -p 5433 -U postgres shop
  pagemill serve -D main -D old=backup --until 'time:2024-05-01 12:00:00'
  psql -h /tmp -U postgres old.shop
  pagemill serve -D backup --listen '*' \\
      --tls-cert server.crt --tls-key server.key
  pagemill serve -D s3://backups/main --workers w1:5999,w2:5999 \\
      --secret-file /run/secrets/pagemill
  pagemill serve -D backup --exec psql shop -c 'select count(*) from orders'")]
pub struct ServeArguments {
    /// What was given for each directory.
    #[command(flatten)]
    pub given: DirectoryArguments,
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
    ///
    /// All statements share it. Those that sort, group or join large tables wait for each other: one runs at a time for each 128MB.
    #[arg(long, value_name = "SIZE", value_parser = memory_size)]
    pub memory: Option<usize>,
    /// What texts are ordered by where the cluster does not tell it for certain
    #[arg(long, value_enum, value_name = "HOW", default_value = "recorded")]
    pub text_order: TextOrderChoice,
    /// The workers that may run statements.
    #[command(flatten)]
    pub on_workers: OnWorkersArguments,
    /// How they do.
    #[command(flatten)]
    pub dividing: WorkerStatementArguments,
    /// Tell the server's state over HTTP at this address: / a page, /metrics for Prometheus, /ready, /healthz
    ///
    /// Statements that run, roles, and addresses of clients are shown to this machine only, and there to every user.
    #[arg(long, value_name = "HOST:PORT")]
    pub status: Option<String>,
    /// Let --status be at an address that other machines can reach
    #[arg(long, requires = "status")]
    pub allow_remote_status: bool,
    /// Run a command, to whose end all words that follow belong, on a private socket; end with it
    ///
    /// PGHOST, PGPORT and PGUSER are set so that psql, pg_dump and whatever uses libpq connect here, and PGDATABASE to postgres
    /// where it is not set.
    #[arg(long, value_name = "COMMAND", num_args = 1.., allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["socket_dir", "port", "listen", "status"])]
    pub exec: Vec<OsString>,
}

impl ServeArguments {
    /// The directories that are served, each with its flags.
    ///
    /// # Errors
    /// When one has no name of its own.
    pub fn directories(&self) -> Result<Vec<ServedDirectory>, UsageError> {
        self.given.served(&self.common, &self.recovery)
    }
}
