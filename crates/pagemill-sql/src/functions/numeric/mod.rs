//! numeric: exact to the last digit, and with as many places as the server's results have.
//!
//! A value is carried as a decimal where its digits surely fit 38, else as its payload. Sums and products of decimals are
//! decimals as long as they fit by their types alone; every other result is a payload.
//!
//! Source: `src/backend/utils/adt/numeric.c`, PostgreSQL 14 to 18.

pub(crate) mod arithmetic;
pub(crate) mod column;
pub(crate) mod decimal;
pub(crate) mod keys;
pub(crate) mod powers;
pub(crate) mod value;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::logical_expr::Expr;
use datafusion::scalar::ScalarValue;
use pagemill_types::numeric::Numeric;

use super::integers::numbers;
use super::{Build, Implementation, Kernel, KernelCall, call_kernel};
use crate::catalog::Catalog;
use crate::error::{Result, SqlState, StatementError};
use crate::typed::Typed;
use crate::types::declared_decimal;
use arithmetic::Modifier;
use column::Numbers;
use value::Value;

pub(crate) use keys::{comparable, key};

type Column = Result<ArrayRef, StatementError>;

pub(crate) fn find(key: &str) -> Option<Implementation> {
    Some(match key {
        "numeric_add" | "numeric_sub" | "numeric_mul" | "numeric_mod" => {
            Implementation::Build(decimal_or_payload)
        }
        "numeric_div" => Implementation::Kernel(divide),
        "numeric_div_trunc" => Implementation::Kernel(divide_whole),
        "numeric_uplus" => Implementation::Build(same),
        "numeric_uminus" | "numeric_abs" => Implementation::Build(signed),
        "numeric_sign" => Implementation::Kernel(sign),
        "numeric_round" | "round(numeric)" => Implementation::Build(round),
        "numeric_trunc" | "trunc(numeric)" => Implementation::Build(truncate),
        "numeric_ceil" => Implementation::Build(ceiling),
        "numeric_floor" => Implementation::Build(floor),
        "numeric_sqrt" => Implementation::Kernel(square_root),
        "numeric_power" => Implementation::Kernel(power),
        "numeric_exp" => {
            Implementation::Kernel(|_, args| column::map(&args[0], powers::exponential_of))
        }
        "numeric_ln" => {
            Implementation::Kernel(|_, args| column::map(&args[0], powers::natural_logarithm))
        }
        "numeric_log" => Implementation::Kernel(|_, args| {
            column::zip(&args[0], &args[1], powers::logarithm_of_base)
        }),
        "log(numeric)" | "log10(numeric)" => Implementation::Kernel(decimal_logarithm),
        "numeric_gcd" => Implementation::Kernel(greatest_divisor),
        "numeric_lcm" => Implementation::Kernel(least_multiple),
        "numeric_fac" => Implementation::Kernel(factorial),
        "numeric_scale" => Implementation::Kernel(scale),
        "numeric_min_scale" => Implementation::Kernel(min_scale),
        "numeric_trim_scale" => Implementation::Kernel(trim_scale),
        "numeric_inc" => Implementation::Kernel(incremented),
        "numeric" => Implementation::Build(fitted),
        _ => return None,
    })
}

/// Appends a decimal with all of its places.
pub(crate) fn write_decimal(value: i128, scale: i8, out: &mut Vec<u8>) {
    let places = usize::from(scale.max(0).unsigned_abs());
    if value < 0 {
        out.push(b'-');
    }
    let digits = value.unsigned_abs().to_string();
    if places == 0 {
        return out.extend_from_slice(digits.as_bytes());
    }
    // At least one digit stands before the point.
    let zeros = (places + 1).saturating_sub(digits.len());
    let start = out.len();
    out.resize(start + zeros, b'0');
    out.extend_from_slice(digits.as_bytes());
    let point = out.len() - places;
    out.insert(point, b'.');
}

/// A payload as an integer over 10^`scale`.
///
/// # Errors
/// When it is damaged, no number, or one with more digits than a decimal of the type holds.
pub(crate) fn decimal_of_payload(payload: &[u8], scale: i8) -> Result<i128, StatementError> {
    let found = Numeric::parse(payload)
        .map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()))?;
    found.scaled(scale.max(0).unsigned_abs().into()).ok_or_else(|| no_decimal(&found))
}

#[cold]
fn no_decimal(found: &Numeric<'_>) -> StatementError {
    match found {
        Numeric::Finite { .. } => {
            let message = "a stored numeric has more digits than its type";
            StatementError::new(SqlState::DATA_CORRUPTED, message)
        }
        _ => StatementError::unsupported("NaN in a numeric with a precision"),
    }
}

/// A numeric as its payload.
pub(crate) fn as_payload(catalog: &Arc<Catalog>, typed: &Typed) -> Typed {
    match typed.carrier {
        DataType::Binary => typed.clone(),
        _ => {
            let arguments = std::slice::from_ref(typed);
            call_kernel(
                catalog,
                ("numeric_payload", payload),
                arguments,
                typed.ty,
                DataType::Binary,
            )
        }
    }
}

