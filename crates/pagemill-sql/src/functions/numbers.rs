//! Casts between integers, floats, numeric and boolean.
//!
//! To an integer is rounded: from numeric halves go away from zero, from floats to the even one. A float becomes a numeric of
//! the digits that it surely has, 6 or 15; a numeric becomes the float next to it.
//!
//! Source: the casts in `numeric.c`, `float.c`, `int.c` and `int8.c` in `src/backend/utils/adt`, PostgreSQL 18.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::compute::kernels::arity::try_unary;
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use arrow::error::ArrowError;
use datafusion::logical_expr::{Expr, cast};
use datafusion::scalar::ScalarValue;
use num_traits::{AsPrimitive, Float, NumCast};
use pagemill_types::input::float::{read_float4, read_float8};

use super::floats::{float_error, overflow, underflow};
use super::integers::{PgInteger, failed, numbers, out_of_range};
use super::numeric::column::{self, Numbers};
use super::numeric::value::{Integer, Number, Value};
use super::numeric::{arithmetic, decimal, write_decimal};
use super::{Build, Implementation, KernelCall};
use crate::error::{Result, SqlState, StatementError};
use crate::typed::Typed;

type Column = Result<ArrayRef, StatementError>;

pub(crate) fn find(key: &str) -> Option<Implementation> {
    use Implementation::{Build, Kernel};
    Some(match key {
        "int2_numeric" | "int4_numeric" | "int8_numeric" => Build(to_numeric),
        "numeric_int2" => Kernel(|_, arguments| integers::<Int16Type>(&arguments[0])),
        "numeric_int4" => Kernel(|_, arguments| integers::<Int32Type>(&arguments[0])),
        "numeric_int8" => Kernel(|_, arguments| integers::<Int64Type>(&arguments[0])),
        "float4_numeric" => {
            Kernel(|_, arguments| float_to_numeric::<Float32Type>(&arguments[0], 6))
        }
        "float8_numeric" => {
            Kernel(|_, arguments| float_to_numeric::<Float64Type>(&arguments[0], 15))
        }
        "numeric_float4" => Kernel(|_, arguments| to_floats(&arguments[0])),
        "numeric_float8" => Kernel(|_, arguments| to_doubles(&arguments[0])),
        "i2tod" => Kernel(to_float::<Int16Type, Float64Type>),
        "i4tod" => Kernel(to_float::<Int32Type, Float64Type>),
        "i8tod" => Kernel(to_float::<Int64Type, Float64Type>),
        "i2tof" => Kernel(to_float::<Int16Type, Float32Type>),
        "i4tof" => Kernel(to_float::<Int32Type, Float32Type>),
        "i8tof" => Kernel(to_float::<Int64Type, Float32Type>),
        "ftod" => Kernel(to_float::<Float32Type, Float64Type>),
        "dtof" => Kernel(|_, arguments| narrowed(&arguments[0])),
        "dtoi2" => Kernel(|_, arguments| rounded::<Float64Type, Int16Type>(&arguments[0])),
        "dtoi4" => Kernel(|_, arguments| rounded::<Float64Type, Int32Type>(&arguments[0])),
        "dtoi8" => Kernel(|_, arguments| rounded::<Float64Type, Int64Type>(&arguments[0])),
        "ftoi2" => Kernel(|_, arguments| rounded::<Float32Type, Int16Type>(&arguments[0])),
        "ftoi4" => Kernel(|_, arguments| rounded::<Float32Type, Int32Type>(&arguments[0])),
        "ftoi8" => Kernel(|_, arguments| rounded::<Float32Type, Int64Type>(&arguments[0])),
        "int4_bool" => Kernel(integer_to_bool),
        "bool_int4" => Kernel(bool_to_integer),
        _ => return None,
    })
}

