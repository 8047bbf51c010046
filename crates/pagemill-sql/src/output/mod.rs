//! Answers as text: aligned as psql prints them, CSV, JSON lines, Markdown; and as files of Parquet and Arrow.
//!
//! Invariant: a value's text is that of PostgreSQL's output function; the formats only put something around it.

mod aligned;
mod copied;
mod expanded;
mod rows;
mod separated;
mod style;
mod table;
mod values;
mod whole_file;

use std::io::Write;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::session::{AnswerColumn, AnswerSink};
use rows::RowPrinter;
use separated::Separated;

pub(crate) use copied::Copied;
pub use copied::{AlwaysQuoted, CopyForm, CopyPrinter, CopyStyle};
pub use style::{Expanded, OutputStyle};
pub(crate) use table::{Table, TableSink};
pub use values::ValuePrinter;
pub(crate) use whole_file::WholeFile;

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// A table with aligned columns, as psql prints it.
    Aligned,
    /// Each column of a row on its own line, as psql's \x prints it.
    Expanded,
    /// Columns behind each other with a separator, as psql's \a prints them.
    Unaligned,
    /// CSV with a header.
    Csv,
    /// One object per row and line.
    Json,
    /// A table in Markdown.
    Markdown,
}

/// Writes answers to a stream.
pub struct Output<W: Write + Send> {
    style: OutputStyle,
    out: W,
    columns: Vec<AnswerColumn>,
    printer: Option<RowPrinter>,
    table: Table,
}

impl<W: Write + Send> Output<W> {
    /// Answers to this stream in a format.
    pub fn new(format: OutputFormat, out: W) -> Self {
        Self::with_style(format.into(), out)
    }

    /// Answers to this stream in a style.
    pub fn with_style(style: OutputStyle, out: W) -> Self {
        let (columns, table) = (Vec::new(), Table::default());
        Self { style, out, columns, printer: None, table }
    }

    /// The stream.
    pub fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write + Send> AnswerSink for Output<W> {
    fn begin(&mut self, catalog: &Arc<Catalog>, columns: &[AnswerColumn]) -> Result<()> {
        self.printer = Some(RowPrinter::new(catalog, columns)?);
        // A client is told the type under a domain.
        let told = |column: &AnswerColumn| {
            let mut told = column.clone();
            told.ty.oid = catalog.base_type(told.ty.oid, -1).0;
            told
        };
        self.columns = columns.iter().map(told).collect();
        self.table = Table::of(&self.columns);
        if let Some(separated) = Separated::of(&self.style) {
            separated.header(&self.columns, &mut self.out)?;
        }
        Ok(())
    }

    fn take(&mut self, batch: &RecordBatch) -> Result<()> {
        let Self { printer, table, out, columns, style } = self;
        let printer = printer.as_mut().expect("an answer begins before its rows"); // infallible: by the trait
        let separated = Separated::of(style);
        printer.for_each(batch, |row| match separated {
            // As psql, which prints nothing of a row without columns.
            Some(_) if columns.is_empty() && style.format != OutputFormat::Json => Ok(()),
            Some(separated) => separated.row(columns, row, out),
            None => {
                table.push(row);
                Ok(())
            }
        })
    }

    fn end(&mut self, _: u64) -> Result<()> {
        if !self.style.streams() {
            std::mem::take(&mut self.table).write(&self.style, &mut self.out)?;
        }
        self.out.flush()?;
        Ok(())
    }
}
