//! The input of `float4` and `float8`, exactly rounded, with all that `strtod` of the GNU C library
//! takes: `inf`, `nan` with a payload, hexadecimal.
//!
//! A decimal number is split into digits and exponent in one pass. Up to 15 digits and a power of
//! ten that a float holds exactly need a single division or multiplication, whose rounding is the
//! right one (Clinger); the rest goes through the standard library's parser, which is exact as
//! well. A result that is infinite, or zero of digits that are not, is "out of range".
//! Sources: `float4in` and `float8in_internal` in `src/backend/utils/adt/float.c`, PostgreSQL 14 to
//! 18.

use super::digits::{MAX_DIGITS, all_blank, append, leading_digits, skip_blanks};
use super::{InputError, c_integer::CInteger, float_hex};

/// `float4`, alias `real`.
///
/// # Errors
/// When the text is no number, or one out of range.
pub fn read_float4(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let value = read::<f32>(text, Shown::Number)?;
    out.extend_from_slice(&value.to_le_bytes());
    Ok(())
}

/// `float4`, alias `real`, up to PostgreSQL 15.
///
/// # Errors
/// When the text is no number, or one out of range.
pub fn read_float4_before_16(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let value = read::<f32>(text, Shown::Text)?;
    out.extend_from_slice(&value.to_le_bytes());
    Ok(())
}

/// `float8`, alias `double precision`.
///
/// # Errors
/// When the text is no number, or one out of range.
pub fn read_float8(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let value = read::<f64>(text, Shown::Number)?;
    out.extend_from_slice(&value.to_le_bytes());
    Ok(())
}

/// What a message about a number out of range shows: the number alone, or all of the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Number,
    Text,
}

#[inline]
fn read<F: Float>(text: &[u8], shown: Shown) -> Result<F, InputError> {
    match plain::<F>(text) {
        Some(value) => Ok(value),
        None => slowly::<F>(text, shown),
    }
}

/// What tells the two types apart.
trait Float: Copy + std::str::FromStr {
    const NAME: &'static str;
    /// What [`float_hex`] needs to know of it.
    const SHAPE: float_hex::Shape;
    /// `mantissa × 10^exponent` where one operation is exact.
    fn exact(mantissa: u64, exponent: i64) -> Option<Self>;
    /// The float of these bits, the sign bit aside.
    fn of_bits(bits: u64, negative: bool) -> Self;
    fn negated(self) -> Self;
    fn is_extreme(self) -> bool;
}

/// Powers of ten that a double holds exactly, and among the first eleven those that a float holds.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

fn power_of_ten(exponent: i64) -> Option<f64> {
    POWERS.get(usize::try_from(exponent.unsigned_abs()).ok()?).copied()
}

impl Float for f64 {
    const NAME: &'static str = "double precision";
    const SHAPE: float_hex::Shape = float_hex::Shape { precision: 53, max_exponent: 1023 };

    #[inline]
    fn exact(mantissa: u64, exponent: i64) -> Option<Self> {
        if mantissa > 1 << 53 {
            return None;
        }
        let power = power_of_ten(exponent)?;
        let mantissa = mantissa as f64;
        Some(if exponent < 0 { mantissa / power } else { mantissa * power })
    }

    fn of_bits(bits: u64, negative: bool) -> Self {
        Self::from_bits(bits | u64::from(negative) << 63)
    }

    fn negated(self) -> Self {
        -self
    }

    fn is_extreme(self) -> bool {
        self == 0.0 || self.is_infinite()
    }
}

impl Float for f32 {
    const NAME: &'static str = "real";
    const SHAPE: float_hex::Shape = float_hex::Shape { precision: 24, max_exponent: 127 };

    #[inline]
    fn exact(mantissa: u64, exponent: i64) -> Option<Self> {
        if mantissa > 1 << 24 || !(-10..=10).contains(&exponent) {
            return None;
        }
        let power = power_of_ten(exponent)? as Self;
        let mantissa = mantissa as Self;
        Some(if exponent < 0 { mantissa / power } else { mantissa * power })
    }

    fn of_bits(bits: u64, negative: bool) -> Self {
        Self::from_bits(bits as u32 | u32::from(negative) << 31)
    }

    fn negated(self) -> Self {
        -self
    }

    fn is_extreme(self) -> bool {
        self == 0.0 || self.is_infinite()
    }
}

/// The value of a text that is a decimal number and nothing else, and not out of range.
#[inline]
fn plain<F: Float>(text: &[u8]) -> Option<F> {
    let (negative, number) = match text {
        [b'-', rest @ ..] => (true, rest),
        all => (false, all),
    };
    let decimal = Decimal::read(number)?;
    if decimal.end != number.len() {
        return None;
    }
    let value = decimal.value::<F>(number).ok()?;
    Some(if negative { value.negated() } else { value })
}

/// A decimal number at the start of a text.
struct Decimal {
    /// All digits in a row, when they are few enough to fit.
    digits: Option<u64>,
    /// The power of ten that counts the last digit.
    exponent: i64,
    /// Bytes read.
    end: usize,
}

