//! The rows of SQL's COPY: written as COPY TO writes them ([`to`]), and read as COPY FROM reads them ([`from`]), with
//! the options of both.

pub mod from;
mod options;
pub mod to;

pub use options::{CopyOptionError, ForcedColumns, Format, single_byte};
