//! real and double precision: arithmetic that ends in an error where finite operands give an infinity or lose all digits,
//! and the functions of the C library.
//!
//! Source: `src/include/utils/float.h`, `src/backend/utils/adt/float.c`, PostgreSQL 18.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow::compute::kernels::arity::{try_binary, try_unary};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::error::ArrowError;
use datafusion::logical_expr::{Expr, cast};
use datafusion::scalar::ScalarValue;
use num_traits::Float;

use super::integers::{division_by_zero, numbers};
use super::{Build, Implementation, Kernel};
use crate::error::{Result, SqlState, StatementError};
use crate::typed::Typed;

type Column = Result<ArrayRef, StatementError>;

pub(crate) fn find(key: &str) -> Option<Implementation> {
    if arithmetic(key).is_some() {
        return Some(Implementation::Build(arithmetic_call));
    }
    Some(match key {
        "float4um" => Implementation::Kernel(|_, args| Ok(each::<Float32Type>(args, |x| -x))),
        "float8um" => Implementation::Kernel(|_, args| Ok(each::<Float64Type>(args, |x| -x))),
        "float4abs" => Implementation::Kernel(|_, args| Ok(each::<Float32Type>(args, f32::abs))),
        "float8abs" => Implementation::Kernel(|_, args| Ok(each::<Float64Type>(args, f64::abs))),
        "float4up" | "float8up" => Implementation::Build(same),
        "dround" => Implementation::Kernel(|_, args| doubles(args, f64::round_ties_even)),
        "dtrunc" => Implementation::Kernel(|_, args| doubles(args, f64::trunc)),
        "dceil" => Implementation::Kernel(|_, args| doubles(args, f64::ceil)),
        "dfloor" => Implementation::Kernel(|_, args| doubles(args, f64::floor)),
        "dsign" => Implementation::Kernel(|_, args| doubles(args, sign)),
        "dtanh" => Implementation::Kernel(|_, args| doubles(args, f64::tanh)),
        "dsinh" => Implementation::Kernel(|_, args| doubles(args, f64::sinh)),
        "dcosh" => Implementation::Kernel(|_, args| doubles(args, f64::cosh)),
        "datan" => Implementation::Kernel(|_, args| doubles(args, f64::atan)),
        "dsqrt" => Implementation::Kernel(|_, args| checked(args, square_root)),
        "dexp" => Implementation::Kernel(|_, args| checked(args, exponential)),
        "dlog1" => Implementation::Kernel(|_, args| checked(args, |x| logarithm(x, f64::ln))),
        "dlog10" => Implementation::Kernel(|_, args| checked(args, |x| logarithm(x, f64::log10))),
        "dsin" => Implementation::Kernel(|_, args| checked(args, |x| periodic(x, f64::sin))),
        "dcos" => Implementation::Kernel(|_, args| checked(args, |x| periodic(x, f64::cos))),
        "dtan" => Implementation::Kernel(|_, args| checked(args, |x| periodic(x, f64::tan))),
        "dcot" => {
            Implementation::Kernel(|_, args| checked(args, |x| periodic(x, |x| 1.0 / x.tan())))
        }
        "dasin" => Implementation::Kernel(|_, args| checked(args, |x| of_ratio(x, f64::asin))),
        "dacos" => Implementation::Kernel(|_, args| checked(args, |x| of_ratio(x, f64::acos))),
        "datan2" => Implementation::Kernel(|_, args| checked_pair(args, |x, y| Ok(x.atan2(y)))),
        "dpow" => Implementation::Kernel(|_, args| checked_pair(args, power)),
        "degrees" => {
            Implementation::Kernel(|_, args| checked(args, |x| divide(x, RADIANS_PER_DEGREE)))
        }
        "radians" => {
            Implementation::Kernel(|_, args| checked(args, |x| multiply(x, RADIANS_PER_DEGREE)))
        }
        "dpi" => Implementation::Build(pi),
        _ => return None,
    })
}

pub(super) const RADIANS_PER_DEGREE: f64 = 0.017_453_292_519_943_295;

pub(super) type Outcome<F> = Result<F, ArrowError>;

/// Finite operands gave an infinity.
#[cold]
pub(crate) fn overflow() -> ArrowError {
    message(SqlState::NUMERIC_OUT_OF_RANGE, "value out of range: overflow")
}

/// Operands that are not zero gave zero.
#[cold]
pub(crate) fn underflow() -> ArrowError {
    message(SqlState::NUMERIC_OUT_OF_RANGE, "value out of range: underflow")
}