/// The number's value is too large, or too small for anything but zero.
struct OutOfRange;

impl Decimal {
    /// The longest start of the text that is a number, unless there is none.
    #[inline]
    fn read(text: &[u8]) -> Option<Self> {
        let whole = leading_digits(text);
        let (integer, rest) = text.split_at_checked(whole)?;
        let (fraction, mut end) = match rest {
            [b'.', rest @ ..] => {
                let count = leading_digits(rest);
                (rest.get(..count).unwrap_or_default(), whole + 1 + count)
            }
            _ => (&[][..], whole),
        };
        let count = integer.len() + fraction.len();
        if count == 0 {
            return None;
        }
        let mut exponent = -(fraction.len() as i64);
        if let Some((power, length)) = explicit_exponent(text.get(end..).unwrap_or_default()) {
            exponent += power;
            end += length;
        }
        let digits = match count {
            ..=MAX_DIGITS => append(append(0, integer)?, fraction),
            _ => None,
        };
        Some(Self { digits, exponent, end })
    }

    /// The value of the number, of which `text` is the start.
    #[inline]
    fn value<F: Float>(&self, text: &[u8]) -> Result<F, OutOfRange> {
        match self.digits.and_then(|digits| F::exact(digits, self.exponent)) {
            Some(value) => Ok(value),
            None => rounded(text.get(..self.end).unwrap_or_default()),
        }
    }
}

/// The value of a text that is a decimal number, by the standard library.
fn rounded<F: Float>(number: &[u8]) -> Result<F, OutOfRange> {
    let parsed = std::str::from_utf8(number).ok().and_then(|number| number.parse::<F>().ok());
    match parsed {
        Some(value) if value.is_extreme() && has_value(number) => Err(OutOfRange),
        Some(value) => Ok(value),
        None => Err(OutOfRange),
    }
}

/// True when a digit before the exponent is not zero.
fn has_value(number: &[u8]) -> bool {
    let mut mantissa = number.iter().take_while(|b| !matches!(b, b'e' | b'E'));
    mantissa.any(|b| matches!(b, b'1'..=b'9'))
}

/// The power behind `e`, and the length of both, unless there is none.
#[inline]
fn explicit_exponent(text: &[u8]) -> Option<(i64, usize)> {
    let [b'e' | b'E', rest @ ..] = text else { return None };
    let (power, length) = signed_exponent(rest)?;
    Some((power, 1 + length))
}

/// An exponent, cut to what is far out of any range, and its length.
pub(super) fn signed_exponent(text: &[u8]) -> Option<(i64, usize)> {
    const FAR: i64 = 1 << 40;
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let digits = text.get(sign..).unwrap_or_default();
    let count = leading_digits(digits);
    let digits = digits.get(..count).unwrap_or_default();
    let power = digits.iter().fold(0, |n, d| FAR.min(n * 10 + i64::from(d - b'0')));
    let power = if text.first() == Some(&b'-') { -power } else { power };
    (count > 0).then_some((power, sign + count))
}

/// Follows the server step by step.
#[cold]
fn slowly<F: Float>(text: &[u8], shown: Shown) -> Result<F, InputError> {
    let syntax = || InputError::syntax(F::NAME, text);
    let number = skip_blanks(text);
    let sign = usize::from(matches!(number.first(), Some(b'-' | b'+')));
    let unsigned = number.get(sign..).unwrap_or_default();
    let (value, length) = match magnitude::<F>(unsigned).ok_or_else(syntax)? {
        (Ok(value), length) => (value, sign + length),
        (Err(OutOfRange), length) => {
            let number = number.get(..sign + length).unwrap_or_default();
            return Err(out_of_range::<F>(if shown == Shown::Text { text } else { number }));
        }
    };
    // Where the payload of an unsigned NaN is out of range, the server settles for its name.
    let behind = number.get(length..).unwrap_or_default();
    if !all_blank(behind) || sign == 0 && nan_payload_overflows(number) {
        return Err(syntax());
    }
    Ok(if number.first() == Some(&b'-') { value.negated() } else { value })
}

fn out_of_range<F: Float>(number: &[u8]) -> InputError {
    let number = String::from_utf8_lossy(number);
    InputError::new(format!("\"{number}\" is out of range for type {}", F::NAME))
}

/// The number that `text` starts with, without its sign, and its length.
fn magnitude<F: Float>(text: &[u8]) -> Option<(Result<F, OutOfRange>, usize)> {
    let starts = |word: &[u8]| text.get(..word.len()).is_some_and(|t| t.eq_ignore_ascii_case(word));
    let infinity = || F::of_bits(F::SHAPE.infinity(), false);
    if starts(b"infinity") {
        return Some((Ok(infinity()), 8));
    }
    if starts(b"inf") {
        return Some((Ok(infinity()), 3));
    }
    if starts(b"nan") {
        let (payload, length) = nan_payload(text.get(3..).unwrap_or_default());
        let quiet = F::SHAPE.quiet_bit();
        let bits = F::SHAPE.infinity() | quiet | payload & (quiet - 1);
        return Some((Ok(F::of_bits(bits, false)), 3 + length));
    }
    if let Some((bits, length)) = float_hex::read(text, F::SHAPE) {
        return Some((bits.map(|bits| F::of_bits(bits, false)).ok_or(OutOfRange), length));
    }
    let decimal = Decimal::read(text)?;
    Some((decimal.value(text), decimal.end))
}

