//! placeholder

mod byte_scan;
mod copy_csv;
pub mod copy_format;
mod copy_text;
pub mod encoding;
mod encoding_tables;
pub mod pattern;
mod pattern_regex;
