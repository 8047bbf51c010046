//! The flags of `pagemill worker`, and those by which other commands name workers: for the command, whose help and completions have them, and for the program that it starts.
//!
//! Invariant: both parse the same words alike, as the one hands them to the other unread.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

use crate::cluster_arguments::{CommonArguments, RecoveryArguments};
use crate::failure::UsageError;
use crate::served_directories::{DirectoryArguments, ServedDirectory, of_each_directory};
use crate::sizes::default_jobs;
use crate::values::memory_size;

/// A thread for each processor, as a word of the command line: statements compute much for each row.
static JOBS: LazyLock<String> = LazyLock::new(|| default_jobs().to_string());

/// The flags of a command whose statements workers may run.
#[derive(Debug, Args)]
pub struct OnWorkersArguments {
    /// Workers that do it, each of which reads parts of the tables; repeatable, or with commas between
    ///
    /// Each is a `pagemill worker` that serves the same data directory, by the same path or URL, on its machine, and reads it by itself.
    /// A worker whose directory is not what it is here refuses. A statement that cannot be divided, or that small tables are enough for,
    /// runs here, and EXPLAIN says why; a worker that ends or falls silent ends the statement with an error, but for --worker-engine
    /// ballista. Of an export, others write what such a one left.
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub workers: Vec<String>,
    /// A file with the secret of the workers [default: what PAGEMILL_WORKER_SECRET has]
    #[arg(long, value_name = "FILE", requires = "workers")]
    pub secret_file: Option<PathBuf>,
    /// The certificate that workers are shown, as PEM; nothing is then sent without TLS
    ///
    /// With those that lead to the authority's behind it. Workers have to be started with --tls-cert, --tls-key and --tls-ca.
    #[arg(long, value_name = "FILE", requires_all = ["worker_tls_key", "worker_tls_ca", "workers"])]
    pub worker_tls_cert: Option<PathBuf>,
    /// Its private key, as PEM; nobody but its owner may have access to the file
    #[arg(long, value_name = "FILE", requires = "worker_tls_cert")]
    pub worker_tls_key: Option<PathBuf>,
    /// The certificates, as PEM, of the authority that those of workers are signed by
    ///
    /// A worker's has to be for the name or the address that --workers has.
    #[arg(long, value_name = "FILE", requires = "worker_tls_cert")]
    pub worker_tls_ca: Option<PathBuf>,
}

/// Files for TLS of one side.
#[derive(Debug, Clone, Copy)]
pub struct TlsNames<'a> {
    /// The certificate.
    pub certificate: &'a Path,
    /// Its private key.
    pub key: &'a Path,
    /// The certificates of who signs those of the other side.
    pub authority: &'a Path,
}

impl<'a> TlsNames<'a> {
    /// All three of them, or none.
    fn of(files: [&'a Option<PathBuf>; 3]) -> Option<Self> {
        match files.map(Option::as_deref) {
            [Some(certificate), Some(key), Some(authority)] => {
                Some(Self { certificate, key, authority })
            }
            _ => None,
        }
    }
}

impl OnWorkersArguments {
    /// The files for TLS with workers.
    pub fn tls(&self) -> Option<TlsNames<'_>> {
        TlsNames::of([&self.worker_tls_cert, &self.worker_tls_key, &self.worker_tls_ca])
    }
}

/// How workers run statements.
#[derive(Debug, Args)]
pub struct WorkerStatementArguments {
    /// One more worker scans a table for each so many bytes of it
    #[arg(long, value_name = "SIZE", value_parser = memory_size, default_value = "64MB", requires = "workers")]
    pub worker_share: usize,
    /// What divides statements among workers
    #[arg(
        long,
        value_name = "ENGINE",
        value_enum,
        default_value = "distributed",
        requires = "workers"
    )]
    pub worker_engine: WorkerEngine,
}

