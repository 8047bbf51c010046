//! Rows from their text: `(a,"b c",)`, nothing between two commas being NULL.
//!
//! ```text
//! type modifier (-1) | type OID | no row pointer | attributes, flags, header bytes | nulls | values
//! ```
//!
//! The minor releases of November 2026 (15.20 and its like) give attributes versions, and refuse to read a row whose
//! type has some when it is not marked with the highest: its lower half lies in the place of the type modifier, its
//! upper one in the row pointer, whose line pointer is a mark then, as are two flags. This is as 15.20 was seen to write it.
//!
//! The value is a tuple as a heap has it, whose first 12 bytes say what type it is of. Dropped
//! attributes are null, and have no place in the text.
//!
//! Source: `record_in` in `src/backend/utils/adt/rowtypes.c`, `heap_form_tuple` and
//! `heap_fill_tuple` in `src/backend/access/common/heaptuple.c`, PostgreSQL 14 to 18.

use pagemill_format::tuple::TUPLE_HEADER_BYTES;

use super::InputError;
use super::datum::{malformed, push_datum, skip_space};
use super::tree::{CompositeInput, InputAttribute, ValueReader};

const LENGTH_WORD: usize = 4;
const HAS_NULL: u16 = 0x0001;
const HAS_VARIABLE_WIDTH: u16 = 0x0002;
/// The row pointer of a tuple that lies nowhere.
const NO_POINTER: [u8; 6] = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0];
/// The line pointer that says that a version stands before it.
const VERSION_MARK: u16 = 0xFFFC;
/// The flags that say so too: a deleting transaction that is both committed and none.
const HAS_VERSION: u16 = 0x0C00;

/// Appends the payload of a row.
pub(super) fn read_composite(
    reader: &mut ValueReader<'_>,
    row: &CompositeInput,
    text: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    reader.with_buffer(|reader, data| {
        let mut tuple = Tuple { nulls: Vec::new(), flags: 0 };
        let mut fields = Fields { text, rest: skip_space(text), first: true };
        fields.rest = fields.rest.strip_prefix(b"(").ok_or_else(|| fields.malformed())?;
        for (place, attribute) in row.attributes.iter().enumerate() {
            let present = tuple.push(reader, attribute, &mut fields, data)?;
            tuple.note(place, present);
        }
        fields.rest = fields.rest.strip_prefix(b")").ok_or_else(|| fields.malformed())?;
        if !skip_space(fields.rest).is_empty() {
            return Err(fields.malformed());
        }
        tuple.write(row, data, out);
        Ok(())
    })
}

/// The header of the tuple that is made.
struct Tuple {
    /// A bit for each attribute, set where there is a value.
    nulls: Vec<u8>,
    flags: u16,
}

impl Tuple {
    /// Reads one attribute's text and appends its value, if it has one.
    fn push(
        &mut self,
        reader: &mut ValueReader<'_>,
        attribute: &InputAttribute,
        fields: &mut Fields<'_>,
        data: &mut Vec<u8>,
    ) -> Result<bool, InputError> {
        let Some(input) = &attribute.input else { return Ok(false) };
        reader.with_buffer(|reader, field| {
            if !fields.next(field)? {
                return reader.read_null(input).map(|()| false);
            }
            reader.with_buffer(|reader, payload| {
                reader.read(input, attribute.typmod, field, payload)?;
                push_datum(attribute.layout, attribute.packable, payload, data)
            })?;
            if attribute.layout.len < 0 {
                self.flags |= HAS_VARIABLE_WIDTH;
            }
            Ok(true)
        })
    }

    fn note(&mut self, place: usize, present: bool) {
        if place.is_multiple_of(8) {
            self.nulls.push(0);
        }
        match self.nulls.last_mut() {
            Some(byte) if present => *byte |= 1 << (place % 8),
            _ => self.flags |= HAS_NULL,
        }
    }

    fn write(&self, row: &CompositeInput, data: &[u8], out: &mut Vec<u8>) {
        let nulls = if self.flags & HAS_NULL != 0 { self.nulls.as_slice() } else { &[] };
        let header = (TUPLE_HEADER_BYTES + nulls.len()).next_multiple_of(8);
        let start = out.len();
        let (modifier, pointer) = row.version.map_or(([0xFF; 4], NO_POINTER), version_fields);
        let flags = self.flags | row.version.map_or(0, |_| HAS_VERSION);
        out.extend_from_slice(&modifier);
        out.extend_from_slice(&row.oid.0.to_le_bytes());
        out.extend_from_slice(&pointer);
        out.extend_from_slice(&(row.attributes.len() as u16).to_le_bytes());
        out.extend_from_slice(&flags.to_le_bytes());
        out.push(header as u8);
        out.extend_from_slice(nulls);
        out.resize(start + header - LENGTH_WORD, 0);
        out.extend_from_slice(data);
    }
}

/// What stands in the place of the type modifier and of the row pointer for a version.
fn version_fields(version: u64) -> ([u8; 4], [u8; 6]) {
    let [a, b, c, d, low @ ..] = version.to_be_bytes();
    let [mark_low, mark_high] = VERSION_MARK.to_le_bytes();
    // A block number is two halves, the upper one first, each little-endian.
    (u32::from_be_bytes(low).to_le_bytes(), [b, a, d, c, mark_low, mark_high])
}

/// The fields of a row's text.
struct Fields<'a> {
    text: &'a [u8],
    rest: &'a [u8],
    first: bool,
}

impl Fields<'_> {
    fn malformed(&self) -> InputError {
        malformed("record", self.text)
    }

    /// Puts the next field's text into `field`; false when it is NULL.
    fn next(&mut self, field: &mut Vec<u8>) -> Result<bool, InputError> {
        if !std::mem::replace(&mut self.first, false) {
            self.rest = self.rest.strip_prefix(b",").ok_or_else(|| self.malformed())?;
        }
        let ends = |byte| matches!(byte, b',' | b')');
        match unquoted(self.rest, ends, field) {
            Some((rest, present)) => {
                self.rest = rest;
                Ok(present)
            }
            None => Err(self.malformed()),
        }
    }
}

/// Puts the text up to a byte that ends it into `part`, without its quotes and escapes. Gives back
/// what comes behind and whether there was anything, or `None` where the end is missing.
pub(super) fn unquoted<'a>(
    mut text: &'a [u8],
    ends: impl Fn(u8) -> bool,
    part: &mut Vec<u8>,
) -> Option<(&'a [u8], bool)> {
    let before = text.len();
    let mut quoted = false;
    loop {
        let (&byte, rest) = text.split_first()?;
        if !quoted && ends(byte) {
            return Some((text, text.len() < before));
        }
        text = rest;
        match byte {
            b'\\' => {
                let (&escaped, rest) = text.split_first()?;
                part.push(escaped);
                text = rest;
            }
            b'"' if quoted && text.first() == Some(&b'"') => {
                part.push(b'"');
                text = text.get(1..)?;
            }
            b'"' => quoted = !quoted,
            _ => part.push(byte),
        }
    }
}
