//! Numbers with so many significant digits, and how many a text has.
//!
//! Invariant: digits are rounded exactly, half to even, as the GNU C library's `printf` rounds; infinity and not-a-number are named as the
//! server's own `printf` names them.
//! Source: `restore` and `significant_digits` in `contrib/seg/seg.c`, `fmtfloat` in `src/port/snprintf.c`, PostgreSQL 14 to 18.

/// `FLT_DIG`: the digits that a single-precision number surely holds.
const MOST_DIGITS: usize = 6;

/// The significant digits of a number in text, zeros at its end included. Of zero, those behind the point and one more.
pub(super) fn significant_digits(text: &[u8]) -> i8 {
    let skip =
        |text: &[u8], skipped: &[u8]| text.iter().take_while(|byte| skipped.contains(byte)).count();
    let text = text.get(skip(text, b"0+-")..).unwrap_or_default();
    let (zeros, text) = text.split_at_checked(skip(text, b"0.")).unwrap_or_default();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.');
    let found = match digits.filter(|byte| **byte != b'.').count() {
        0 => 1 + zeros.iter().filter(|byte| **byte == b'0').count(),
        digits => digits,
    };
    found.min(MOST_DIGITS) as i8
}

/// The mantissa as digits without a point, and the exponent of the first of them.
struct Scientific {
    is_negative: bool,
    digits: String,
    exponent: i32,
}

impl Scientific {
    fn of(number: f32, digits: usize) -> Self {
        let text = format!("{:.*e}", digits.saturating_sub(1), f64::from(number).abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        Self {
            is_negative: number.is_sign_negative(),
            digits: mantissa.replace('.', ""),
            exponent: exponent.parse().unwrap_or(0),
        }
    }

    fn sign(&self) -> &'static str {
        if self.is_negative { "-" } else { "" }
    }

    /// The digits with a point behind this many of them, or zeros before them for a negative number.
    fn with_point(&self, at: i32) -> String {
        let digits = &self.digits;
        match usize::try_from(at) {
            Ok(0) | Err(_) => format!("0.{}{digits}", "0".repeat(at.unsigned_abs() as usize)),
            Ok(at) => match digits.split_at_checked(at) {
                Some((whole, fraction)) if !fraction.is_empty() => format!("{whole}.{fraction}"),
                _ => digits.clone(),
            },
        }
    }
}

fn special(number: f32) -> Option<&'static str> {
    match number {
        _ if number.is_nan() => Some("NaN"),
        f32::INFINITY => Some("Infinity"),
        f32::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}

/// A number as `seg` prints it: exactly so many digits, in fixed notation where its exponent is from -4 to 4 and the point does not come
/// behind the last digit.
pub(super) fn restored(number: f32, digits: i8) -> String {
    if let Some(name) = special(number) {
        return name.to_owned();
    }
    let digits = usize::try_from(digits).ok().filter(|digits| *digits > 0);
    let scientific = Scientific::of(number, digits.unwrap_or(MOST_DIGITS).min(MOST_DIGITS));
    let (sign, exponent) = (scientific.sign(), scientific.exponent);
    let mantissa = scientific.with_point(1);
    let count = scientific.digits.len() as i32;
    match exponent {
        0 => format!("{sign}{mantissa}"),
        1..=4 if exponent + 1 >= count => format!("{sign}{mantissa}e{exponent}"),
        -4..=4 => format!("{sign}{}", scientific.with_point(exponent + 1)),
        _ => format!("{sign}{mantissa}{}", printed_exponent(exponent)),
    }
}

/// A number as `%g` prints it.
pub(super) fn general(number: f32) -> String {
    if let Some(name) = special(number) {
        return name.to_owned();
    }
    let mut scientific = Scientific::of(number, MOST_DIGITS);
    let exponent = scientific.exponent;
    let is_fixed = (-4..MOST_DIGITS as i32).contains(&exponent);
    // Digits before the point stay.
    let least = if is_fixed { exponent.max(0) as usize + 1 } else { 1 };
    while scientific.digits.len() > least && scientific.digits.ends_with('0') {
        scientific.digits.pop();
    }
    let sign = scientific.sign();
    match is_fixed {
        true => format!("{sign}{}", scientific.with_point(exponent + 1)),
        false => format!("{sign}{}{}", scientific.with_point(1), printed_exponent(exponent)),
    }
}

fn printed_exponent(exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_a_text_are_counted() {
        let counts = [
            ("1", 1),
            ("1.0", 2),
            ("0.00", 3),
            ("00", 1),
            ("-0.0010", 2),
            ("123456789", 6),
            ("1e+06", 1),
            ("Infinity", 1),
            ("100000", 6),
            ("+12.50e3", 4),
        ];
        for (text, count) in counts {
            assert_eq!(significant_digits(text.as_bytes()), count, "{text}");
        }
    }

    /// As a PostgreSQL 15 server prints them.
    #[test]
    fn numbers_print_with_so_many_digits() {
        assert_eq!(restored(1.0, 3), "1.00");
        assert_eq!(restored(12345.0, 5), "1.2345e4");
        assert_eq!(restored(12345.0, 6), "12345.0");
        assert_eq!(restored(-100.0, 1), "-1e2");
        assert_eq!(restored(100.0, 3), "1.00e2");
        assert_eq!(restored(123456.0, 6), "1.23456e+05");
        assert_eq!(restored(0.00012, 2), "0.00012");
        assert_eq!(restored(-0.000_012, 2), "-1.2e-05");
        assert_eq!(restored(0.0, 2), "0.0");
        assert_eq!(restored(f32::INFINITY, 0), "Infinity");
    }

    /// As `printf` prints them.
    #[test]
    fn general_notation_drops_zeros() {
        assert_eq!(general(0.0), "0");
        assert_eq!(general(100_000.0), "100000");
        assert_eq!(general(1e6), "1e+06");
        assert_eq!(general(1.5), "1.5");
        assert_eq!(general(0.0001), "0.0001");
        assert_eq!(general(-0.000_012_5), "-1.25e-05");
        assert_eq!(general(120.0), "120");
    }
}
