//! `float4` and `float8`: the shortest digits that read back as the same number.
//!
//! Stored as IEEE 754 numbers of 4 and 8 bytes. PostgreSQL prints them with Ryu, asking for a
//! decimal *strictly inside* the interval of numbers that round to the value, where most
//! implementations, this project's `zmij` among them, also take the ends of the interval when
//! the mantissa is even. The two differ only where a decimal lies exactly on an end. Let the
//! value be m·2^e, then an end is B·2^E with an odd B ≥ 2^(mantissa bits), and for it to have 17
//! digits at most (9 for `float4`) hardly a factor of five fits in: it happens only from 2^50
//! (2^20) up, where notation is scientific. So fixed notation is `zmij`'s as it stands, and
//! scientific notation is checked.
//!
//! Notation is fixed for a decimal exponent from -4 to 14 (5 for `float4`), else scientific with
//! a sign and at least two digits in the exponent.
//!
//! Sources: `double_to_shortest_decimal_bufn` in `src/common/d2s.c` and its twin in `f2s.c`
//! (`acceptBounds` is false), `float8out_internal` in `src/backend/utils/adt/float.c`,
//! PostgreSQL 14 to 18 with `extra_float_digits = 1`.

use pagemill_format::error::Result;

use super::payload::fixed;

/// `float4`, alias `real`.
///
/// # Errors
/// When the value is not 4 bytes.
pub fn write_float4(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let number = f32::from_le_bytes(fixed("float4", value)?);
    let size = number.abs();
    if (1e-4..1e6).contains(&size) {
        push_fixed(zmij::Buffer::new().format_finite(number), out);
    } else if let Some(text) = special(number.into()) {
        out.extend_from_slice(text);
    } else {
        let shortest = Decimal::read(zmij::Buffer::new().format_finite(size)).normalized();
        let ends = Ends::of_f32(size);
        let inside = shortest.strictly_between(&ends, size.into(), |d| d.as_f32() == size);
        inside.push_scientific(number.is_sign_negative(), out);
    }
    Ok(())
}

/// `float8`, alias `double precision`.
///
/// # Errors
/// When the value is not 8 bytes.
pub fn write_float8(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_float8(f64::from_le_bytes(fixed("float8", value)?), out);
    Ok(())
}

/// Appends a number as `float8` prints it; the geometric types are made of these.
#[inline]
pub(super) fn push_float8(number: f64, out: &mut Vec<u8>) {
    let size = number.abs();
    if (1e-4..1e15).contains(&size) {
        push_fixed(zmij::Buffer::new().format_finite(number), out);
    } else if let Some(text) = special(number) {
        out.extend_from_slice(text);
    } else {
        let shortest = Decimal::read(zmij::Buffer::new().format_finite(size)).normalized();
        let ends = Ends::of_f64(size);
        let inside = shortest.strictly_between(&ends, size, |d| d.as_f64() == size);
        inside.push_scientific(number.is_sign_negative(), out);
    }
}

/// The text of zeros, infinities and not-a-numbers.
pub(super) fn special(number: f64) -> Option<&'static [u8]> {
    let negative = number.is_sign_negative();
    match number.classify() {
        std::num::FpCategory::Nan => Some(b"NaN"),
        std::num::FpCategory::Infinite if negative => Some(b"-Infinity"),
        std::num::FpCategory::Infinite => Some(b"Infinity"),
        std::num::FpCategory::Zero if negative => Some(b"-0"),
        std::num::FpCategory::Zero => Some(b"0"),
        _ => None,
    }
}

/// Appends a number in fixed notation, without the `.0` that an integer has been given.
#[inline]
fn push_fixed(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.strip_suffix(".0").unwrap_or(text).as_bytes());
}

/// A decimal, `digits` · 10^`exponent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    digits: u64,
    exponent: i32,
}

