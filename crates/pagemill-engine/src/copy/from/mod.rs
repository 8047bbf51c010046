//! Reading what is to be loaded: the rows of COPY FROM, in text and CSV format.
//!
//! ```text
//!   InputSource ─► byte_feed ─► batch_cutter ─► Batch ─┬─► RowParser ─► Rows ─► worker ─┐
//!   (file, pipe,   (mapping or   (whole rows,          └─► RowParser ─► Rows ─► worker ─┴─► consumer,
//!    .gz, .zst)     decoder)      about 1 MiB)              one per thread                 in order
//! ```
//!
//! [`run`] drives all of it with as many threads as wanted. A row's values are borrowed from the input
//! where they stand as they are; only values with escapes are copied. Errors have COPY's words,
//! lines and columns, and of several the one that comes first in the input is told.
//!
//! Rows are what a server of that version makes of a file given to `COPY ... FROM 'file'`
//! (PostgreSQL 14 to 18).

mod batch_cutter;
mod byte_feed;
mod byte_marks;
mod character_check;
mod csv_row;
mod error;
mod input_encoding;
mod options;
mod parallel_rows;
mod reject_log;
mod row_ends;
mod row_fields;
mod row_reader;
mod rows;
mod text_row;

pub use super::ForcedColumns;
pub use batch_cutter::Batch;
pub use byte_feed::InputSource;
pub use error::{CopyError, ErrorContext};
pub use options::{CopyFromOptions, CopyRules, CopyTarget, Header};
pub use parallel_rows::{Input, Workers, run};
pub use reject_log::{RejectLog, RejectSettings};
pub use rows::{Row, RowParser, Rows};

#[cfg(test)]
mod reference_reader;
#[cfg(test)]
mod tests;
