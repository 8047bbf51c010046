//! The one error of this crate: what the operations refuse by themselves, and what the crates
//! below report, passed on unchanged.

use crate::copy::CopyOptionError;
use crate::copy::from::CopyError;
use crate::encoding::EncodingError;
use crate::load::DuplicateKey;
use crate::pattern::PatternError;
use crate::refusal::{CopyRefusal, Misuse, Refusal};

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The data directory, its catalogs or its files.
    #[error(transparent)]
    Cluster(#[from] pagemill_cluster::Error),
    /// The output.
    #[error(transparent)]
    Output(pagemill_io::Error),
    /// What is to be loaded, or a temporary file.
    #[error(transparent)]
    Input(pagemill_io::Error),
    /// A row that cannot be loaded.
    #[error(transparent)]
    Copy(#[from] Box<CopyError>),
    /// Two rows have one key of a unique index.
    #[error(transparent)]
    DuplicateKey(Box<DuplicateKey>),
    /// An input whose bytes are not what they should unpack as.
    #[error("{input}: damaged {format} data: {reason}")]
    Decompression {
        /// The input's name.
        input: String,
        /// How it is said to be packed.
        format: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// More rows were set aside than the caller allowed.
    #[error("skipped more than {most} rows due to data type incompatibility: see {log}")]
    TooManyRejected {
        /// How many were allowed.
        most: u64,
        /// Where they are told.
        log: String,
    },
    /// COPY's options contradict each other.
    #[error(transparent)]
    CopyOptions(#[from] CopyOptionError),
    /// A pattern that cannot be read.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// An encoding that is not known, or text that it does not have.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
    /// What was asked for exists and cannot be done.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// The request cannot be what was meant.
    #[error(transparent)]
    Usage(#[from] Misuse),
    /// What was written, and read back, is not what it is a copy of.
    #[error("{}: offset {offset}: is not what {} has there", copy.display(), original.display())]
    Differs {
        /// The file that was written.
        copy: std::path::PathBuf,
        /// The file it is a copy of.
        original: std::path::PathBuf,
        /// The first byte that differs.
        offset: u64,
    },
    /// A value that is damaged.
    #[error(transparent)]
    Value(pagemill_format::Error),
    /// The caller asked for the operation to end; see [`Progress::cancel`](crate::Progress::cancel).
    #[error("cancelled")]
    Cancelled,
    /// A thread of the operation ended before its time.
    #[error("a worker thread ended early: this is a defect of pagemill, please report it")]
    Worker,
    /// The system lets this process start no more threads.
    #[error(
        "a thread cannot be started: {0}: raise the limit of processes (ulimit -u), or use fewer threads"
    )]
    Threads(std::io::Error),
}

impl From<pagemill_format::Error> for Error {
    fn from(error: pagemill_format::Error) -> Self {
        Self::Cluster(error.into())
    }
}

impl Error {
    /// An [`Error::Refused`].
    pub fn refused(cause: impl Into<Refusal>) -> Self {
        Self::Refused(Box::new(cause.into()))
    }

    /// True when the request was wrong, and not the data or the system.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::CopyOptions(_) | Self::Pattern(_) | Self::Usage(_) => true,
            Self::Encoding(error) => error.is_usage(),
            Self::Cluster(error) => error.is_usage(),
            Self::Output(_) | Self::Input(_) | Self::Copy(_) | Self::Decompression { .. } => false,
            Self::Refused(refusal) => {
                matches!(**refusal, Refusal::Copy(CopyRefusal::Mapping(_)))
            }
            Self::DuplicateKey(_) | Self::Differs { .. } => false,
            Self::TooManyRejected { .. }
            | Self::Value(_)
            | Self::Cancelled
            | Self::Worker
            | Self::Threads(_) => false,
        }
    }

    /// True when the work was given up because the process was asked to end.
    pub fn is_interruption(&self) -> bool {
        match self {
            Self::Cluster(error) => error.is_interruption(),
            Self::Output(error) | Self::Input(error) => error.is_interruption(),
            _ => false,
        }
    }

    /// True for a message in PostgreSQL's words, with lines of its own for detail, hint and context.
    pub fn has_lines(&self) -> bool {
        matches!(self, Self::Copy(_) | Self::DuplicateKey(_))
    }

    /// True when whoever read the output went away.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.is_broken_pipe())
    }
}
