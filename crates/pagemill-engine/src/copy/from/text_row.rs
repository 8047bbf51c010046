//! A row in text format.
//!
//! Rules from `CopyReadLineText` and `CopyReadAttributesText` in
//! `src/backend/commands/copyfromparse.c` (PostgreSQL 14 to 18): a backslash takes the meaning from
//! what follows, or gives it one; a value that reads like the NULL string before that is null.
//!
//! Two oddities are COPY's: a backslash that ends the input ends the row and is no data, and before
//! 18 a marker `\.` behind a value ends that row only.

use memchr::memchr;

use super::error::RowFault;
use super::row_fields::RowFields;
use super::row_reader::{MARKER_NEWLINE, MarkerEnd, RowEnd, RowReader};

/// The value that is being read.
struct Field {
    start: usize,
    is_escaped: bool,
}

impl RowReader<'_> {
    pub(super) fn text_row(&mut self, out: &mut RowFields) -> Result<RowEnd, RowFault> {
        let row = self.position;
        let mut field = Field { start: row, is_escaped: false };
        let mut invalid = None;
        let (at, end) = loop {
            let Some((at, byte)) = self.mark() else {
                break self.end_text_row(self.bytes.len())?;
            };
            if byte == self.rules.delimiter {
                self.push_text(&field, at, out, &mut invalid);
                field = Field { start: at + 1, is_escaped: false };
            } else if byte != b'\\' {
                self.end_line(at, byte)?;
                break (at, at);
            } else {
                match self.peek(at + 1)? {
                    None => break self.end_text_row(at)?,
                    Some(b'.') if self.marker_ends_input(at)? => return Ok(RowEnd::Marker),
                    Some(b'.') => break (at, at),
                    Some(_) => (self.passed, field.is_escaped) = (at + 2, true),
                }
            }
        };
        self.push_text(&field, at, out, &mut invalid);
        match invalid {
            Some(message) => Err(RowFault::row(message, row..end)),
            None => Ok(RowEnd::Row(end)),
        }
    }

    /// The row ends with the text, its last value at this place.
    fn end_text_row(&mut self, at: usize) -> Result<(usize, usize), RowFault> {
        self.end_of_text()?;
        self.position = self.bytes.len();
        Ok((at, self.position))
    }

    /// Whether the marker at this place ends the input; if not, it ends the row.
    fn marker_ends_input(&mut self, at: usize) -> Result<bool, RowFault> {
        let is_first = at == self.position;
        let strict = self.rules.strict_marker;
        let next = match self.marker_end(at + 2)? {
            MarkerEnd::At(next) if is_first || !strict => next,
            MarkerEnd::OtherNewline | MarkerEnd::WrongNewline => {
                return Err(RowFault::line(MARKER_NEWLINE));
            }
            _ if strict => {
                return Err(RowFault::line("end-of-copy marker is not alone on its line"));
            }
            _ => return Err(RowFault::line("end-of-copy marker corrupt")),
        };
        (self.position, self.passed) = (next, next);
        self.at_marker = true;
        Ok(is_first)
    }

    #[inline]
    fn push_text(
        &self,
        field: &Field,
        end: usize,
        out: &mut RowFields,
        invalid: &mut Option<String>,
    ) {
        let null = &self.rules.null;
        let raw = self.bytes.get(field.start..end).unwrap_or_default();
        if raw.len() == null.len() && raw == null {
            out.push_null();
        } else if field.is_escaped {
            let mut has_high = false;
            let value = out.push_made(|made| has_high = unescape(raw, made));
            if has_high && invalid.is_none() {
                *invalid = self.rules.encoding.verify(value).err();
            }
        } else {
            out.push_input(field.start, end);
        }
    }
}

/// Appends a value with its escapes resolved. True when one of them made a byte that may be part of
/// no character.
fn unescape(raw: &[u8], out: &mut Vec<u8>) -> bool {
    let (mut rest, mut has_high) = (raw, false);
    while let Some(at) = memchr(b'\\', rest) {
        let (before, tail) = rest.split_at(at);
        out.extend_from_slice(before);
        rest = tail.get(1..).unwrap_or_default();
        let Some((&letter, tail)) = rest.split_first() else { break };
        let (byte, used) = match letter {
            b'0'..=b'7' => number(rest, 8, 3),
            b'x' if tail.first().is_some_and(u8::is_ascii_hexdigit) => {
                let (byte, digits) = number(tail, 16, 2);
                (byte, digits + 1)
            }
            other => (control(other), 1),
        };
        // What stands in the input as it is was looked at already.
        has_high |= byte == 0 || (used > 1 && !byte.is_ascii());
        out.push(byte);
        rest = rest.get(used..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    has_high
}

/// The number that the first digits make, and how many they are.
fn number(text: &[u8], radix: u32, most: usize) -> (u8, usize) {
    let digits = text.iter().take(most).map_while(|&byte| char::from(byte).to_digit(radix));
    let (value, used) =
        digits.fold((0, 0), |(value, used), digit| (value * radix + digit, used + 1));
    ((value & 0xff) as u8, used)
}

fn control(letter: u8) -> u8 {
    match letter {
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        other => other,
    }
}
