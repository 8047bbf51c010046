//! Decimal digits, appended to a buffer: what the numeric and date types print with.
//!
//! Two digits at a time come from a table; nothing is allocated. The integers of a table's columns
//! are worked out eight digits at once in one 64-bit word ([`push_signed`]), and stored as a whole
//! word that is then cut to length: several times as fast as a loop and a copy of unknown length.

/// `00` to `99`.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// The last two decimal digits of `n`.
#[inline]
pub(super) fn pair(n: u32) -> [u8; 2] {
    PAIRS[(n % 100) as usize]
}

/// The last four decimal digits of `n`.
#[inline]
pub(super) fn quad(n: u32) -> [u8; 4] {
    let ([a, b], [c, d]) = (pair(n / 100), pair(n));
    [a, b, c, d]
}

/// Appends `n` without padding.
#[inline]
pub(super) fn push_integer(n: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

/// 100,000,000: what eight digits stay below.
const EIGHT_DIGITS: u64 = 100_000_000;
/// `0` in each of the eight bytes.
const ASCII_ZEROS: u64 = 0x3030_3030_3030_3030;

/// Appends `n` without padding.
#[inline]
pub(super) fn push_signed(n: i64, out: &mut Vec<u8>) {
    let magnitude = n.unsigned_abs();
    let (mut text, mut len) = match magnitude {
        ..EIGHT_DIGITS => few_digits(magnitude),
        EIGHT_DIGITS..10_000_000_000 => ten_digits(magnitude),
        _ => return push_integer(n, out),
    };
    if n < 0 {
        text = text << 8 | u128::from(b'-');
        len += 1;
    }
    // Sixteen bytes are one store; what is too many is cut off again.
    let end = out.len() + len;
    out.extend_from_slice(&text.to_le_bytes());
    out.truncate(end);
}

/// The text of a number of at most eight digits, first byte lowest, and its length.
#[inline]
fn few_digits(n: u64) -> (u128, usize) {
    let digits = eight_digits(n);
    // The last digit stays, even if it is zero too.
    let zeros = (digits.trailing_zeros() / 8).min(7);
    (u128::from((digits | ASCII_ZEROS) >> (zeros * 8)), 8 - zeros as usize)
}

/// The text of a number of nine or ten digits.
#[inline]
fn ten_digits(n: u64) -> (u128, usize) {
    let low = u128::from(eight_digits(n % EIGHT_DIGITS) | ASCII_ZEROS);
    let high = (n / EIGHT_DIGITS) as u32;
    let [tens, ones] = pair(high);
    match high {
        ..10 => (low << 8 | u128::from(ones), 9),
        _ => (low << 16 | u128::from(ones) << 8 | u128::from(tens), 10),
    }
}

/// The eight digits of `n`, one a byte, the first in the lowest byte: `n` is split in halves of
/// four digits, those in pairs, those in digits, all parts of the word at the same time. The
/// divisions by 100 and 10 are multiplications by their inverses, exact for such small numbers.
#[inline]
fn eight_digits(n: u64) -> u64 {
    let halves = (n / 10_000) | ((n % 10_000) << 32);
    let hundreds = (halves * 10_486) >> 20 & 0x7F_0000_007F;
    let pairs = (halves - hundreds * 100) << 16 | hundreds;
    let tens = (pairs * 103) >> 10 & 0x000F_000F_000F_000F;
    (pairs - tens * 10) << 8 | tens
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
                assert_eq!(String::from_utf8(out).unwrap(), n.to_string());
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
