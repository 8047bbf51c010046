//! The input of `macaddr` and `macaddr8`.
//!
//! `macaddr` tries seven patterns of the C library's `sscanf`, whose `%x` lets blanks, a sign and a
//! `0x` pass in front of each number; `macaddr8` takes pairs of digits with one kind of separator.
//! Sources: `macaddr_in` in `src/backend/utils/adt/mac.c`, `macaddr8_in` in `mac8.c`, PostgreSQL 14
//! to 18.

use super::InputError;
use super::digits::{all_blank, byte_at, is_blank, skip_blanks};
use super::hexadecimal::digit_value;

/// `macaddr`: six bytes.
///
/// # Errors
/// When the text fits no pattern, or a number in it is more than a byte.
pub fn read_macaddr(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    if let Some(bytes) = canonical(text) {
        out.extend_from_slice(&bytes);
        return Ok(());
    }
    let numbers = PATTERNS.iter().find_map(|pattern| scan(text, pattern));
    let numbers = numbers.ok_or_else(|| InputError::syntax("macaddr", text))?;
    for number in numbers {
        let Ok(byte) = u8::try_from(number) else {
            let text = String::from_utf8_lossy(text);
            let message = format!("invalid octet value in \"macaddr\" value: \"{text}\"");
            return Err(InputError::new(message));
        };
        out.push(byte);
    }
    Ok(())
}

/// The spelling that the server itself prints.
#[inline]
fn canonical(text: &[u8]) -> Option<[u8; 6]> {
    let text: &[u8; 17] = text.try_into().ok()?;
    let mut bytes = [0; 6];
    for (byte, part) in bytes.iter_mut().zip(text.chunks(3)) {
        *byte = match *part {
            [high, low] | [high, low, b':'] => digit_value(high)? << 4 | digit_value(low)?,
            _ => return None,
        };
    }
    Some(bytes)
}

/// A number's width, 0 for any, and the separators behind each of the first five.
struct Pattern {
    width: usize,
    separators: [Option<u8>; 5],
}

const fn pattern(width: usize, separators: [Option<u8>; 5]) -> Pattern {
    Pattern { width, separators }
}

const PATTERNS: [Pattern; 7] = [
    pattern(0, [Some(b':'); 5]),
    pattern(0, [Some(b'-'); 5]),
    pattern(2, [None, None, Some(b':'), None, None]),
    pattern(2, [None, None, Some(b'-'), None, None]),
    pattern(2, [None, Some(b'.'), None, Some(b'.'), None]),
    pattern(2, [None, Some(b'-'), None, Some(b'-'), None]),
    pattern(2, [None; 5]),
];

/// The six numbers of a text that fits the pattern and ends there.
fn scan(mut text: &[u8], pattern: &Pattern) -> Option<[u32; 6]> {
    let mut numbers = [0; 6];
    let separators = pattern.separators.into_iter().chain([None]);
    for (number, separator) in numbers.iter_mut().zip(separators) {
        let (found, rest) = scan_hexadecimal(text, pattern.width)?;
        *number = found;
        text = match (separator, rest) {
            (None, rest) => rest,
            (Some(wanted), [byte, rest @ ..]) if *byte == wanted => rest,
            _ => return None,
        };
    }
    all_blank(text).then_some(numbers)
}

/// A number as `%x` of the C library reads it, from at most `width` bytes unless that is 0.
fn scan_hexadecimal(text: &[u8], width: usize) -> Option<(u32, &[u8])> {
    let text = skip_blanks(text);
    let end = if width == 0 { text.len() } else { width.min(text.len()) };
    let field = text.get(..end)?;
    let negative = byte_at(field, 0) == b'-';
    let mut at = usize::from(negative || byte_at(field, 0) == b'+');
    let mut any = false;
    // The prefix needs no digit behind it: its own zero is one.
    if let [b'0', b'x' | b'X', ..] = field.get(at..).unwrap_or_default() {
        (at, any) = (at + 2, true);
    }
    let (mut number, mut overflow) = (0u64, false);
    while let Some(digit) = digit_value(byte_at(field, at)) {
        overflow |= number >> 60 != 0;
        number = number << 4 | u64::from(digit);
        (at, any) = (at + 1, true);
    }
    let value = match (overflow, negative) {
        (true, _) => u64::MAX,
        (false, true) => number.wrapping_neg(),
        (false, false) => number,
    };
    any.then_some((value as u32, text.get(at..).unwrap_or_default()))
}

