//! Rows as `COPY … TO` writes them: text with tabs and escapes, or CSV.
//!
//! Source: `CopyAttributeOutText` and `CopyAttributeOutCSV` in `src/backend/commands/copyto.c`, PostgreSQL 15.

use std::io::Write;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;

use super::rows::RowPrinter;
use crate::catalog::Catalog;
use crate::error::Result;
use crate::session::{AnswerColumn, AnswerSink};

/// The options of `COPY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopyStyle {
    /// CSV, and not text.
    pub(crate) is_csv: bool,
    /// The names first.
    pub(crate) header: bool,
    pub(crate) delimiter: char,
    pub(crate) null: String,
    pub(crate) quote: char,
    pub(crate) escape: char,
}

/// Writes an answer as `COPY` does.
pub(crate) struct Copied<W: Write + Send> {
    style: CopyStyle,
    out: W,
    printer: Option<RowPrinter>,
    is_single: bool,
}

impl<W: Write + Send> Copied<W> {
    pub(crate) fn new(style: CopyStyle, out: W) -> Self {
        Self { style, out, printer: None, is_single: false }
    }

    pub(crate) fn into_inner(self) -> W {
        self.out
    }
}

impl CopyStyle {
    fn value(&self, text: &str, is_single: bool) -> String {
        if self.is_csv { self.quoted(text, is_single) } else { self.escaped(text) }
    }

    fn quoted(&self, text: &str, is_single: bool) -> String {
        let is_special = |c: char| c == self.delimiter || c == self.quote || c == '\n' || c == '\r';
        // A lone `\.` would end the data, and what is NULL's text is not NULL.
        if text != self.null && !(is_single && text == "\\.") && !text.contains(is_special) {
            return text.to_owned();
        }
        let mut quoted = String::from(self.quote);
        for c in text.chars() {
            if c == self.quote || c == self.escape {
                quoted.push(self.escape);
            }
            quoted.push(c);
        }
        quoted.push(self.quote);
        quoted
    }

    fn escaped(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{b}' => out.push_str("\\v"),
                c if c == self.delimiter => out.extend(['\\', c]),
                c => out.push(c),
            }
        }
        out
    }

    fn line(&self, values: impl Iterator<Item = String>) -> String {
        values.collect::<Vec<_>>().join(&self.delimiter.to_string())
    }
}

impl<W: Write + Send> AnswerSink for Copied<W> {
    fn begin(&mut self, catalog: &Arc<Catalog>, columns: &[AnswerColumn]) -> Result<()> {
        self.printer = Some(RowPrinter::new(catalog, columns)?);
        self.is_single = columns.len() == 1;
        if self.style.header {
            let names = columns.iter().map(|column| self.style.value(&column.name, self.is_single));
            let line = self.style.line(names);
            writeln!(self.out, "{line}")?;
        }
        Ok(())
    }

    fn take(&mut self, batch: &RecordBatch) -> Result<()> {
        let Self { style, out, printer, is_single } = self;
        let printer = printer.as_mut().expect("an answer begins before its rows"); // infallible: by the trait
        printer.for_each(batch, |row| {
            let values = row.iter().map(|value| match value {
                None => style.null.clone(),
                Some(text) => style.value(text, *is_single),
            });
            Ok(writeln!(out, "{}", style.line(values))?)
        })
    }

    fn end(&mut self, _: u64) -> Result<()> {
        Ok(self.out.flush()?)
    }
}