impl Decimal {
    /// Reads what a float formatter wrote: digits, at most one point, at most one exponent. Zeros
    /// at the end stay digits.
    fn read(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let mut exponent = exponent.parse::<i32>().unwrap_or(0);
        let mut digits = 0u64;
        let mut after_point = 0;
        for byte in mantissa.bytes() {
            if byte == b'.' {
                after_point = 1;
            } else {
                digits = digits.wrapping_mul(10).wrapping_add(u64::from(byte.wrapping_sub(b'0')));
                exponent -= after_point;
            }
        }
        Self { digits, exponent }
    }

    /// The same number without zeros at the end of its digits.
    fn normalized(mut self) -> Self {
        while self.digits != 0 && self.digits.is_multiple_of(10) {
            self.digits /= 10;
            self.exponent += 1;
        }
        self
    }

    fn as_f64(self) -> f64 {
        format!("{}e{}", self.digits, self.exponent).parse().unwrap_or(f64::NAN)
    }

    fn as_f32(self) -> f32 {
        format!("{}e{}", self.digits, self.exponent).parse().unwrap_or(f32::NAN)
    }

    /// This decimal, the shortest one between the ends or on them, or if it is on one, the
    /// shortest one between them.
    #[inline]
    fn strictly_between(self, ends: &Ends, size: f64, reads_back: impl Fn(Self) -> bool) -> Self {
        if ends.have(self) { self.search(ends, size, reads_back) } else { self }
    }

    /// Looks for the shortest decimal strictly between the ends, from this one's length on. Few
    /// numbers get here, so clarity wins over speed.
    #[cold]
    fn search(self, ends: &Ends, size: f64, reads_back: impl Fn(Self) -> bool) -> Self {
        let fits = |d: &Self| !ends.have(*d) && reads_back(*d);
        for precision in self.digits.checked_ilog10().unwrap_or(0)..17 {
            let nearest = Self::read(&format!("{size:.*e}", precision as usize));
            let neighbors = [nearest.digits, nearest.digits + 1, nearest.digits.saturating_sub(1)]
                .map(|digits| Self { digits, ..nearest });
            if let Some(found) = neighbors.iter().find(|d| fits(d)) {
                return found.normalized();
            }
        }
        self
    }

    /// Appends `-d.ddde±xx`.
    fn push_scientific(self, negative: bool, out: &mut Vec<u8>) {
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(self.digits).as_bytes();
        if negative {
            out.push(b'-');
        }
        if let Some((first, rest)) = digits.split_first() {
            out.push(*first);
            if !rest.is_empty() {
                out.push(b'.');
                out.extend_from_slice(rest);
            }
        }
        let exponent = self.exponent + digits.len() as i32 - 1;
        out.extend([b'e', if exponent < 0 { b'-' } else { b'+' }]);
        super::digits::push_two(exponent.unsigned_abs().into(), out);
    }
}

/// The ends of the interval of numbers that round to a float: each an odd number times 2 to
/// the power of an exponent.
#[derive(Debug)]
struct Ends([(u64, i32); 2]);

impl Ends {
    fn of_f64(size: f64) -> Self {
        let bits = size.to_bits();
        Self::of(bits & ((1 << 52) - 1), (bits >> 52) as i32, 52, 1075)
    }

    fn of_f32(size: f32) -> Self {
        let bits = size.to_bits();
        Self::of((bits & ((1 << 23) - 1)).into(), (bits >> 23) as i32, 23, 150)
    }

    /// The ends for the two fields of a float whose `width` mantissa bits and exponent `bias`
    /// (counted for an integer mantissa) are given.
    fn of(fraction: u64, exponent: i32, width: u32, bias: i32) -> Self {
        let (mantissa, e) = match exponent {
            0 => (fraction, 1 - bias),
            _ => (fraction | 1 << width, exponent - bias),
        };
        let upper = (2 * mantissa + 1, e - 1);
        // Below a power of two the floats lie twice as close.
        if fraction == 0 && exponent > 1 {
            return Self([(4 * mantissa - 1, e - 2), upper]);
        }
        Self([((2 * mantissa).saturating_sub(1), e - 1), upper])
    }

