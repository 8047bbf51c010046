//! Decimal digits, appended to a buffer: what the numeric and date types print with.
//!
//! Digits come four at a time from a table; nothing is allocated. The integers of a table's columns
//! are put together in one word ([`push_signed`]), which is stored whole and then cut to length:
//! faster than a loop over digits and a copy of unknown length. (Working out eight digits in
//! one 64-bit word without a table took half as long again.)

/// `0000` to `9999`, the first digit in the lowest byte.
static QUADS: [u32; 10_000] = {
    let mut quads = [0; 10_000];
    let mut n = 0;
    while n < 10_000 {
        let [thousands, hundreds, tens, ones] = [n / 1000, n / 100 % 10, n / 10 % 10, n % 10];
        quads[n] = (ones << 24 | tens << 16 | hundreds << 8 | thousands) as u32 | 0x3030_3030;
        n += 1;
    }
    quads
};

/// The last two decimal digits of `n`.
#[inline]
pub(super) fn pair(n: u32) -> [u8; 2] {
    let [_, _, tens, ones] = quad(n % 100);
    [tens, ones]
}

/// The last four decimal digits of `n`.
#[inline]
pub(super) fn quad(n: u32) -> [u8; 4] {
    QUADS[(n % 10_000) as usize].to_le_bytes()
}

/// Appends `n` without padding.
#[inline]
pub(super) fn push_integer(n: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

/// 100,000,000: what eight digits stay below.
const EIGHT_DIGITS: u64 = 100_000_000;
/// `0` in each of ten bytes.
const ASCII_ZEROS: u128 = 0x3030_3030_3030_3030_3030;

/// Appends `n` without padding.
#[inline]
pub(super) fn push_signed(n: i64, out: &mut Vec<u8>) {
    match signed_text(n) {
        Some((text, len)) => push_text(text, len, out),
        None => push_integer(n, out),
    }
}

/// Appends `n` without padding, then the byte `end`.
#[inline]
pub(super) fn push_signed_then(n: i64, end: u8, out: &mut Vec<u8>) {
    match signed_text(n) {
        // Eleven bytes at most, so the word has room for one more.
        Some((text, len)) => push_text(text | (u128::from(end) << (8 * len)), len + 1, out),
        None => {
            push_integer(n, out);
            out.push(end);
        }
    }
}

/// Bytes that a four-byte integer and the byte after it need: the sign, ten digits, one more.
const INT4_FIELD: usize = 12;
/// Integers put together before they are appended.
const FIELDS_AT_ONCE: usize = 4;

/// Appends each integer and the byte that follows it: what [`push_signed_then`] does one by one, with one look at the
/// buffer's room for several.
#[inline]
pub(super) fn push_int4_fields(
    fields: impl ExactSizeIterator<Item = (i32, u8)>,
    out: &mut Vec<u8>,
) {
    let mut fields = fields.peekable();
    while fields.peek().is_some() {
        let start = out.len();
        out.extend_from_slice(&[0; INT4_FIELD * FIELDS_AT_ONCE + 16]);
        let mut at = start;
        for (n, end) in fields.by_ref().take(FIELDS_AT_ONCE) {
            let (text, len) = int4_text(n);
            let text = text | (u128::from(end) << (8 * len));
            if let Some(room) = out.get_mut(at..at + 16) {
                room.copy_from_slice(&text.to_le_bytes());
            }
            at += len + 1;
        }
        out.truncate(at);
    }
}

/// The text of a number of at most ten digits, first byte lowest, and its length.
///
/// Always ten digits, and the leading zeros shifted out: which numbers are short is for the data to say, and a
/// branch on it is mispredicted for every second of them.
#[inline]
fn signed_text(n: i64) -> Option<(u128, usize)> {
    let magnitude = n.unsigned_abs();
    if magnitude >= 100 * EIGHT_DIGITS {
        return None;
    }
    Some(ten_digits(magnitude, n < 0))
}

/// [`signed_text`] of what has no more than ten digits.
#[inline]
fn int4_text(n: i32) -> (u128, usize) {
    ten_digits(u64::from(n.unsigned_abs()), n < 0)
}

/// The text of a number below 10,000,000,000 with its sign, first byte lowest, and its length.
#[inline]
fn ten_digits(magnitude: u64, is_negative: bool) -> (u128, usize) {
    let (high, low) = ((magnitude / EIGHT_DIGITS) as u32, (magnitude % EIGHT_DIGITS) as u32);
    let digits = (u128::from(eight_digits(low)) << 16) | u128::from(u16::from_le_bytes(pair(high)));
    // The last digit stays, even if it is zero too.
    let zeros = ((digits ^ ASCII_ZEROS).trailing_zeros() / 8).min(9);
    let (text, len) = (digits >> (zeros * 8), 10 - zeros as usize);
    if is_negative { ((text << 8) | u128::from(b'-'), len + 1) } else { (text, len) }
}

/// Appends the first `len` bytes of a word: sixteen bytes are one store, and what is too many is
/// cut off again.
#[inline]
fn push_text(text: u128, len: usize, out: &mut Vec<u8>) {
    let end = out.len() + len;
    out.extend_from_slice(&text.to_le_bytes());
    out.truncate(end);
}

/// The eight digits of `n`, the first in the lowest byte.
#[inline]
fn eight_digits(n: u32) -> u64 {
    let word = |n: u32| u64::from(u32::from_le_bytes(quad(n)));
    word(n / 10_000) | (word(n) << 32)
}

/// Appends `n` with at least two digits.
#[inline]
pub(super) fn push_two(n: u64, out: &mut Vec<u8>) {
    match u32::try_from(n) {
        Ok(small @ 0..=99) => out.extend_from_slice(&pair(small)),
        _ => push_integer(n, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn integers_of_every_length_print_as_std_prints_them(n: i64, digits in 0u32..20) {
            let n = n % 10i64.checked_pow(digits).unwrap_or(i64::MAX);
            let mut out = Vec::new();
            push_signed(n, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), n.to_string());
        }
    }

    #[test]
    fn integers_at_the_edges_of_a_length_print_whole() {
        for power in 0..19 {
            for n in [10i64.pow(power) - 1, 10i64.pow(power), i64::MIN, i64::MAX] {
                let mut out = Vec::new();
                push_signed(n, &mut out);
                push_signed_then(n, b'|', &mut out);
                assert_eq!(String::from_utf8(out).unwrap(), format!("{n}{n}|"));
            }
        }
    }

    #[test]
    fn padding_is_a_minimum() {
        let mut out = Vec::new();
        for n in [0, 7, 42, 100] {
            push_two(n, &mut out);
            out.push(b' ');
        }
        assert_eq!(out, b"00 07 42 100 ");
        assert_eq!(quad(44), *b"0044");
    }
}