fn payload(_: &KernelCall, arguments: &[ArrayRef]) -> Column {
    column::map(&arguments[0], |value| Ok(value.clone()))
}

/// `+`, `-`, `*`, `%`.
fn decimal_or_payload(build: &Build<'_>) -> Result<Typed> {
    let arguments: Vec<Typed> = build.arguments.iter().map(decimal::narrowed).collect();
    if let Some(typed) = decimal::binary(build, &arguments) {
        return Ok(typed);
    }
    let kernel: Kernel = match build.key {
        "numeric_add" => |_, args| column::zip(&args[0], &args[1], arithmetic::add),
        "numeric_sub" => |_, args| column::zip(&args[0], &args[1], arithmetic::subtract),
        "numeric_mul" => |_, args| column::zip(&args[0], &args[1], arithmetic::multiply),
        _ => |_, args| column::zip(&args[0], &args[1], arithmetic::modulo),
    };
    Ok(build.kernel(kernel, &arguments, DataType::Binary))
}

fn divide(_: &KernelCall, arguments: &[ArrayRef]) -> Column {
    column::zip(&arguments[0], &arguments[1], arithmetic::divide)
}

fn divide_whole(_: &KernelCall, arguments: &[ArrayRef]) -> Column {
    column::zip(&arguments[0], &arguments[1], arithmetic::divide_whole)
}

fn greatest_divisor(_: &KernelCall, arguments: &[ArrayRef]) -> Column {
    column::zip(&arguments[0], &arguments[1], arithmetic::greatest_divisor)
}

fn least_multiple(_: &KernelCall, arguments: &[ArrayRef]) -> Column {
    column::zip(&arguments[0], &arguments[1], arithmetic::least_multiple)
}

fn same(build: &Build<'_>) -> Result<Typed> {
    Ok(build.done(build.arguments[0].expr.clone(), build.arguments[0].carrier.clone()))
}

/// `-` and `abs`, after which a number has as many digits as before. Of a constant it is one.
fn signed(build: &Build<'_>) -> Result<Typed> {
    let is_minus = build.key == "numeric_uminus";
    let argument = decimal::narrowed(&build.arguments[0]);
    if let Expr::Literal(ScalarValue::Decimal128(Some(value), precision, scale), metadata) =
        &argument.expr
    {
        let value = if is_minus { -value } else { value.abs() };
        let scalar = ScalarValue::Decimal128(Some(value), *precision, *scale);
        return Ok(build.done(Expr::Literal(scalar, metadata.clone()), argument.carrier));
    }
    let kernel: Kernel = match (&argument.carrier, is_minus) {
        (DataType::Binary, true) => {
            |_, args| column::map(&args[0], |value| Ok(arithmetic::negate(value)))
        }
        (DataType::Binary, false) => {
            |_, args| column::map(&args[0], |value| Ok(arithmetic::absolute(value)))
        }
        (_, true) => decimal::negate,
        (_, false) => decimal::absolute,
    };
    let carrier = argument.carrier.clone();
    Ok(build.kernel(kernel, &[argument], carrier))
}

fn sign(_: &KernelCall, arguments: &[ArrayRef]) -> Column {
    column::map(&arguments[0], |value| Ok(arithmetic::signum(value)))
}

fn round(build: &Build<'_>) -> Result<Typed> {
    to_places(build, decimal::round, |_, args| at_places(args, arithmetic::round))
}

fn truncate(build: &Build<'_>) -> Result<Typed> {
    to_places(build, decimal::truncate, |_, args| at_places(args, arithmetic::truncate))
}

/// Of a decimal a decimal, where the number of places is a constant that is not below zero.
fn to_places(build: &Build<'_>, decimal: Kernel, payload: Kernel) -> Result<Typed> {
    let argument = decimal::narrowed(&build.arguments[0]);
    let places = match build.arguments.get(1) {
        None => Some(0),
        Some(places) => match &places.expr {
            Expr::Literal(ScalarValue::Int32(Some(places)), _) => Some(*places),
            _ => None,
        },
    };
    let carrier = places.filter(|places| *places >= 0).and_then(|places| {
        let (precision, scale) = decimal::shape(&argument.carrier)?;
        // Rounding up can bring one digit more.
        let more = i32::from(places < scale);
        decimal::carrier_of((precision.checked_add(places)? - scale + more, places))
    });
    match carrier {
        Some(carrier) => Ok(build.kernel(decimal, &[argument], carrier)),
        None => Ok(build.kernel(payload, build.arguments, DataType::Binary)),
    }
}

/// With the number of places from the second column, 0 where there is none.
fn at_places(arguments: &[ArrayRef], of: fn(&Value, i32) -> Value) -> Column {
    let Some(places) = arguments.get(1) else {
        return column::map(&arguments[0], |value| Ok(of(value, 0)));
    };
    let (column, places) = (Numbers::of(&arguments[0]), numbers::<Int32Type>(places));
    column::build(arguments[0].len(), |row| {
        let value = column.get(row)?.filter(|_| !places.is_null(row));
        Ok(value.map(|value| of(&value, places.value(row))))
    })
}