/// What divides statements among workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkerEngine {
    /// datafusion-distributed: rows go from worker to worker at once; if one is lost, the statement ends with an error
    Distributed,
    /// Ballista: workers keep the rows of each stage in temporary files until the next stage takes them; if one is lost before the first
    /// row of the answer, the others begin anew without it
    Ballista,
}

/// Run parts of statements and exports for `pagemill sql`, `serve` and `export` with `--workers`
///
/// A worker opens the data directories that it is started with, and no others, and reads in them what statements ask for that have the
/// secret, or a certificate; where it was given neither, it listens at addresses of this machine only. The secret is read from the file of
/// --secret-file, or from the environment's PAGEMILL_WORKER_SECRET; it has 16 bytes at least. With --tls-cert, --tls-key and --tls-ca all that
/// goes between workers and those who ask them is encrypted, and each side shows the other a certificate that the authority has signed;
/// without, nothing is: let them have a network of their own. A statement names its directory as it is named where it is asked: by the same
/// URL, or by a path that leads to the same name. It is about the cluster as it was opened there; where another is found here, it is refused.
/// SIGINT and SIGTERM end the worker; SIGHUP has it read its certificates anew, for connections that begin then.
///
/// With -D several times, --base, --wal, --until, --exclusive, --timeline and --tablespace-mapping are of the -D that stands before them.
#[derive(Debug, Args)]
#[command(mut_arg("pgdata", |arg| {
    arg.help("A data directory: the one with PG_VERSION in it, or a backup's with base.tar in it; repeatable")
}))]
#[command(mut_args(of_each_directory))]
#[command(mut_arg("jobs", |arg| {
    arg.default_value(JOBS.as_str())
        .hide_default_value(true)
        .help("Threads that compute [default: one for each processor]")
}))]
#[command(after_long_help = "\
Examples:
  pagemill worker -D s3://backups/main --listen 0.0.0.0:5999 \\
      --secret-file /run/secrets/pagemill
  pagemill worker -D s3://backups/main --listen 0.0.0.0:5999 \\
      --tls-cert w1.crt --tls-key w1.key --tls-ca workers.crt
  pagemill sql -D s3://backups/main -d shop --workers w1:5999,w2:5999 \\
      --secret-file /run/secrets/pagemill 'select count(*) from orders'")]
pub struct WorkerArguments {
    /// What was given for each directory.
    #[command(flatten)]
    pub given: DirectoryArguments,
    /// The data directory.
    #[command(flatten)]
    pub common: CommonArguments,
    /// Up to where WAL is redone.
    #[command(flatten)]
    pub recovery: RecoveryArguments,
    /// Where to listen
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:5999")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub listen: String,
    /// A file with the secret that statements have to have [default: what PAGEMILL_WORKER_SECRET has]
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// The certificate for TLS, as PEM; all that is not TLS is then refused
    ///
    /// With those that lead to the authority's behind it. It is for the name or the address by which --workers names this worker, and it is
    /// shown to those who ask this worker and to the workers that this one asks: if it says what it is for, then for servers and clients.
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "tls_ca"])]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, as PEM; nobody but its owner may have access to the file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// The certificates, as PEM, of the authority that those of other workers and of all who ask are signed by
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_ca: Option<PathBuf>,
    /// Let exports write files below this directory or URL; repeatable
    #[arg(long, value_name = "DIR|URL")]
    pub export_to: Vec<PathBuf>,
    /// Memory for sorts, joins and aggregates, which then spill to temporary files [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = memory_size)]
    pub memory: Option<usize>,
}

impl WorkerArguments {
    /// The files for TLS.
    pub fn tls(&self) -> Option<TlsNames<'_>> {
        TlsNames::of([&self.tls_cert, &self.tls_key, &self.tls_ca])
    }

    /// The directories that are served, each with its flags.
    ///
    /// # Errors
    /// When one has no name of its own.
    pub fn directories(&self) -> Result<Vec<ServedDirectory>, UsageError> {
        self.given.served(&self.common, &self.recovery)
    }
}
