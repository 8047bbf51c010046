//! What can go wrong with a report: the sink fails, or a file is not the results of a run that can be read.
//!
//! Invariant: what is wrong with a file names the place in it, so that one can look.

use std::io;

use crate::results::FORMAT;

/// Result with the [`Error`] of reports.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a report was not written, or results were not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The sink took no more.
    #[error("could not write the report: {0}")]
    Write(#[from] io::Error),
    /// The bytes are not JSON.
    #[error(
        "not JSON, line {line}, column {column}: {reason}: name a file that `pagemill lab --json` wrote"
    )]
    NotJson {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What the parser says.
        reason: String,
    },
    /// It is JSON, but nothing that the lab wrote.
    #[error(
        "JSON, but not results of the lab (no \"format\"): name a file that `pagemill lab --json` wrote"
    )]
    NotResults,
    /// The results are of another format.
    #[error(
        "results in format {found}, but only format {FORMAT} is read here: use the pagemill that wrote them"
    )]
    OtherFormat {
        /// The number that the file has.
        found: u64,
    },
    /// The format is right, and something in it is not.
    #[error("damaged results, line {line}, column {column}: {reason}")]
    Damaged {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is missing or of the wrong kind.
        reason: String,
    },
}
