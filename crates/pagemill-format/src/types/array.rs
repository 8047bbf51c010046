//! Arrays: `{…}`, with bounds in front where they do not start at 1.
//!
//! ```text
//! payload: ndim | dataoffset (0: no nulls) | element type | dims… | lower bounds… | nulls | values
//! ```
//!
//! Offsets and alignment count from the length word that precedes the payload, 4 bytes earlier.
//! Source: `src/include/utils/array.h`, `array_out` in `src/backend/utils/adt/arrayfuncs.c`,
//! PostgreSQL 14 to 18.

use super::output::{ValueType, ValueWriter, is_space, quote_tail};
use crate::error::{Error, Result};
use crate::ids::Oid;
use crate::reader::Reader;
use crate::tuple::AttributeLayout;
use crate::varlena::{VARLENA_HEADER_BYTES, Varlena};

const ARRAY: &str = "array";
const MAX_DIMENSIONS: usize = 6;
const FIXED_HEADER_BYTES: usize = 16;

#[derive(Clone, Copy, Default)]
struct Dimension {
    len: usize,
    lower: i32,
}

struct Header<'a> {
    element: Oid,
    dimensions: [Dimension; MAX_DIMENSIONS],
    ndim: usize,
    items: usize,
    nulls: Option<&'a [u8]>,
    data: &'a [u8],
}

impl<'a> Header<'a> {
    fn parse(payload: &'a [u8]) -> Result<Self> {
        let mut r = Reader::new(ARRAY, payload);
        let ndim = r.u32()? as usize;
        if ndim > MAX_DIMENSIONS {
            return Err(Error::corrupt(ARRAY, 0, format!("{ndim} dimensions, 6 is the most")));
        }
        let data_offset = r.u32()? as usize;
        let element = Oid(r.u32()?);
        let mut dimensions = [Dimension::default(); MAX_DIMENSIONS];
        for d in &mut dimensions[..ndim] {
            d.len = r.u32()? as usize;
        }
        for d in &mut dimensions[..ndim] {
            d.lower = r.i32()?;
        }
        let items = count_items(&dimensions[..ndim], payload.len())?;
        let start = if data_offset == 0 {
            (FIXED_HEADER_BYTES + 8 * ndim).next_multiple_of(8)
        } else {
            data_offset
        };
        let nulls = (data_offset != 0).then(|| r.bytes(items.div_ceil(8))).transpose()?;
        let start = start.checked_sub(VARLENA_HEADER_BYTES).filter(|&at| at >= r.pos());
        // An empty array may end before the alignment of data it does not have.
        let data = match start.and_then(|at| payload.get(at..)) {
            Some(data) => data,
            None if items == 0 => &[],
            None => return Err(r.corrupt(format!("data offset {data_offset} is out of bounds"))),
        };
        Ok(Self { element, dimensions, ndim, items, nulls, data })
    }

    fn is_null(&self, item: usize) -> bool {
        self.nulls.is_some_and(|bits| bits[item / 8] & (1 << (item % 8)) == 0)
    }
}

/// The product of the dimensions. Values take at least a byte each unless null, and nulls a bit,
/// so a count that no payload of this size can hold is damage.
fn count_items(dimensions: &[Dimension], payload_bytes: usize) -> Result<usize> {
    if dimensions.is_empty() {
        return Ok(0);
    }
    let items = dimensions.iter().try_fold(1usize, |n, d| n.checked_mul(d.len));
    match items {
        Some(n) if n / 8 <= payload_bytes => Ok(n),
        _ => Err(Error::corrupt(ARRAY, 12, "more elements than the value has room for")),
    }
}

/// Appends an array; `element` is `None` where the array itself names its element type.
pub(super) fn write_array(
    writer: &mut ValueWriter<'_>,
    element: Option<&ValueType>,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let header = Header::parse(payload)?;
    if header.items == 0 {
        out.extend_from_slice(b"{}");
        return Ok(());
    }
    write_bounds(&header, out)?;
    match element {
        Some(element) if element.oid == header.element => {
            write_items(writer, element, &header, out)
        }
        // A column's declared element and the stored one may differ only in an array over a
        // domain or of a changed type; the bytes follow what they were written as.
        _ => {
            let element = writer.lookups().value_type(header.element)?;
            write_items(writer, &element, &header, out)
        }
    }
}

