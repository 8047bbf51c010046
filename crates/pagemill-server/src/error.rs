//! What can go wrong with a server.
//!
//! Invariant: a message names what is to blame, and what helps against it where that is no flag of a program.

use std::io;
use std::path::{Path, PathBuf};

/// This crate's own result.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a server cannot be had, or does not do what it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Root runs this, and there is no account to run a server under.
    #[error(
        "PostgreSQL does not run as root: make an account named {wanted}, or run it as an ordinary user"
    )]
    NoAccount {
        /// The first of those that would do.
        wanted: &'static str,
    },
    /// A directory that was named does not have PostgreSQL's programs, or those of another version.
    #[error("{}: {why}", path.display())]
    NotAnInstallation {
        /// As it was named.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// No server of these versions is installed.
    #[error("no PostgreSQL of version {oldest} to {newest} was found")]
    NotInstalled {
        /// The oldest major version that would do.
        oldest: u32,
        /// The newest.
        newest: u32,
    },
    /// There is a server, and nothing to talk to it with.
    #[error("PostgreSQL's server is here and psql is not: install the client, too")]
    NoPsql,
    /// The server's account may not run its programs.
    #[error(
        "{account} cannot run PostgreSQL's programs: install it where every account may run it"
    )]
    NotExecutable {
        /// Its name.
        account: &'static str,
    },
    /// The server's account cannot enter the directory of the cluster.
    #[error(
        "PostgreSQL's server does not run as root, and {account} does not get to the cluster's directory: let others pass \
         through the directories above it (chmod o+x), or name one elsewhere, as /var/tmp"
    )]
    OutOfReach {
        /// Its name.
        account: &'static str,
        /// The directory.
        path: PathBuf,
    },
    /// No directory for a socket has a name that will do.
    #[error(
        "the name of a socket would be too long: set TMPDIR to a directory with a short and plain name"
    )]
    SocketName,
    /// One of PostgreSQL's programs failed.
    #[error("{program} failed: {said}")]
    Program {
        /// Its name.
        program: String,
        /// What it wrote to standard error.
        said: String,
    },
    /// The server ended, or did not accept connections in time.
    #[error("the server did not start: {said}")]
    NotStarted {
        /// The end of its log.
        said: String,
    },
    /// No server runs on this data directory.
    #[error("no server runs in {}", data.display())]
    NotRunning {
        /// The data directory.
        data: PathBuf,
    },
    /// The server was told to end, and goes on.
    #[error("the server did not stop within {seconds} s")]
    NotStopped {
        /// How long it was waited for.
        seconds: u64,
    },
    /// The server had ended before it was told to, or not cleanly.
    #[error("the server ended by itself: {said}")]
    Ended {
        /// The end of its log.
        said: String,
    },
    /// A statement was refused, or the connection was lost in it.
    #[error("{statement}: {said}")]
    Statement {
        /// What was asked.
        statement: String,
        /// What psql said.
        said: String,
    },
    /// The caller wants no more of it.
    #[error("canceled")]
    Canceled,
    /// Something the system refused.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: what was tried.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }

    /// For `map_err`: the file by its last name, for the directory is nobody else's concern.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Self::system(name.unwrap_or_else(|| "a file".into()))
    }
}
