//! Datums inside of others: the elements of an array, the attributes of a row, the bounds of a range.
//!
//! Each begins at a multiple of its alignment, counted from the first of them (which itself lies at
//! a multiple of 8), and keeps a length word. That has four bytes; one byte, without alignment,
//! where the container packs small values and the type lets it.
//!
//! Source: `fill_val` in `src/backend/access/common/heaptuple.c`, `datum_write` in
//! `src/backend/utils/adt/rangetypes.c`, `ArrayCastAndSet` in `arrayfuncs.c`, PostgreSQL 14 to 18.

use pagemill_format::tuple::AttributeLayout;
use pagemill_format::varlena::{MAX_VALUE_BYTES, VARLENA_HEADER_BYTES};

use super::InputError;

/// Longest payload that a length word of one byte can announce (`VARATT_SHORT_MAX` less itself).
const MAX_SHORT_PAYLOAD: usize = 0x7F - 1;

/// Appends a datum to `data`, given its payload.
pub(crate) fn push_datum(
    layout: AttributeLayout,
    packable: bool,
    payload: &[u8],
    data: &mut Vec<u8>,
) -> Result<(), InputError> {
    match layout.len {
        -1 if packable && payload.len() <= MAX_SHORT_PAYLOAD => {
            data.push(((payload.len() + 1) << 1) as u8 | 1);
        }
        -1 => {
            align(layout, data);
            data.extend_from_slice(&length_word(payload.len())?);
        }
        -2 => {
            data.extend_from_slice(payload);
            data.push(0);
            return Ok(());
        }
        _ => align(layout, data),
    }
    data.extend_from_slice(payload);
    Ok(())
}

/// Fills `data` up to the next multiple of a type's alignment.
pub(super) fn align(layout: AttributeLayout, data: &mut Vec<u8>) {
    data.resize(layout.align_up(data.len()), 0);
}

/// The length word of four bytes before a payload.
pub(super) fn length_word(payload_bytes: usize) -> Result<[u8; 4], InputError> {
    let len = payload_bytes + VARLENA_HEADER_BYTES;
    if len > MAX_VALUE_BYTES {
        return Err(InputError::new(format!("invalid memory alloc request size {len}")));
    }
    Ok(((len as u32) << 2).to_le_bytes())
}

/// True for the spaces of the server's own parsers (`scanner_isspace`, and `isspace` in the C
/// locale).
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C)
}

/// The text without spaces in front.
pub(super) fn skip_space(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| is_space(**byte)).count();
    text.get(spaces..).unwrap_or_default()
}

/// `malformed KIND literal: "TEXT"`.
#[cold]
pub(super) fn malformed(kind: &str, text: &[u8]) -> InputError {
    let text = String::from_utf8_lossy(text);
    InputError::new(format!("malformed {kind} literal: \"{text}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_lose_alignment_where_they_may_be_packed() {
        let text = AttributeLayout { len: -1, align: 4 };
        let mut data = vec![9];
        push_datum(text, true, b"ab", &mut data).unwrap();
        assert_eq!(data, [9, 7, b'a', b'b']);
        push_datum(text, false, b"c", &mut data).unwrap();
        assert_eq!(data[4..], [20, 0, 0, 0, b'c']);
        push_datum(AttributeLayout { len: 2, align: 2 }, true, &[1, 2], &mut data).unwrap();
        assert_eq!(data[9..], [0, 1, 2]);
    }

    #[test]
    fn the_longest_short_value_has_126_bytes() {
        for (len, word) in [(126, 1), (127, 4)] {
            let mut data = Vec::new();
            let layout = AttributeLayout { len: -1, align: 4 };
            push_datum(layout, true, &vec![b'x'; len], &mut data).unwrap();
            assert_eq!(data.len(), len + word);
        }
    }
}
