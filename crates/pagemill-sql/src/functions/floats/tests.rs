//! Functions of floats held against results that a server of PostgreSQL 15 gave.
//!
//! Invariant: results are compared bit by bit, NaN with NaN.

use arrow::array::{ArrayRef, Float64Array};

use super::*;

fn one(of: impl Fn(f64) -> Outcome<f64>, x: f64) -> Result<f64, String> {
    let column = checked(&[Arc::new(Float64Array::from(vec![x])) as ArrayRef], of);
    column.map(|array| numbers::<Float64Type>(&array).value(0)).map_err(|error| error.message)
}

fn two(of: impl Fn(f64, f64) -> Outcome<f64>, x: f64, y: f64) -> Result<f64, String> {
    let column = |x| Arc::new(Float64Array::from(vec![x])) as ArrayRef;
    let found = checked_pair(&[column(x), column(y)], of);
    found.map(|array| numbers::<Float64Type>(&array).value(0)).map_err(|error| error.message)
}

const OVERFLOW: &str = "value out of range: overflow";
const UNDERFLOW: &str = "value out of range: underflow";

#[test]
fn finite_operands_give_no_infinity() {
    assert_eq!(two(add, f64::MAX, f64::MAX), Err(OVERFLOW.to_owned()));
    assert_eq!(two(subtract, -f64::MAX, f64::MAX), Err(OVERFLOW.to_owned()));
    assert_eq!(two(multiply, 1e200, 1e200), Err(OVERFLOW.to_owned()));
    assert_eq!(two(multiply, 1e-200, 1e-200), Err(UNDERFLOW.to_owned()));
    assert_eq!(two(divide, 1e-200, 1e200), Err(UNDERFLOW.to_owned()));
    assert_eq!(two(divide, 1e200, 1e-200), Err(OVERFLOW.to_owned()));
    assert_eq!(two(divide, 0.0, 0.0), Err("division by zero".to_owned()));
    assert_eq!(two(add, f64::INFINITY, 1.0), Ok(f64::INFINITY));
    assert!(two(divide, f64::NAN, 0.0).expect("NaN over zero is NaN").is_nan());
    assert_eq!(two(divide, 1.0, f64::INFINITY), Ok(0.0));
}

#[test]
fn powers_have_the_cases_of_the_standard() {
    let refused = "a negative number raised to a non-integer power yields a complex result";
    assert_eq!(two(power, -8.0, 1.0 / 3.0), Err(refused.to_owned()));
    let refused = "zero raised to a negative power is undefined";
    assert_eq!(two(power, 0.0, -1.0), Err(refused.to_owned()));
    assert_eq!(two(power, f64::NAN, 0.0), Ok(1.0));
    assert_eq!(two(power, 1.0, f64::NAN), Ok(1.0));
    assert_eq!(two(power, -1.0, f64::INFINITY), Ok(1.0));
    assert_eq!(two(power, 0.5, f64::NEG_INFINITY), Ok(f64::INFINITY));
    assert_eq!(two(power, f64::NEG_INFINITY, 3.0), Ok(f64::NEG_INFINITY));
    assert_eq!(two(power, f64::NEG_INFINITY, 2.0), Ok(f64::INFINITY));
    assert_eq!(two(power, f64::NEG_INFINITY, -3.0), Ok(-0.0));
    assert_eq!(two(power, 10.0, 400.0), Err(OVERFLOW.to_owned()));
    assert_eq!(two(power, 10.0, -400.0), Err(UNDERFLOW.to_owned()));
    assert_eq!(two(power, 2.0, 0.5), Ok(std::f64::consts::SQRT_2));
}

#[test]
fn functions_refuse_what_they_are_not_defined_for() {
    let refused = |of: fn(f64) -> Outcome<f64>, x: f64| one(of, x).expect_err("no result");
    assert_eq!(refused(square_root, -1.0), "cannot take square root of a negative number");
    assert_eq!(refused(|x| logarithm(x, f64::ln), 0.0), "cannot take logarithm of zero");
    assert_eq!(
        refused(|x| logarithm(x, f64::ln), -1.0),
        "cannot take logarithm of a negative number"
    );
    assert_eq!(refused(|x| periodic(x, f64::sin), f64::INFINITY), "input is out of range");
    assert_eq!(refused(|x| of_ratio(x, f64::asin), 1.5), "input is out of range");
    assert_eq!(refused(exponential, 1e4), OVERFLOW);
    assert_eq!(refused(exponential, -1e4), UNDERFLOW);
    assert_eq!(one(exponential, f64::NEG_INFINITY), Ok(0.0));
}

#[test]
fn the_operator_and_the_lengths_are_told_apart() {
    assert_eq!(arithmetic("float8pl"), Some(("pl", false)));
    assert_eq!(arithmetic("float4mul"), Some(("mul", true)));
    assert_eq!(arithmetic("float84div"), Some(("div", false)));
    assert_eq!(arithmetic("float8lt"), None);
    assert_eq!(arithmetic("float8_accum"), None);
}
