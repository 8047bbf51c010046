//! Powers, exponentials and logarithms of numerics.
//!
//! How many places a result has is the server's to say. Its digits are computed here to many more, and rounded; the server's
//! own error is below a millionth of the last place, so that the rounded results are the same unless the number lies as close
//! as that to the middle between two: then it is refused. Powers of whole exponents are computed exactly where that is not
//! too long.
//!
//! Source: `numeric_power`, `power_var`, `power_var_int`, `exp_var`, `ln_var`, `log_var`, `estimate_ln_dweight` in
//! `src/backend/utils/adt/numeric.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use num_bigint::BigInt;
use num_traits::{One, Signed, ToPrimitive, Zero};
use pagemill_types::numeric::Numeric;

use super::super::integers::division_by_zero;
use super::arithmetic::{self, MAX_DISPLAY_SCALE, MIN_SIGNIFICANT_DIGITS};
use super::value::{Integer, Number, Value, overflows};
use crate::error::{SqlState, StatementError};

type Outcome = Result<Value, StatementError>;

/// Three times this is the greatest exponent of e.
const MAX_RESULT_SCALE: f64 = 2000.0;
/// The decimal logarithm of e, as the server has it.
#[expect(clippy::approx_constant, reason = "the server estimates with so many digits")]
const LOG_E: f64 = 0.434294481903252;
/// Digits of an exact power at most.
const MAX_EXACT_DIGITS: u64 = 3_000;
/// Digits that are computed beyond those of the result.
const GUARD: i64 = 25;

fn power_of_ten(n: i64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(n).unwrap_or(0))
}

fn zero(dscale: u32) -> Value {
    Number::new(0i64, dscale).into()
}

fn clamp_scale(scale: i32, least: &[u32]) -> u32 {
    let least = least.iter().copied().max().unwrap_or(0) as i32;
    scale.max(least).clamp(0, MAX_DISPLAY_SCALE) as u32
}

/// The number as a float, as its text is read.
fn to_float(number: &Number) -> f64 {
    let mut text = Vec::new();
    match Value::from(number.clone()).payload() {
        Ok(payload) if pagemill_types::numeric::write_numeric(&payload, &mut text).is_ok() => {
            std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
        }
        _ => f64::NAN,
    }
}

fn compare(number: &Number, hundredths: i64) -> Ordering {
    let other = Number::new(hundredths, 2);
    let scale = number.dscale.max(2);
    number.at(scale).compare(&other.at(scale))
}

/// `value / 10^scale` rounded to fewer places, where the digits beyond tell.
fn settled(value: &BigInt, scale: i64, places: u32) -> Result<Number, StatementError> {
    let unit = power_of_ten(scale - i64::from(places));
    let rest: BigInt = value.abs() % &unit;
    let doubled: BigInt = rest * 2;
    let from_middle = (doubled - &unit).abs();
    if from_middle * 1_000_000 < unit.clone() * 2 {
        let what = "a power or logarithm this close to the middle between two numerics";
        return Err(StatementError::unsupported(what));
    }
    let found = Integer::from(value.clone()).divided_and_rounded(&unit.into());
    Ok(Number::new(found, places))
}

#[cold]
fn no_logarithm(of: &str) -> StatementError {
    StatementError::new(SqlState::INVALID_LOGARITHM, format!("cannot take logarithm of {of}"))
}

#[cold]
fn no_power(words: &str) -> StatementError {
    StatementError::new(SqlState::INVALID_POWER, words)
}

/// ln(number) times 10^digits; the number is above zero.
fn logarithm(number: &Number, digits: i64) -> BigInt {
    let scale = digits + 12;
    let one = power_of_ten(scale);
    let (size, divisor) = (number.integer.to_big(), power_of_ten(number.dscale.into()));
    // Divided by a power of two the number is between 1/2 and 2.
    let halvings = size.bits() as i64 - divisor.bits() as i64;
    let near_one = match halvings {
        0.. => size * &one / (divisor << halvings),
        _ => ((size * &one) << -halvings) / divisor,
    };
    let ratio = (&near_one - &one) * &one / (&near_one + &one);
    let of_two = inverse_tangent(&(&one / 3), &one);
    let found = (inverse_tangent(&ratio, &one) + of_two * halvings) * 2;
    found / power_of_ten(12)
}

