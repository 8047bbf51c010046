//! The one error of this crate: what the engine reports, passed on unchanged, and values that their column's Arrow type
//! cannot hold.
//!
//! Invariant: errors know no flags; [`Remedy`] says what kind of option helps, and the command spells it.

use std::fmt;

use pagemill_format::Tid;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a table could not be made into Arrow batches or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading the table, or writing the output.
    #[error(transparent)]
    Engine(#[from] pagemill_engine::Error),
    /// A value that its column's type cannot hold.
    #[error(transparent)]
    Unfit(Box<Unfit>),
    /// The request cannot be what was meant.
    #[error("{0}")]
    Usage(String),
    /// The values of a column cannot be names of directories, or are too many.
    #[error("{0}")]
    Partition(String),
    /// The libraries for Arrow and Parquet refused what they were given.
    #[error("{0}")]
    Encoding(String),
}

impl From<parquet::errors::ParquetError> for Error {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Self::Encoding(error.to_string())
    }
}

impl From<arrow_schema::ArrowError> for Error {
    fn from(error: arrow_schema::ArrowError) -> Self {
        Self::Encoding(error.to_string())
    }
}

impl From<pagemill_cluster::Error> for Error {
    fn from(error: pagemill_cluster::Error) -> Self {
        Self::Engine(error.into())
    }
}

/// A value that its column's type cannot hold, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// The row.
    pub row: RowPlace,
    /// The column.
    pub column: String,
    /// What the value is, and what it does not fit.
    pub what: String,
    /// What helps.
    pub remedy: Remedy,
}

/// Where a row is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowPlace {
    /// In this relation, there.
    Table(String, Tid),
    /// In an answer, this one of its rows, from 1.
    Answer(u64),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { row, column, what, .. } = self;
        match row {
            RowPlace::Table(relation, tid) => write!(f, "{relation}: row {tid}")?,
            RowPlace::Answer(number) => write!(f, "row {number} of the answer")?,
        }
        write!(f, ", column \"{column}\": {what}")
    }
}

impl std::error::Error for Unfit {}

/// What kind of option lets a value through that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// What infinite and extreme values become.
    Infinity,
    /// What numerics become.
    Numeric,
    /// What arrays become.
    Arrays,
    /// Nothing but leaving out the column.
    Columns,
}