/// `macaddr8`: eight bytes; of six, two are put in the middle.
///
/// # Errors
/// When the text is none.
pub fn read_macaddr8(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let bytes = eight_bytes(text).ok_or_else(|| InputError::syntax("macaddr8", text))?;
    out.extend_from_slice(&bytes);
    Ok(())
}

fn eight_bytes(text: &[u8]) -> Option<[u8; 8]> {
    let mut text = skip_blanks(text);
    let mut bytes = [0; 8];
    let (mut count, mut separator) = (0, None);
    // As for the server, a single byte at the end goes unnoticed.
    while let [high, low, rest @ ..] = text {
        *bytes.get_mut(count)? = digit_value(*high)? << 4 | digit_value(*low)?;
        count += 1;
        text = match rest {
            [byte @ (b':' | b'-' | b'.'), rest @ ..] => {
                if *separator.get_or_insert(*byte) != *byte {
                    return None;
                }
                rest
            }
            rest => rest,
        };
        if matches!(count, 6 | 8) && text.first().is_some_and(|&b| is_blank(b)) {
            text = skip_blanks(text);
            if !text.is_empty() {
                return None;
            }
        }
    }
    let [a, b, c, d, e, f, ..] = bytes;
    match count {
        6 => Some([a, b, c, 0xFF, 0xFE, d, e, f]),
        8 => Some(bytes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{refused, value};
    use super::*;
    use crate::bytea as written;
    use proptest::prelude::*;

    const SIX: [u8; 6] = [8, 0, 0x2B, 1, 2, 3];
    const EIGHT: [u8; 8] = [8, 0, 0x2B, 0xFF, 0xFE, 1, 2, 3];

    #[test]
    fn a_macaddr_has_seven_spellings() {
        for text in [
            "08:00:2b:01:02:03",
            "8:0:2B:1:2:3",
            "08-00-2b-01-02-03",
            "08002b:010203",
            "08002b-010203",
            "0800.2b01.0203",
            "0800-2b01-0203",
            "08002b010203",
            " 08: 0x0:+2b:1:2:3 ",
        ] {
            assert_eq!(value(read_macaddr, text), SIX, "{text}");
        }
    }

    #[test]
    fn other_hardware_addresses_are_refused() {
        for text in ["", "08:00:2b:01:02", "08:00:2b:01:02:03:04", "08002b0102", "not even close"] {
            let message = format!("invalid input syntax for type macaddr: \"{text}\"");
            assert_eq!(refused(read_macaddr, text), message);
        }
        for text in ["08:00:2b:01:02:100", "-1:00:2b:01:02:03", "8:0:0:0:0:fffffffffffffffff"] {
            let message = format!("invalid octet value in \"macaddr\" value: \"{text}\"");
            assert_eq!(refused(read_macaddr, text), message);
        }
    }

    #[test]
    fn a_macaddr8_of_six_bytes_gets_two_in_the_middle() {
        for text in [
            "08:00:2b:01:02:03",
            "08002b010203",
            " 0800.2b01.0203  ",
            "08:00:2b:ff:fe:01:02:03",
            "08002b-fffe010203",
            "08-002bfffe-010203 ",
            "08:00:2b:01:02:03x",
        ] {
            assert_eq!(value(read_macaddr8, text), EIGHT, "{text}");
        }
        for text in ["", "08:00-2b:01:02:03", "08:00:2b:01:02", "08:00:2b:01:02:03:04", "0x"] {
            let message = format!("invalid input syntax for type macaddr8: \"{text}\"");
            assert_eq!(refused(read_macaddr8, text), message);
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(six: [u8; 6], eight: [u8; 8]) {
            let mut text = Vec::new();
            written::write_macaddr(&six, &mut text).unwrap();
            prop_assert_eq!(value(read_macaddr, &text), six);
            text.clear();
            written::write_macaddr8(&eight, &mut text).unwrap();
            prop_assert_eq!(value(read_macaddr8, &text), eight);
        }
    }
}
