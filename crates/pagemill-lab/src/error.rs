//! What keeps the lab from running: few things, since what cannot be measured is a row and not an error.
//!
//! Invariant: every message names what is to blame and, where there is one, the remedy.

use std::io;
use std::path::{Path, PathBuf};

/// The lab's own result.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a run, or an experiment, cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What was named is no directory.
    #[error("{}: not a directory: name one on the storage that is to be measured", path.display())]
    NotADirectory {
        /// As it was named.
        path: PathBuf,
    },
    /// Nothing can be made in it.
    #[error("{}: cannot be written to ({source}): name a directory where you may make files", path.display())]
    NotWritable {
        /// As it was named.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The files would not fit.
    #[error(
        "{}: {needed} bytes are needed and {available} are free: make room, run fewer experiments, or choose smaller files",
        path.display()
    )]
    NoSpace {
        /// As it was named.
        path: PathBuf,
        /// Bytes.
        needed: u64,
        /// Bytes.
        available: u64,
    },
    /// There is no such experiment.
    #[error("there is no experiment {name}: there are {known}")]
    NoSuchExperiment {
        /// As it was named.
        name: String,
        /// Those there are.
        known: String,
    },
    /// There is no advice for that version.
    #[error(
        "PostgreSQL {name} is not known here: there are 14 to 18, with or without a minor version, as 17.8"
    )]
    UnknownVersion {
        /// As it was named.
        name: String,
    },
    /// What was named as PostgreSQL's programs cannot be used.
    #[error(
        "{}: {why}: name the directory of a PostgreSQL 14 to 18 with its server, as `pg_config --bindir` tells it",
        path.display()
    )]
    NoServer {
        /// As it was named.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// A server did something else than was expected of it.
    #[error("{what}: {said}")]
    Server {
        /// What was tried.
        what: String,
        /// What it said, or what would help.
        said: String,
    },
    /// A server of the run's own, or one of its programs, failed.
    #[error(transparent)]
    Postgres(pagemill_server::Error),
    /// Somebody asked for the end of the run.
    #[error("interrupted")]
    Interrupted,
    /// A file of ours.
    #[error(transparent)]
    Io(#[from] pagemill_io::Error),
    /// A table could not be made.
    #[error(transparent)]
    Engine(#[from] pagemill_engine::Error),
    /// Something the system refused.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

impl From<pagemill_server::Error> for Error {
    fn from(error: pagemill_server::Error) -> Self {
        match error {
            pagemill_server::Error::Canceled => Self::Interrupted,
            pagemill_server::Error::NotAnInstallation { path, why } => Self::NoServer { path, why },
            error => Self::Postgres(error),
        }
    }
}

impl Error {
    /// For `map_err`: what was tried.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }

    /// A server that did something else than was expected of it.
    pub(crate) fn server(what: impl Into<String>, said: impl Into<String>) -> Self {
        Self::Server { what: what.into(), said: said.into() }
    }

    /// For `map_err`: the file by its last name, for the directory is nobody else's concern.
    pub fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Self::system(name.unwrap_or_else(|| "a file".into()))
    }

    /// True when the request was wrong, and not the data or the system.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::NotADirectory { .. }
                | Self::NoSuchExperiment { .. }
                | Self::UnknownVersion { .. }
                | Self::NoServer { .. }
        )
    }

    /// The system's error below, if there is one.
    pub fn io_error(&self) -> Option<&io::Error> {
        let mut source: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = source {
            if let Some(found) = error.downcast_ref::<io::Error>() {
                return Some(found);
            }
            source = error.source();
        }
        None
    }
}
