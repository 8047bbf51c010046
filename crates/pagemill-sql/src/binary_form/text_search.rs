//! Documents and queries of text search in binary form: lexemes, which end in a zero, and numbers.
//!
//! Invariant: nothing is looked for past the end of a payload.
//!
//! Source: `tsvectorsend`, `tsvectorrecv` in `src/backend/utils/adt/tsvector.c`, `tsquerysend`, `tsqueryrecv` in `tsquery.c`,
//! `src/include/tsearch/ts_type.h`, PostgreSQL 18.

use super::{text, wrong};
use crate::error::Result;

/// Bytes of an entry of a document.
const ENTRY: usize = 4;
/// Bytes of an item of a query.
const ITEM: usize = 12;
/// `QI_VAL` and `QI_OPR`.
const VALUE: u8 = 1;
const OPERATOR: u8 = 2;
/// `OP_NOT`, `OP_AND`, `OP_OR`, `OP_PHRASE`.
const NOT: u8 = 1;
const AND: u8 = 2;
const OR: u8 = 3;
const PHRASE: u8 = 4;
/// Operators within operators: more have no meaning, and would take the stack.
const MOST_DEPTH: usize = 1000;

/// What is read from the front.
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((taken, rest)) = self.0.split_first_chunk::<N>() else { return wrong() };
        self.0 = rest;
        Ok(*taken)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take::<1>()?[0])
    }

    /// Up to a zero.
    fn lexeme(&mut self) -> Result<&'b str> {
        let Some(end) = self.0.iter().position(|byte| *byte == 0) else { return wrong() };
        let (lexeme, rest) = self.0.split_at(end);
        self.0 = &rest[1..];
        text(lexeme)
    }
}

fn found<T>(value: Option<T>) -> Result<T> {
    value.map_or_else(wrong, Ok)
}

fn word(bytes: &[u8], at: usize) -> Result<u32> {
    let found_there = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    found(found_there.map(|bytes| u32::from_le_bytes(*bytes)))
}

fn half(bytes: &[u8], at: usize) -> Result<u16> {
    let found_there = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    found(found_there.map(|bytes| u16::from_le_bytes(*bytes)))
}

/// Appends the binary form of a document's payload.
pub(super) fn put_document(payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let count = word(payload, 0)?;
    let data = found(payload.get(4 + count as usize * ENTRY..))?;
    out.extend(count.to_be_bytes());
    for entry in 0..count as usize {
        let entry = word(payload, 4 + entry * ENTRY)?;
        let (len, at) = ((entry >> 1 & 0x7FF) as usize, (entry >> 12) as usize);
        out.extend_from_slice(found(data.get(at..at + len))?);
        out.push(0);
        let positions = (at + len).next_multiple_of(2);
        let count = if entry & 1 == 1 { half(data, positions)? } else { 0 };
        out.extend(count.to_be_bytes());
        for position in 1..=usize::from(count) {
            out.extend(half(data, positions + 2 * position)?.to_be_bytes());
        }
    }
    Ok(())
}

/// The text of a document that comes in.
pub(super) fn document_text(bytes: &[u8]) -> Result<String> {
    let mut bytes = Bytes(bytes);
    let count = i32::from_be_bytes(bytes.take()?);
    let mut entries = Vec::new();
    for _ in 0..count {
        let mut entry = quoted(bytes.lexeme()?);
        for number in 0..u16::from_be_bytes(bytes.take()?) {
            let position = u16::from_be_bytes(bytes.take()?);
            let weight = ["", "C", "B", "A"][usize::from(position >> 14)];
            let before = if number == 0 { ':' } else { ',' };
            entry += &format!("{before}{}{weight}", position & 0x3FFF);
        }
        entries.push(entry);
    }
    match bytes.0.is_empty() && count >= 0 {
        true => Ok(entries.join(" ")),
        false => wrong(),
    }
}

fn quoted(lexeme: &str) -> String {
    format!("'{}'", lexeme.replace('\\', "\\\\").replace('\'', "''"))
}

/// Appends the binary form of a query's payload.
pub(super) fn put_query(payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let count = word(payload, 0)?;
    let lexemes = found(payload.get(4 + count as usize * ITEM..))?;
    out.extend(count.to_be_bytes());
    for item in payload[4..].chunks_exact(ITEM).take(count as usize) {
        out.push(item[0]);
        match item[0] {
            VALUE => {
                out.extend([item[1], item[2]]);
                let place = word(item, 8)?;
                let (len, at) = ((place & 0xFFF) as usize, (place >> 12) as usize);
                out.extend_from_slice(found(lexemes.get(at..at + len))?);
                out.push(0);
            }
            OPERATOR => {
                out.push(item[1]);
                if item[1] == PHRASE {
                    out.extend(half(item, 2)?.to_be_bytes());
                }
            }
            _ => return wrong(),
        }
    }
    Ok(())
}

/// The text of a query that comes in.
pub(super) fn query_text(bytes: &[u8]) -> Result<String> {
    let mut bytes = Bytes(bytes);
    let mut left = i32::from_be_bytes(bytes.take()?);
    let text = match left {
        // One without words. Minor versions before 15.20, and those of its time, sent it and did not take it.
        0 => String::new(),
        _ => operand(&mut bytes, (&mut left, 0))?,
    };
    match bytes.0.is_empty() && left == 0 {
        true => Ok(text),
        false => wrong(),
    }
}

/// An operator comes before what it is of, the right one first.
fn operand(bytes: &mut Bytes<'_>, (left, depth): (&mut i32, usize)) -> Result<String> {
    if *left <= 0 || depth > MOST_DEPTH {
        return wrong();
    }
    *left -= 1;
    match bytes.byte()? {
        VALUE => {
            let (weight, prefix) = (bytes.byte()?, bytes.byte()?);
            if weight > 0xF {
                return wrong();
            }
            let mut text = quoted(bytes.lexeme()?);
            if weight != 0 || prefix != 0 {
                text.push(':');
            }
            if prefix != 0 {
                text.push('*');
            }
            let letters = [(8, 'A'), (4, 'B'), (2, 'C'), (1, 'D')].into_iter();
            text.extend(letters.filter(|(bit, _)| weight & bit != 0).map(|(_, letter)| letter));
            Ok(text)
        }
        OPERATOR => match bytes.byte()? {
            NOT => Ok(format!("!({})", operand(bytes, (left, depth + 1))?)),
            operator @ (AND | OR | PHRASE) => {
                let between = match operator {
                    AND => "&".to_owned(),
                    OR => "|".to_owned(),
                    _ => format!("<{}>", u16::from_be_bytes(bytes.take()?)),
                };
                let second = operand(bytes, (left, depth + 1))?;
                let first = operand(bytes, (left, depth + 1))?;
                Ok(format!("({first}) {between} ({second})"))
            }
            _ => wrong(),
        },
        _ => wrong(),
    }
}
