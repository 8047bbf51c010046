//! smallint, integer, bigint: arithmetic that ends in an error where a value has no room, as the server's does.
//!
//! Source: `src/backend/utils/adt/int.c` and `int8.c`, PostgreSQL 18.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray, UInt32Array};
use arrow::compute::kernels::arity::{try_binary, try_unary};
use arrow::datatypes::{DataType, Int16Type, Int32Type, Int64Type, UInt32Type};
use arrow::error::ArrowError;
use pagemill_types::builtin::oid;

use super::rows::two;
use super::{Build, Implementation, Kernel, KernelCall};
use crate::error::{Result, SqlState, StatementError};
use crate::typed::Typed;
use crate::types::carrier;

/// The greatest number that divides both, `None` if it has no room; the least value over -1 has none but 1.
fn greatest_divisor(a: i64, b: i64, least: i64) -> Option<i64> {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).ok().filter(|found| *found <= -(least + 1))
}

fn least_multiple(a: i64, b: i64, least: i64) -> Option<i64> {
    if a == 0 || b == 0 {
        return Some(0);
    }
    let found = (a / greatest_divisor(a, b, i64::MIN)?).checked_mul(b)?.checked_abs()?;
    (found <= -(least + 1)).then_some(found)
}

/// `gcd` and `lcm`.
///
/// Source: `int4gcd_internal` and `int4lcm` in `src/backend/utils/adt/int.c`, PostgreSQL 14 to 18.
fn divisors(call: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    let of = if call.key.ends_with("gcd") { greatest_divisor } else { least_multiple };
    let room = |found: Option<i64>, name: &str| {
        let message = format!("{name} out of range");
        found.ok_or_else(|| StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, message))
    };
    match &call.carrier {
        DataType::Int32 => two(arguments, |a: i32, b: i32| {
            let found = of(a.into(), b.into(), i32::MIN.into());
            room(found, "integer").map(|found| found as i32)
        }),
        _ => two(arguments, |a: i64, b: i64| room(of(a, b, i64::MIN), "bigint")),
    }
}

/// What an integer type has of its own.
pub(crate) trait PgInteger:
    ArrowPrimitiveType<Native: num_traits::PrimInt + num_traits::Signed + Checked>
{
    /// Its name in messages.
    const NAME: &'static str;
}

impl PgInteger for Int16Type {
    const NAME: &'static str = "smallint";
}
impl PgInteger for Int32Type {
    const NAME: &'static str = "integer";
}
impl PgInteger for Int64Type {
    const NAME: &'static str = "bigint";
}

/// Arithmetic that tells when there is no room.
pub(crate) trait Checked: Sized {
    fn plus(self, other: Self) -> Option<Self>;
    fn minus(self, other: Self) -> Option<Self>;
    fn times(self, other: Self) -> Option<Self>;
    fn over(self, other: Self) -> Option<Self>;
    fn negated(self) -> Option<Self>;
    fn absolute(self) -> Option<Self>;
    fn remainder(self, other: Self) -> Self;
}

macro_rules! checked {
    ($($number:ty),*) => {$(
        impl Checked for $number {
            fn plus(self, other: Self) -> Option<Self> { self.checked_add(other) }
            fn minus(self, other: Self) -> Option<Self> { self.checked_sub(other) }
            fn times(self, other: Self) -> Option<Self> { self.checked_mul(other) }
            fn over(self, other: Self) -> Option<Self> { self.checked_div(other) }
            fn negated(self) -> Option<Self> { self.checked_neg() }
            fn absolute(self) -> Option<Self> { self.checked_abs() }
            fn remainder(self, other: Self) -> Self { self.wrapping_rem(other) }
        }
    )*};
}
checked!(i16, i32, i64);

