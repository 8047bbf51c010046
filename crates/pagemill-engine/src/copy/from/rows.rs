//! The rows of a batch, with their values and what can be wrong with them.
//!
//! How many values a row must have follows `NextCopyFrom` in
//! `src/backend/commands/copyfromparse.c` (PostgreSQL 14 to 18): too many are an error before any is
//! looked at, one too few is an error when its turn comes. So [`Row::value`] is asked for each
//! column in turn, and an earlier value that its type does not take is told first.

use std::ops::Range;
use std::sync::Arc;

use super::batch_cutter::Batch;
use super::error::{CopyError, EXTRA_DATA, ErrorContext, FaultParts, MOST_BYTES_SHOWN, RowFault};
use super::options::{CopyRules, Header};
use super::row_fields::RowFields;
use super::row_reader::RowReader;

/// A row's result has room for a pointer to what is wrong with it.
type Result<T> = std::result::Result<T, Box<CopyError>>;

/// Reads batches; keeps the buffers that rows need. Each thread has its own.
#[derive(Clone, Debug)]
pub struct RowParser<'r> {
    rules: &'r CopyRules,
    fields: RowFields,
    converted: Vec<u8>,
}

impl<'r> RowParser<'r> {
    /// A parser by these rules.
    pub fn new(rules: &'r CopyRules) -> Self {
        Self { rules, fields: RowFields::default(), converted: Vec::new() }
    }

    /// The rows of a batch.
    pub fn rows<'a>(&'a mut self, batch: &'a Batch) -> Rows<'a> {
        let prepared = self.rules.encoding.prepared(batch.bytes.bytes(), &mut self.converted);
        Rows {
            reader: RowReader::new(self.rules, prepared, batch.line, batch.newline),
            fields: &mut self.fields,
            input: &batch.input,
            header_is_due: batch.has_header,
        }
    }
}

/// The rows of a batch, one after the other.
#[derive(Debug)]
pub struct Rows<'a> {
    reader: RowReader<'a>,
    fields: &'a mut RowFields,
    input: &'a Arc<str>,
    header_is_due: bool,
}

impl Rows<'_> {
    /// The next row; nothing at the end of the batch, or at an end-of-copy marker.
    ///
    /// # Errors
    /// What is wrong with the row, in COPY's words. There is nothing to be read behind it.
    #[inline]
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>> {
        if std::mem::take(&mut self.header_is_due) {
            self.pass_header()?;
        }
        let text = match self.reader.next(self.fields) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(None),
            Err(fault) => return Err(self.error(fault)),
        };
        let columns = self.reader.rules.columns.len();
        let is_too_long = if columns == 0 { !text.is_empty() } else { self.fields.len() > columns };
        if is_too_long {
            return Err(self.error(RowFault::row(EXTRA_DATA, text)));
        }
        Ok(Some(Row { rows: self, text }))
    }

    /// The name of the input.
    pub fn input(&self) -> &Arc<str> {
        self.input
    }

    /// Whether an end-of-copy marker was met: nothing behind it belongs to the input.
    pub(super) fn ended(&self) -> bool {
        self.reader.ended
    }

    fn pass_header(&mut self) -> Result<()> {
        let header = self.reader.next(self.fields);
        self.reader.ended |= self.reader.at_marker;
        match header {
            // Only a header that must match is taken apart.
            Err(fault) if fault.has_row() && self.reader.rules.header == Header::Skip => Ok(()),
            Err(fault) => Err(self.error(fault)),
            Ok(_) if self.reader.rules.header == Header::Skip => Ok(()),
            Ok(text) => {
                let text = text.unwrap_or_else(|| self.empty_header());
                self.match_header().map_err(|message| self.error(RowFault::row(message, text)))
            }
        }
    }

    /// An input that ends before its header has an empty one.
    fn empty_header(&mut self) -> Range<usize> {
        self.reader.line += u64::from(!self.reader.ended);
        self.fields.clear();
        if self.reader.rules.null.is_empty() {
            self.fields.push_null();
        } else {
            self.fields.push_input(0, 0);
        }
        0..0
    }

    fn match_header(&self) -> std::result::Result<(), String> {
        let rules = self.reader.rules;
        let (got, expected) = (self.fields.len(), rules.columns.len());
        if got != expected {
            return Err(format!(
                "wrong number of fields in header line: got {got}, expected {expected}"
            ));
        }
        let mut names = rules.columns.iter().enumerate();
        names.try_for_each(|(place, name)| self.match_name(place, name))
    }

    fn match_name(&self, place: usize, name: &[u8]) -> std::result::Result<(), String> {
        let encoding = &self.reader.rules.encoding;
        let found = match self.fields.value(self.reader.bytes, place) {
            Some(found) if found == name => return Ok(()),
            Some(found) => format!("\"{}\"", encoding.readable(found)),
            None => format!("null value (\"{}\")", encoding.readable(&self.reader.rules.null)),
        };
        Err(format!(
            "column name mismatch in header line field {}: got {found}, expected \"{}\"",
            place + 1,
            encoding.readable(name)
        ))
    }

    #[cold]
    fn error(&self, fault: RowFault) -> Box<CopyError> {
        let FaultParts { message, hint, row } = fault.into_parts();
        let place = row.map_or(ErrorContext::Line, |row| ErrorContext::Row(self.shown(row)));
        let (input, line) = (Arc::clone(self.input), self.reader.line);
        let relation = Arc::clone(&self.reader.rules.relation);
        Box::new(CopyError { input, relation, line, place, message, detail: None, hint })
    }

    fn shown(&self, row: Range<usize>) -> String {
        let text = self.reader.bytes.get(row).unwrap_or_default();
        self.reader.rules.encoding.excerpt(text, MOST_BYTES_SHOWN)
    }
}

