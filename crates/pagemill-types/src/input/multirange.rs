//! Multiranges from their text: `{[1,2),[3,4)}`.
//!
//! Ranges are sorted, those that overlap or touch are one, empty ones are left out.
//!
//! ```text
//! type OID | count | count-1 offsets or lengths | count flags | bounds of each, aligned
//! ```
//!
//! Source: `multirange_in`, `multirange_canonicalize` and `write_multirange_data` in
//! `src/backend/utils/adt/multirangetypes.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use super::InputError;
use super::datum::{align, is_space, malformed};
use super::range::{Bounds, EMPTY_WORD, read_bounds, starts_with_empty};
use super::tree::{MultirangeInput, RangeInput, ValueReader};
use crate::order::ValueOrder;

/// Every fourth item is an offset from the first range's bounds, the others are lengths.
const OFFSET_STRIDE: usize = 4;
const ITEM_IS_OFFSET: u32 = 0x8000_0000;
const LENGTH_WORD: usize = 4;

/// Appends the payload of a multirange.
pub(super) fn read_multirange(
    reader: &mut ValueReader<'_>,
    multirange: &MultirangeInput,
    text: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let mut ranges = Vec::new();
    let mut scanner = Scanner { text, at: 0 };
    while let Some(range) = scanner.next()? {
        ranges.extend(read_bounds(reader, &multirange.range, range)?);
    }
    let ranges = multirange.range.merged(ranges)?;
    reader.with_buffer(|_, data| write(multirange, &ranges, data, out))
}

impl MultirangeInput {
    /// The payload of ranges as [`RangeInput::merged`] gives them.
    ///
    /// # Errors
    /// When it is longer than a value can be.
    pub fn payload(&self, ranges: &[Bounds]) -> Result<Vec<u8>, InputError> {
        let mut out = Vec::new();
        write(self, ranges, &mut Vec::new(), &mut out)?;
        Ok(out)
    }
}

impl RangeInput {
    /// The ranges in order, those that overlap or touch made one.
    ///
    /// # Errors
    /// Those of [`Bounds::made`].
    pub fn merged(&self, mut ranges: Vec<Bounds>) -> Result<Vec<Bounds>, InputError> {
        let order = &self.order;
        ranges.sort_by(|a, b| compare(a, b, order));
        let mut merged: Vec<Bounds> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match merged.last_mut() {
                Some(last) if joins(last, &range, order) => {
                    if let Some(union) = union(last, &range, order).made(self)? {
                        *last = union;
                    }
                }
                _ => merged.push(range),
            }
        }
        Ok(merged)
    }
}

/// Finds the texts of the ranges.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn malformed(&self) -> InputError {
        malformed("multirange", self.text)
    }

    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.get(self.at..)?;
        self.at += rest.iter().take_while(|byte| is_space(**byte)).count();
        self.text.get(self.at).copied()
    }

    /// The next range that is not the word `empty`.
    fn next(&mut self) -> Result<Option<&'a [u8]>, InputError> {
        loop {
            let first = self.at == 0;
            let opening = self.peek().ok_or_else(|| self.malformed())?;
            match opening {
                b'{' if first => {
                    self.at += 1;
                    if self.peek() == Some(b'}') {
                        return self.finish();
                    }
                }
                b',' if !first => self.at += 1,
                b'}' if !first => return self.finish(),
                _ => return Err(self.malformed()),
            }
            if let Some(range) = self.range()? {
                return Ok(Some(range));
            }
        }
    }

    fn finish(&mut self) -> Result<Option<&'a [u8]>, InputError> {
        self.at += 1;
        match self.peek() {
            None => Ok(None),
            Some(_) => Err(self.malformed()),
        }
    }

    /// A range, or `None` for the word `empty`.
    fn range(&mut self) -> Result<Option<&'a [u8]>, InputError> {
        match self.peek() {
            Some(b'[' | b'(') => {
                let start = self.at;
                self.at = self.end_of_range().ok_or_else(|| self.malformed())?;
                Ok(self.text.get(start..self.at))
            }
            Some(_) if starts_with_empty(self.text.get(self.at..).unwrap_or_default()) => {
                self.at += EMPTY_WORD.len();
                Ok(None)
            }
            _ => Err(self.malformed()),
        }
    }

    /// Where the range that begins here ends. As on the server, spaces are passed over first, so
    /// that a backslash escapes the next byte that is none, and so are closing quotes.
    fn end_of_range(&self) -> Option<usize> {
        let (mut quoted, mut escaped, mut at) = (false, false, self.at);
        loop {
            let byte = *self.text.get(at)?;
            at += 1;
            if is_space(byte) {
                continue;
            }
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' if quoted && self.text.get(at) == Some(&b'"') => at += 1,
                b'"' => quoted = !quoted,
                b']' | b')' if !quoted => return Some(at),
                _ => {}
            }
        }
    }
}

fn compare(a: &Bounds, b: &Bounds, order: &ValueOrder) -> Ordering {
    a.lower.compare(&b.lower, order).then_with(|| a.upper.compare(&b.upper, order))
}

/// True unless there is a gap before the second range, which does not begin before the first.
fn joins(a: &Bounds, b: &Bounds, order: &ValueOrder) -> bool {
    a.upper.meets(&b.lower, order) || a.upper.compare(&b.lower, order) != Ordering::Less
}

/// The smallest range that holds both. Of bounds that are equal, the second one's stay.
fn union(a: &Bounds, b: &Bounds, order: &ValueOrder) -> Bounds {
    let lower = if a.lower.compare(&b.lower, order).is_lt() { &a.lower } else { &b.lower };
    let upper = if a.upper.compare(&b.upper, order).is_gt() { &a.upper } else { &b.upper };
    Bounds { lower: lower.clone(), upper: upper.clone() }
}

fn write(
    multirange: &MultirangeInput,
    ranges: &[Bounds],
    data: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let layout = multirange.range.subtype.layout;
    let start = out.len();
    out.extend_from_slice(&multirange.oid.0.to_le_bytes());
    out.extend_from_slice(&(ranges.len() as u32).to_le_bytes());
    let mut before = 0;
    let mut bounds = Vec::new();
    for (i, range) in ranges.iter().enumerate() {
        if i > 0 {
            let item = match i % OFFSET_STRIDE {
                0 => data.len() as u32 | ITEM_IS_OFFSET,
                _ => (data.len() - before) as u32,
            };
            out.extend_from_slice(&item.to_le_bytes());
        }
        before = data.len();
        bounds.clear();
        range.push_values(&multirange.range, &mut bounds)?;
        data.extend_from_slice(&bounds);
        align(layout, data);
    }
    out.extend(ranges.iter().map(Bounds::flags));
    let header = layout.align_up(out.len() - start + LENGTH_WORD) - LENGTH_WORD;
    out.resize(start + header, 0);
    out.extend_from_slice(data);
    Ok(())
}