#[cold]
fn message(state: SqlState, message: &str) -> ArrowError {
    StatementError::new(state, message).into_arrow()
}

impl StatementError {
    fn into_arrow(self) -> ArrowError {
        ArrowError::ExternalError(Box::new(self))
    }
}

/// The error that a function of one value ended in.
#[cold]
pub(crate) fn float_error(error: ArrowError) -> StatementError {
    match error {
        ArrowError::ExternalError(inner) => match inner.downcast::<StatementError>() {
            Ok(found) => *found,
            Err(other) => StatementError::new(SqlState::DATA_CORRUPTED, other.to_string()),
        },
        other => StatementError::new(SqlState::DATA_CORRUPTED, other.to_string()),
    }
}

pub(crate) fn add<F: Float>(x: F, y: F) -> Outcome<F> {
    finite(x + y, x, y)
}

fn subtract<F: Float>(x: F, y: F) -> Outcome<F> {
    finite(x - y, x, y)
}

fn finite<F: Float>(found: F, x: F, y: F) -> Outcome<F> {
    match found.is_infinite() && !x.is_infinite() && !y.is_infinite() {
        true => Err(overflow()),
        false => Ok(found),
    }
}

fn multiply<F: Float>(x: F, y: F) -> Outcome<F> {
    let found = finite(x * y, x, y)?;
    match found.is_zero() && !x.is_zero() && !y.is_zero() {
        true => Err(underflow()),
        false => Ok(found),
    }
}

fn divide<F: Float>(x: F, y: F) -> Outcome<F> {
    if y.is_zero() && !x.is_nan() {
        return Err(division_by_zero().into_arrow());
    }
    let found = x / y;
    match found {
        _ if found.is_infinite() && !x.is_infinite() => Err(overflow()),
        _ if found.is_zero() && !x.is_zero() && !y.is_infinite() => Err(underflow()),
        _ => Ok(found),
    }
}

/// `float4pl`, `float84mul` …: the operator, and if both are float4.
fn arithmetic(key: &str) -> Option<(&str, bool)> {
    let rest = key.strip_prefix("float")?;
    let name = rest.trim_start_matches(['4', '8']);
    let lengths = &rest[..rest.len() - name.len()];
    let is_known =
        matches!(lengths, "4" | "8" | "48" | "84") && matches!(name, "pl" | "mi" | "mul" | "div");
    is_known.then_some((name, lengths == "4"))
}

/// Operands of different lengths are brought to float8.
fn arithmetic_call(build: &Build<'_>) -> Result<Typed> {
    let (name, is_short) = arithmetic(build.key).expect("only arithmetic comes here"); // infallible: by find
    if is_short {
        return Ok(build.kernel(pairs::<Float32Type>(name), build.arguments, DataType::Float32));
    }
    let wide = |argument: &Typed| match argument.carrier {
        DataType::Float64 => argument.clone(),
        _ => Typed::new(
            cast(argument.expr.clone(), DataType::Float64),
            build.result,
            DataType::Float64,
        ),
    };
    let arguments: Vec<Typed> = build.arguments.iter().map(wide).collect();
    Ok(build.kernel(pairs::<Float64Type>(name), &arguments, DataType::Float64))
}

fn pairs<T: ArrowPrimitiveType<Native: Float>>(name: &str) -> Kernel {
    match name {
        "pl" => |_, args| pair::<T>(args, add),
        "mi" => |_, args| pair::<T>(args, subtract),
        "mul" => |_, args| pair::<T>(args, multiply),
        _ => |_, args| pair::<T>(args, divide),
    }
}

fn pair<T: ArrowPrimitiveType<Native: Float>>(
    arguments: &[ArrayRef],
    of: impl Fn(T::Native, T::Native) -> Outcome<T::Native>,
) -> Column {
    let found: Outcome<PrimitiveArray<T>> =
        try_binary(numbers::<T>(&arguments[0]), numbers::<T>(&arguments[1]), of);
    Ok(Arc::new(found.map_err(float_error)?))
}

pub(super) fn checked_pair(
    arguments: &[ArrayRef],
    of: impl Fn(f64, f64) -> Outcome<f64>,
) -> Column {
    pair::<Float64Type>(arguments, of)
}

