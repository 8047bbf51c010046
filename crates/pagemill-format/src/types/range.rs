//! Ranges and multiranges: `[1,5)`, `empty`, `{[1,2),[3,4)}`.
//!
//! ```text
//! range payload:      type OID | lower | upper | flags (last byte)
//! multirange payload: type OID | count | count-1 offsets or lengths | count flags | bounds…
//! ```
//!
//! Alignment counts from the length word that precedes the payload, 4 bytes earlier.
//! Source: `src/include/utils/rangetypes.h`, `range_out` in `src/backend/utils/adt/rangetypes.c`,
//! `multirange_get_range` in `src/backend/utils/adt/multirangetypes.c`, PostgreSQL 14 to 18.

use super::output::{ValueType, ValueWriter, is_space, quote_tail};
use crate::error::{Error, Result};
use crate::reader::Reader;
use crate::varlena::VARLENA_HEADER_BYTES;

const RANGE: &str = "range";
const MULTIRANGE: &str = "multirange";

const EMPTY: u8 = 0x01;
const LOWER_INCLUSIVE: u8 = 0x02;
const UPPER_INCLUSIVE: u8 = 0x04;
const LOWER_INFINITE: u8 = 0x08;
const UPPER_INFINITE: u8 = 0x10;
const LOWER_NULL: u8 = 0x20;
const UPPER_NULL: u8 = 0x40;

/// The top bit of a multirange item says that it is an offset from the first range's bounds;
/// without it, it is the length of the range before.
const ITEM_IS_OFFSET: u32 = 0x8000_0000;

/// Appends a range over `element`.
pub(super) fn write_range(
    writer: &mut ValueWriter<'_>,
    element: &ValueType,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let Some((&flags, bounds)) = payload.get(4..).and_then(|rest| rest.split_last()) else {
        return Err(Error::corrupt(RANGE, 0, format!("{} bytes", payload.len())));
    };
    write_bounds(writer, element, flags, bounds, out)
}

fn write_bounds(
    writer: &mut ValueWriter<'_>,
    element: &ValueType,
    flags: u8,
    bounds: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    if flags & EMPTY != 0 {
        out.extend_from_slice(b"empty");
        return Ok(());
    }
    let mut at = 0;
    out.push(if flags & LOWER_INCLUSIVE != 0 { b'[' } else { b'(' });
    if flags & (LOWER_INFINITE | LOWER_NULL) == 0 {
        at = write_bound(writer, element, bounds, at, out)?;
    }
    out.push(b',');
    if flags & (UPPER_INFINITE | UPPER_NULL) == 0 {
        write_bound(writer, element, bounds, at, out)?;
    }
    out.push(if flags & UPPER_INCLUSIVE != 0 { b']' } else { b')' });
    Ok(())
}

fn write_bound(
    writer: &mut ValueWriter<'_>,
    element: &ValueType,
    bounds: &[u8],
    at: usize,
    out: &mut Vec<u8>,
) -> Result<usize> {
    let (start, end) = element.layout.locate(bounds, at)?;
    let text = out.len();
    writer.write(&element.output, element.layout.len, &bounds[start..end], out)?;
    quote(out, text);
    Ok(end)
}

fn quote(out: &mut Vec<u8>, start: usize) {
    let text = &out[start..];
    let special =
        |b: &u8| matches!(b, b'"' | b'\\' | b'(' | b')' | b'[' | b']' | b',') || is_space(*b);
    if text.is_empty() || text.iter().any(special) {
        quote_tail(out, start, |b| matches!(b, b'"' | b'\\').then_some(b));
    }
}

/// Appends a multirange over `element`.
pub(super) fn write_multirange(
    writer: &mut ValueWriter<'_>,
    element: &ValueType,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut r = Reader::new(MULTIRANGE, payload);
    r.u32()?;
    let count = r.u32()? as usize;
    out.push(b'{');
    if count > 0 {
        let items = r.bytes((count - 1).saturating_mul(4))?;
        let flags = r.bytes(count)?;
        let start = element.layout.align_up(r.pos() + VARLENA_HEADER_BYTES) - VARLENA_HEADER_BYTES;
        let bounds = payload.get(start..).unwrap_or_default();
        write_ranges(writer, element, items, flags, bounds, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn write_ranges(
    writer: &mut ValueWriter<'_>,
    element: &ValueType,
    items: &[u8],
    flags: &[u8],
    bounds: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut offset = 0usize;
    for (i, &flags) in flags.iter().enumerate() {
        if i > 0 {
            out.push(b',');
            offset = next_offset(offset, &items[(i - 1) * 4..]);
        }
        let bounds = bounds.get(offset..).ok_or_else(|| {
            Error::corrupt(MULTIRANGE, 8, format!("range {i} starts past the value's end"))
        })?;
        write_bounds(writer, element, flags, bounds, out)?;
    }
    Ok(())
}

fn next_offset(offset: usize, item: &[u8]) -> usize {
    let item = item.first_chunk::<4>().map_or(0, |b| u32::from_le_bytes(*b));
    let value = (item & !ITEM_IS_OFFSET) as usize;
    if item & ITEM_IS_OFFSET != 0 { value } else { offset.saturating_add(value) }
}
