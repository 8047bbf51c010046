//! Floats of a number of digits, as `extra_float_digits` of 0 and less has them, and the shapes that are made of them.
//!
//! The digits are those of the exact value, rounded to the nearest, halves to even; zeros behind the last other digit
//! are left out. Notation is fixed for a decimal exponent from -4 to one less than the digits.
//!
//! Source: `float8out_internal` in `src/backend/utils/adt/float.c`, `pg_strfromd` in `src/port/snprintf.c`,
//! PostgreSQL 14 to 18.

use pagemill_format::error::Result;

use crate::digits::{push_integer, push_two};
use crate::float::special;
use crate::geometry::{self, Shape};
use crate::payload::fixed;

pub(super) fn write_float4(digits: usize, value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_rounded(f32::from_le_bytes(fixed("float4", value)?).into(), digits, out);
    Ok(())
}

pub(super) fn write_float8(digits: usize, value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_rounded(f64::from_le_bytes(fixed("float8", value)?), digits, out);
    Ok(())
}

pub(super) fn write_shape(
    shape: Shape,
    digits: usize,
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let push = |number: f64, out: &mut Vec<u8>| push_rounded(number, digits, out);
    geometry::write_shape(shape, &push, value, out)
}

/// Appends a number of so many digits, at least one.
fn push_rounded(number: f64, digits: usize, out: &mut Vec<u8>) {
    if let Some(text) = special(number) {
        out.extend_from_slice(text);
        return;
    }
    if number < 0.0 {
        out.push(b'-');
    }
    let places = digits.saturating_sub(1);
    let text = format!("{:.places$e}", number.abs());
    // default: every number in this notation has its exponent
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    let length = mantissa.iter().rposition(|&digit| digit != b'0').map_or(1, |last| last + 1);
    let mantissa = mantissa.get(..length).unwrap_or_default();
    // default: no finite number has an exponent that is none
    let exponent: i32 = exponent.parse().unwrap_or_default();
    match usize::try_from(exponent) {
        Ok(whole) if whole < digits => push_large(mantissa, whole + 1, out),
        Err(_) if exponent >= -4 => {
            out.extend_from_slice(b"0.");
            out.extend((exponent..-1).map(|_| b'0'));
            out.extend_from_slice(mantissa);
        }
        _ => {
            push_large(mantissa, 1, out);
            out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
            match exponent.unsigned_abs() {
                short @ 0..=99 => push_two(short.into(), out),
                long => push_integer(long, out),
            }
        }
    }
}

/// Digits, of which so many stand before the point.
fn push_large(mantissa: &[u8], before: usize, out: &mut Vec<u8>) {
    match mantissa.split_at_checked(before) {
        Some((whole, rest)) => {
            out.extend_from_slice(whole);
            if !rest.is_empty() {
                out.push(b'.');
                out.extend_from_slice(rest);
            }
        }
        None => {
            out.extend_from_slice(mantissa);
            out.extend((mantissa.len()..before).map(|_| b'0'));
        }
    }
}