fn ceiling(build: &Build<'_>) -> Result<Typed> {
    let payload: Kernel = |_, args| column::map(&args[0], |value| Ok(arithmetic::ceiling(value)));
    to_places(build, decimal::ceiling, payload)
}

fn floor(build: &Build<'_>) -> Result<Typed> {
    let payload: Kernel = |_, args| column::map(&args[0], |value| Ok(arithmetic::floor(value)));
    to_places(build, decimal::floor, payload)
}

fn square_root(call: &KernelCall, arguments: &[ArrayRef]) -> Column {
    let major = call.catalog.database().cluster().version().major();
    column::map(&arguments[0], |value| arithmetic::square_root(value, major))
}

fn power(call: &KernelCall, arguments: &[ArrayRef]) -> Column {
    let major = call.catalog.database().cluster().version().major();
    column::zip(&arguments[0], &arguments[1], |base, exponent| powers::power(base, exponent, major))
}

fn decimal_logarithm(_: &KernelCall, arguments: &[ArrayRef]) -> Column {
    let ten = value::Number::new(10i64, 0).into();
    column::map(&arguments[0], |value| powers::logarithm_of_base(&ten, value))
}

fn factorial(_: &KernelCall, arguments: &[ArrayRef]) -> Column {
    let whole = numbers::<Int64Type>(&arguments[0]);
    column::build(whole.len(), |row| {
        (!whole.is_null(row)).then(|| arithmetic::factorial(whole.value(row))).transpose()
    })
}

fn incremented(_: &KernelCall, arguments: &[ArrayRef]) -> Column {
    let one = value::Number::new(1i64, 0).into();
    column::map(&arguments[0], |value| arithmetic::add(value, &one))
}

fn trim_scale(_: &KernelCall, arguments: &[ArrayRef]) -> Column {
    column::map(&arguments[0], |value| Ok(arithmetic::trim_scale(value)))
}

fn scale(_: &KernelCall, arguments: &[ArrayRef]) -> Column {
    places(&arguments[0], |number| number.dscale)
}

fn min_scale(_: &KernelCall, arguments: &[ArrayRef]) -> Column {
    places(&arguments[0], arithmetic::min_scale)
}

/// A number of places, NULL of what is no number.
fn places(array: &ArrayRef, of: impl Fn(&value::Number) -> u32) -> Column {
    let column = Numbers::of(array);
    let place = |row| {
        Ok(match column.get(row)? {
            Some(Value::Finite(number)) => Some(of(&number) as i32),
            _ => None,
        })
    };
    let found: Int32Array = (0..array.len()).map(place).collect::<Result<_, StatementError>>()?;
    Ok(Arc::new(found))
}

/// To the digits and places of a declared type.
fn fitted(build: &Build<'_>) -> Result<Typed> {
    let argument = decimal::narrowed(&build.arguments[0]);
    let arguments = std::slice::from_ref(&argument);
    if Modifier::parse(build.result.modifier).is_none() {
        return Ok(build.done(argument.expr, argument.carrier));
    }
    match (declared_decimal(build.result.modifier), decimal::shape(&argument.carrier)) {
        (Some((precision, places)), Some((from, had))) => {
            let carrier = DataType::Decimal128(precision, places);
            let (precision, places) = (i32::from(precision), i32::from(places));
            let surely_fits = places >= had && precision - places >= from - had;
            let kernel = if surely_fits { decimal::round } else { decimal::fit };
            Ok(build.kernel(kernel, arguments, carrier))
        }
        (Some((precision, places)), None) => {
            let carrier = DataType::Decimal128(precision, places);
            Ok(build.kernel(fit_decimal, arguments, carrier))
        }
        (None, _) => Ok(build.kernel(fit_payload, arguments, DataType::Binary)),
    }
}

fn wanted(call: &KernelCall) -> Modifier {
    Modifier::parse(call.result.modifier).expect("only types with a modifier are fitted") // infallible: by who calls
}

fn fit_payload(call: &KernelCall, arguments: &[ArrayRef]) -> Column {
    let modifier = wanted(call);
    column::map(&arguments[0], |value| modifier.apply(value))
}

fn fit_decimal(call: &KernelCall, arguments: &[ArrayRef]) -> Column {
    let (modifier, column) = (wanted(call), Numbers::of(&arguments[0]));
    let fit = |row| {
        let Some(value) = column.get(row)? else { return Ok(None) };
        match modifier.apply(&value)? {
            Value::Finite(value::Number { integer: value::Integer::Small(small), .. }) => {
                Ok(Some(small))
            }
            _ => Err(StatementError::unsupported("NaN in a numeric with a precision")),
        }
    };
    let found: arrow::array::Decimal128Array =
        (0..arguments[0].len()).map(fit).collect::<Result<_, StatementError>>()?;
    Ok(Arc::new(found.with_data_type(call.carrier.clone())))
}
