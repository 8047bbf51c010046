//! Rows as `COPY … TO` writes them: text with tabs and escapes, or CSV.
//!
//! Invariant: what is special is ASCII, so that no byte of a longer character is taken for it.
//!
//! Source: `CopyAttributeOutText` and `CopyAttributeOutCSV` in `src/backend/commands/copyto.c`, PostgreSQL 15.

use std::io::Write;
use std::sync::Arc;

use arrow::array::Array as _;
use arrow::record_batch::RecordBatch;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::functions::text_form::Printer;
use crate::session::{AnswerColumn, AnswerSink};

/// The options of `COPY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyStyle {
    /// CSV, and not text.
    pub is_csv: bool,
    /// The names first.
    pub header: bool,
    /// What stands between values, a character of ASCII.
    pub delimiter: u8,
    /// What stands for NULL.
    pub null: String,
    /// What stands around values of CSV, a character of ASCII.
    pub quote: u8,
    /// What stands before a quote in a value, likewise.
    pub escape: u8,
}

/// Writes rows in such a style.
pub struct CopyPrinter {
    style: CopyStyle,
    printers: Vec<Printer>,
    value: Vec<u8>,
}

impl CopyPrinter {
    /// For these columns.
    ///
    /// # Errors
    /// When the text of a type is not known here.
    pub fn new(catalog: &Arc<Catalog>, columns: &[AnswerColumn], style: CopyStyle) -> Result<Self> {
        let printer = |column: &AnswerColumn| Printer::new(catalog, column.ty);
        let printers = columns.iter().map(printer).collect::<Result<_>>()?;
        Ok(Self { style, printers, value: Vec::new() })
    }

    /// Appends the line of names; false where the style has none.
    pub fn header(&self, columns: &[AnswerColumn], out: &mut Vec<u8>) -> bool {
        if !self.style.header {
            return false;
        }
        for (number, column) in columns.iter().enumerate() {
            self.style.separate(number, out);
            self.style.put(column.name.as_bytes(), columns.len() == 1, out);
        }
        out.push(b'\n');
        true
    }

    /// Appends a row's line.
    ///
    /// # Errors
    /// When a value is damaged.
    pub fn row(&mut self, batch: &RecordBatch, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let Self { style, printers, value } = self;
        let is_single = printers.len() == 1;
        for (number, (printer, array)) in printers.iter_mut().zip(batch.columns()).enumerate() {
            style.separate(number, out);
            if array.is_null(row) {
                out.extend_from_slice(style.null.as_bytes());
                continue;
            }
            value.clear();
            printer.print(array, row, value)?;
            style.put(value, is_single, out);
        }
        out.push(b'\n');
        Ok(())
    }
}

impl CopyStyle {
    fn separate(&self, number: usize, out: &mut Vec<u8>) {
        if number > 0 {
            out.push(self.delimiter);
        }
    }

    fn put(&self, text: &[u8], is_single: bool, out: &mut Vec<u8>) {
        if self.is_csv {
            self.put_quoted(text, is_single, out)
        } else {
            self.put_escaped(text, out)
        }
    }

    fn put_quoted(&self, text: &[u8], is_single: bool, out: &mut Vec<u8>) {
        let special = [self.delimiter, self.quote, b'\n', b'\r'];
        // A lone `\.` would end the data, and what is NULL's text is not NULL.
        if text != self.null.as_bytes()
            && !(is_single && text == b"\\.")
            && !text.iter().any(|byte| special.contains(byte))
        {
            out.extend_from_slice(text);
            return;
        }
        out.push(self.quote);
        for byte in text {
            if *byte == self.quote || *byte == self.escape {
                out.push(self.escape);
            }
            out.push(*byte);
        }
        out.push(self.quote);
    }

    fn put_escaped(&self, text: &[u8], out: &mut Vec<u8>) {
        let is_plain =
            |byte: &u8| *byte != b'\\' && *byte != self.delimiter && !(8..=13).contains(byte);
        let mut rest = text;
        while let Some(at) = rest.iter().position(|byte| !is_plain(byte)) {
            out.extend_from_slice(&rest[..at]);
            let letter = match rest[at] {
                8 => b'b',
                b'\t' => b't',
                b'\n' => b'n',
                11 => b'v',
                12 => b'f',
                b'\r' => b'r',
                other => other,
            };
            out.extend([b'\\', letter]);
            rest = &rest[at + 1..];
        }
        out.extend_from_slice(rest);
    }
}

/// Writes an answer as `COPY` does.
pub(crate) struct Copied<W: Write + Send> {
    style: CopyStyle,
    out: W,
    printer: Option<CopyPrinter>,
    lines: Vec<u8>,
}

impl<W: Write + Send> Copied<W> {
    pub(crate) fn new(style: CopyStyle, out: W) -> Self {
        Self { style, out, printer: None, lines: Vec::new() }
    }

    pub(crate) fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write + Send> AnswerSink for Copied<W> {
    fn begin(&mut self, catalog: &Arc<Catalog>, columns: &[AnswerColumn]) -> Result<()> {
        let printer = CopyPrinter::new(catalog, columns, self.style.clone())?;
        printer.header(columns, &mut self.lines);
        self.printer = Some(printer);
        Ok(())
    }

    fn take(&mut self, batch: &RecordBatch) -> Result<()> {
        let Self { out, printer, lines, .. } = self;
        let printer = printer.as_mut().expect("an answer begins before its rows"); // infallible: by the trait
        for row in 0..batch.num_rows() {
            printer.row(batch, row, lines)?;
            out.write_all(lines)?;
            lines.clear();
        }
        Ok(())
    }

    fn end(&mut self, _: u64) -> Result<()> {
        // The names alone, where there are no rows.
        self.out.write_all(&self.lines)?;
        Ok(self.out.flush()?)
    }
}
