//! Arrays from their text: `{…}`, with bounds in front where they do not start at 1.
//!
//! See [`crate::array`] for the layout. Elements keep length words of four bytes, and each is
//! filled up to its type's alignment, the last one too.
//!
//! Source: `array_in` and `CopyArrayEls` in `src/backend/utils/adt/arrayfuncs.c`,
//! `ArrayCheckBounds` in `arrayutils.c`, PostgreSQL 14 to 18.

use pagemill_format::ids::PgVersion;

use super::InputError;
use super::array_text::{ArrayText, Shape};
use super::datum::{align, push_datum};
use super::tree::{InputType, ValueReader};

const FIXED_HEADER_BYTES: usize = 16;
const LENGTH_WORD: usize = 4;

impl ValueReader<'_> {
    /// Appends the payload of an array.
    pub(super) fn read_array(
        &mut self,
        element: &InputType,
        typmod: i32,
        text: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), InputError> {
        let before_17 = self.context().version < PgVersion::V17;
        let mut text = ArrayText::new(text, element.delimiter, before_17)?;
        self.with_buffer(|reader, data| {
            let nulls = Vec::new();
            let mut elements = Elements { element, typmod, nulls, count: 0, any_null: false };
            text.items(&mut |item| elements.push(reader, item, data))?;
            elements.write(&text.shape, data, out);
            if before_17 { check_bounds(&text.shape) } else { Ok(()) }
        })
    }
}

/// Before 17, the bound one past the last has to be an integer too.
fn check_bounds(shape: &Shape) -> Result<(), InputError> {
    for (lower, length) in shape.dimensions() {
        if i64::from(lower) + length as i64 > i64::from(i32::MAX) {
            return Err(InputError::new(format!("array lower bound is too large: {lower}")));
        }
    }
    Ok(())
}

/// The elements read so far, of which the bytes are elsewhere.
struct Elements<'a> {
    element: &'a InputType,
    typmod: i32,
    /// A bit for each, set where there is a value.
    nulls: Vec<u8>,
    count: usize,
    any_null: bool,
}

impl Elements<'_> {
    /// Reads one element, `None` being NULL, and appends it to `data`.
    fn push(
        &mut self,
        reader: &mut ValueReader<'_>,
        item: Option<&[u8]>,
        data: &mut Vec<u8>,
    ) -> Result<(), InputError> {
        let (element, typmod) = (self.element, self.typmod);
        let bit = self.count % 8;
        if bit == 0 {
            self.nulls.push(0);
        }
        self.count += 1;
        let Some(text) = item else {
            self.any_null = true;
            return reader.read_null(&element.input);
        };
        if let Some(byte) = self.nulls.last_mut() {
            *byte |= 1 << bit;
        }
        reader.with_buffer(|reader, payload| {
            reader.read(&element.input, typmod, text, payload)?;
            push_datum(element.layout, false, payload, data)
        })?;
        align(element.layout, data);
        Ok(())
    }

    /// Appends the array, given its elements' bytes. One without elements has no dimensions either.
    fn write(&self, shape: &Shape, data: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        let ndim = if self.count == 0 { 0 } else { shape.ndim };
        let bitmap = if self.any_null { self.nulls.as_slice() } else { &[] };
        let data_offset = (FIXED_HEADER_BYTES + 8 * ndim + bitmap.len()).next_multiple_of(8);
        push(ndim as u32, out);
        push(if self.any_null { data_offset as u32 } else { 0 }, out);
        push(self.element.oid.0, out);
        shape.dimensions().take(ndim).for_each(|(_, length)| push(length as u32, out));
        shape.dimensions().take(ndim).for_each(|(lower, _)| push(lower as u32, out));
        if ndim > 0 {
            out.extend_from_slice(bitmap);
            out.resize(start + data_offset - LENGTH_WORD, 0);
            out.extend_from_slice(data);
        }
    }
}

fn push(number: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_le_bytes());
}
