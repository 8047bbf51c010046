#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod byte_scan;
mod copy_csv;
pub mod copy_format;
pub mod copy_input;
mod copy_text;
pub mod count;
pub mod damage;
pub mod encoding;
mod encoding_tables;
pub mod error;
mod euc;
pub mod export;
mod fork_pages;
mod fork_slots;
mod index_count;
mod index_export;
pub mod index_order;
mod index_scan;
pub mod inspect;
pub mod list;
pub mod load;
pub mod pattern;
mod pattern_regex;
pub mod row_source;
mod row_writer;
mod scan;
pub mod scan_plan;
pub mod select;
pub mod table;

pub use copy_format::{CopyOptions, ForceQuote, Format};
pub use count::count;
pub use damage::{DamageLog, OnDamage};
pub use error::{Error, Result};
pub use export::{Export, ExportOptions, ExportSummary};
pub use index_order::{IndexOrder, OrderOptions, OrderSummary};
pub use load::{LoadOptions, LoadSummary, load};
pub use pagemill_stream::ScanOrder;
pub use row_source::RowSource;
pub use scan::Progress;
pub use scan_plan::ScanOptions;
pub use select::{PatternTexts, Patterns, Selected};
pub use table::Table;
