//! A row in CSV format.
//!
//! Rules from `CopyReadLineText` and `CopyReadAttributesCSV` in
//! `src/backend/commands/copyfromparse.c` (PostgreSQL 14 to 18): quotes may open and close anywhere
//! in a value; between them only the quote and the escape character mean something; a value
//! without quotes that reads like the NULL string is null.
//!
//! Invariant: a value that needs nothing taken out of it stays where it is.

use memchr::memchr2;

use super::error::{EXTRA_DATA, RowFault};
use super::options::CopyRules;
use super::row_fields::RowFields;
use super::row_reader::{MARKER_NEWLINE, MarkerEnd, Newline, RowEnd, RowReader};

/// What ended a value.
enum FieldEnd {
    Delimiter,
    Line,
    Text,
}

/// The quotes that were met in a value.
#[derive(Clone, Copy)]
struct Quotes {
    first: usize,
    last: usize,
    /// Whether only the first and the last byte of the value have to go.
    is_plain: bool,
}

impl RowReader<'_> {
    pub(super) fn csv_row(&mut self, out: &mut RowFields) -> Result<RowEnd, RowFault> {
        let mut start = self.position;
        if !self.rules.strict_marker && self.is_csv_marker(start)? {
            return Ok(RowEnd::Marker);
        }
        loop {
            let (at, end) = self.csv_field(start, out)?;
            match end {
                FieldEnd::Delimiter => start = at + 1,
                FieldEnd::Line | FieldEnd::Text => return Ok(RowEnd::Row(at)),
            }
        }
    }

    /// Before 18, `\.` alone on a line ends the input. With more behind it, it is data.
    fn is_csv_marker(&mut self, start: usize) -> Result<bool, RowFault> {
        let [Some(b'\\'), Some(b'.')] = [start, start + 1].map(|at| self.bytes.get(at)) else {
            return Ok(false);
        };
        match self.marker_end(start + 2)? {
            MarkerEnd::At(_) => Ok(true),
            MarkerEnd::OtherNewline | MarkerEnd::NotAlone => Ok(false),
            MarkerEnd::WrongNewline => Err(RowFault::line(MARKER_NEWLINE)),
        }
    }

    /// Reads the value that starts here, and says where it ends.
    #[inline]
    fn csv_field(
        &mut self,
        start: usize,
        out: &mut RowFields,
    ) -> Result<(usize, FieldEnd), RowFault> {
        let mut quotes = None;
        let (at, end) = loop {
            let Some((at, byte)) = self.mark() else {
                self.end_of_text()?;
                self.position = self.bytes.len();
                break (self.position, FieldEnd::Text);
            };
            if byte == self.rules.delimiter {
                break (at, FieldEnd::Delimiter);
            } else if byte == self.rules.quote {
                quotes = Some(self.quoted_part(at, quotes)?);
            } else if matches!(byte, b'\n' | b'\r') {
                self.look_behind_return(at, byte)?;
                self.end_line(at, byte)?;
                break (at, FieldEnd::Line);
            }
            // An escape character outside of quotes is data.
        };
        match quotes {
            None => self.push_unquoted(start, at, out),
            Some(quotes) => self.push_quoted(start, at, quotes, out),
        }
        Ok((at, end))
    }

    /// Goes to the quote that closes the one at `open`.
    fn quoted_part(&mut self, open: usize, before: Option<Quotes>) -> Result<Quotes, RowFault> {
        let CopyRules { quote, escape, .. } = *self.rules;
        let mut is_plain = before.is_none();
        loop {
            let Some((at, byte)) = self.mark() else { return Err(self.unterminated()?) };
            if byte == escape && self.escapes(at)? {
                is_plain = false;
                self.passed = at + 2;
            } else if byte == quote {
                let first = before.map_or(open, |before| before.first);
                return Ok(Quotes { first, last: at, is_plain });
            } else if matches!(byte, b'\n' | b'\r') {
                self.look_behind_return(at, byte)?;
                self.line += u64::from(byte == self.counted_newline());
            }
        }
    }

    /// COPY looks at what follows a carriage return before it counts the line; what is invalid
    /// there is on the same line.
    #[inline]
    fn look_behind_return(&mut self, at: usize, byte: u8) -> Result<(), RowFault> {
        if byte == b'\r' { self.peek(at + 1).map(|_| ()) } else { Ok(()) }
    }

    /// Whether the escape character at this place, between quotes, has something to escape.
    fn escapes(&mut self, at: usize) -> Result<bool, RowFault> {
        let next = self.peek(at + 1)?;
        Ok(next.is_some_and(|byte| byte == self.rules.quote || byte == self.rules.escape))
    }

    /// The byte that begins a new line between quotes.
    fn counted_newline(&self) -> u8 {
        if self.newline == Some(Newline::Lf) { b'\n' } else { b'\r' }
    }

    #[cold]
    fn unterminated(&mut self) -> Result<RowFault, RowFault> {
        self.end_of_text()?;
        let row = self.position..self.bytes.len();
        self.position = self.bytes.len();
        // A row for a table without columns is not taken apart.
        let has_columns = !self.rules.columns.is_empty();
        let message = if has_columns { "unterminated CSV quoted field" } else { EXTRA_DATA };
        Ok(RowFault::row(message, row))
    }

    #[inline]
    fn push_unquoted(&self, start: usize, end: usize, out: &mut RowFields) {
        let null = self.rules.null.as_slice();
        if end - start != null.len() || self.bytes.get(start..end) != Some(null) {
            return out.push_input(start, end);
        }
        if out.forced_next(self.rules.forced.as_deref()).not_null {
            out.push_made(|made| made.extend_from_slice(null));
        } else {
            out.push_null();
        }
    }

    fn push_quoted(&self, start: usize, end: usize, quotes: Quotes, out: &mut RowFields) {
        let forced = out.forced_next(self.rules.forced.as_deref());
        let null = self.rules.null.as_slice();
        let is_plain = quotes.is_plain && quotes.first == start && quotes.last + 1 == end;
        let is_null = if is_plain {
            out.push_input(start + 1, quotes.last);
            self.bytes.get(start + 1..quotes.last) == Some(null)
        } else {
            let raw = self.bytes.get(start..end).unwrap_or_default();
            out.push_made(|made| unquote(self.rules, raw, made)) == null
        };
        if forced.null && is_null {
            out.last_is_null();
        }
    }
}

/// Appends a value without its quotes and escapes. All quotes in it are closed.
fn unquote(rules: &CopyRules, raw: &[u8], out: &mut Vec<u8>) {
    let CopyRules { quote, escape, .. } = *rules;
    let (mut rest, mut in_quote) = (raw, false);
    while let Some(at) = memchr2(quote, escape, rest) {
        let (before, tail) = rest.split_at(at);
        out.extend_from_slice(before);
        let Some((&byte, tail)) = tail.split_first() else { break };
        rest = tail;
        match tail.split_first() {
            Some((&next, tail))
                if in_quote && byte == escape && (next == quote || next == escape) =>
            {
                out.push(next);
                rest = tail;
            }
            _ if byte == quote => in_quote = !in_quote,
            _ => out.push(byte),
        }
    }
    out.extend_from_slice(rest);
}
