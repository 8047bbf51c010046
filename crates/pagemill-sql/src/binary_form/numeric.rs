//! Numerics in binary form: digits of base 10,000 behind a head.
//!
//! Invariant: bytes that are no numeric are refused.
//!
//! Source: `numeric_recv`, `numeric_send` in `src/backend/utils/adt/numeric.c`, PostgreSQL 18.

use super::wrong;
use crate::error::Result;

/// Signs of `numeric_send`.
const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;
/// What the server sends as the places of infinities: a bit of their sign, read as it is for other values.
const INFINITE_PLACES: u16 = 32;
/// Digits of ten in one of ten thousand.
const GROUP: usize = 4;

/// Digits, weight, sign, places, then groups of four digits, none of those at both ends zero.
pub(super) fn put_numeric(text: &[u8], out: &mut Vec<u8>) {
    let mut put = |[digits, weight, sign, places]: [u16; 4], groups: &[u16]| {
        let head = [digits, weight, sign, places];
        out.extend(head.iter().chain(groups).flat_map(|word| word.to_be_bytes()));
    };
    match text {
        b"NaN" => return put([0, 0, NAN, 0], &[]),
        b"Infinity" => return put([0, 0, INFINITY, INFINITE_PLACES], &[]),
        b"-Infinity" => return put([0, 0, NEGATIVE_INFINITY, INFINITE_PLACES], &[]),
        _ => {}
    }
    let (sign, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (NEGATIVE, digits),
        None => (0, text),
    };
    let point = digits.iter().position(|byte| *byte == b'.').unwrap_or(digits.len());
    let (whole, part) = (&digits[..point], digits.get(point + 1..).unwrap_or_default());
    let padding = (GROUP - whole.len() % GROUP) % GROUP;
    let mut all = vec![b'0'; padding];
    all.extend_from_slice(whole);
    let mut weight = (all.len() / GROUP) as i32 - 1;
    all.extend_from_slice(part);
    all.resize(all.len().next_multiple_of(GROUP), b'0');
    let value =
        |group: &[u8]| group.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    let mut groups: Vec<u16> = all.chunks(GROUP).map(value).collect();
    let leading = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..leading);
    weight -= leading as i32;
    while groups.last() == Some(&0) {
        groups.pop();
    }
    if groups.is_empty() {
        weight = 0;
    }
    put([groups.len() as u16, weight as u16, sign, part.len() as u16], &groups);
}

/// The text of such a numeric.
pub(super) fn numeric_text(bytes: &[u8]) -> Result<String> {
    let words: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|b| u16::from_be_bytes(*b)).collect();
    let [digits, weight, sign, places, groups @ ..] = &words[..] else { return wrong() };
    let is_right = bytes.len().is_multiple_of(2)
        && groups.len() == usize::from(*digits)
        && groups.iter().all(|group| *group < 10_000)
        && *places < 0x4000;
    match (is_right, *sign) {
        (true, NAN) => return Ok("NaN".to_owned()),
        (true, INFINITY) => return Ok("Infinity".to_owned()),
        (true, NEGATIVE_INFINITY) => return Ok("-Infinity".to_owned()),
        (true, 0 | NEGATIVE) => {}
        _ => return wrong(),
    }
    let weight = *weight as i16;
    let group = |at: i32| {
        let at = i32::from(weight) - at;
        usize::try_from(at).ok().and_then(|at| groups.get(at)).copied().unwrap_or(0)
    };
    let mut text = if *sign == NEGATIVE { "-".to_owned() } else { String::new() };
    (0..=i32::from(weight).max(0)).rev().for_each(|at| text += &format!("{:04}", group(at)));
    let places = usize::from(*places);
    if places > 0 {
        let part: String =
            (1..=places.div_ceil(GROUP) as i32).map(|at| format!("{:04}", group(-at))).collect();
        // Digits behind the last place are cut, as by numeric_recv.
        text = text + "." + &part[..places];
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numerics_come_back_from_their_groups() {
        let texts = [
            "0",
            "0.00",
            "1",
            "-12345.678",
            "0.0001",
            "0.00012",
            "10000",
            "123456789012345678901234.5",
            "NaN",
            "-Infinity",
        ];
        for text in texts {
            let mut bytes = Vec::new();
            put_numeric(text.as_bytes(), &mut bytes);
            let back = numeric_text(&bytes).unwrap();
            let trimmed = back.trim_start_matches('-').trim_start_matches('0');
            let wanted = text.trim_start_matches('-').trim_start_matches('0');
            assert_eq!((trimmed, back.starts_with('-')), (wanted, text.starts_with('-')), "{text}");
        }
        let mut bytes = Vec::new();
        put_numeric(b"-12345.678", &mut bytes);
        assert_eq!(bytes, [0, 3, 0, 1, 0x40, 0, 0, 3, 0, 1, 9, 41, 26, 124]);
    }

    #[test]
    fn what_is_no_numeric_is_refused() {
        for bytes in [
            &[0, 1, 0, 0, 0, 0, 0, 0][..],
            &[0; 7],
            &[0, 1, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF],
            &[0, 0, 0, 0, 1, 0, 0, 0],
        ] {
            assert!(numeric_text(bytes).is_err(), "{bytes:?}");
        }
    }
}
