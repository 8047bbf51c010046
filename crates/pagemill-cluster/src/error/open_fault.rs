//! Why a directory cannot be opened as a cluster: what is missing, what is not supported, what was not shut down.
//!
//! Each is told apart by a program, and read by a person: where it lies is added by the error that carries it.

use std::fmt;
use std::path::PathBuf;

use pagemill_format::control::ClusterState;

/// What keeps a directory from being a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryFault {
    /// It is not there.
    #[error("no such directory")]
    Missing,
    /// It is a file.
    #[error("it is a file")]
    File,
    /// It holds a backup in tar format, where a directory of files is wanted.
    #[error("it holds a backup in tar format, which is only read")]
    TarBackup,
    /// It holds a repository of backups, of which none was chosen.
    #[error("it holds a repository of backups, of which one has to be chosen")]
    Repository,
    /// `PG_VERSION` is missing.
    #[error("there is no PG_VERSION in it")]
    NoVersionFile,
    /// `global` is missing.
    #[error("there is no global directory in it")]
    NoGlobalDirectory,
    /// `global/pg_control` is missing.
    #[error("there is no global/pg_control in it")]
    NoControlFile,
    /// No database has a directory below `base`.
    #[error("there is no database in its base directory")]
    NoDatabase,
}

/// What a cluster is that this build does not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnsupportedCluster {
    /// Of a major version of PostgreSQL before or behind those that are known.
    #[error("PostgreSQL {0} is not supported: this build reads 14 to 18")]
    Version(u32),
    /// Of something whose `PG_VERSION` says this.
    #[error("{0:?} is no PostgreSQL version: this build reads 14 to 18")]
    NotAVersion(String),
    /// Its control file tells of a build that differs.
    #[error(transparent)]
    ControlFile(pagemill_format::Error),
}

/// How a cluster that was not shut down came to be as it is, as far as its directory tells.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotShutDown {
    /// A server was killed, or runs no more for another reason.
    Crash(ClusterState),
    /// It is a standby's, that was stopped.
    StoppedStandby,
    /// A base backup or a restore left these files.
    Restored(ClusterState, Vec<&'static str>),
    /// Its lock file is that of a server on another directory: a copy, or a container's own.
    ServerElsewhere {
        /// The state in `pg_control`.
        state: ClusterState,
        /// What a base backup or a restore left too.
        files: Vec<&'static str>,
        /// The process.
        pid: i32,
        /// The directory that it runs on.
        directory: PathBuf,
    },
}

impl fmt::Display for NotShutDown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self {
            Self::Crash(state) | Self::Restored(state, _) | Self::ServerElsewhere { state, .. } => {
                *state
            }
            Self::StoppedStandby => ClusterState::ShutDownInRecovery,
        };
        write!(f, "the cluster's state is \"{state}\", not \"shut down\": ")?;
        match self {
            Self::Crash(_) => write!(f, "start and stop PostgreSQL on it"),
            Self::StoppedStandby => write!(
                f,
                "it is a standby, and some of its changes may be in its WAL only: start it, promote it and stop it"
            ),
            Self::Restored(_, files) => {
                write_files(f, files)?;
                write!(f, "start PostgreSQL on it first, which completes it, and stop it")
            }
            // Whether it is a copy or a container's own cannot be told from outside.
            Self::ServerElsewhere { files, pid, directory, .. } => {
                write_files(f, files)?;
                write!(
                    f,
                    "its postmaster.pid is that of a server on {} (process {pid}): if this is a copy of a running \
                     server's files, remove that file from the copy, start PostgreSQL on it and stop it; if a \
                     container's server runs on it, stop that",
                    directory.display()
                )
            }
        }
    }
}

/// Tells of what a base backup or a restore left; of nothing when there is nothing.
fn write_files(f: &mut fmt::Formatter<'_>, files: &[&str]) -> fmt::Result {
    let origin = match files.first() {
        None => return Ok(()),
        Some(&("backup_label" | "tablespace_map")) => "as an unpacked base backup does",
        Some(_) => "as a standby or a restore does",
    };
    write!(f, "it holds {}, {origin}: ", files.join(" and "))
}