fn write_bounds(header: &Header<'_>, out: &mut Vec<u8>) -> Result<()> {
    let dimensions = &header.dimensions[..header.ndim];
    if dimensions.iter().all(|d| d.lower == 1) {
        return Ok(());
    }
    let mut number = itoa::Buffer::new();
    for d in dimensions {
        let upper = i64::from(d.lower) + d.len as i64 - 1;
        if upper > i64::from(i32::MAX) {
            return Err(Error::corrupt(ARRAY, 12, "upper bound past 2147483647"));
        }
        out.push(b'[');
        out.extend_from_slice(number.format(d.lower).as_bytes());
        out.push(b':');
        out.extend_from_slice(number.format(upper).as_bytes());
        out.push(b']');
    }
    out.push(b'=');
    Ok(())
}

fn write_items(
    writer: &mut ValueWriter<'_>,
    element: &ValueType,
    header: &Header<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let dimensions = &header.dimensions[..header.ndim];
    let mut at = 0;
    for item in 0..header.items {
        open_or_separate(dimensions, item, element.delimiter, out);
        if header.is_null(item) {
            out.extend_from_slice(b"NULL");
        } else {
            let (start, end) =
                element.layout.locate_at(header.data, element.layout.align_up(at))?;
            at = end;
            let text = out.len();
            let raw = &header.data[start..end];
            writer.write(&element.output, element.layout.len, raw, out)?;
            quote(out, text, element);
        }
        close(dimensions, item, out);
    }
    Ok(())
}

/// Before item `item`: a delimiter if it is not the first, then a brace for every dimension
/// that begins with it.
fn open_or_separate(dimensions: &[Dimension], item: usize, delimiter: u8, out: &mut Vec<u8>) {
    if item > 0 {
        out.push(delimiter);
    }
    for depth in 0..dimensions.len() {
        let below: usize = dimensions[depth..].iter().map(|d| d.len).product();
        if item.is_multiple_of(below) {
            out.push(b'{');
        }
    }
}

fn close(dimensions: &[Dimension], item: usize, out: &mut Vec<u8>) {
    for depth in 0..dimensions.len() {
        let below: usize = dimensions[depth..].iter().map(|d| d.len).product();
        if (item + 1).is_multiple_of(below) {
            out.push(b'}');
        }
    }
}

fn quote(out: &mut Vec<u8>, start: usize, element: &ValueType) {
    let text = &out[start..];
    let special =
        |b: &u8| matches!(b, b'"' | b'\\' | b'{' | b'}') || *b == element.delimiter || is_space(*b);
    if text.is_empty() || text.eq_ignore_ascii_case(b"null") || text.iter().any(special) {
        quote_tail(out, start, |b| matches!(b, b'"' | b'\\').then_some(b'\\'));
    }
}

/// The bytes of the one element of an array (as `attmissingval` is), as they would lie in a tuple.
///
/// # Errors
/// When the array is damaged or does not have just one element that is not null.
pub fn single_element(payload: &[u8], layout: AttributeLayout) -> Result<&[u8]> {
    let header = Header::parse(payload)?;
    if header.items != 1 || header.is_null(0) {
        let what = format!("{} elements, expected one that is not null", header.items);
        return Err(Error::corrupt(ARRAY, 12, what));
    }
    let (start, end) = layout.locate_at(header.data, 0)?;
    Ok(&header.data[start..end])
}

/// The payloads of the elements of a one-dimensional array of text kept in line, nulls left out.
///
/// # Errors
/// When the array or one of its elements is damaged.
pub fn text_elements(payload: &[u8]) -> Result<Vec<Vec<u8>>> {
    let layout = AttributeLayout { len: -1, align: 4 };
    let header = Header::parse(payload)?;
    let mut found = Vec::new();
    let mut at = 0;
    let present = (0..header.items).filter(|&item| !header.is_null(item)).count();
    for _ in 0..present {
        let (start, end) = layout.locate_at(header.data, layout.align_up(at))?;
        at = end;
        match Varlena::parse(&header.data[start..end])? {
            Varlena::Plain(bytes) => found.push(bytes.to_vec()),
            _ => return Err(Error::corrupt(ARRAY, start, "a compressed element")),
        }
    }
    Ok(found)
}
