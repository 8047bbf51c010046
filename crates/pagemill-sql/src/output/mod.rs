//! Answers as text: aligned as psql prints them, CSV, JSON lines, Markdown.
//!
//! Invariant: a value's text is that of PostgreSQL's output function; the formats only put something around it.

mod aligned;
mod rows;
mod separated;

use std::io::Write;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::session::{AnswerColumn, AnswerSink};
use aligned::Aligned;
use rows::RowPrinter;
use separated::Separated;

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// A table with aligned columns, as psql prints it.
    Aligned,
    /// Each column of a row on its own line, as psql's \x prints it.
    Expanded,
    /// CSV with a header.
    Csv,
    /// One object per row and line.
    Json,
    /// A table in Markdown.
    Markdown,
}

/// What is put where a value is NULL.
const NULL: &str = "";

/// Writes answers to a stream.
pub struct Output<W: Write + Send> {
    format: OutputFormat,
    out: W,
    columns: Vec<AnswerColumn>,
    printer: Option<RowPrinter>,
    aligned: Aligned,
}

impl<W: Write + Send> Output<W> {
    /// Answers to this stream.
    pub fn new(format: OutputFormat, out: W) -> Self {
        Self { format, out, columns: Vec::new(), printer: None, aligned: Aligned::default() }
    }

    /// The stream.
    pub fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write + Send> AnswerSink for Output<W> {
    fn begin(&mut self, catalog: &Arc<Catalog>, columns: &[AnswerColumn]) -> Result<()> {
        self.columns = columns.to_vec();
        self.printer = Some(RowPrinter::new(catalog, columns)?);
        self.aligned = Aligned::new(catalog, columns);
        if let Some(separated) = Separated::of(self.format) {
            separated.header(columns, &mut self.out)?;
        }
        Ok(())
    }

    fn take(&mut self, batch: &RecordBatch) -> Result<()> {
        let Self { printer, aligned, out, columns, format, .. } = self;
        let printer = printer.as_mut().expect("an answer begins before its rows"); // infallible: by the trait
        let separated = Separated::of(*format);
        printer.for_each(batch, |row| match separated {
            Some(separated) => separated.row(columns, row, out),
            None => {
                aligned.push(row);
                Ok(())
            }
        })
    }

    fn end(&mut self, rows: u64) -> Result<()> {
        match self.format {
            OutputFormat::Aligned => self.aligned.write(&mut self.out, rows)?,
            OutputFormat::Expanded => self.aligned.write_expanded(&mut self.out)?,
            _ => {}
        }
        self.out.flush()?;
        Ok(())
    }
}