pub(crate) fn find(key: &str) -> Option<Implementation> {
    if let Some(kernel) = arithmetic(key) {
        return Some(kernel);
    }
    Some(match key {
        "int2um" => Implementation::Kernel(negative::<Int16Type>),
        "int4um" => Implementation::Kernel(negative::<Int32Type>),
        "int8um" => Implementation::Kernel(negative::<Int64Type>),
        "int2abs" => Implementation::Kernel(absolute::<Int16Type>),
        "int4abs" => Implementation::Kernel(absolute::<Int32Type>),
        "int8abs" => Implementation::Kernel(absolute::<Int64Type>),
        "int4gcd" | "int8gcd" | "int4lcm" | "int8lcm" => Implementation::Kernel(divisors),
        "int2up" | "int4up" | "int8up" => Implementation::Build(same),
        "int2and" => Implementation::Kernel(bits::<Int16Type>),
        "int4and" => Implementation::Kernel(bits::<Int32Type>),
        "int8and" => Implementation::Kernel(bits::<Int64Type>),
        "int2or" => Implementation::Kernel(bits::<Int16Type>),
        "int4or" => Implementation::Kernel(bits::<Int32Type>),
        "int8or" => Implementation::Kernel(bits::<Int64Type>),
        "int2xor" => Implementation::Kernel(bits::<Int16Type>),
        "int4xor" => Implementation::Kernel(bits::<Int32Type>),
        "int8xor" => Implementation::Kernel(bits::<Int64Type>),
        "i2toi4" | "int28" | "int48" => Implementation::Build(widened),
        "i4toi2" | "int82" => Implementation::Kernel(narrowed::<Int16Type>),
        "int84" => Implementation::Kernel(narrowed::<Int32Type>),
        "i8tooid" => Implementation::Kernel(bigint_to_oid),
        "oidtoi8" => Implementation::Build(widened),
        _ => return None,
    })
}

/// `int4pl`, `int48mul` …: the operator after the lengths of one or both operands.
fn arithmetic(key: &str) -> Option<Implementation> {
    let rest = key.strip_prefix("int")?;
    let lengths = rest.len() - rest.trim_start_matches(['2', '4', '8']).len();
    let (lengths, name) = rest.split_at(lengths);
    if !matches!(lengths.len(), 1 | 2) || !matches!(name, "pl" | "mi" | "mul" | "div" | "mod") {
        return None;
    }
    Some(Implementation::Build(arithmetic_call))
}

/// Operands of different lengths are brought to the longer one, whose range is the one that counts.
fn arithmetic_call(build: &Build<'_>) -> Result<Typed> {
    let wide = carrier(build.result.oid, -1);
    let kernel: Kernel = match wide {
        DataType::Int16 => arithmetic_kernel::<Int16Type>,
        DataType::Int32 => arithmetic_kernel::<Int32Type>,
        _ => arithmetic_kernel::<Int64Type>,
    };
    let cast = |argument: &Typed| match argument.carrier == wide {
        true => argument.clone(),
        false => {
            let expr = datafusion::logical_expr::cast(argument.expr.clone(), wide.clone());
            Typed::new(expr, build.result, wide.clone())
        }
    };
    let arguments: Vec<Typed> = build.arguments.iter().map(cast).collect();
    Ok(build.kernel(kernel, &arguments, wide.clone()))
}

fn arithmetic_kernel<T: PgInteger>(
    call: &KernelCall,
    arguments: &[ArrayRef],
) -> Result<ArrayRef, StatementError> {
    let (a, b) = (numbers::<T>(&arguments[0]), numbers::<T>(&arguments[1]));
    let zero: T::Native = num_traits::Zero::zero();
    let name = call.key.trim_start_matches("int").trim_start_matches(['2', '4', '8']);
    let of = |found: Option<T::Native>| found.ok_or_else(out_of_room);
    let found = match name {
        "pl" => try_binary(a, b, |x, y| of(x.plus(y))),
        "mi" => try_binary(a, b, |x, y| of(x.minus(y))),
        "mul" => try_binary(a, b, |x, y| of(x.times(y))),
        "div" => try_binary(a, b, |x, y| match y == zero {
            true => Err(ArrowError::DivideByZero),
            false => of(x.over(y)),
        }),
        _ => try_binary(a, b, |x, y| match y == zero {
            true => Err(ArrowError::DivideByZero),
            false => Ok(x.remainder(y)),
        }),
    };
    let found: PrimitiveArray<T> = found.map_err(|error| failed(&error, T::NAME))?;
    Ok(Arc::new(found))
}

