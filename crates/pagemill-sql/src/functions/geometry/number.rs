//! Coordinates: arithmetic that ends in an error where a result has no room, and comparisons that let a millionth pass.
//!
//! Where two operands end in different errors the server reports that of the last one, which its compiler computes first;
//! so it is in [`products`] and wherever operands are named from the last to the first.
//!
//! Source: `FPeq` and its kin in `src/include/utils/geo_decls.h`, `float8_mul` and its kin in `src/include/utils/float.h`,
//! `pg_hypot` in `src/backend/utils/adt/geo_ops.c`, PostgreSQL 14 to 18.

use super::super::integers::division_by_zero;
use super::super::rows::Outcome;
use crate::error::{SqlState, StatementError};

#[cold]
fn out_of_range(how: &str) -> StatementError {
    StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, format!("value out of range: {how}"))
}

fn finite(found: f64, x: f64, y: f64) -> Outcome<f64> {
    match found.is_infinite() && !x.is_infinite() && !y.is_infinite() {
        true => Err(out_of_range("overflow")),
        false => Ok(found),
    }
}

pub(super) fn add(x: f64, y: f64) -> Outcome<f64> {
    finite(x + y, x, y)
}

pub(super) fn subtract(x: f64, y: f64) -> Outcome<f64> {
    finite(x - y, x, y)
}

pub(super) fn multiply(x: f64, y: f64) -> Outcome<f64> {
    match finite(x * y, x, y)? {
        0.0 if x != 0.0 && y != 0.0 => Err(out_of_range("underflow")),
        found => Ok(found),
    }
}

pub(super) fn divide(x: f64, y: f64) -> Outcome<f64> {
    if y == 0.0 && !x.is_nan() {
        return Err(division_by_zero());
    }
    match x / y {
        found if found.is_infinite() && !x.is_infinite() => Err(out_of_range("overflow")),
        0.0 if x != 0.0 && !y.is_infinite() => Err(out_of_range("underflow")),
        found => Ok(found),
    }
}

/// Two products, the second one computed first.
fn products([a, b]: [f64; 2], [c, d]: [f64; 2]) -> Outcome<[f64; 2]> {
    let second = multiply(c, d)?;
    Ok([multiply(a, b)?, second])
}

/// The sum of two products.
pub(super) fn sum_of_products(first: [f64; 2], second: [f64; 2]) -> Outcome<f64> {
    let [first, second] = products(first, second)?;
    add(first, second)
}

/// The first product without the second.
pub(super) fn difference_of_products(first: [f64; 2], second: [f64; 2]) -> Outcome<f64> {
    let [first, second] = products(first, second)?;
    subtract(first, second)
}

/// Half of a sum.
pub(super) fn middle(x: f64, y: f64) -> Outcome<f64> {
    divide(add(x, y)?, 2.0)
}

/// The length of the longest side of a triangle with a right angle.
pub(super) fn hypotenuse(x: f64, y: f64) -> Outcome<f64> {
    if x.is_infinite() || y.is_infinite() {
        return Ok(f64::INFINITY);
    }
    if x.is_nan() || y.is_nan() {
        return Ok(f64::NAN);
    }
    let (x, y) = (x.abs(), y.abs());
    let (long, short) = if x < y { (y, x) } else { (x, y) };
    if short == 0.0 {
        return Ok(long);
    }
    let ratio = short / long;
    match long * (1.0 + ratio * ratio).sqrt() {
        found if found.is_infinite() => Err(out_of_range("overflow")),
        0.0 => Err(out_of_range("underflow")),
        found => Ok(found),
    }
}

/// What two coordinates may differ by and still be equal.
const EPSILON: f64 = 1.0e-6;

pub(super) fn is_zero(x: f64) -> bool {
    x.abs() <= EPSILON
}

pub(super) fn is_equal(x: f64, y: f64) -> bool {
    x == y || (x - y).abs() <= EPSILON
}

pub(super) fn is_unequal(x: f64, y: f64) -> bool {
    x != y && (x - y).abs() > EPSILON
}

pub(super) fn is_less(x: f64, y: f64) -> bool {
    x + EPSILON < y
}

pub(super) fn is_at_most(x: f64, y: f64) -> bool {
    x <= y + EPSILON
}

pub(super) fn is_greater(x: f64, y: f64) -> bool {
    x > y + EPSILON
}

pub(super) fn is_at_least(x: f64, y: f64) -> bool {
    x + EPSILON >= y
}

/// Equal to the last digit; NaN is equal to NaN.
pub(super) fn is_same(x: f64, y: f64) -> bool {
    x == y || (x.is_nan() && y.is_nan())
}

/// Less by any digit; NaN is above all numbers.
pub(super) fn is_below(x: f64, y: f64) -> bool {
    !x.is_nan() && (y.is_nan() || x < y)
}

/// The lesser one, of equal ones the second; NaN is above all numbers.
pub(super) fn least(x: f64, y: f64) -> f64 {
    if is_below(x, y) { x } else { y }
}

/// The greater one, of equal ones the second.
pub(super) fn greatest(x: f64, y: f64) -> f64 {
    if is_below(y, x) { x } else { y }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_without_room_are_errors() {
        assert_eq!(multiply(1e200, 1e200).unwrap_err().message, "value out of range: overflow");
        assert_eq!(multiply(1e-200, 1e-200).unwrap_err().message, "value out of range: underflow");
        assert_eq!(divide(1.0, 0.0).unwrap_err().message, "division by zero");
        assert!(divide(f64::NAN, 0.0).unwrap().is_nan());
        assert_eq!(add(f64::INFINITY, 1.0).unwrap(), f64::INFINITY);
        let mixed = difference_of_products([1e200, 1e200], [1e-200, 1e-200]).unwrap_err();
        assert_eq!(mixed.message, "value out of range: underflow");
    }

    #[test]
    fn a_millionth_is_let_pass() {
        assert!(is_equal(1.0, 1.0000001) && !is_equal(1.0, 1.00001));
        assert!(is_equal(f64::INFINITY, f64::INFINITY) && !is_equal(f64::NAN, f64::NAN));
        assert!(!is_less(1.0, 1.0000001) && is_at_most(1.0000001, 1.0));
        assert!(!is_unequal(f64::NAN, 1.0));
    }

    #[test]
    fn nan_is_above_all_numbers() {
        assert_eq!(least(f64::NAN, 1.0), 1.0);
        assert!(greatest(1.0, f64::NAN).is_nan());
        assert!(is_same(f64::NAN, f64::NAN) && !is_below(f64::NAN, f64::NAN));
    }

    #[test]
    fn a_hypotenuse_does_not_overflow_on_its_way() {
        assert_eq!(hypotenuse(3.0, -4.0).unwrap(), 5.0);
        assert_eq!(hypotenuse(3e300, 4e300).unwrap(), 5e300);
        assert_eq!(hypotenuse(f64::NAN, f64::NEG_INFINITY).unwrap(), f64::INFINITY);
        assert!(hypotenuse(1.7e308, 1.7e308).is_err());
    }
}