/// A row that was read.
#[derive(Debug)]
pub struct Row<'r> {
    rows: &'r Rows<'r>,
    text: Range<usize>,
}

impl<'r> Row<'r> {
    /// The line of the input on which the row ends, from 1.
    pub fn line(&self) -> u64 {
        self.rows.reader.line
    }

    /// How many values there are: at most one for each column.
    pub fn len(&self) -> usize {
        self.rows.fields.len().min(self.rows.reader.rules.columns.len())
    }

    /// True for a row of a table without columns.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value for a column, in the database's encoding; nothing for null.
    ///
    /// # Errors
    /// When the row has no value for this column.
    #[inline]
    pub fn value(&self, column: usize) -> Result<Option<&'r [u8]>> {
        if column < self.rows.fields.len() {
            Ok(self.rows.fields.value(self.rows.reader.bytes, column))
        } else {
            Err(self.missing(column))
        }
    }

    #[cold]
    fn missing(&self, column: usize) -> Box<CopyError> {
        let name = self.rows.reader.rules.column_name(column);
        self.error(format!("missing data for column \"{name}\""))
    }

    /// An error that is about the whole row.
    #[cold]
    pub fn error(&self, message: impl Into<String>) -> Box<CopyError> {
        self.rows.error(RowFault::row(message, self.text.clone()))
    }

    /// A text in the database's encoding as messages show it: in UTF-8, and of a long one its beginning.
    #[cold]
    pub fn excerpt(&self, text: &[u8], most_bytes: usize) -> String {
        self.rows.reader.rules.encoding.excerpt(text, most_bytes)
    }

    /// The error of a value that its column's type does not take: what can be set aside.
    #[cold]
    pub fn value_error(&self, column: usize, message: impl Into<String>) -> CopyError {
        let Rows { reader, fields, input, .. } = self.rows;
        let encoding = &reader.rules.encoding;
        let value = fields.value(reader.bytes, column);
        let place = ErrorContext::Value {
            column: reader.rules.column_name(column),
            value: value.map(|value| encoding.readable(value)),
            shown: value.map(|value| encoding.excerpt(value, MOST_BYTES_SHOWN)),
        };
        let (input, message) = (Arc::clone(input), message.into());
        let relation = Arc::clone(&reader.rules.relation);
        CopyError { input, relation, line: reader.line, place, message, detail: None, hint: None }
    }
}
