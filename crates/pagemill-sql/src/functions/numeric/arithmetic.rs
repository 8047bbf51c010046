//! The arithmetic of numeric, with the places of each result as the server chooses them.
//!
//! | result of | places |
//! | --- | --- |
//! | `+` `-` `%`, gcd, lcm | as many as the operand with more |
//! | `*` | those of both, up to 16383 |
//! | `/` | enough for 16 significant digits, no fewer than either operand, up to 1000 |
//! | sqrt | the same by the weight of the operand |
//! | round, trunc | as asked for |
//!
//! Source: `numeric_add_opt_error` and what follows it, `select_div_scale`, `apply_typmod`, `gcd_var` in
//! `src/backend/utils/adt/numeric.c`, PostgreSQL 14 to 18.

use num_integer::Integer as _;

use super::super::integers::division_by_zero;
use super::value::{Integer, MAX_DSCALE, Number, Value, overflows};
use crate::error::{SqlState, StatementError};

type Outcome = Result<Value, StatementError>;

/// Significant digits of a quotient at least.
pub(crate) const MIN_SIGNIFICANT_DIGITS: i32 = 16;
/// Places of a quotient or root at most.
pub(crate) const MAX_DISPLAY_SCALE: i32 = 1000;
/// Powers of ten below which rounding leaves nothing of any number.
const LOWEST_PLACE: i32 = -(32_768 * 4);

pub(crate) fn add(a: &Value, b: &Value) -> Outcome {
    Ok(match (a, b) {
        (Value::Finite(a), Value::Finite(b)) => {
            let scale = a.dscale.max(b.dscale);
            Number::new(a.at(scale).plus(&b.at(scale)), scale).into()
        }
        (Value::NaN, _) | (_, Value::NaN) => Value::NaN,
        (Value::Infinity, Value::NegativeInfinity) => Value::NaN,
        (Value::NegativeInfinity, Value::Infinity) => Value::NaN,
        (Value::Finite(_), infinite) | (infinite, _) => infinite.clone(),
    })
}

pub(crate) fn subtract(a: &Value, b: &Value) -> Outcome {
    match (a, b) {
        (Value::Finite(a), Value::Finite(b)) => {
            let scale = a.dscale.max(b.dscale);
            Ok(Number::new(a.at(scale).minus(&b.at(scale)), scale).into())
        }
        _ => add(a, &negate(b)),
    }
}

pub(crate) fn multiply(a: &Value, b: &Value) -> Outcome {
    if let (Value::Finite(a), Value::Finite(b)) = (a, b) {
        let product = Number::new(a.integer.times(&b.integer), a.dscale + b.dscale);
        return Ok(match product.dscale > MAX_DSCALE {
            true => rounded(&product, MAX_DSCALE as i32).into(),
            false => product.into(),
        });
    }
    Ok(match sign(a).zip(sign(b)) {
        None => Value::NaN,
        Some((a, b)) => infinite(a * b),
    })
}

/// Infinity of a sign; of none, not a number.
fn infinite(sign: i32) -> Value {
    match sign {
        1 => Value::Infinity,
        -1 => Value::NegativeInfinity,
        _ => Value::NaN,
    }
}

/// −1, 0, 1; none of NaN.
pub(crate) fn sign(value: &Value) -> Option<i32> {
    match value {
        Value::NaN => None,
        Value::Infinity => Some(1),
        Value::NegativeInfinity => Some(-1),
        Value::Finite(number) => Some(number.signum()),
    }
}

pub(crate) fn divide(a: &Value, b: &Value) -> Outcome {
    match (a, b) {
        (Value::Finite(a), Value::Finite(b)) => {
            let scale = division_scale(a, b);
            quotient(a, b, scale).map(Value::from)
        }
        _ => divide_infinite(a, b),
    }
}

/// The quotient towards zero, a whole number.
pub(crate) fn divide_whole(a: &Value, b: &Value) -> Outcome {
    match (a, b) {
        (Value::Finite(a), Value::Finite(b)) => {
            if b.signum() == 0 {
                return Err(division_by_zero());
            }
            let scale = a.dscale.max(b.dscale);
            Ok(Number::new(a.at(scale).divided(&b.at(scale)).0, 0).into())
        }
        _ => divide_infinite(a, b),
    }
}

fn divide_infinite(a: &Value, b: &Value) -> Outcome {
    Ok(match (a, b) {
        (Value::NaN, _) | (_, Value::NaN) => Value::NaN,
        (Value::Finite(_), _) => Number::new(0i64, 0).into(),
        (a, Value::Finite(b)) => match b.signum() {
            0 => return Err(division_by_zero()),
            of_b => infinite(sign(a).unwrap_or(0) * of_b),
        },
        _ => Value::NaN,
    })
}

