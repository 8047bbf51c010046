//! Integers as the C library reads them: `strtol` and `strtoul`, which PostgreSQL's input functions
//! of identifiers lean on, with all that they let pass.
//!
//! Blanks and a sign may stand in front, base 0 means that `0x` starts hexadecimal and `0` octal,
//! and reading stops at the first byte that does not fit. `long` has 64 bits. Source: ISO C, 7.24.1.

use super::digits::{byte_at, is_blank};

/// What was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CInteger {
    /// The digits' value, 2^64 − 1 when it is more.
    magnitude: u64,
    negative: bool,
    /// True when the digits were worth 2^64 or more.
    overflow: bool,
    /// Bytes read, from the start of the text.
    pub(super) end: usize,
}

impl CInteger {
    /// What `text` starts with, unless that is no number. The base is 0, 10 or 16.
    pub(super) fn read(text: &[u8], base: u32) -> Option<Self> {
        let mut at = text.iter().take_while(|&&b| is_blank(b)).count();
        let sign = byte_at(text, at);
        at += usize::from(matches!(sign, b'-' | b'+'));
        let (base, prefix) = effective_base(text.get(at..).unwrap_or_default(), base);
        at += prefix;
        let digits = text.get(at..).unwrap_or_default();
        let (mut magnitude, mut overflow, mut count) = (0u64, false, 0);
        for digit in digits.iter().map_while(|&b| char::from(b).to_digit(base)) {
            let next = magnitude.checked_mul(base.into());
            match next.and_then(|n| n.checked_add(digit.into())) {
                Some(sum) if !overflow => magnitude = sum,
                _ => (magnitude, overflow) = (u64::MAX, true),
            }
            count += 1;
        }
        let found = Self { magnitude, negative: sign == b'-', overflow, end: at + count };
        (count > 0).then_some(found)
    }

    /// The value as `strtoul` returns it, where -1 is 2^64 − 1; `None` is ERANGE.
    pub(super) fn unsigned(self) -> Option<u64> {
        (!self.overflow).then_some(self.wrapped())
    }

    /// As [`Self::unsigned`], and what `strtoul` returns with ERANGE.
    pub(super) fn unsigned_or_max(self) -> u64 {
        self.unsigned().unwrap_or(u64::MAX)
    }

    /// The value as `strtol` returns it; `None` is ERANGE.
    pub(super) fn signed(self) -> Option<i64> {
        if self.overflow {
            return None;
        }
        match self.negative {
            true => 0i64.checked_sub_unsigned(self.magnitude),
            false => self.magnitude.try_into().ok(),
        }
    }

    fn wrapped(self) -> u64 {
        if self.negative { self.magnitude.wrapping_neg() } else { self.magnitude }
    }
}

/// The base of the digits, and how many bytes in front of them say so.
fn effective_base(text: &[u8], base: u32) -> (u32, usize) {
    match (base, text) {
        (0 | 16, [b'0', b'x' | b'X', digit, ..]) if digit.is_ascii_hexdigit() => (16, 2),
        (0, [b'0', ..]) => (8, 0),
        (0, _) => (10, 0),
        _ => (base, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unsigned(text: &str, base: u32) -> Option<(Option<u64>, usize)> {
        CInteger::read(text.as_bytes(), base).map(|n| (n.unsigned(), n.end))
    }

    #[test]
    fn base_0_is_told_by_the_prefix() {
        assert_eq!(unsigned(" 0x1Fg", 0), Some((Some(31), 5)));
        assert_eq!(unsigned("0x", 0), Some((Some(0), 1)));
        assert_eq!(unsigned("0189", 0), Some((Some(1), 2)));
        assert_eq!(unsigned("0189", 10), Some((Some(189), 4)));
        assert_eq!(unsigned("0", 0), Some((Some(0), 1)));
    }

    #[test]
    fn a_number_needs_a_digit() {
        for text in ["", " ", "-", "+", "x", "- 1"] {
            assert_eq!(unsigned(text, 10), None, "{text}");
        }
    }

    #[test]
    fn a_sign_wraps_and_too_much_is_none() {
        assert_eq!(unsigned("-1", 10), Some((Some(u64::MAX), 2)));
        assert_eq!(unsigned("18446744073709551615", 10), Some((Some(u64::MAX), 20)));
        assert_eq!(unsigned("18446744073709551616", 10), Some((None, 20)));
        assert_eq!(unsigned("99999999999999999999999990", 10), Some((None, 26)));
        let signed = |text: &str| CInteger::read(text.as_bytes(), 10).and_then(CInteger::signed);
        assert_eq!(signed("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(signed("9223372036854775808"), None);
    }
}
