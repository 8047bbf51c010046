//! Numbers as C's `strtol` and `strtod` read them: a prefix of the text, and what is left of it.
//!
//! PostgreSQL parses dates with those two, so what counts is what they take, not what is
//! reasonable: no digits at all are 0 and nothing read; `1e3` and `0x10` are reals.
//! Sources: `strtoint`, `ParseFraction` and `ParseFractionalSecond` in
//! `src/backend/utils/adt/datetime.c`, PostgreSQL 14 to 18 (14 refuses a point without digits).

use pagemill_format::ids::PgVersion;

use super::fault::{Fault, Result};

/// An integer at the begin of `text`; [`Fault::Field`] beyond `i64`.
pub(super) fn long(text: &[u8]) -> (Result<i64>, &[u8]) {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let len = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let Some((digits, rest)) = digits.split_at_checked(len).filter(|_| len > 0) else {
        return (Ok(0), text);
    };
    let add = |number: i64, &digit: &u8| {
        let digit = i64::from(digit - b'0');
        number.checked_mul(10)?.checked_add(if negative { -digit } else { digit })
    };
    (digits.iter().try_fold(0, add).ok_or(Fault::Field), rest)
}

/// An integer of 32 bits at the begin of `text`; [`Fault::Field`] beyond them.
pub(super) fn int(text: &[u8]) -> (Result<i32>, &[u8]) {
    let (value, rest) = long(text);
    (value.and_then(|value| i32::try_from(value).map_err(|_| Fault::Field)), rest)
}

/// What C's `atoi` makes of `text`: bits beyond 32 are lost.
pub(super) fn wrapping_int(text: &[u8]) -> i32 {
    long(text).0.unwrap_or(i64::MAX) as i32
}

/// A real number at the begin of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Real {
    pub(super) value: f64,
    /// How many bytes it takes; 0 when there is none.
    pub(super) len: usize,
    /// True when its magnitude was too large, or too small, for the type.
    pub(super) out_of_range: bool,
}

/// A real number at the begin of `text`.
pub(super) fn real(text: &[u8]) -> Real {
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let magnitude = text.get(sign..).unwrap_or_default();
    let found = named(magnitude).or_else(|| hexadecimal(magnitude)).or_else(|| decimal(magnitude));
    let Some(found) = found else { return Real { value: 0.0, len: 0, out_of_range: false } };
    let value = if text.first() == Some(&b'-') { -found.value } else { found.value };
    Real { value, len: found.len + sign, ..found }
}

fn named(text: &[u8]) -> Option<Real> {
    let names = [("infinity", f64::INFINITY), ("inf", f64::INFINITY), ("nan", f64::NAN)];
    let is = |name: &str| {
        text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
    };
    let (name, value) = names.into_iter().find(|(name, _)| is(name))?;
    Some(Real { value, len: name.len(), out_of_range: false })
}

fn hexadecimal(text: &[u8]) -> Option<Real> {
    let [b'0', b'x' | b'X', digits @ ..] = text else { return None };
    let (mut value, mut scale, mut seen, mut len) = (0.0, 1.0, false, 2);
    let mut after_point = false;
    for &byte in digits {
        match char::from(byte).to_digit(16) {
            Some(digit) => {
                value = value * 16.0 + f64::from(digit);
                scale = if after_point { scale / 16.0 } else { scale };
                seen = true;
            }
            None if byte == b'.' && !after_point => after_point = true,
            None => break,
        }
        len += 1;
    }
    let (power, power_len) = exponent(text.get(len..).unwrap_or_default(), b'p');
    let scaled = if value == 0.0 { value } else { value * scale * 2f64.powi(power) };
    let out_of_range = value != 0.0 && !scaled.is_normal();
    seen.then_some(Real { value: scaled, len: len + power_len, out_of_range })
}