/// Source: `select_div_scale`.
pub(crate) fn division_scale(a: &Number, b: &Number) -> u32 {
    let ((weight_a, first_a), (weight_b, first_b)) = (a.first_digit(), b.first_digit());
    let weight = weight_a - weight_b - i32::from(first_a <= first_b);
    let scale = MIN_SIGNIFICANT_DIGITS - weight * 4;
    scale.max(a.dscale as i32).max(b.dscale as i32).clamp(0, MAX_DISPLAY_SCALE) as u32
}

pub(crate) fn quotient(a: &Number, b: &Number, scale: u32) -> Result<Number, StatementError> {
    if b.signum() == 0 {
        return Err(division_by_zero());
    }
    let power = i64::from(scale) + i64::from(b.dscale) - i64::from(a.dscale);
    let by = u32::try_from(power.unsigned_abs()).unwrap_or(u32::MAX);
    let found = match power {
        0.. => a.integer.times_power(by).divided_and_rounded(&b.integer),
        _ => a.integer.divided_and_rounded(&b.integer.times_power(by)),
    };
    Ok(Number::new(found, scale))
}

pub(crate) fn modulo(a: &Value, b: &Value) -> Outcome {
    Ok(match (a, b) {
        (Value::NaN, _) | (_, Value::NaN) => Value::NaN,
        (_, Value::Finite(b)) if b.signum() == 0 => return Err(division_by_zero()),
        (Value::Finite(a), Value::Finite(b)) => {
            let scale = a.dscale.max(b.dscale);
            Number::new(a.at(scale).divided(&b.at(scale)).1, scale).into()
        }
        (Value::Finite(_), _) => a.clone(),
        _ => Value::NaN,
    })
}

pub(crate) fn negate(value: &Value) -> Value {
    match value {
        Value::NaN => Value::NaN,
        Value::Infinity => Value::NegativeInfinity,
        Value::NegativeInfinity => Value::Infinity,
        Value::Finite(number) => Number::new(number.integer.negated(), number.dscale).into(),
    }
}

pub(crate) fn absolute(value: &Value) -> Value {
    match sign(value) {
        Some(-1) => negate(value),
        _ => value.clone(),
    }
}

/// −1, 0, 1 or NaN, as a numeric.
pub(crate) fn signum(value: &Value) -> Value {
    sign(value).map_or(Value::NaN, |sign| Number::new(i64::from(sign), 0).into())
}

/// Rounded to `places` behind the point, halves away from zero; places below zero are before it.
pub(crate) fn round(value: &Value, places: i32) -> Value {
    match value {
        Value::Finite(number) => rounded(number, clamp_places(places, LOWEST_PLACE - 1)).into(),
        other => other.clone(),
    }
}

/// The same towards zero.
pub(crate) fn truncate(value: &Value, places: i32) -> Value {
    match value {
        Value::Finite(number) => truncated(number, clamp_places(places, LOWEST_PLACE)).into(),
        other => other.clone(),
    }
}

fn clamp_places(places: i32, lowest: i32) -> i32 {
    places.clamp(lowest, MAX_DSCALE as i32)
}

pub(crate) fn rounded(number: &Number, places: i32) -> Number {
    to_places(number, places, Integer::divided_and_rounded)
}

pub(crate) fn truncated(number: &Number, places: i32) -> Number {
    to_places(number, places, |integer, unit| integer.divided(unit).0)
}

fn to_places(number: &Number, places: i32, cut: impl Fn(&Integer, &Integer) -> Integer) -> Number {
    let dropped = number.dscale as i32 - places;
    let scale = places.max(0) as u32;
    match u32::try_from(dropped) {
        Err(_) | Ok(0) => Number::new(number.at(scale), scale),
        Ok(dropped) if dropped > number.integer.digits().0 => Number::new(0i64, scale),
        Ok(dropped) => {
            let cut = cut(&number.integer, &Integer::power_of_ten(dropped));
            Number::new(cut.times_power((-places).max(0) as u32), scale)
        }
    }
}

pub(crate) fn ceiling(value: &Value) -> Value {
    whole(value, 1)
}

pub(crate) fn floor(value: &Value) -> Value {
    whole(value, -1)
}

/// The next whole number in a direction.
fn whole(value: &Value, direction: i32) -> Value {
    let Value::Finite(number) = value else { return value.clone() };
    let (mut cut, rest) = number.integer.divided(&Integer::power_of_ten(number.dscale));
    if rest.signum() == direction {
        cut = cut.plus(&Integer::Small(direction.into()));
    }
    Number::new(cut, 0).into()
}

/// The places that are not zeros at the end.
pub(crate) fn min_scale(number: &Number) -> u32 {
    trimmed(number).dscale
}

pub(crate) fn trim_scale(value: &Value) -> Value {
    match value {
        Value::Finite(number) => trimmed(number).into(),
        other => other.clone(),
    }
}