/// A decimal with room for every integer of the type; of a constant one with its own digits.
fn to_numeric(build: &Build<'_>) -> Result<Typed> {
    let argument = &build.arguments[0];
    let constant = match &argument.expr {
        Expr::Literal(ScalarValue::Int16(Some(value)), _) => Some((*value).into()),
        Expr::Literal(ScalarValue::Int32(Some(value)), _) => Some((*value).into()),
        Expr::Literal(ScalarValue::Int64(Some(value)), _) => Some((*value).into()),
        _ => None,
    };
    if let Some(value) = constant {
        let scalar = ScalarValue::Decimal128(Some(value), 38, 0);
        let typed = build.done(Expr::Literal(scalar, None), DataType::Decimal128(38, 0));
        return Ok(decimal::narrowed(&typed));
    }
    let carrier = match argument.carrier {
        DataType::Int16 => DataType::Decimal128(5, 0),
        DataType::Int32 => DataType::Decimal128(10, 0),
        _ => DataType::Decimal128(19, 0),
    };
    Ok(build.done(cast(argument.expr.clone(), carrier.clone()), carrier))
}

pub(super) fn integers<T: PgInteger>(array: &ArrayRef) -> Column
where
    T::Native: NumCast,
{
    let column = Numbers::of(array);
    let integer = |row| match column.get(row)? {
        None => Ok(None),
        Some(Value::Finite(number)) => match arithmetic::rounded(&number, 0).integer {
            Integer::Small(small) => {
                let fits = num_traits::cast::<i128, T::Native>(small);
                fits.map(Some).ok_or_else(|| out_of_range(T::NAME))
            }
            Integer::Large(_) => Err(out_of_range(T::NAME)),
        },
        Some(special) => Err(no_integer(&special, T::NAME)),
    };
    let found: PrimitiveArray<T> =
        (0..array.len()).map(integer).collect::<Result<_, StatementError>>()?;
    Ok(Arc::new(found))
}

#[cold]
fn no_integer(special: &Value, name: &str) -> StatementError {
    let what = if *special == Value::NaN { "NaN" } else { "infinity" };
    StatementError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("cannot convert {what} to {name}"))
}

/// By so many significant digits, as printf has them with %g.
fn float_to_numeric<T: ArrowPrimitiveType<Native: Float + std::fmt::LowerExp>>(
    array: &ArrayRef,
    digits: usize,
) -> Column {
    let floats = numbers::<T>(array);
    column::build(floats.len(), |row| {
        Ok((!floats.is_null(row)).then(|| numeric_of(floats.value(row), digits)))
    })
}

pub(crate) fn numeric_of<F: Float + std::fmt::LowerExp>(float: F, digits: usize) -> Value {
    if float.is_nan() {
        return Value::NaN;
    }
    if float.is_infinite() {
        return if float.is_sign_negative() { Value::NegativeInfinity } else { Value::Infinity };
    }
    let text = format!("{float:.*e}", digits - 1);
    let (mantissa, exponent) = text.split_once('e').expect("it has an exponent"); // infallible: by the format
    let exponent: i32 = exponent.parse().expect("the exponent is a number"); // infallible: by the format
    let kept = mantissa.trim_end_matches('0').trim_end_matches('.');
    let places = kept.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i32);
    let integer: i128 = kept.replace('.', "").parse().expect("the mantissa is a number"); // infallible: by the format
    let power = exponent - places;
    match u32::try_from(power) {
        Ok(power) => Number::new(Integer::Small(integer).times_power(power), 0).into(),
        Err(_) => Number::new(integer, power.unsigned_abs()).into(),
    }
}

/// The text of a number.
fn print(value: &Value, out: &mut Vec<u8>) -> Result<(), StatementError> {
    if let Value::Finite(Number { integer: Integer::Small(small), dscale: dscale @ 0..=38 }) = value
    {
        write_decimal(*small, *dscale as i8, out);
        return Ok(());
    }
    let payload = value.payload()?;
    pagemill_types::numeric::write_numeric(&payload, out)
        .map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()))
}

