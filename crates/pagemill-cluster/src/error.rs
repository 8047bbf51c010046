//! The one error of this crate. Refusals (wrong directory, wrong name, a running server), damage
//! and failures of the system stay apart, because they end with different exit statuses and
//! different remedies.

mod open_fault;

use std::fmt;
use std::path::{Path, PathBuf};

use pagemill_format::{BlockNumber, Fork};

pub use open_fault::{DirectoryFault, NotShutDown, UnsupportedCluster};

use crate::refusal::Refusal;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong with a data directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The directory is not one that PostgreSQL made.
    #[error(
        "{path}: not a PostgreSQL data directory ({fault}): name the directory that holds \
         PG_VERSION and global/pg_control"
    )]
    NotADataDirectory {
        /// The directory.
        path: PathBuf,
        /// What is missing or wrong.
        fault: DirectoryFault,
    },
    /// The cluster is of a version or build that cannot be read.
    #[error("{path}: {found}")]
    Unsupported {
        /// The file that says so.
        path: PathBuf,
        /// What it is.
        found: UnsupportedCluster,
    },
    /// A server is running on the directory.
    #[error("{path}: a server is running here (process {pid}): stop it first")]
    Running {
        /// The `postmaster.pid` file.
        path: PathBuf,
        /// The process it names.
        pid: i32,
    },
    /// Another process has the right to change the cluster.
    #[error("{path}: another pagemill is changing this cluster: wait until it is done")]
    BeingChanged {
        /// The data directory.
        path: PathBuf,
    },
    /// The cluster was not shut down.
    #[error("{path}: {cause}")]
    NotShutDown {
        /// The data directory.
        path: PathBuf,
        /// How that came about.
        cause: NotShutDown,
    },
    /// A change was decided, and what follows failed: a server's recovery finishes it.
    #[error(
        "{path}: the change is committed, but its last steps failed: start PostgreSQL on it, which finishes \
         them by its crash recovery: {reason}"
    )]
    Unfinished {
        /// The data directory.
        path: PathBuf,
        /// What failed.
        reason: Box<Error>,
    },
    /// The decision itself failed half-way: a server's start finds out what the device has, and finishes the change or
    /// leaves everything as it was.
    #[error(
        "{path}: whether the change is committed is not known, as the control file could not be written safely: start \
         PostgreSQL on it, which finishes the change or has nothing of it: {reason}"
    )]
    Undecided {
        /// The data directory.
        path: PathBuf,
        /// What failed.
        reason: Box<Error>,
    },
    /// WAL cannot be read or written.
    #[error(transparent)]
    Wal(#[from] pagemill_wal::Error),
    /// Bytes that cannot be made, or not from what there is.
    #[error(transparent)]
    Format(#[from] pagemill_format::Error),
    /// A tablespace is not, or not wholly, where the cluster has it.
    #[error("{path}: no such directory: it belongs to tablespace {tablespace}, {link}")]
    MissingTablespace {
        /// The directory that is missing.
        path: PathBuf,
        /// Name and OID.
        tablespace: String,
        /// What became of its link in `pg_tblspc`, and the remedy.
        link: String,
        /// The directory that the cluster names, if that is not there.
        named: Option<PathBuf>,
    },
    /// There is no such database, table, column ….
    #[error("{what} does not exist{near}", near = Near(near))]
    NotFound {
        /// Kind and name of what was asked for.
        what: String,
        /// Names like it that do exist.
        near: Vec<String>,
    },
    /// What was asked for exists and cannot be done.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// Bytes that cannot be what PostgreSQL wrote.
    #[error(transparent)]
    Damage(Box<Damage>),
    /// The shared buffers are too few for all that is done at once.
    #[error(transparent)]
    NoUnpinnedBuffers(#[from] pagemill_stream::NoUnpinnedBuffers),
    /// The system failed, or a file is not there.
    #[error(transparent)]
    Io(#[from] pagemill_io::Error),
}

impl Error {
    /// A [`Error::Refused`].
    pub fn refused(cause: impl Into<Refusal>) -> Self {
        Self::Refused(Box::new(cause.into()))
    }

    /// True when the request was wrong, and not the data or the system.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::NotADataDirectory { .. } | Self::NotFound { .. } => true,
            Self::Refused(refusal) => matches!(**refusal, Refusal::Mapping(_)),
            _ => false,
        }
    }

    /// True when the work was given up because the process was asked to end. Nothing has changed then.
    pub fn is_interruption(&self) -> bool {
        match self {
            Self::Io(error) => error.is_interruption(),
            Self::Wal(pagemill_wal::Error::Io(error)) => error.is_interruption(),
            _ => false,
        }
    }

    /// Damage to a file as a whole, or to a place in it that `error` names.
    pub fn file_damage(path: impl Into<PathBuf>, error: &pagemill_format::Error) -> Self {
        Self::Damage(Box::new(Damage::in_file(path, error.to_string())))
    }
}

impl From<Damage> for Error {
    fn from(damage: Damage) -> Self {
        Self::Damage(Box::new(damage))
    }
}

struct Near<'a>(&'a [String]);