fn trimmed(number: &Number) -> Number {
    if number.signum() == 0 {
        return Number::new(0i64, 0);
    }
    let (mut integer, mut dscale) = (number.integer.clone(), number.dscale);
    while dscale > 0 {
        let (quotient, rest) = integer.divided(&Integer::Small(10));
        if rest.signum() != 0 {
            break;
        }
        (integer, dscale) = (quotient, dscale - 1);
    }
    Number::new(integer, dscale)
}

/// The square root. Which places it has is another matter from PostgreSQL 16 on.
pub(crate) fn square_root(value: &Value, major: u32) -> Outcome {
    match value {
        Value::Finite(number) => {
            let scale = root_scale(number, major);
            root(number, scale).map(Value::from)
        }
        Value::NegativeInfinity => Err(negative_root()),
        other => Ok(other.clone()),
    }
}

fn root_scale(number: &Number, major: u32) -> u32 {
    let weight = number.first_digit().0;
    let digits = match major {
        ..=15 => (weight + 1) * 2 - 1,
        _ if weight >= 0 => weight * 2 + 1,
        _ => 1 - (-weight * 2),
    };
    let scale = MIN_SIGNIFICANT_DIGITS - digits;
    scale.max(number.dscale as i32).clamp(0, MAX_DISPLAY_SCALE) as u32
}

/// The square root rounded to places.
pub(crate) fn root(number: &Number, scale: u32) -> Result<Number, StatementError> {
    if number.signum() < 0 {
        return Err(negative_root());
    }
    // One place more than asked for, which decides on the rounding.
    let power = 2 * (i64::from(scale) + 1) - i64::from(number.dscale);
    let by = u32::try_from(power.unsigned_abs()).unwrap_or(u32::MAX);
    let square = match power {
        0.. => number.integer.times_power(by),
        _ => number.integer.divided(&Integer::power_of_ten(by)).0,
    };
    let found: Integer = square.to_big().sqrt().into();
    Ok(Number::new(found.divided_and_rounded(&Integer::Small(10)), scale))
}

#[cold]
fn negative_root() -> StatementError {
    StatementError::new(SqlState::INVALID_POWER, "cannot take square root of a negative number")
}

pub(crate) fn greatest_divisor(a: &Value, b: &Value) -> Outcome {
    let (Value::Finite(a), Value::Finite(b)) = (a, b) else { return Ok(Value::NaN) };
    let scale = a.dscale.max(b.dscale);
    Ok(Number::new(divisor_of(&a.at(scale), &b.at(scale)), scale).into())
}

fn divisor_of(a: &Integer, b: &Integer) -> Integer {
    a.to_big().gcd(&b.to_big()).into()
}

pub(crate) fn least_multiple(a: &Value, b: &Value) -> Outcome {
    let (Value::Finite(a), Value::Finite(b)) = (a, b) else { return Ok(Value::NaN) };
    let scale = a.dscale.max(b.dscale);
    let (a, b) = (a.at(scale), b.at(scale));
    if a.signum() == 0 || b.signum() == 0 {
        return Ok(Number::new(0i64, scale).into());
    }
    let whole = a.divided(&divisor_of(&a, &b)).0;
    Ok(Number::new(whole.times(&b).magnitude(), scale).into())
}

/// The greatest number whose factorial a numeric has room for.
const LARGEST_FACTORIAL: i64 = 32_177;

pub(crate) fn factorial(n: i64) -> Outcome {
    if n < 0 {
        let message = "factorial of a negative number is undefined";
        return Err(StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, message));
    }
    if n > LARGEST_FACTORIAL {
        return Err(overflows());
    }
    let product = (2..=n).fold(Integer::Small(1), |product, n| product.times(&Integer::from(n)));
    Ok(Number::new(product, 0).into())
}

/// `numeric(precision, scale)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Modifier {
    pub(crate) precision: i32,
    pub(crate) scale: i32,
}

impl Modifier {
    /// None of −1.
    pub(crate) fn parse(modifier: i32) -> Option<Self> {
        let packed = modifier.checked_sub(4).filter(|packed| *packed >= 0)?;
        Some(Self { precision: packed >> 16 & 0xFFFF, scale: ((packed & 0x7FF) ^ 1024) - 1024 })
    }

    /// Rounded to the scale, and held against the precision.
    pub(crate) fn apply(self, value: &Value) -> Outcome {
        match value {
            Value::NaN => Ok(Value::NaN),
            Value::Finite(number) => {
                let number = rounded(number, self.scale);
                let room = (self.precision + (-self.scale).max(0)) as u32;
                if number.integer.digits().0 > room {
                    return Err(field_overflow());
                }
                Ok(number.into())
            }
            _ => Err(field_overflow()),
        }
    }
}

#[cold]
pub(crate) fn field_overflow() -> StatementError {
    StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, "numeric field overflow")
}