fn decimal(text: &[u8]) -> Option<Real> {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(text);
    let mut len = whole;
    if let Some([b'.', rest @ ..]) = text.get(whole..) {
        let fraction = digits(rest);
        if whole + fraction > 0 {
            len += 1 + fraction;
        }
    }
    if len == 0 {
        return None;
    }
    let mantissa = text.get(..len).unwrap_or_default();
    len += exponent(text.get(len..).unwrap_or_default(), b'e').1;
    let number = std::str::from_utf8(text.get(..len)?).ok()?;
    let value: f64 = number.parse().ok()?;
    let is_zero = mantissa.iter().all(|byte| matches!(byte, b'0' | b'.'));
    let out_of_range = value.is_infinite() || (!is_zero && !value.is_normal());
    Some(Real { value, len, out_of_range })
}

/// An exponent and its length; 0 and 0 where there is none.
fn exponent(text: &[u8], mark: u8) -> (i32, usize) {
    match text {
        [first, rest @ ..] if first.eq_ignore_ascii_case(&mark) => {
            let (value, left) = int(rest);
            let read = rest.len() - left.len();
            // An exponent too large for 32 bits is too large for the type.
            let value = value.unwrap_or(if rest.first() == Some(&b'-') { -9999 } else { 9999 });
            if read == 0 { (0, 0) } else { (value, read + 1) }
        }
        _ => (0, 0),
    }
}

/// The fraction that `text` is: a point and digits, to its end.
pub(super) fn fraction(text: &[u8], version: PgVersion) -> Result<f64> {
    if text == b"." && version > PgVersion::V14 {
        return Ok(0.0);
    }
    let real = real(text);
    if real.len == 0 || real.len != text.len() || real.out_of_range {
        return Err(Fault::Syntax);
    }
    Ok(real.value)
}

/// A fraction of a second in microseconds, rounded.
pub(super) fn fraction_micros(text: &[u8], version: PgVersion) -> Result<i32> {
    fraction(text, version).map(micros)
}

/// A fraction of a second in microseconds, rounded to the nearest, ties to even.
pub(super) fn micros(fraction: f64) -> i32 {
    let rounded = (fraction * 1_000_000.0).round_ties_even();
    let fits = (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&rounded);
    if fits { rounded as i32 } else { i32::MIN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_stop_at_the_first_byte_that_is_no_digit() {
        assert_eq!(long(b"12:30"), (Ok(12), &b":30"[..]));
        assert_eq!(long(b"-7x"), (Ok(-7), &b"x"[..]));
        assert_eq!(long(b"x"), (Ok(0), &b"x"[..]));
        assert_eq!(long(b"-"), (Ok(0), &b"-"[..]));
        assert_eq!(long(b"-9223372036854775808").0, Ok(i64::MIN));
        assert_eq!(long(b"9223372036854775808").0, Err(Fault::Field));
        assert_eq!(int(b"2147483648").0, Err(Fault::Field));
        assert_eq!(wrapping_int(b"4294967297"), 1);
    }

    #[test]
    fn reals_are_those_of_c() {
        let read = |text: &str| {
            let real = real(text.as_bytes());
            (real.value, real.len, real.out_of_range)
        };
        assert_eq!(read("1.5D"), (1.5, 3, false));
        assert_eq!(read("-.5"), (-0.5, 3, false));
        assert_eq!(read("5."), (5.0, 2, false));
        assert_eq!(read("1e3Y"), (1000.0, 3, false));
        assert_eq!(read("1eY"), (1.0, 1, false));
        assert_eq!(read("0x1.8p1D"), (3.0, 7, false));
        assert_eq!(read("-inf"), (f64::NEG_INFINITY, 4, false));
        assert_eq!(read("."), (0.0, 0, false));
        assert_eq!(read("1e999"), (f64::INFINITY, 5, true));
        assert!(read("1e-999").2);
        assert_eq!(read("0e-999"), (0.0, 6, false));
    }

    #[test]
    fn a_point_alone_is_a_fraction_since_version_15() {
        assert_eq!(fraction(b".", PgVersion::V15), Ok(0.0));
        assert_eq!(fraction(b".", PgVersion::V14), Err(Fault::Syntax));
        assert_eq!(fraction_micros(b".1234565", PgVersion::V18), Ok(123_456));
        assert_eq!(fraction(b".5.6", PgVersion::V18), Err(Fault::Syntax));
    }
}
