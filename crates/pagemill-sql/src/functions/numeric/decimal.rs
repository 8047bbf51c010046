//! Numerics whose digits surely fit 38: computed as integers of 128 bits.
//!
//! The precision of a result follows from those of the operands, so that no value needs more. Where it would be more than 38
//! the caller computes with payloads. Arithmetic is checked all the same: a stored number that its own type has no room for
//! ends in an error.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array};
use arrow::compute::kernels::arity::{try_binary, try_unary};
use arrow::datatypes::{DataType, Decimal128Type};
use arrow::error::ArrowError;
use datafusion::logical_expr::Expr;
use datafusion::scalar::ScalarValue;

use super::super::integers::numbers;
use super::super::{Build, Kernel, KernelCall};
use super::value::{Integer, Number, Value, small_power};
use crate::error::{SqlState, StatementError};
use crate::typed::Typed;

/// The digits of a decimal of 128 bits.
pub(crate) const MAX_PRECISION: i32 = 38;

/// Digits and places.
pub(crate) type Shape = (i32, i32);

/// The digits and places of what carries a value.
pub(crate) fn shape(carrier: &DataType) -> Option<Shape> {
    match carrier {
        DataType::Decimal128(precision, scale) => Some(((*precision).into(), (*scale).into())),
        _ => None,
    }
}

/// What carries so many digits, if a decimal does.
pub(crate) fn carrier_of((precision, scale): Shape) -> Option<DataType> {
    let precision = precision.max(scale).max(1);
    (precision <= MAX_PRECISION && scale >= 0)
        .then_some(DataType::Decimal128(precision as u8, scale as i8))
}

/// A constant whose digits are few as a decimal of exactly those.
pub(crate) fn narrowed(typed: &Typed) -> Typed {
    let Expr::Literal(scalar, metadata) = &typed.expr else { return typed.clone() };
    let (integer, scale) = match scalar {
        ScalarValue::Binary(Some(payload)) => match Value::parse(payload) {
            Ok(Value::Finite(Number { integer: Integer::Small(small), dscale })) => {
                (small, dscale as i32)
            }
            _ => return typed.clone(),
        },
        ScalarValue::Decimal128(Some(value), _, scale) => (*value, i32::from(*scale)),
        _ => return typed.clone(),
    };
    let digits = Integer::Small(integer).digits().0 as i32;
    let Some(carrier) = carrier_of((digits, scale)) else { return typed.clone() };
    let DataType::Decimal128(precision, scale) = carrier else { return typed.clone() };
    let scalar = ScalarValue::Decimal128(Some(integer), precision, scale);
    Typed::new(Expr::Literal(scalar, metadata.clone()), typed.ty, carrier)
}

/// Digits and places of a sum or difference.
pub(crate) fn sum_shape((p1, s1): Shape, (p2, s2): Shape) -> Shape {
    let scale = s1.max(s2);
    ((p1 - s1).max(p2 - s2) + scale + 1, scale)
}

/// Digits and places that hold the values of both.
pub(crate) fn common_shape((p1, s1): Shape, (p2, s2): Shape) -> Shape {
    let scale = s1.max(s2);
    ((p1 - s1).max(p2 - s2) + scale, scale)
}

/// `+`, `-`, `*`, `%` of decimals.
pub(crate) fn binary(build: &Build<'_>, arguments: &[Typed]) -> Option<Typed> {
    let (a, b) = (shape(&arguments[0].carrier)?, shape(&arguments[1].carrier)?);
    let wanted = match build.key {
        "numeric_add" | "numeric_sub" => sum_shape(a, b),
        "numeric_mul" => (a.0 + b.0, a.1 + b.1),
        _ => common_shape(a, b),
    };
    let kernel: Kernel = match build.key {
        "numeric_add" => add,
        "numeric_sub" => subtract,
        "numeric_mul" => multiply,
        _ => modulo,
    };
    Some(build.kernel(kernel, arguments, carrier_of(wanted)?))
}

/// A decimal of the places that the call's carrier has.
fn done(
    call: &KernelCall,
    found: Result<Decimal128Array, ArrowError>,
) -> Result<ArrayRef, StatementError> {
    let found = found.map_err(|error| match error {
        ArrowError::DivideByZero => super::super::integers::division_by_zero(),
        _ => beyond_type(),
    })?;
    Ok(Arc::new(found.with_data_type(call.carrier.clone())))
}

#[cold]
fn beyond_type() -> StatementError {
    let message = "a stored numeric has more digits than its type";
    StatementError::new(SqlState::DATA_CORRUPTED, message)
}

#[cold]
fn no_room() -> ArrowError {
    ArrowError::ArithmeticOverflow(String::new())
}

fn scale_of(carrier: &DataType) -> u32 {
    shape(carrier).map_or(0, |(_, scale)| scale.unsigned_abs())
}

/// What brings both operands to the places of the one with more.
fn units(arguments: &[ArrayRef]) -> (i128, i128) {
    let (a, b) = (scale_of(arguments[0].data_type()), scale_of(arguments[1].data_type()));
    let unit = |scale: u32| small_power(a.max(b) - scale).expect("at most 38 places"); // infallible: by its type
    (unit(a), unit(b))
}