/// The inverse hyperbolic tangent, of at most a third.
fn inverse_tangent(ratio: &BigInt, one: &BigInt) -> BigInt {
    let square = ratio * ratio / one;
    let (mut sum, mut power, mut n) = (BigInt::zero(), ratio.clone(), 1i64);
    while !power.is_zero() {
        sum += &power / n;
        power = power * &square / one;
        n += 2;
    }
    sum
}

/// e^(value / 10^scale) times 10^digits, to about as many digits as that has. `about` is value / 10^scale.
fn exponential(value: &BigInt, scale: i64, about: f64, digits: i64) -> BigInt {
    const SQUARINGS: u32 = 8;
    let whole = (about * LOG_E).abs().ceil() as i64;
    let inner = digits.max(0) + whole + 20;
    let one = power_of_ten(inner);
    let value = match scale <= inner {
        true => value * power_of_ten(inner - scale),
        false => value / power_of_ten(scale - inner),
    };
    let of_two = logarithm(&Number::new(2i64, 0), inner);
    let doublings = (&value / &of_two).to_i64().unwrap_or(0);
    let rest = (value - of_two * doublings) >> SQUARINGS;
    let (mut sum, mut term, mut n) = (one.clone(), one.clone(), 1i64);
    loop {
        term = term * &rest / &one / n;
        // Shifted right, a small negative number would never be zero.
        if term.abs() <= BigInt::one() {
            break;
        }
        sum += &term;
        n += 1;
    }
    for _ in 0..SQUARINGS {
        sum = &sum * &sum / &one;
    }
    let found = if doublings >= 0 { sum << doublings } else { sum >> -doublings };
    match digits <= inner {
        true => found / power_of_ten(inner - digits),
        false => found * power_of_ten(digits - inner),
    }
}

/// About the decimal weight of the natural logarithm.
fn logarithm_weight(number: &Number) -> Result<i32, StatementError> {
    if number.signum() <= 0 {
        return Ok(0);
    }
    if compare(number, 90) != Ordering::Less && compare(number, 110) != Ordering::Greater {
        let scale = number.dscale;
        let distance = number.integer.minus(&Integer::Small(1).times_power(scale));
        let (weight, first) = Number::new(distance, scale).first_digit();
        return Ok(if first == 0 { 0 } else { weight * 4 + f64::from(first).log10() as i32 });
    }
    let (digits, mut weight) = base_digits(number)?;
    let mut first = f64::from(digits[0]);
    weight *= 4;
    if let Some(second) = digits.get(1) {
        first = first * 10_000.0 + f64::from(*second);
        weight -= 4;
    }
    let found = first.ln() + f64::from(weight) * std::f64::consts::LN_10;
    Ok(found.abs().log10() as i32)
}

/// Base-10000 digits without zeros at either end, and the weight of the first.
fn base_digits(number: &Number) -> Result<(Vec<u16>, i32), StatementError> {
    let payload = Value::from(number.clone()).payload()?;
    match Numeric::parse(&payload) {
        Ok(Numeric::Finite { digits, weight, .. }) => {
            Ok((digits.iter().map(|digit| u16::from_le_bytes(*digit)).collect(), weight))
        }
        _ => unreachable!("a finite number was packed"),
    }
}

/// ln(number) to so many places.
fn logarithm_to(number: &Number, places: i64) -> Result<Number, StatementError> {
    let places = places.max(0);
    let digits = places + GUARD;
    settled(&logarithm(number, digits), digits, places as u32)
}

fn check_logarithm(number: &Number) -> Result<(), StatementError> {
    match number.signum() {
        0 => Err(no_logarithm("zero")),
        -1 => Err(no_logarithm("a negative number")),
        _ => Ok(()),
    }
}

pub(crate) fn natural_logarithm(value: &Value) -> Outcome {
    let number = match value {
        Value::Finite(number) => number,
        Value::NegativeInfinity => return Err(no_logarithm("a negative number")),
        other => return Ok(other.clone()),
    };
    let scale = MIN_SIGNIFICANT_DIGITS - logarithm_weight(number)?;
    let scale = clamp_scale(scale, &[number.dscale]);
    check_logarithm(number)?;
    logarithm_to(number, scale.into()).map(Value::from)
}

