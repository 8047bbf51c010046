//! Inputs cut into batches of whole rows, about a mebibyte each.
//!
//! One thread at a time cuts; who has a batch reads its rows by itself, because the batch knows the
//! line it follows and what ends its lines. The first rows of an input are read here too, as far
//! as it takes to see how its lines end.
//!
//! Invariants: batches are numbered without gaps, in the order of the rows; one batch holds rows of one
//! input; a batch ends where a row ends, or its input does, or holds the error that ends it all.

use std::collections::VecDeque;
use std::sync::Arc;

use pagemill_io::Storage;

use super::byte_feed::{BatchBytes, ByteFeed, InputSource};
use super::error::{CopyError, ErrorContext};
use super::input_encoding::ValidText;
use super::options::{CopyRules, Header};
use super::row_ends::{last_row_end, line_count};
use super::row_fields::RowFields;
use super::row_reader::{Newline, RowReader};
use crate::error::{Error, Result};

/// Bytes of a batch, unless a row is longer.
const BATCH_BYTES: usize = 1 << 20;
/// Longest stretch without the end of a row: what PostgreSQL takes as one line, and a batch.
const MOST_WINDOW_BYTES: usize = 1 << 30;

/// Bytes of a character, at most, and those of an end of a line.
const LONGEST_CHARACTER: usize = 8;

/// Rows that stand one after the other in an input.
#[derive(Debug)]
pub struct Batch {
    pub(super) bytes: BatchBytes,
    /// The name of the input.
    pub(super) input: Arc<str>,
    /// The number of the input, from 0.
    pub(super) input_number: usize,
    /// The number of the batch, from 0.
    pub(super) sequence: u64,
    /// The line before the first one.
    pub(super) line: u64,
    /// What ends the lines; unknown at the beginning of an input.
    pub(super) newline: Option<Newline>,
    /// Whether the first row is a header.
    pub(super) has_header: bool,
}

/// Cuts inputs, one after the other.
#[derive(Debug)]
pub(super) struct BatchCutter<'a> {
    storage: &'a Storage,
    rules: &'a CopyRules,
    waiting: VecDeque<InputSource>,
    current: Option<Current>,
    /// Inputs opened so far.
    opened: usize,
    sequence: u64,
    batch_bytes: usize,
}

/// The input that is being cut.
#[derive(Debug)]
struct Current {
    feed: ByteFeed,
    name: Arc<str>,
    newline: Option<Newline>,
    line: u64,
    is_new: bool,
}

/// A stretch of whole rows.
struct Cut {
    length: usize,
    lines: u64,
    newline: Option<Newline>,
}

impl<'a> BatchCutter<'a> {
    pub(super) fn new(
        storage: &'a Storage,
        rules: &'a CopyRules,
        sources: impl IntoIterator<Item = InputSource>,
    ) -> Self {
        let waiting = sources.into_iter().collect();
        let batch_bytes = BATCH_BYTES;
        Self { storage, rules, waiting, current: None, opened: 0, sequence: 0, batch_bytes }
    }

    /// With batches of about this size.
    #[cfg(test)]
    pub(super) fn with_batch_bytes(self, batch_bytes: usize) -> Self {
        Self { batch_bytes, ..self }
    }

    /// The next batch; nothing when all inputs are at their end.
    ///
    /// # Errors
    /// When an input cannot be opened, read or decompressed, or a row is too long.
    pub(super) fn next_batch(&mut self) -> Result<Option<Batch>> {
        loop {
            if self.current.is_none() && !self.open_next()? {
                return Ok(None);
            }
            match self.cut()? {
                Some(batch) => return Ok(Some(batch)),
                None => self.current = None,
            }
        }
    }

    /// Leaves out the rest of an input that failed. Gives the number that the failed batch would
    /// have had, and that of the input.
    pub(super) fn give_up_input(&mut self) -> (u64, usize) {
        let (sequence, is_open) = (self.sequence, self.current.take().is_some());
        self.sequence += 1;
        (sequence, self.opened.saturating_sub(usize::from(is_open)))
    }

