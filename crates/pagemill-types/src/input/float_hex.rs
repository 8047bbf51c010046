//! Hexadecimal floating-point numbers, as `strtod` and `strtof` take them: `0x1.8p3`.
//!
//! Rounded to nearest, ties to even, with the gradual underflow of IEEE 754. The digits beyond the
//! first sixteen only count as "more than zero". Source: ISO C, 7.24.1.3.

use super::digits::byte_at;
use super::float::signed_exponent;

/// A binary format of IEEE 754.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Bits of the mantissa, the implied one included.
    pub(super) precision: u32,
    /// The exponent of the largest numbers, and the bias.
    pub(super) max_exponent: i64,
}

impl Shape {
    /// The bits of infinity.
    pub(super) fn infinity(self) -> u64 {
        (2 * self.max_exponent as u64 + 1) << (self.precision - 1)
    }

    /// The bit that makes infinity a quiet NaN; the bits below it are its payload.
    pub(super) fn quiet_bit(self) -> u64 {
        1 << (self.precision - 2)
    }
}

/// The bits of the number that `text` starts with, sign aside, and its length; the bits are `None`
/// when it is out of range.
pub(super) fn read(text: &[u8], shape: Shape) -> Option<(Option<u64>, usize)> {
    let [b'0', b'x' | b'X', digits @ ..] = text else { return None };
    let mantissa = Mantissa::read(digits)?;
    let mut end = 2 + mantissa.length;
    let mut exponent = mantissa.exponent;
    if let [b'p' | b'P', rest @ ..] = text.get(end..).unwrap_or_default()
        && let Some((power, length)) = signed_exponent(rest)
    {
        exponent += power;
        end += 1 + length;
    }
    Some((mantissa.rounded(exponent, shape), end))
}

/// `bits × 2^exponent`, and a little more when `sticky`.
struct Mantissa {
    bits: u64,
    exponent: i64,
    sticky: bool,
    length: usize,
}

impl Mantissa {
    fn read(text: &[u8]) -> Option<Self> {
        let mut found = Self { bits: 0, exponent: 0, sticky: false, length: 0 };
        let (mut point, mut any) = (false, false);
        loop {
            let byte = byte_at(text, found.length);
            if let Some(digit) = char::from(byte).to_digit(16) {
                found.push(digit.into(), point);
                any = true;
            } else if byte == b'.' && !point {
                // The point counts only next to a digit: `0x.` is a zero with `x.` behind it.
                if !any && !byte_at(text, 1).is_ascii_hexdigit() {
                    return None;
                }
                point = true;
            } else {
                return any.then_some(found);
            }
            found.length += 1;
        }
    }

    fn push(&mut self, digit: u64, in_fraction: bool) {
        if self.bits >> 60 == 0 {
            self.bits = self.bits << 4 | digit;
            self.exponent -= if in_fraction { 4 } else { 0 };
        } else {
            self.sticky |= digit != 0;
            self.exponent += if in_fraction { 0 } else { 4 };
        }
    }

    /// The bits of the float nearest to `bits × 2^exponent`.
    fn rounded(&self, exponent: i64, shape: Shape) -> Option<u64> {
        if self.bits == 0 {
            return Some(0);
        }
        let zeros = self.bits.leading_zeros();
        let bits = self.bits << zeros;
        // Of the highest bit, which is set.
        let exponent = exponent + 63 - i64::from(zeros);
        let missing = (1 - shape.max_exponent - exponent).max(0);
        let kept = i64::from(shape.precision) - missing;
        if exponent > shape.max_exponent || kept < 0 {
            return None;
        }
        let kept = kept as u32;
        let (mantissa, rest) =
            if kept == 0 { (0, bits) } else { (bits >> (64 - kept), bits << kept) };
        let half = 1 << 63;
        let up = rest > half || rest == half && (self.sticky || mantissa & 1 == 1);
        let biased = if missing > 0 { 0 } else { (exponent + shape.max_exponent - 1) as u64 };
        // The implied bit, and a carry out of the mantissa, count into the exponent.
        let value = (biased << (shape.precision - 1)) + mantissa + u64::from(up);
        (value != 0 && value < shape.infinity()).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DOUBLE: Shape = Shape { precision: 53, max_exponent: 1023 };
    const SINGLE: Shape = Shape { precision: 24, max_exponent: 127 };

    fn double(text: &str) -> Option<f64> {
        let (bits, length) = read(text.as_bytes(), DOUBLE).unwrap();
        assert_eq!(length, text.len(), "{text}");
        bits.map(f64::from_bits)
    }

    #[test]
    fn digits_point_and_power_make_the_value() {
        assert_eq!(double("0x10"), Some(16.0));
        assert_eq!(double("0X.8p1"), Some(1.0));
        assert_eq!(double("0x1.p-3"), Some(0.125));
        assert_eq!(double("0x0p9999999"), Some(0.0));
        assert_eq!(double("0x1.fffffffffffff8p0"), Some(2.0));
        assert_eq!(double("0x1.00000000000008p0"), Some(1.0));
        assert_eq!(double("0x1.00000000000008001p0"), Some(1.0 + f64::EPSILON));
        assert_eq!(double("0x100000000000000000001p0"), Some(2f64.powi(80)));
    }

    #[test]
    fn underflow_is_gradual_and_then_out_of_range() {
        assert_eq!(double("0x1p-1074"), Some(5e-324));
        assert_eq!(double("0x1p-1075"), None);
        assert_eq!(double("0x1.8p-1075"), Some(5e-324));
        assert_eq!(double("0x0.fffffffffffff8p-1022"), Some(f64::MIN_POSITIVE));
        assert_eq!(double("0x1p1024"), None);
        assert_eq!(double("0x1.fffffffffffffp1023"), Some(f64::MAX));
    }

    #[test]
    fn a_prefix_without_digits_is_no_hexadecimal_number() {
        for text in ["0x", "0xg", "0x.", "0x.p1", "1"] {
            assert_eq!(read(text.as_bytes(), DOUBLE), None, "{text}");
        }
        assert_eq!(read(b"0x1p", DOUBLE), Some((Some(1f64.to_bits()), 3)));
    }

    proptest! {
        #[test]
        fn exact_numbers_are_taken_as_they_are(bits in 0u64..0x7FF0_0000_0000_0000) {
            let (exponent, fraction) = (bits >> 52, bits & ((1 << 52) - 1));
            let text = match exponent {
                0 => format!("0x0.{fraction:013x}p-1022"),
                _ => format!("0x1.{fraction:013x}p{}", exponent as i64 - 1023),
            };
            prop_assert_eq!(read(text.as_bytes(), DOUBLE), Some((Some(bits), text.len())));
        }

        /// The compiler's own rounding from double to single is the judge.
        #[test]
        fn singles_are_rounded_to_even(m: u64, power in -170i64..130) {
            let text = format!("0x{:x}p{power}", m >> 11);
            let exact = (m >> 11) as f64 * 2f64.powi(power as i32);
            let single = exact as f32;
            let expected = (m >> 11 == 0 || single != 0.0 && single.is_finite())
                .then_some(u64::from(single.to_bits()));
            prop_assert_eq!(read(text.as_bytes(), SINGLE), Some((expected, text.len())));
        }
    }
}