/// The logarithm of the second to the base of the first.
pub(crate) fn logarithm_of_base(base: &Value, value: &Value) -> Outcome {
    let (Value::Finite(base), Value::Finite(number)) = (base, value) else {
        return infinite_logarithm(base, value);
    };
    let (of_base, of_number) = (logarithm_weight(base)?, logarithm_weight(number)?);
    let weight = of_number - of_base;
    let scale = clamp_scale(MIN_SIGNIFICANT_DIGITS - weight, &[base.dscale, number.dscale]);
    check_logarithm(base)?;
    check_logarithm(number)?;
    // The quotient has the digits of its result if its operands have as many.
    let digits =
        i64::from(scale) + i64::from(weight.abs() + of_base.abs() + of_number.abs()) + 2 * GUARD;
    let (base, number) = (logarithm(base, digits), logarithm(number, digits));
    if base.is_zero() {
        return Err(division_by_zero());
    }
    let places = i64::from(scale) + GUARD;
    settled(&(number * power_of_ten(places) / base), places, scale).map(Value::from)
}

fn infinite_logarithm(base: &Value, value: &Value) -> Outcome {
    let (Some(of_base), Some(of_value)) = (arithmetic::sign(base), arithmetic::sign(value)) else {
        return Ok(Value::NaN);
    };
    match (base, value) {
        _ if of_base < 0 || of_value < 0 => Err(no_logarithm("a negative number")),
        _ if of_base == 0 || of_value == 0 => Err(no_logarithm("zero")),
        (Value::Infinity, Value::Infinity) => Ok(Value::NaN),
        (Value::Infinity, _) => Ok(zero(0)),
        _ => Ok(Value::Infinity),
    }
}

pub(crate) fn exponential_of(value: &Value) -> Outcome {
    let number = match value {
        Value::Finite(number) => number,
        Value::NegativeInfinity => return Ok(zero(0)),
        other => return Ok(other.clone()),
    };
    let weight = (to_float(number) * LOG_E).clamp(-MAX_RESULT_SCALE, MAX_RESULT_SCALE);
    let scale = clamp_scale(MIN_SIGNIFICANT_DIGITS - weight as i32, &[number.dscale]);
    exponential_to(&number.integer.to_big(), number.dscale.into(), to_float(number), scale)
        .map(Value::from)
}

/// e^(value / 10^scale) to so many places.
fn exponential_to(
    value: &BigInt,
    scale: i64,
    float: f64,
    places: u32,
) -> Result<Number, StatementError> {
    if float.abs() >= MAX_RESULT_SCALE * 3.0 {
        return if float > 0.0 { Err(overflows()) } else { Ok(Number::new(0i64, places)) };
    }
    let digits = i64::from(places) + GUARD;
    settled(&exponential(value, scale, float, digits), digits, places)
}

pub(crate) fn power(base: &Value, exponent: &Value, major: u32) -> Outcome {
    let (Value::Finite(base), Value::Finite(exponent)) = (base, exponent) else {
        return special_power(base, exponent);
    };
    if base.signum() == 0 && exponent.signum() < 0 {
        return Err(no_power("zero raised to a negative power is undefined"));
    }
    let (whole, rest) = exponent.integer.divided(&Integer::power_of_ten(exponent.dscale));
    if let (Integer::Small(whole), 0) = (&whole, rest.signum())
        && let Ok(whole) = i32::try_from(*whole)
    {
        return whole_power(base, whole, exponent.dscale, major);
    }
    if base.signum() == 0 {
        return Ok(zero(MIN_SIGNIFICANT_DIGITS as u32));
    }
    if base.signum() < 0 && rest.signum() != 0 {
        return Err(complex_power());
    }
    let is_negative = base.signum() < 0 && is_odd(&whole);
    let base = Number::new(base.integer.magnitude(), base.dscale);
    let found = broken_power(&base, exponent)?;
    Ok(if is_negative { arithmetic::negate(&found.into()) } else { found.into() })
}

#[cold]
fn complex_power() -> StatementError {
    no_power("a negative number raised to a non-integer power yields a complex result")
}

