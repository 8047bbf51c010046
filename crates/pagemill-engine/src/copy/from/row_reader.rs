//! Rows of an input, one after the other, whatever the format.
//!
//! ```text
//!   marks (delimiters, quotes, escapes, ends of lines) ──► csv_row / text_row ──► RowFields
//! ```
//!
//! What ends a row, what is an error and which line it is on follow `CopyReadLineText` in
//! `src/backend/commands/copyfromparse.c` (PostgreSQL 14 to 18). COPY reads a line and then takes
//! it apart; here both happen in one pass, so an error that COPY would meet while taking a line
//! apart waits until the line is read.
//!
//! Invariant: the text ends where a row ends, at the end of the input, or where something invalid
//! follows; in the last case the row that runs into the end is the one with the error.

use std::ops::Range;

use super::byte_marks::MarkScan;
use super::error::RowFault;
use super::input_encoding::ValidText;
use super::options::CopyRules;
use super::row_fields::RowFields;
use crate::copy::Format;

/// What ends the lines of an input: the first line decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Newline {
    /// `\n`.
    Lf,
    /// `\r`.
    Cr,
    /// `\r\n`.
    CrLf,
}

/// How a row ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowEnd {
    /// Before this place.
    Row(usize),
    /// There is none: an end-of-copy marker.
    Marker,
}

/// Reads rows from a text in the database's encoding.
#[derive(Debug)]
pub(super) struct RowReader<'a> {
    pub(super) rules: &'a CopyRules,
    pub(super) bytes: &'a [u8],
    /// The error that is due at the end of the text.
    behind: Option<String>,
    marks: MarkScan<'a>,
    /// Marks before this place have no meaning.
    pub(super) passed: usize,
    /// Where the next row starts.
    pub(super) position: usize,
    /// The line that was read last.
    pub(super) line: u64,
    pub(super) newline: Option<Newline>,
    /// Whether anything depended on what follows the text.
    pub(super) looked_past_end: bool,
    /// Whether the row read last ended in an end-of-copy marker.
    pub(super) at_marker: bool,
    /// Whether there are no more rows, because of such a marker.
    pub(super) ended: bool,
}

impl<'a> RowReader<'a> {
    /// Reads a text, which follows the given line of an input whose lines end so; nothing for its
    /// beginning.
    pub(super) fn new(
        rules: &'a CopyRules,
        text: ValidText<'a>,
        line: u64,
        newline: Option<Newline>,
    ) -> Self {
        let ValidText { bytes, behind } = text;
        Self {
            rules,
            bytes,
            behind,
            marks: MarkScan::new(rules.marked, bytes),
            passed: 0,
            position: 0,
            line,
            newline,
            looked_past_end: false,
            at_marker: false,
            ended: false,
        }
    }

    /// Reads the next row, and says where its text is.
    pub(super) fn next(&mut self, out: &mut RowFields) -> Result<Option<Range<usize>>, RowFault> {
        out.clear();
        let start = self.position;
        if self.ended {
            return Ok(None);
        }
        if start >= self.bytes.len() {
            self.line += u64::from(self.behind.is_some());
            self.end_of_text()?;
            return Ok(None);
        }
        self.line += 1;
        let end = match self.rules.format {
            Format::Csv => self.csv_row(out)?,
            Format::Text => self.text_row(out)?,
        };
        match end {
            RowEnd::Row(end) => Ok(Some(start..end)),
            RowEnd::Marker => {
                self.ended = true;
                Ok(None)
            }
        }
    }

    /// The next byte that means something.
    #[inline]
    pub(super) fn mark(&mut self) -> Option<(usize, u8)> {
        loop {
            let at = self.marks.next()?;
            if at >= self.passed {
                return self.bytes.get(at).map(|&byte| (at, byte));
            }
        }
    }

    /// The byte at this place, if the text has one.
    pub(super) fn peek(&mut self, at: usize) -> Result<Option<u8>, RowFault> {
        match self.bytes.get(at) {
            Some(&byte) => Ok(Some(byte)),
            None => self.end_of_text().map(|()| None),
        }
    }

    /// Nothing follows, or an error.
    pub(super) fn end_of_text(&mut self) -> Result<(), RowFault> {
        self.looked_past_end = true;
        match &self.behind {
            Some(message) => Err(RowFault::line(message.clone())),
            None => Ok(()),
        }
    }

    /// Ends a row at a carriage return or newline, and says where the next one starts.
    #[inline]
    pub(super) fn end_line(&mut self, at: usize, byte: u8) -> Result<(), RowFault> {
        self.position = match (byte, self.newline) {
            (b'\n', Some(Newline::Lf)) => at + 1,
            (b'\n', None) => {
                self.newline = Some(Newline::Lf);
                at + 1
            }
            (b'\n', _) => return Err(self.stray_newline()),
            (_, Some(Newline::Lf)) => return Err(self.stray_return()),
            (_, Some(Newline::Cr)) => at + 1,
            (_, None | Some(Newline::CrLf)) => self.end_line_at_return(at)?,
        };
        self.passed = self.position;
        Ok(())
    }

    fn end_line_at_return(&mut self, at: usize) -> Result<usize, RowFault> {
        if self.peek(at + 1)? == Some(b'\n') {
            self.newline = Some(Newline::CrLf);
            return Ok(at + 2);
        }
        if self.newline.is_some() {
            return Err(self.stray_return());
        }
        self.newline = Some(Newline::Cr);
        Ok(at + 1)
    }

    #[cold]
    fn stray_newline(&self) -> RowFault {
        match self.rules.format {
            Format::Csv => RowFault::line("unquoted newline found in data")
                .with_hint("Use quoted CSV field to represent newline."),
            Format::Text => RowFault::line("literal newline found in data")
                .with_hint("Use \"\\n\" to represent newline."),
        }
    }

    #[cold]
    fn stray_return(&self) -> RowFault {
        match self.rules.format {
            Format::Csv => RowFault::line("unquoted carriage return found in data")
                .with_hint("Use quoted CSV field to represent carriage return."),
            Format::Text => RowFault::line("literal carriage return found in data")
                .with_hint("Use \"\\r\" to represent carriage return."),
        }
    }

    /// Where an end-of-copy marker ends whose dot is before `next`, if the line ends there too.
    /// What it is otherwise depends on the format.
    pub(super) fn marker_end(&mut self, next: usize) -> Result<MarkerEnd, RowFault> {
        let mut next = next;
        if self.newline == Some(Newline::CrLf) {
            match self.peek(next)? {
                Some(b'\r') => next += 1,
                Some(b'\n') => return Ok(MarkerEnd::OtherNewline),
                _ => return Ok(MarkerEnd::NotAlone),
            }
        }
        let wanted = match self.newline {
            Some(Newline::Cr) => b"\r".as_slice(),
            Some(Newline::Lf | Newline::CrLf) => b"\n",
            None => b"\r\n",
        };
        match self.peek(next)? {
            Some(byte) if wanted.contains(&byte) => Ok(MarkerEnd::At(next + 1)),
            Some(b'\r' | b'\n') => Ok(MarkerEnd::WrongNewline),
            _ => Ok(MarkerEnd::NotAlone),
        }
    }
}

/// What follows `\.`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkerEnd {
    /// The end of the line, up to this place.
    At(usize),
    /// `\n` where lines end in `\r\n`.
    OtherNewline,
    /// Another end of a line than those before.
    WrongNewline,
    /// Something else.
    NotAlone,
}

/// The message for a marker that ends in another way than the lines before.
pub(super) const MARKER_NEWLINE: &str = "end-of-copy marker does not match previous newline style";