    /// How rows are read.
    pub(super) fn rules(&self) -> &'a CopyRules {
        self.rules
    }

    /// Leaves out what comes behind the end-of-copy marker of an input.
    pub(super) fn skip_input(&mut self, number: usize) {
        if self.opened == number + 1 {
            self.current = None;
        }
    }

    /// Takes back a buffer that a batch was done with.
    pub(super) fn reuse(&mut self, buffer: Vec<u8>) {
        if let Some(current) = &mut self.current {
            current.feed.reuse(buffer);
        }
    }

    fn open_next(&mut self) -> Result<bool> {
        let Some(source) = self.waiting.pop_front() else { return Ok(false) };
        let name: Arc<str> = match &source {
            InputSource::File(path) => path.display().to_string().into(),
            InputSource::Stream(stream) => stream.path().display().to_string().into(),
        };
        let feed = ByteFeed::open(self.storage, source)?;
        self.current = Some(Current { feed, name, newline: None, line: 0, is_new: true });
        self.opened += 1;
        Ok(true)
    }

    fn cut(&mut self) -> Result<Option<Batch>> {
        let Some(current) = &mut self.current else { return Ok(None) };
        let Some(cut) = current.next_cut(self.rules, self.batch_bytes)? else { return Ok(None) };
        let batch = Batch {
            bytes: current.feed.take(cut.length),
            input: Arc::clone(&current.name),
            input_number: self.opened.saturating_sub(1),
            sequence: self.sequence,
            line: current.line,
            newline: current.newline,
            has_header: current.is_new && self.rules.header != Header::None,
        };
        current.line += cut.lines;
        (current.newline, current.is_new) = (cut.newline, false);
        self.sequence += 1;
        Ok(Some(batch))
    }
}

impl Current {
    fn next_cut(&mut self, rules: &CopyRules, batch_bytes: usize) -> Result<Option<Cut>> {
        let mut length = batch_bytes;
        loop {
            let (bytes, is_end) = self.feed.window(length)?;
            if bytes.is_empty() {
                // A header that is missing is told where rows are read.
                let is_missed = self.is_new && rules.header == Header::Match;
                return Ok(is_missed.then_some(Cut { length: 0, lines: 0, newline: None }));
            }
            let found = match self.newline {
                Some(newline) => later_cut(rules, newline, bytes, is_end),
                None => first_cut(rules, bytes, is_end),
            };
            if found.is_some() {
                return Ok(found);
            }
            if length >= MOST_WINDOW_BYTES {
                return Err(self.row_too_long(rules));
            }
            length = (length * 2).min(MOST_WINDOW_BYTES);
        }
    }

    fn row_too_long(&self, rules: &CopyRules) -> Error {
        Error::Copy(Box::new(CopyError {
            input: Arc::clone(&self.name),
            relation: Arc::clone(&rules.relation),
            line: self.line + 1,
            place: ErrorContext::Line,
            message: format!("the row is longer than {MOST_WINDOW_BYTES} bytes"),
            detail: None,
            hint: Some("Look for a quote that is opened and never closed."),
        }))
    }
}

/// A cut in an input whose first lines were seen.
fn later_cut(rules: &CopyRules, newline: Newline, bytes: &[u8], is_end: bool) -> Option<Cut> {
    let length = if is_end { bytes.len() } else { last_row_end(rules, newline, bytes)? };
    let rows = bytes.get(..length).unwrap_or(bytes);
    Some(Cut { length, lines: line_count(rules, newline, rows), newline: Some(newline) })
}

/// The first cut of an input: rows are read until one shows how lines end.
fn first_cut(rules: &CopyRules, bytes: &[u8], is_end: bool) -> Option<Cut> {
    // An error must be met in the batch as it was met here, so what it depends on must be in it whole.
    let seen = if is_end { bytes.len() } else { bytes.len().saturating_sub(LONGEST_CHARACTER) };
    let head = bytes.get(..seen).unwrap_or(bytes);
    let mut reader = RowReader::new(rules, ValidText { bytes: head, behind: None }, 0, None);
    let mut fields = RowFields::default();
    loop {
        let read = reader.next(&mut fields);
        if reader.looked_past_end && !is_end {
            return None;
        }
        // A header that is passed over may have a fault, if it has an end.
        let is_row = match read {
            Ok(row) => row.is_some(),
            Err(fault) => fault.has_row(),
        };
        if let (Some(newline), true) = (reader.newline, is_row) {
            let rest = bytes.get(reader.position..).unwrap_or_default();
            let later = later_cut(rules, newline, rest, is_end);
            let (length, lines) = later.map_or((0, 0), |later| (later.length, later.lines));
            let (length, lines) = (reader.position + length, reader.line + lines);
            return Some(Cut { length, lines, newline: Some(newline) });
        }
        if !is_row {
            // An error, a marker or the end: nothing behind it matters.
            return Some(Cut { length: bytes.len(), lines: 0, newline: reader.newline });
        }
    }
}
