//! What a person sees of a run: tables for the terminal, documents to keep, a page with charts, two runs side by side.
//!
//! Everything here reads [`Results`](crate::results::Results) and nothing else, and writes to a sink that the caller
//! opened. Invariants: a word such as "faster" stands only where `statistics::compare`, or for two runs [`compare`],
//! allows it; every text from the results is escaped for where it goes, so that no name can break a table or a page.

mod best;
pub mod compare;
mod csv_table;
mod error;
mod headline;
mod html;
mod json;
mod markdown;
mod rows;
mod screen;
mod text;
mod text_layout;
mod units;
mod wording;

pub use csv_table::{CSV_COLUMNS, csv};
pub use error::{Error, Result};
pub use html::html;
pub use json::{json, read_json};
pub use markdown::markdown;
pub use screen::screen;
pub use text::{text, text_ending, text_group};

/// What a page says that it was made by.
pub const GENERATOR: &str = "pagemill lab";

pub(crate) use text_layout::{Align, Line, paragraph, printable, table};