fn is_odd(whole: &Integer) -> bool {
    whole.divided(&Integer::Small(2)).1.signum() != 0
}

/// By the logarithm; the base is above zero.
fn broken_power(base: &Number, exponent: &Number) -> Result<Number, StatementError> {
    let weight = logarithm_weight(base)?;
    let low = (8 - weight).max(0);
    let logarithm_of_result = arithmetic::rounded(
        &Number::new(
            logarithm_to(base, low.into())?.integer.times(&exponent.integer),
            low as u32 + exponent.dscale,
        ),
        low,
    );
    let float = to_float(&logarithm_of_result);
    if float.abs() > MAX_RESULT_SCALE * 3.01 {
        return match float > 0.0 {
            true => Err(overflows()),
            false => Ok(Number::new(0i64, MAX_DISPLAY_SCALE as u32)),
        };
    }
    let result_weight = (float * LOG_E) as i32;
    let places =
        clamp_scale(MIN_SIGNIFICANT_DIGITS - result_weight, &[base.dscale, exponent.dscale]);
    let exponent_digits = i64::from(exponent.integer.digits().0);
    let digits = i64::from(places) + i64::from(result_weight.max(0)) + exponent_digits + GUARD + 20;
    let product = logarithm(base, digits) * exponent.integer.to_big();
    exponential_to(&product, digits + i64::from(exponent.dscale), float, places)
}

/// About the decimal logarithm of a power.
fn power_weight(base: &Number, exponent: i32) -> Result<f64, StatementError> {
    let (digits, weight) = base_digits(base)?;
    let first =
        digits.iter().take(4).fold(0.0, |first, digit| first * 10_000.0 + f64::from(*digit));
    let below = weight * 4 - 4 * (digits.len().min(4) as i32 - 1);
    Ok(f64::from(exponent) * (first.log10() + f64::from(below)))
}

fn whole_power(base: &Number, exponent: i32, exponent_scale: u32, major: u32) -> Outcome {
    let is_zero = base.signum() == 0;
    let places = if major >= 16 {
        let weight = if is_zero { 0.0 } else { power_weight(base, exponent)? };
        if weight > 32_768.0 * 4.0 {
            return Err(overflows());
        }
        if weight + 1.0 < -f64::from(MAX_DISPLAY_SCALE) {
            return Ok(zero(MAX_DISPLAY_SCALE as u32));
        }
        clamp_scale(MIN_SIGNIFICANT_DIGITS - weight as i32, &[base.dscale, exponent_scale])
    } else {
        clamp_scale(MIN_SIGNIFICANT_DIGITS, &[base.dscale])
    };
    let one = Number::new(1i64, 0);
    match exponent {
        0 => return Ok(Number::new(one.at(places), places).into()),
        1 => return Ok(arithmetic::rounded(base, places as i32).into()),
        -1 => return arithmetic::quotient(&one, base, places).map(Value::from),
        2 => {
            let square = Number::new(base.integer.times(&base.integer), 2 * base.dscale);
            return Ok(arithmetic::rounded(&square, places as i32).into());
        }
        _ if is_zero && exponent < 0 => return Err(division_by_zero()),
        _ if is_zero => return Ok(zero(places)),
        _ => {}
    }
    let weight = power_weight(base, exponent)?;
    if major < 16 {
        if weight > 3.0 * 32_767.0 * 4.0 {
            return Err(overflows());
        }
        if weight + 1.0 < -f64::from(places) || weight + 1.0 < -f64::from(MAX_DISPLAY_SCALE) {
            return Ok(zero(places));
        }
    }
    multiplied(base, exponent, weight, places)
}

