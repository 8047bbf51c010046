//! How answers look: the format, and what `\pset` changes of it.
//!
//! Invariant: what psql takes is taken with its words, and what it refuses is refused.

use super::OutputFormat;

/// When each column of a row gets a line of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expanded {
    /// Never.
    Off,
    /// Always.
    On,
    /// When the answer is wider than the terminal.
    Auto,
}

/// How answers look.
#[derive(Debug, Clone)]
pub struct OutputStyle {
    /// The format.
    pub format: OutputFormat,
    /// When columns get lines of their own.
    pub expanded: Expanded,
    /// Rows only: no names of columns, no footers, no titles.
    pub tuples_only: bool,
    /// What is put where a value is NULL.
    pub null: String,
    /// How many lines are drawn around an aligned table: 0, 1 or 2.
    pub border: u8,
    /// What separates the columns of an unaligned row.
    pub field_separator: String,
    /// The columns of the terminal; `None` where there is none.
    pub terminal_columns: Option<usize>,
}

impl From<OutputFormat> for OutputStyle {
    fn from(format: OutputFormat) -> Self {
        let (format, expanded) = match format {
            OutputFormat::Expanded => (OutputFormat::Aligned, Expanded::On),
            other => (other, Expanded::Off),
        };
        Self {
            format,
            expanded,
            tuples_only: false,
            null: String::new(),
            border: 1,
            field_separator: "|".to_owned(),
            terminal_columns: None,
        }
    }
}

impl OutputStyle {
    /// True where rows are written as they come.
    pub(super) fn streams(&self) -> bool {
        !matches!(self.format, OutputFormat::Aligned | OutputFormat::Unaligned)
    }
}