impl fmt::Display for Near<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            names => write!(f, ": did you mean {}?", names.join(" or ")),
        }
    }
}

/// A damaged place and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct Damage {
    /// The file (segment) that is damaged.
    pub path: PathBuf,
    /// Fork and block, where the damage is within one block.
    pub block: Option<(Fork, BlockNumber)>,
    /// The line pointer, from 1, where the damage is within one tuple.
    pub line_pointer: Option<u16>,
    /// The column, where the damage is within one value.
    pub column: Option<String>,
    /// The finding.
    pub what: String,
    /// The bytes may be sound: they are not what the WAL makes of them, so the copy is of several moments.
    pub is_against_wal: bool,
}

impl Damage {
    /// Damage to a file as a whole.
    pub fn in_file(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            block: None,
            line_pointer: None,
            column: None,
            what: what.into(),
            is_against_wal: false,
        }
    }

    /// Damage to a block.
    pub fn in_block(
        path: impl Into<PathBuf>,
        fork: Fork,
        block: BlockNumber,
        what: impl Into<String>,
    ) -> Self {
        Self { block: Some((fork, block)), ..Self::in_file(path, what) }
    }

    /// Adds the line pointer.
    #[must_use]
    pub fn at_line_pointer(mut self, number: u16) -> Self {
        self.line_pointer = Some(number);
        self
    }

    /// Adds the column.
    #[must_use]
    pub fn in_column(mut self, name: impl Into<String>) -> Self {
        self.column = Some(name.into());
        self
    }

    /// Says that the WAL tells otherwise.
    #[must_use]
    pub fn against_wal(self) -> Self {
        Self { is_against_wal: true, ..self }
    }

    /// The damaged file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn text(&self) -> String {
        let mut text = self.path.display().to_string();
        if let Some((fork, block)) = self.block {
            text += &format!(": fork {fork}, block {block}");
        }
        if let Some(number) = self.line_pointer {
            text += &format!(", line pointer {number}");
        }
        if let Some(column) = &self.column {
            text += &format!(", column {column}");
        }
        text + ": " + &self.what
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_reads_from_the_file_down_to_the_column() {
        let damage =
            Damage::in_block("base/5/16384", Fork::Main, BlockNumber(7), "corrupt numeric")
                .at_line_pointer(3)
                .in_column("price");
        assert_eq!(
            damage.to_string(),
            "base/5/16384: fork main, block 7, line pointer 3, column price: corrupt numeric"
        );
    }

    #[test]
    fn a_wrong_name_suggests_the_near_ones() {
        let error =
            Error::NotFound { what: "database \"pstgres\"".into(), near: vec!["postgres".into()] };
        assert_eq!(
            error.to_string(),
            "database \"pstgres\" does not exist: did you mean postgres?"
        );
    }
}