/// By multiplication, exact or with many more digits than the result has.
fn multiplied(base: &Number, exponent: i32, weight: f64, places: u32) -> Outcome {
    let count = exponent.unsigned_abs();
    let exact_digits = u64::from(base.integer.digits().0.max(base.dscale)) * u64::from(count);
    if exact_digits <= MAX_EXACT_DIGITS {
        let power = base.integer.to_big().pow(count);
        let scale = u64::from(base.dscale) * u64::from(count);
        return match exponent > 0 {
            true => at_places(&power, &power_of_ten(scale as i64), places),
            false => at_places(&power_of_ten(scale as i64), &power, places),
        };
    }
    if weight > 32_768.0 * 4.0 + 8.0 {
        return Err(overflows());
    }
    // mantissa * 10^shift, cut to as many digits as the result needs and more.
    let kept = (i64::from(places) + weight.abs() as i64 + 2 * GUARD + 20).max(50);
    let (mut mantissa, mut shift) = (BigInt::one(), 0i64);
    for bit in (0..32 - count.leading_zeros()).rev() {
        (mantissa, shift) = cut(&mantissa * &mantissa, 2 * shift, kept);
        if count >> bit & 1 == 1 {
            let product = &mantissa * base.integer.to_big();
            (mantissa, shift) = cut(product, shift - i64::from(base.dscale), kept);
        }
    }
    let power_up = |n: i64| power_of_ten(n.max(0));
    match exponent > 0 {
        true => at_places(&(mantissa * power_up(shift)), &power_up(-shift), places),
        false => at_places(&power_up(-shift), &(mantissa * power_up(shift)), places),
    }
}

/// The first digits, and the power of ten that the last one of them counts.
fn cut(value: BigInt, shift: i64, kept: i64) -> (BigInt, i64) {
    let digits = (value.bits() as f64 * std::f64::consts::LOG10_2) as i64;
    match digits - kept {
        more @ 1.. => (value / power_of_ten(more), shift + more),
        _ => (value, shift),
    }
}

/// A quotient rounded to places: exactly in the middle away from zero, next to the middle not at all.
fn at_places(dividend: &BigInt, divisor: &BigInt, places: u32) -> Outcome {
    let scale = i64::from(places) + GUARD;
    let dividend = dividend * power_of_ten(scale);
    let (quotient, rest) = (&dividend / divisor, &dividend % divisor);
    if rest.is_zero() {
        let found = Integer::from(quotient).divided_and_rounded(&power_of_ten(GUARD).into());
        return Ok(Number::new(found, places).into());
    }
    settled(&quotient, scale, places).map(Value::from)
}

/// Where not both are finite.
fn special_power(base: &Value, exponent: &Value) -> Outcome {
    let one = || Ok(Number::new(1i64, 0).into());
    let is_one = |number: &Number, sign: i64| compare(number, sign * 100) == Ordering::Equal;
    let (of_base, of_exponent) = match (base, exponent) {
        (Value::NaN, Value::Finite(exponent)) if exponent.signum() == 0 => return one(),
        (Value::Finite(base), Value::NaN) if is_one(base, 1) => return one(),
        (base, exponent) => match (arithmetic::sign(base), arithmetic::sign(exponent)) {
            (Some(of_base), Some(of_exponent)) => (of_base, of_exponent),
            _ => return Ok(Value::NaN),
        },
    };
    if of_base == 0 && of_exponent < 0 {
        return Err(no_power("zero raised to a negative power is undefined"));
    }
    if let (true, Value::Finite(exponent)) = (of_base < 0, exponent)
        && arithmetic::min_scale(exponent) > 0
    {
        return Err(complex_power());
    }
    match (base, exponent) {
        (Value::Finite(base), _) if is_one(base, 1) => one(),
        _ if of_exponent == 0 => one(),
        _ if of_base == 0 => Ok(zero(0)),
        (Value::Finite(base), _) if is_one(base, -1) => one(),
        (base, Value::Infinity | Value::NegativeInfinity) => {
            let grows = match base {
                Value::Finite(base) => {
                    let size = Number::new(base.integer.magnitude(), base.dscale);
                    compare(&size, 100) == Ordering::Greater
                }
                _ => true,
            };
            Ok(if grows == (of_exponent > 0) { Value::Infinity } else { zero(0) })
        }
        _ if of_exponent < 0 => Ok(zero(0)),
        (Value::NegativeInfinity, Value::Finite(exponent)) => {
            let whole = exponent.integer.divided(&Integer::power_of_ten(exponent.dscale)).0;
            Ok(if is_odd(&whole) { Value::NegativeInfinity } else { Value::Infinity })
        }
        _ => Ok(Value::Infinity),
    }
}
