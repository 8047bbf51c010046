//! The input of `bytea`, in hexadecimal and in the older escape format.
//!
//! Hexadecimal is decoded in blocks without a branch per digit, which the compiler turns into vector
//! code; a block that holds anything else, blanks between the bytes or a fault, is gone through
//! digit by digit. Sources: `byteain` in `src/backend/utils/adt/varlena.c` (`bytea.c` from 18 on),
//! `hex_decode` in `encode.c`, PostgreSQL 14 to 18.

use super::InputError;
use super::characters::Encoding;
use super::hexadecimal::{decode_block, digit_value};

/// Bytes that are decoded at once.
const BLOCK: usize = 16;

/// `bytea`.
pub(crate) fn read_bytea<E: Encoding>(
    text: &[u8],
    _typmod: i32,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    match text {
        [b'\\', b'x', digits @ ..] => read_hex::<E>(digits, out),
        _ => read_escaped(text, out),
    }
}

fn read_hex<E: Encoding>(mut digits: &[u8], out: &mut Vec<u8>) -> Result<(), InputError> {
    out.reserve(digits.len() / 2);
    while let Some((block, rest)) = digits.split_first_chunk::<{ 2 * BLOCK }>() {
        match decode_block::<BLOCK>(block) {
            Some(bytes) => {
                out.extend_from_slice(&bytes);
                digits = rest;
            }
            None => return read_hex_slowly::<E>(digits, out),
        }
    }
    read_hex_slowly::<E>(digits, out)
}

/// Reads digits one by one; blanks may stand between the bytes.
fn read_hex_slowly<E: Encoding>(mut text: &[u8], out: &mut Vec<u8>) -> Result<(), InputError> {
    loop {
        text = match text {
            [] => return Ok(()),
            [b' ' | b'\n' | b'\t' | b'\r', rest @ ..] => rest,
            [_, rest @ ..] => {
                let high = hex_digit::<E>(text)?;
                if rest.is_empty() {
                    let message = "invalid hexadecimal data: odd number of digits";
                    return Err(InputError::new(message));
                }
                out.push(high << 4 | hex_digit::<E>(rest)?);
                rest.get(1..).unwrap_or_default()
            }
        };
    }
}

fn hex_digit<E: Encoding>(text: &[u8]) -> Result<u8, InputError> {
    text.first().and_then(|&byte| digit_value(byte)).ok_or_else(|| {
        InputError::new(format!("invalid hexadecimal digit: \"{}\"", E::first(text)))
    })
}

/// Reads the escape format: two backslashes are one, a backslash and three octal digits a byte.
fn read_escaped(mut text: &[u8], out: &mut Vec<u8>) -> Result<(), InputError> {
    loop {
        let plain = text.iter().position(|&b| b == b'\\').unwrap_or(text.len());
        let (bytes, escape) = text.split_at_checked(plain).unwrap_or_default();
        out.extend_from_slice(bytes);
        text = match *escape {
            [] => return Ok(()),
            [_, b'\\', ref rest @ ..] => {
                out.push(b'\\');
                rest
            }
            [_, a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ref rest @ ..] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest
            }
            _ => return Err(InputError::new("invalid input syntax for type bytea")),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::characters::Utf8;
    use super::super::tests::{refused, value};
    use super::*;
    use crate::bytea::write_bytea;
    use proptest::prelude::*;

    #[test]
    fn hexadecimal_may_have_blanks_between_bytes() {
        assert!(value(read_bytea::<Utf8>, "\\x").is_empty());
        assert_eq!(value(read_bytea::<Utf8>, "\\x 00\tfF\n"), [0, 0xFF]);
    }

    #[test]
    fn bad_hexadecimal_names_the_digit() {
        let refused = |text: &str| refused(read_bytea::<Utf8>, text);
        assert_eq!(refused("\\x0"), "invalid hexadecimal data: odd number of digits");
        assert_eq!(refused("\\x0g"), "invalid hexadecimal digit: \"g\"");
        assert_eq!(refused("\\x0 1"), "invalid hexadecimal digit: \" \"");
        let long = format!("\\x{}€0", "00".repeat(40));
        assert_eq!(refused(&long), "invalid hexadecimal digit: \"€\"");
    }

    #[test]
    fn escapes_are_octal_or_a_second_backslash() {
        assert_eq!(value(read_bytea::<Utf8>, "a\\\\b\\000\\377é"), b"a\\b\x00\xFF\xC3\xA9");
        assert!(value(read_bytea::<Utf8>, "").is_empty());
        for text in ["\\", "a\\1", "\\400", "\\08", "\\X00", "x\\x00"] {
            assert_eq!(refused(read_bytea::<Utf8>, text), "invalid input syntax for type bytea");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut text = Vec::new();
            write_bytea(&bytes, &mut text).unwrap();
            prop_assert_eq!(&value(read_bytea::<Utf8>, &text), &bytes);
            let upper: Vec<u8> = [b"\\x", text[2..].to_ascii_uppercase().as_slice()].concat();
            prop_assert_eq!(&value(read_bytea::<Utf8>, &upper), &bytes);
        }

        /// A foreign byte is found wherever it stands.
        #[test]
        fn one_foreign_byte_spoils_it(at in 0usize..80, byte in 0x21u8..0x7F) {
            prop_assume!(!byte.is_ascii_hexdigit());
            let mut text = [b"\\x".as_slice(), &[b'a'; 80]].concat();
            text[2 + at] = byte;
            let message = format!("invalid hexadecimal digit: \"{}\"", char::from(byte));
            prop_assert_eq!(refused(read_bytea::<Utf8>, &text), message);
        }
    }
}
