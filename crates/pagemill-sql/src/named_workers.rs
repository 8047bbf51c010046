//! The workers that a command's flags name; in a build without the feature `workers`, an answer that says so.
//!
//! Invariant: nothing that was asked of workers is done without them unsaid.

use std::path::Path;
#[cfg(feature = "workers")]
use std::sync::Arc;

use anyhow::Result;
use pagemill_cli::worker_arguments::{OnWorkersArguments, WorkerEngine, WorkerStatementArguments};
use pagemill_cluster::Cluster;

#[cfg(feature = "workers")]
use crate::workers::Workers;

/// What such a build says.
pub const MISSING: &str = "this build has no workers: those of releases have, and it has if it is built with --features pagemill-sql/workers";

/// What a build says that has workers, and one engine for them.
#[cfg(all(feature = "workers", not(feature = "ballista")))]
const NO_BALLISTA: &str = "this build has no Ballista: those of releases have, and it has if it is built with --features pagemill-sql/ballista";

/// How workers run statements.
#[derive(Debug, Clone, Copy)]
pub struct Dividing {
    /// Bytes of a table for which one more of them is worth it.
    pub share_bytes: usize,
    /// What divides statements among them.
    pub engine: WorkerEngine,
}

impl From<&WorkerStatementArguments> for Dividing {
    fn from(arguments: &WorkerStatementArguments) -> Self {
        Self { share_bytes: arguments.worker_share, engine: arguments.worker_engine }
    }
}

/// Workers that the statements of a session may run on, or none.
#[derive(Debug, Clone, Default)]
pub struct NamedWorkers {
    #[cfg(feature = "workers")]
    known: Option<Arc<Workers>>,
}

#[cfg(not(feature = "workers"))]
impl NamedWorkers {
    /// None, where none are named.
    ///
    /// # Errors
    /// Where some are.
    pub fn of(arguments: &OnWorkersArguments, _: Dividing, _: &Path, _: &Cluster) -> Result<Self> {
        match arguments.workers.is_empty() {
            true => Ok(Self::default()),
            false => anyhow::bail!("--workers: {MISSING}"),
        }
    }
}

#[cfg(feature = "workers")]
mod named {
    use anyhow::bail;
    use pagemill_cli::failure::UsageError;
    use pagemill_cli::worker_arguments::TlsNames;
    use pagemill_io::HostFiles;

    use super::{Arc, Cluster, Dividing, NamedWorkers, OnWorkersArguments, Path, Result, Workers};
    use crate::workers::{
        Access, SECRET_VARIABLE, Secret, Snapshot, Tls, TlsFiles, directory_name, worker_address,
    };

    /// Bytes of a file with a secret.
    const MOST_SECRET: u64 = 4096;

    impl NamedWorkers {
        /// Those of the flags, for a cluster that was opened in a directory: what the directory was given as, whatever backup in it
        /// was chosen.
        ///
        /// # Errors
        /// Where what is named is no address, or the secret or the certificates cannot be read.
        pub fn of(
            arguments: &OnWorkersArguments,
            dividing: Dividing,
            directory: &Path,
            cluster: &Cluster,
        ) -> Result<Self> {
            if arguments.workers.is_empty() {
                return Ok(Self::default());
            }
            #[cfg(not(feature = "ballista"))]
            if dividing.engine == super::WorkerEngine::Ballista {
                bail!("--worker-engine ballista: {}", super::NO_BALLISTA);
            }
            let usage = |message| UsageError(format!("--workers {message}"));
            let urls =
                arguments.workers.iter().map(|text| worker_address(text.trim()).map_err(usage));
            let urls = urls.collect::<Result<Vec<_>, _>>()?;
            let place = (directory_name(directory), Snapshot::of(cluster));
            let access = access(arguments.secret_file.as_deref(), arguments.tls())?;
            let workers = Workers::new(urls, access, place, dividing);
            Ok(Self { known: Some(Arc::new(workers)) })
        }

        pub(crate) fn known(&self) -> Option<&Workers> {
            self.known.as_deref()
        }

        /// The workers, where there are any.
        pub fn workers(&self) -> Option<&Arc<Workers>> {
            self.known.as_ref()
        }
    }

    /// What workers and those who ask them have to know and to show.
    ///
    /// # Errors
    /// When it cannot be read, or cannot be that.
    pub fn access(secret_file: Option<&Path>, names: Option<TlsNames<'_>>) -> Result<Access> {
        let tls = names.map(|TlsNames { certificate, key, authority }| {
            Tls::load(TlsFiles {
                certificate: certificate.to_owned(),
                key: key.to_owned(),
                authority: authority.to_owned(),
            })
        });
        Ok(Access { secret: secret(secret_file)?, tls: tls.transpose()? })
    }

    /// The secret of a file, or else of the environment.
    ///
    /// # Errors
    /// When it cannot be read, or is too short for one.
    fn secret(file: Option<&Path>) -> Result<Option<Secret>> {
        let (place, bytes) = match file {
            Some(path) => {
                let bytes = HostFiles::real().read_file(path, MOST_SECRET)?;
                (path.display().to_string(), bytes)
            }
            None => match std::env::var_os(SECRET_VARIABLE) {
                Some(text) => (SECRET_VARIABLE.to_owned(), text.into_encoded_bytes()),
                None => return Ok(None),
            },
        };
        match Secret::new(&bytes) {
            Some(secret) => Ok(Some(secret)),
            None => bail!("{place}: a secret has 16 bytes at least"),
        }
    }
}

#[cfg(feature = "workers")]
pub use named::access;