pub(super) fn checked(arguments: &[ArrayRef], of: impl Fn(f64) -> Outcome<f64>) -> Column {
    let found = try_unary::<_, _, Float64Type>(numbers::<Float64Type>(&arguments[0]), of);
    Ok(Arc::new(found.map_err(float_error)?))
}

fn doubles(arguments: &[ArrayRef], of: impl Fn(f64) -> f64) -> Column {
    Ok(each::<Float64Type>(arguments, of))
}

fn each<T: ArrowPrimitiveType>(
    arguments: &[ArrayRef],
    of: impl Fn(T::Native) -> T::Native,
) -> ArrayRef {
    Arc::new(numbers::<T>(&arguments[0]).unary::<_, T>(of))
}

fn same(build: &Build<'_>) -> Result<Typed> {
    Ok(build.done(build.arguments[0].expr.clone(), build.arguments[0].carrier.clone()))
}

fn pi(build: &Build<'_>) -> Result<Typed> {
    let pi = ScalarValue::Float64(Some(std::f64::consts::PI));
    Ok(build.done(Expr::Literal(pi, None), DataType::Float64))
}

fn sign(x: f64) -> f64 {
    match x {
        _ if x > 0.0 => 1.0,
        _ if x < 0.0 => -1.0,
        _ => 0.0,
    }
}

fn square_root(x: f64) -> Outcome<f64> {
    match x < 0.0 {
        true => {
            let words = "cannot take square root of a negative number";
            Err(message(SqlState::INVALID_POWER, words))
        }
        false => Ok(x.sqrt()),
    }
}

fn exponential(x: f64) -> Outcome<f64> {
    if x.is_nan() || x.is_infinite() {
        return Ok(if x < 0.0 { 0.0 } else { x });
    }
    match x.exp() {
        found if found.is_infinite() => Err(overflow()),
        0.0 => Err(underflow()),
        found => Ok(found),
    }
}

fn logarithm(x: f64, of: fn(f64) -> f64) -> Outcome<f64> {
    let refuse = |words| Err(message(SqlState::INVALID_LOGARITHM, words));
    match x {
        0.0 => refuse("cannot take logarithm of zero"),
        _ if x < 0.0 => refuse("cannot take logarithm of a negative number"),
        _ => Ok(of(x)),
    }
}

pub(super) fn periodic(x: f64, of: fn(f64) -> f64) -> Outcome<f64> {
    match x {
        _ if x.is_nan() => Ok(f64::NAN),
        _ if x.is_infinite() => Err(input_out_of_range()),
        _ => Ok(of(x)),
    }
}

pub(super) fn of_ratio(x: f64, of: fn(f64) -> f64) -> Outcome<f64> {
    match x {
        _ if x.is_nan() => Ok(f64::NAN),
        _ if !(-1.0..=1.0).contains(&x) => Err(input_out_of_range()),
        _ => Ok(of(x)),
    }
}

#[cold]
pub(super) fn input_out_of_range() -> ArrowError {
    message(SqlState::NUMERIC_OUT_OF_RANGE, "input is out of range")
}

/// Source: `dpow`.
fn power(x: f64, y: f64) -> Outcome<f64> {
    let refuse = |words| Err(message(SqlState::INVALID_POWER, words));
    if x.is_nan() {
        return Ok(if y == 0.0 { 1.0 } else { f64::NAN });
    }
    if y.is_nan() {
        return Ok(if x == 1.0 { 1.0 } else { f64::NAN });
    }
    if x == 0.0 && y < 0.0 {
        return refuse("zero raised to a negative power is undefined");
    }
    if x < 0.0 && y.floor() != y {
        return refuse("a negative number raised to a non-integer power yields a complex result");
    }
    if y.is_infinite() || x.is_infinite() {
        return Ok(infinite_power(x, y));
    }
    match x.powf(y) {
        found if found.is_infinite() => Err(overflow()),
        found if found == 0.0 && x != 0.0 => Err(underflow()),
        found => Ok(found),
    }
}

fn infinite_power(x: f64, y: f64) -> f64 {
    if y.is_infinite() {
        return match x.abs() {
            1.0 => 1.0,
            size if (size > 1.0) == (y > 0.0) => f64::INFINITY,
            _ => 0.0,
        };
    }
    let is_odd = (y / 2.0).floor() != y / 2.0;
    let size = match y {
        0.0 => return 1.0,
        _ if y > 0.0 => f64::INFINITY,
        _ => 0.0,
    };
    if x < 0.0 && is_odd { -size } else { size }
}

#[cfg(test)]
mod tests;