    /// True when the decimal is one of the ends: equal powers of two, equal odd parts.
    #[inline]
    fn have(&self, decimal: Decimal) -> bool {
        let twos = decimal.digits.trailing_zeros() as i32;
        self.0.iter().any(|&(odd, exponent)| {
            twos + decimal.exponent == exponent && {
                let digits = u128::from(decimal.digits >> twos.min(63));
                let fives = 5u128.checked_pow(decimal.exponent.unsigned_abs());
                let odd = u128::from(odd);
                fives.is_some_and(|fives| match decimal.exponent {
                    0.. => digits.checked_mul(fives) == Some(odd),
                    _ => odd.checked_mul(fives) == Some(digits),
                })
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;
    use proptest::prelude::*;

    fn float8(number: f64) -> String {
        printed(write_float8, &number.to_le_bytes())
    }

    fn float4(number: f32) -> String {
        printed(write_float4, &number.to_le_bytes())
    }

    #[test]
    fn notation_changes_where_the_server_changes_it() {
        assert_eq!(float8(123.456), "123.456");
        assert_eq!(float8(0.0001), "0.0001");
        assert_eq!(float8(0.00001), "1e-05");
        assert_eq!(float8(999_999_999_999_999.9), "999999999999999.9");
        assert_eq!(float8(1e15), "1e+15");
        assert_eq!(float8(-1.5e-300), "-1.5e-300");
        assert_eq!(float4(999_999.94), "999999.94");
        assert_eq!(float4(1e6), "1e+06");
        assert_eq!(float4(-0.5), "-0.5");
        assert_eq!(float4(f32::MIN_POSITIVE), "1.1754944e-38");
    }

    #[test]
    fn special_numbers_have_names() {
        assert_eq!(float8(f64::NAN), "NaN");
        assert_eq!(float8(-f64::NAN), "NaN");
        assert_eq!(float8(f64::NEG_INFINITY), "-Infinity");
        assert_eq!(float4(f32::INFINITY), "Infinity");
        assert_eq!(float8(-0.0), "-0");
        assert_eq!(float4(0.0), "0");
    }

    /// Each of these numbers has an even mantissa and a shorter decimal, given beside it, that
    /// lies on an end of its interval.
    #[test]
    fn a_decimal_on_the_end_of_the_interval_is_not_taken() {
        assert_eq!(float8(2.5e22), "2.4999999999999998e+22");
        assert_eq!(float8(3.30695e20), "3.3069500000000003e+20");
        assert_eq!(float8(4.194304e29), "4.1943039999999996e+29");
        assert_eq!(float8(8e23), "7.999999999999999e+23");
        assert_eq!(float8(-1.6384e27), "-1.6383999999999999e+27");
        assert_eq!(float4(6.419049e7), "6.4190488e+07");
        assert_eq!(float4(6.045619e7), "6.0456192e+07");
        assert_eq!(float4(-1.954_335_3e6), "-1.9543352e+06");
    }

    #[test]
    fn powers_of_two_have_an_interval_that_is_narrower_below() {
        assert_eq!(float8(9_007_199_254_740_992.0), "9.007199254740992e+15");
        assert_eq!(float8(2f64.powi(89)), "6.189700196426902e+26");
        assert_eq!(float8(5e-324), "5e-324");
        assert_eq!(float4(16_777_216.0), "1.6777216e+07");
        assert_eq!(float4(8_388_608.0), "8.388608e+06");
    }

    proptest! {
        #[test]
        fn floats_read_back(bits: u64) {
            let number = f64::from_bits(bits);
            if number.is_finite() {
                prop_assert_eq!(float8(number).parse::<f64>().unwrap().to_bits(), bits);
            }
            let number = f32::from_bits(bits as u32);
            if number.is_finite() {
                prop_assert_eq!(float4(number).parse::<f32>().unwrap().to_bits(), bits as u32);
            }
        }
    }
}