#[cold]
fn out_of_room() -> ArrowError {
    ArrowError::ArithmeticOverflow(String::new())
}

#[cold]
pub(crate) fn failed(error: &ArrowError, name: &str) -> StatementError {
    match error {
        ArrowError::DivideByZero => division_by_zero(),
        _ => out_of_range(name),
    }
}

#[cold]
pub(crate) fn division_by_zero() -> StatementError {
    StatementError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

#[cold]
pub(crate) fn out_of_range(name: &str) -> StatementError {
    StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, format!("{name} out of range"))
}

/// A column of numbers of one type.
pub(crate) fn numbers<T: ArrowPrimitiveType>(array: &ArrayRef) -> &PrimitiveArray<T> {
    array.as_any().downcast_ref().expect("a column has the carrier of its type") // infallible: types were settled
}

fn negative<T: PgInteger>(
    _: &KernelCall,
    arguments: &[ArrayRef],
) -> Result<ArrayRef, StatementError> {
    one::<T>(&arguments[0], T::Native::negated)
}

fn absolute<T: PgInteger>(
    _: &KernelCall,
    arguments: &[ArrayRef],
) -> Result<ArrayRef, StatementError> {
    one::<T>(&arguments[0], T::Native::absolute)
}

fn one<T: PgInteger>(
    array: &ArrayRef,
    of: fn(T::Native) -> Option<T::Native>,
) -> Result<ArrayRef, StatementError> {
    let found = try_unary::<T, _, T>(numbers::<T>(array), |x| of(x).ok_or_else(out_of_room));
    Ok(Arc::new(found.map_err(|error| failed(&error, T::NAME))?))
}

fn same(build: &Build<'_>) -> Result<Typed> {
    Ok(build.arguments[0].clone())
}

fn bits<T: PgInteger>(
    call: &KernelCall,
    arguments: &[ArrayRef],
) -> Result<ArrayRef, StatementError> {
    let (a, b) = (numbers::<T>(&arguments[0]), numbers::<T>(&arguments[1]));
    let found: PrimitiveArray<T> = match &call.key[4..] {
        "and" => try_binary(a, b, |x, y| Ok(x & y)),
        "or" => try_binary(a, b, |x, y| Ok(x | y)),
        _ => try_binary(a, b, |x, y| Ok(x ^ y)),
    }
    .map_err(|error| failed(&error, T::NAME))?;
    Ok(Arc::new(found))
}

/// To a longer type, where every value has room.
fn widened(build: &Build<'_>) -> Result<Typed> {
    let carrier = carrier(build.result.oid, -1);
    let expr = datafusion::logical_expr::cast(build.arguments[0].expr.clone(), carrier.clone());
    Ok(build.done(expr, carrier))
}

fn narrowed<T: PgInteger>(
    _: &KernelCall,
    arguments: &[ArrayRef],
) -> Result<ArrayRef, StatementError> {
    let fits = |value: i64| num_traits::cast::<i64, T::Native>(value).ok_or_else(out_of_room);
    let found = match arguments[0].data_type() {
        DataType::Int32 => {
            try_unary::<Int32Type, _, T>(numbers::<Int32Type>(&arguments[0]), |x| fits(x.into()))
        }
        _ => try_unary::<Int64Type, _, T>(numbers::<Int64Type>(&arguments[0]), fits),
    };
    Ok(Arc::new(found.map_err(|error| failed(&error, T::NAME))?))
}

fn bigint_to_oid(_: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    let to_oid = |x: i64| u32::try_from(x).map_err(|_| out_of_room());
    let found = try_unary::<Int64Type, _, UInt32Type>(numbers::<Int64Type>(&arguments[0]), to_oid);
    let found: UInt32Array = found
        .map_err(|_| StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, "OID out of range"))?;
    Ok(Arc::new(found))
}

/// The OIDs of the integer types, shortest first.
pub(crate) const INTEGERS: [pagemill_format::Oid; 3] = [oid::INT2, oid::INT4, oid::INT8];
