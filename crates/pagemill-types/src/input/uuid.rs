//! The input of `uuid`: 32 hexadecimal digits, with a hyphen allowed behind every fourth, and braces
//! around them.
//!
//! Source: `string_to_uuid` in `src/backend/utils/adt/uuid.c`, PostgreSQL 14 to 18.

use super::InputError;
use super::hexadecimal::{decode_block, digit_value};

/// `uuid`.
///
/// # Errors
/// When the text is none.
pub fn read_uuid(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let bytes = canonical(text).or_else(|| any_spelling(text));
    out.extend_from_slice(&bytes.ok_or_else(|| InputError::syntax("uuid", text))?);
    Ok(())
}

/// The spelling that the server itself prints: groups of 8, 4, 4, 4 and 12.
#[inline]
fn canonical(text: &[u8]) -> Option<[u8; 16]> {
    let text: &[u8; 36] = text.try_into().ok()?;
    if [text[8], text[13], text[18], text[23]] != [b'-'; 4] {
        return None;
    }
    let mut digits = [0; 32];
    digits[..8].copy_from_slice(&text[..8]);
    digits[8..12].copy_from_slice(&text[9..13]);
    digits[12..16].copy_from_slice(&text[14..18]);
    digits[16..20].copy_from_slice(&text[19..23]);
    digits[20..].copy_from_slice(&text[24..]);
    decode_block::<16>(&digits)
}

#[cold]
fn any_spelling(text: &[u8]) -> Option<[u8; 16]> {
    let mut text = match text {
        [b'{', inside @ .., b'}'] => inside,
        all => all,
    };
    let mut bytes = [0; 16];
    for (byte, at) in bytes.iter_mut().zip(0..) {
        let [high, low, rest @ ..] = text else { return None };
        *byte = digit_value(*high)? << 4 | digit_value(*low)?;
        text = match rest {
            [b'-', rest @ ..] if at % 2 == 1 && at < 15 => rest,
            rest => rest,
        };
    }
    text.is_empty().then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{refused, value};
    use super::*;
    use crate::bytea::write_uuid;
    use proptest::prelude::*;

    #[test]
    fn every_spelling_says_the_same() {
        let expected: Vec<u8> = (0..16).map(|i| i * 17).collect();
        for text in [
            "00112233-4455-6677-8899-aabbccddeeff",
            "00112233445566778899AABBCCDDEEFF",
            "{00112233-4455-6677-8899-aabbccddeeff}",
            "{0011-2233-4455-6677-8899-aabb-ccdd-eeff}",
            "00112233-44556677-8899aabb-ccddeeff",
        ] {
            assert_eq!(value(read_uuid, text), expected, "{text}");
        }
    }

    #[test]
    fn misplaced_hyphens_and_lone_braces_are_refused() {
        for text in [
            "",
            "{}",
            "00112233-4455-6677-8899-aabbccddeef",
            "00112233-4455-6677-8899-aabbccddeeff0",
            "{00112233-4455-6677-8899-aabbccddeeff",
            "00112233-4455-6677-8899-aabbccddeeff}",
            "00112233-4455-6677-8899-aabbccddeeff-",
            "001122334-455-6677-8899-aabbccddeeff",
            "00-112233-4455-6677-8899-aabbccddeeff",
            " 00112233-4455-6677-8899-aabbccddeeff",
            "00112233-4455-6677-8899-aabbccddeefg",
            "0011--2233-4455-6677-8899-aabbccddeeff",
        ] {
            let message = format!("invalid input syntax for type uuid: \"{text}\"");
            assert_eq!(refused(read_uuid, text), message);
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(bytes: [u8; 16]) {
            let mut text = Vec::new();
            write_uuid(&bytes, &mut text).unwrap();
            prop_assert_eq!(value(read_uuid, &text), bytes);
            prop_assert_eq!(any_spelling(&text), Some(bytes));
        }
    }
}