const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Integer and power of ten where both are exact as a float of so many bits.
fn exact(value: &Value, bits: u32, powers: u32) -> Option<(i64, f64)> {
    match value {
        Value::Finite(Number { integer: Integer::Small(small), dscale })
            if small.unsigned_abs() < 1 << bits && *dscale <= powers =>
        {
            Some((*small as i64, POWERS[*dscale as usize]))
        }
        _ => None,
    }
}

fn to_doubles(array: &ArrayRef) -> Column {
    floats::<Float64Type>(array, |value| match exact(value, 53, 22) {
        Some((integer, power)) => Ok(integer as f64 / power),
        None => by_text(value, read_float8).map(f64::from_le_bytes),
    })
}

fn to_floats(array: &ArrayRef) -> Column {
    floats::<Float32Type>(array, |value| match exact(value, 24, 10) {
        Some((integer, power)) => Ok(integer as f32 / power as f32),
        None => by_text(value, read_float4).map(f32::from_le_bytes),
    })
}

type Input = fn(&[u8], i32, &mut Vec<u8>) -> Result<(), pagemill_types::input::InputError>;

fn by_text<const N: usize>(value: &Value, input: Input) -> Result<[u8; N], StatementError> {
    let (mut text, mut payload) = (Vec::new(), Vec::with_capacity(N));
    print(value, &mut text)?;
    input(&text, -1, &mut payload)
        .map_err(|error| StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, error.message))?;
    Ok(payload.try_into().expect("a float of its type")) // infallible: by the input function
}

fn floats<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    of: impl Fn(&Value) -> Result<T::Native, StatementError>,
) -> Column {
    let column = Numbers::of(array);
    let float = |row| column.get(row)?.map(|value| of(&value)).transpose();
    let found: PrimitiveArray<T> =
        (0..array.len()).map(float).collect::<Result<_, StatementError>>()?;
    Ok(Arc::new(found))
}

/// To the nearest float, halves to the even one.
fn to_float<T: ArrowPrimitiveType<Native: AsPrimitive<F::Native>>, F: ArrowPrimitiveType>(
    _: &KernelCall,
    arguments: &[ArrayRef],
) -> Column
where
    F::Native: 'static + Copy,
{
    Ok(Arc::new(numbers::<T>(&arguments[0]).unary::<_, F>(|x| x.as_())))
}

fn narrowed(array: &ArrayRef) -> Column {
    let narrow = |x: f64| {
        let found = x as f32;
        match found {
            _ if found.is_infinite() && !x.is_infinite() => Err(overflow()),
            _ if found == 0.0 && x != 0.0 => Err(underflow()),
            _ => Ok(found),
        }
    };
    let found = try_unary::<_, _, Float32Type>(numbers::<Float64Type>(array), narrow);
    Ok(Arc::new(found.map_err(float_error)?))
}

/// Rounded to the nearest integer, halves to the even one.
fn rounded<F: ArrowPrimitiveType<Native: Into<f64>>, T: PgInteger>(array: &ArrayRef) -> Column
where
    T::Native: NumCast,
{
    // A float4 is rounded as the float8 of the same value is. An integer that has no room is none for the cast.
    let round = |x: F::Native| {
        let rounded: f64 = x.into().round_ties_even();
        num_traits::cast::<f64, T::Native>(rounded)
            .ok_or_else(|| ArrowError::ArithmeticOverflow(String::new()))
    };
    let found = try_unary::<_, _, T>(numbers::<F>(array), round);
    Ok(Arc::new(found.map_err(|error| failed(&error, T::NAME))?))
}

fn integer_to_bool(_: &KernelCall, arguments: &[ArrayRef]) -> Column {
    let found: BooleanArray =
        numbers::<Int32Type>(&arguments[0]).iter().map(|x| x.map(|x| x != 0)).collect();
    Ok(Arc::new(found))
}

fn bool_to_integer(_: &KernelCall, arguments: &[ArrayRef]) -> Column {
    let found: PrimitiveArray<Int32Type> =
        arguments[0].as_boolean().iter().map(|x| x.map(Into::into)).collect();
    Ok(Arc::new(found))
}

#[cfg(test)]
pub(crate) mod tests;
