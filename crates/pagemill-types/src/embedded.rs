//! A variable-length value stored inside of another: the numerics in a `jsonb` or `jsonpath`,
//! the bounds in a BRIN summary.
//!
//! Such a value keeps its length word, of 4 bytes or of 1, and is never compressed nor out of
//! line, because the value around it is what TOAST works on.
//!
//! Source: `src/include/varatt.h` (`postgres.h` before 16), PostgreSQL 14 to 18.

use pagemill_format::error::{Error, Result};

/// The payload of the value that `bytes` begin with, and its length with the length word.
///
/// # Errors
/// When the length word is not one of an inline, plain value, or says more than there is.
pub(super) fn embedded_value<'a>(
    structure: &'static str,
    bytes: &'a [u8],
) -> Result<(&'a [u8], usize)> {
    let (header, len) = match bytes {
        [first, ..] if first & 1 == 1 => (1, usize::from(first >> 1)),
        [a, b, c, d, ..] if a & 3 == 0 => (4, (u32::from_le_bytes([*a, *b, *c, *d]) >> 2) as usize),
        [] | [_] | [_, _] | [_, _, _] => {
            return Err(Error::corrupt(structure, 0, "an inner value has no length word"));
        }
        _ => return Err(Error::corrupt(structure, 0, "an inner value is compressed")),
    };
    match bytes.get(header..len) {
        Some(payload) => Ok((payload, len)),
        None => Err(Error::corrupt(
            structure,
            0,
            format!("an inner value claims {len} bytes of {}", bytes.len()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_length_words_are_understood() {
        let long = [5 << 2, 0, 0, 0, b'x', b'y'];
        assert_eq!(embedded_value("test", &long).unwrap(), (&b"x"[..], 5));
        let short = [(3 << 1) | 1, b'x', b'y', b'z'];
        assert_eq!(embedded_value("test", &short).unwrap(), (&b"xy"[..], 3));
    }

    #[test]
    fn a_length_word_that_lies_is_an_error() {
        for bytes in [&[][..], &[0, 0], &[1], &[2, 0, 0, 0], &[4, 0, 0, 0], &[9, 0], &[80, 0, 0, 0]]
        {
            assert!(embedded_value("test", bytes).is_err(), "{bytes:?}");
        }
    }
}
