//! Rows as `COPY … TO` writes them: text with tabs and escapes, CSV, or the binary form.
//!
//! Invariant: what is special is ASCII, so that no byte of a longer character is taken for it.
//!
//! Source: `CopyAttributeOutText`, `CopyAttributeOutCSV`, `DoCopyTo` and `CopyOneRowTo` in `src/backend/commands/copyto.c`,
//! PostgreSQL 15.

use std::io::Write;
use std::sync::Arc;

use arrow::array::Array as _;
use arrow::record_batch::RecordBatch;

use super::values::ValuePrinter;
use crate::catalog::Catalog;
use crate::error::{Result, SqlState, fail};
use crate::functions::text_form::Printer;
use crate::session::{AnswerColumn, AnswerSink};

/// What a file in binary form begins with: a signature, no flags, and a header that goes on for no more bytes.
const BINARY_HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What it ends with, where a row would tell how many fields it has.
const BINARY_TRAILER: [u8; 2] = (-1_i16).to_be_bytes();
/// The length of a NULL.
const BINARY_NULL: [u8; 4] = (-1_i32).to_be_bytes();

/// How `COPY` writes rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyForm {
    /// As lines.
    Lines(CopyStyle),
    /// Each value in its binary form, behind its length.
    Binary,
}

/// The columns whose values `COPY` quotes in any case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlwaysQuoted {
    /// All of them.
    All,
    /// Those with these names.
    Named(Vec<String>),
}

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
    /// What is quoted also where it need not be.
    pub always_quoted: AlwaysQuoted,
}

/// Writes rows in such a form.
pub struct CopyPrinter(RowPrinter);

enum RowPrinter {
    Lines(LinePrinter),
    Binary(ValuePrinter),
}

impl CopyPrinter {
    /// For these columns.
    ///
    /// # Errors
    /// When the text of a type, or its binary form, is not known here, or there is no column of a name that the form has.
    pub fn new(catalog: &Arc<Catalog>, columns: &[AnswerColumn], form: CopyForm) -> Result<Self> {
        Ok(Self(match form {
            CopyForm::Lines(style) => RowPrinter::Lines(LinePrinter::new(catalog, columns, style)?),
            CopyForm::Binary => RowPrinter::Binary(ValuePrinter::new(catalog, columns, |_| true)?),
        }))
    }

    /// Appends what stands before the rows: nothing, where there is no line of names.
    pub fn header(&self, columns: &[AnswerColumn], out: &mut Vec<u8>) {
        match &self.0 {
            RowPrinter::Lines(printer) if printer.style.header => printer.header(columns, out),
            RowPrinter::Lines(_) => {}
            RowPrinter::Binary(_) => out.extend_from_slice(BINARY_HEADER),
        }
    }

    /// True where what stands before the rows is no line of its own: who sends rows one by one sends it with the first of them, or, where
    /// there is none, with what stands behind them. Clients count on that.
    pub fn header_is_part_of_row(&self) -> bool {
        matches!(self.0, RowPrinter::Binary(_))
    }

    /// Appends a row.
    ///
    /// # Errors
    /// When a value is damaged.
    pub fn row(&mut self, batch: &RecordBatch, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match &mut self.0 {
            RowPrinter::Lines(printer) => printer.row(batch, row, out),
            RowPrinter::Binary(printer) => binary_row(printer, batch, row, out),
        }
    }

    /// Appends what stands behind the rows.
    pub fn trailer(&self, out: &mut Vec<u8>) {
        match &self.0 {
            RowPrinter::Lines(_) => {}
            RowPrinter::Binary(_) => out.extend(BINARY_TRAILER),
        }
    }
}

fn binary_row(
    printer: &mut ValuePrinter,
    batch: &RecordBatch,
    row: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    let fields = i16::try_from(batch.num_columns()).expect("a table has 1600 columns at most"); // infallible: as answers do
    out.extend(fields.to_be_bytes());
    for column in 0..batch.num_columns() {
        let begin = out.len();
        out.extend(BINARY_NULL);
        if printer.print(batch, (row, column), out)? {
            let bytes = out.len() - begin - BINARY_NULL.len();
            let Ok(length) = i32::try_from(bytes) else {
                return fail(SqlState("54000"), "a value is too long for COPY");
            };
            out[begin..begin + BINARY_NULL.len()].copy_from_slice(&length.to_be_bytes());
        }
    }
    Ok(())
}

/// Writes rows as lines.
struct LinePrinter {
    style: CopyStyle,
    printers: Vec<Printer>,
    /// Of each column, whether its values are quoted in any case.
    is_quoted: Vec<bool>,
    value: Vec<u8>,
}

impl LinePrinter {
    fn new(catalog: &Arc<Catalog>, columns: &[AnswerColumn], style: CopyStyle) -> Result<Self> {
        let printer = |column: &AnswerColumn| Printer::new(catalog, column.ty);
        let printers = columns.iter().map(printer).collect::<Result<_>>()?;
        let is_quoted = style.always_quoted.of(columns)?;
        Ok(Self { style, printers, is_quoted, value: Vec::new() })
    }

    fn header(&self, columns: &[AnswerColumn], out: &mut Vec<u8>) {
        for (number, column) in columns.iter().enumerate() {
            self.style.separate(number, out);
            self.style.put(column.name.as_bytes(), columns.len() == 1, out);
        }
        out.push(b'\n');
    }

    fn row(&mut self, batch: &RecordBatch, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let Self { style, printers, is_quoted, value } = self;
        let is_single = printers.len() == 1;
        for (number, (printer, array)) in printers.iter_mut().zip(batch.columns()).enumerate() {
            style.separate(number, out);
            if array.is_null(row) {
                out.extend_from_slice(style.null.as_bytes());
                continue;
            }
            value.clear();
            printer.print(array, row, value)?;
            match is_quoted[number] {
                true => style.quote(value, out),
                false => style.put(value, is_single, out),
            }
        }
        out.push(b'\n');
        Ok(())
    }
}

impl AlwaysQuoted {
    /// None.
    pub const NONE: Self = Self::Named(Vec::new());

    /// Which of these columns are.
    fn of(&self, columns: &[AnswerColumn]) -> Result<Vec<bool>> {
        let Self::Named(names) = self else { return Ok(vec![true; columns.len()]) };
        let is_column = |name: &&String| columns.iter().any(|column| column.name == **name);
        if let Some(name) = names.iter().find(|name| !is_column(name)) {
            let message = format!("FORCE_QUOTE column \"{name}\" not referenced by COPY");
            return fail(SqlState("42P10"), message);
        }
        Ok(columns.iter().map(|column| names.contains(&column.name)).collect())
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
        self.quote(text, out);
    }

    fn quote(&self, text: &[u8], out: &mut Vec<u8>) {
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
    form: CopyForm,
    out: W,
    printer: Option<CopyPrinter>,
    lines: Vec<u8>,
}

impl<W: Write + Send> Copied<W> {
    pub(crate) fn new(form: CopyForm, out: W) -> Self {
        Self { form, out, printer: None, lines: Vec::new() }
    }

    pub(crate) fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write + Send> AnswerSink for Copied<W> {
    fn begin(&mut self, catalog: &Arc<Catalog>, columns: &[AnswerColumn]) -> Result<()> {
        let printer = CopyPrinter::new(catalog, columns, self.form.clone())?;
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
        if let Some(printer) = &self.printer {
            printer.trailer(&mut self.lines);
        }
        // What stands before the rows alone, where there are none.
        self.out.write_all(&self.lines)?;
        Ok(self.out.flush()?)
    }
}