fn aligned(
    call: &KernelCall,
    arguments: &[ArrayRef],
    of: impl Fn(i128, i128) -> Option<i128>,
) -> Result<ArrayRef, StatementError> {
    let (unit_a, unit_b) = units(arguments);
    let (a, b) =
        (numbers::<Decimal128Type>(&arguments[0]), numbers::<Decimal128Type>(&arguments[1]));
    let checked = |x: i128, y: i128| of(x.checked_mul(unit_a)?, y.checked_mul(unit_b)?);
    done(call, try_binary(a, b, |x, y| checked(x, y).ok_or_else(no_room)))
}

fn add(call: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    aligned(call, arguments, i128::checked_add)
}

fn subtract(call: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    aligned(call, arguments, i128::checked_sub)
}

fn multiply(call: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    let (a, b) =
        (numbers::<Decimal128Type>(&arguments[0]), numbers::<Decimal128Type>(&arguments[1]));
    done(call, try_binary(a, b, |x, y| x.checked_mul(y).ok_or_else(no_room)))
}

fn modulo(call: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    let (unit_a, unit_b) = units(arguments);
    let (a, b) =
        (numbers::<Decimal128Type>(&arguments[0]), numbers::<Decimal128Type>(&arguments[1]));
    let rest = |x: i128, y: i128| {
        let (x, y) = x.checked_mul(unit_a).zip(y.checked_mul(unit_b)).ok_or_else(no_room)?;
        x.checked_rem(y).ok_or(ArrowError::DivideByZero)
    };
    done(call, try_binary(a, b, rest))
}

fn each(
    call: &KernelCall,
    array: &ArrayRef,
    of: impl Fn(i128) -> Option<i128>,
) -> Result<ArrayRef, StatementError> {
    let of = |x| of(x).ok_or_else(no_room);
    done(call, try_unary::<_, _, Decimal128Type>(numbers::<Decimal128Type>(array), of))
}

pub(crate) fn negate(
    call: &KernelCall,
    arguments: &[ArrayRef],
) -> Result<ArrayRef, StatementError> {
    each(call, &arguments[0], i128::checked_neg)
}

pub(crate) fn absolute(
    call: &KernelCall,
    arguments: &[ArrayRef],
) -> Result<ArrayRef, StatementError> {
    each(call, &arguments[0], i128::checked_abs)
}

/// To the places of the result, halves away from zero.
pub(crate) fn round(call: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    to_places(call, &arguments[0], half_away)
}

/// To the places of the result, towards zero.
pub(crate) fn truncate(
    call: &KernelCall,
    arguments: &[ArrayRef],
) -> Result<ArrayRef, StatementError> {
    to_places(call, &arguments[0], |x, unit| x / unit)
}

pub(crate) fn ceiling(
    call: &KernelCall,
    arguments: &[ArrayRef],
) -> Result<ArrayRef, StatementError> {
    to_places(call, &arguments[0], |x, unit| -(-x).div_euclid(unit))
}

pub(crate) fn floor(call: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    to_places(call, &arguments[0], i128::div_euclid)
}

fn to_places(
    call: &KernelCall,
    array: &ArrayRef,
    cut: impl Fn(i128, i128) -> i128,
) -> Result<ArrayRef, StatementError> {
    let (from, to) = (scale_of(array.data_type()), scale_of(&call.carrier));
    let unit = small_power(from.abs_diff(to)).expect("at most 38 places"); // infallible: by its type
    match from <= to {
        true => each(call, array, |x| x.checked_mul(unit)),
        false => each(call, array, |x| Some(cut(x, unit))),
    }
}

/// Divided by a power of ten and rounded.
pub(crate) fn half_away(x: i128, unit: i128) -> i128 {
    let (quotient, rest) = (x / unit, x % unit);
    match rest.abs() >= unit - rest.abs() {
        true => quotient + x.signum(),
        false => quotient,
    }
}

/// Rounded and held against the digits of the result's type.
pub(crate) fn fit(call: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    let (precision, _) = shape(&call.carrier).expect("the result is a decimal"); // infallible: by who calls
    let limit = small_power(precision.unsigned_abs()).expect("at most 38 digits"); // infallible: by its type
    let (from, to) = (scale_of(arguments[0].data_type()), scale_of(&call.carrier));
    let unit = small_power(from.abs_diff(to)).expect("at most 38 places"); // infallible: by its type
    let of = |x: i128| {
        let found = if from <= to { x.checked_mul(unit)? } else { half_away(x, unit) };
        (-limit < found && found < limit).then_some(found)
    };
    let array = numbers::<Decimal128Type>(&arguments[0]);
    let found = try_unary::<_, _, Decimal128Type>(array, |x| of(x).ok_or_else(no_room));
    let found = found.map_err(|_| super::arithmetic::field_overflow())?;
    Ok(Arc::new(found.with_data_type(call.carrier.clone())))
}