/// What is in brackets behind `nan`, and the length of it and them.
fn nan_brackets(text: &[u8]) -> Option<(&[u8], usize)> {
    let [b'(', inside @ ..] = text else { return None };
    let count = inside.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let (inside, rest) = inside.split_at_checked(count)?;
    rest.starts_with(b")").then_some((inside, count + 2))
}

/// The number that the brackets behind `nan` hold, 0 if they hold anything else, and their length.
fn nan_payload(text: &[u8]) -> (u64, usize) {
    let Some((inside, length)) = nan_brackets(text) else { return (0, 0) };
    let number = CInteger::read(inside, 0).filter(|number| number.end == inside.len());
    (number.map_or(0, CInteger::unsigned_or_max), length)
}

/// True for a NaN whose brackets hold a number of more than 64 bits.
fn nan_payload_overflows(text: &[u8]) -> bool {
    let brackets = text.get(3..).and_then(nan_brackets);
    let number = brackets.and_then(|(inside, _)| CInteger::read(inside, 0));
    number.is_some_and(|number| number.unsigned().is_none())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{refused, value};
    use super::*;
    use crate::float as written;
    use proptest::prelude::*;

    fn float8(text: &str) -> f64 {
        f64::from_le_bytes(value(read_float8, text).try_into().unwrap())
    }

    fn float4(text: &str) -> f32 {
        f32::from_le_bytes(value(read_float4, text).try_into().unwrap())
    }

    #[test]
    fn decimals_may_lack_either_side_of_the_point() {
        assert_eq!(float8("1."), 1.0);
        assert_eq!(float8("-.5"), -0.5);
        assert_eq!(float8(" +1e3 \x0B"), 1000.0);
        assert_eq!(float8("-0").to_bits(), (-0.0f64).to_bits());
        assert_eq!(float8("0e999999999999999999999"), 0.0);
    }

    #[test]
    fn infinities_and_nan_have_names_in_any_case() {
        assert_eq!(float8("-INF"), f64::NEG_INFINITY);
        assert_eq!(float4(" infinity "), f32::INFINITY);
        assert_eq!(float8("NaN").to_bits(), 0x7FF8_0000_0000_0000);
        assert_eq!(float8("-nan").to_bits(), 0xFFF8_0000_0000_0000);
        assert_eq!(float8("nan(0x123)").to_bits(), 0x7FF8_0000_0000_0123);
        assert_eq!(float4("nan()").to_bits(), 0x7FC0_0000);
        assert_eq!(float4("+nan(99999999999999999999)").to_bits(), 0x7FFF_FFFF);
    }

    #[test]
    fn what_is_too_large_or_too_small_is_out_of_range() {
        let message = "\"1e400\" is out of range for type double precision";
        assert_eq!(refused(read_float8, " 1e400 "), message);
        assert_eq!(refused(read_float8, "1e400x"), message);
        assert_eq!(
            refused(read_float8, "-1e-400"),
            "\"-1e-400\" is out of range for type double precision"
        );
        assert_eq!(float8("4.9e-324"), 5e-324);
        assert_eq!(float4("1e-45").to_bits(), 1);
        assert_eq!(refused(read_float4, "1e39"), "\"1e39\" is out of range for type real");
    }

    #[test]
    fn other_texts_are_no_numbers() {
        for text in ["", " ", ".", "-", "e1", "1e", "1e+", "1 2", "0x", "infin", "nan(", "1,5"] {
            let message = format!("invalid input syntax for type double precision: \"{text}\"");
            assert_eq!(refused(read_float8, text), message);
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(bits: u64) {
            let mut text = Vec::new();
            written::write_float8(&bits.to_le_bytes(), &mut text).unwrap();
            let read = f64::from_le_bytes(value(read_float8, &text).try_into().unwrap());
            prop_assert!(read.to_bits() == bits || f64::from_bits(bits).is_nan());
            let bits = bits as u32;
            text.clear();
            written::write_float4(&bits.to_le_bytes(), &mut text).unwrap();
            let read = f32::from_le_bytes(value(read_float4, &text).try_into().unwrap());
            prop_assert!(read.to_bits() == bits || f32::from_bits(bits).is_nan());
        }

        #[test]
        fn decimals_are_rounded_as_the_standard_library_rounds(
            text in "-?[0-9]{1,20}(\\.[0-9]{0,20})?(e-?[0-9]{1,2})?"
        ) {
            prop_assert_eq!(float8(&text), text.parse::<f64>().unwrap());
            let single: f32 = text.parse().unwrap();
            match read_float4(text.as_bytes(), -1, &mut Vec::new()) {
                Ok(()) => prop_assert_eq!(float4(&text), single),
                Err(_) => prop_assert!(single == 0.0 || single.is_infinite()),
            }
        }
    }
}
