//! money: amounts in the currency's smallest unit, with numbers, as numbers and in words.
//!
//! How many places a number has as an amount is `lc_monetary`'s to say, as where money is printed. Only PostgreSQL 18 has an
//! error in all of its releases where an amount has no room; the first ones of 14 to 17 go on at the other end, so that there
//! it is refused.
//!
//! Source: `src/backend/utils/adt/cash.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::Int64Type;
use pagemill_types::builtin::oid;
use pagemill_types::output::TypeOutput;

use super::integers::{division_by_zero, out_of_range};
use super::numeric::column;
use super::numeric::value::Number;
use super::rows::{Outcome, Plain, one, run, two};
use super::{Implementation, KernelCall, money_words, numbers, numeric};
use crate::error::{SqlState, StatementError};

pub(crate) fn find(key: &str) -> Option<Implementation> {
    if plain(key).is_some() {
        return Some(Implementation::Kernel(|call, arguments| run(plain, call, arguments)));
    }
    Some(Implementation::Kernel(match key {
        "cash_pl" | "cash_mi" | "cash_mul_int8" | "cash_mul_int4" | "cash_mul_int2"
        | "int8_mul_cash" | "int4_mul_cash" | "int2_mul_cash" | "cash_div_int8"
        | "cash_div_int4" | "cash_div_int2" => with_integer,
        "cash_mul_flt8" | "cash_mul_flt4" | "flt8_mul_cash" | "flt4_mul_cash" | "cash_div_flt8"
        | "cash_div_flt4" => with_float,
        "int4_cash" => |call, a| of_integer(call, |scale| one(a, |x: i32| scaled(x.into(), scale))),
        "int8_cash" => |call, a| of_integer(call, |scale| one(a, |x: i64| scaled(x, scale))),
        "numeric_cash" => of_numeric,
        "cash_numeric" => to_numeric,
        _ => return None,
    }))
}

/// Functions that depend on their arguments alone.
pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "cash_div_cash" => |a| {
            two(a, |x: i64, y: i64| match y {
                0 => Err(division_by_zero()),
                _ => Ok(x as f64 / y as f64),
            })
        },
        "cashlarger" => |a| two(a, |x: i64, y: i64| Ok(x.max(y))),
        "cashsmaller" => |a| two(a, |x: i64, y: i64| Ok(x.min(y))),
        "cash_cmp" => |a| {
            two(a, |x: i64, y: i64| {
                Ok(match x.cmp(&y) {
                    Ordering::Less => -1,
                    Ordering::Equal => 0,
                    Ordering::Greater => 1,
                })
            })
        },
        "cash_words" => |a| one(a, |amount: i64| Ok(money_words::in_words(amount))),
        _ => return None,
    })
}

/// What there is no room for.
#[derive(Clone, Copy)]
struct Room {
    /// True where every release has the error.
    is_checked: bool,
}

impl Room {
    fn of(call: &KernelCall) -> Self {
        Self { is_checked: call.catalog.database().cluster().version().major() >= 18 }
    }

    fn found(self, amount: Option<i64>) -> Outcome<i64> {
        amount.ok_or_else(|| self.error(out_of_range("money")))
    }

    #[cold]
    fn error(self, error: StatementError) -> StatementError {
        match self.is_checked {
            true => error,
            false => StatementError::unsupported("an amount of money that has no room"),
        }
    }
}

fn with_integer(call: &KernelCall, a: &[ArrayRef]) -> Outcome<ArrayRef> {
    let room = Room::of(call);
    let times = |x: i64, y: i64| room.found(x.checked_mul(y));
    let over = |x: i64, y: i64| match y {
        0 => Err(division_by_zero()),
        // Of the least amount by -1 releases of every version have different errors.
        _ => Room { is_checked: false }.found(x.checked_div(y)),
    };
    match &*call.key {
        "cash_pl" => two(a, |x: i64, y: i64| room.found(x.checked_add(y))),
        "cash_mi" => two(a, |x: i64, y: i64| room.found(x.checked_sub(y))),
        "cash_mul_int4" => two(a, |x: i64, y: i32| times(x, y.into())),
        "cash_mul_int2" => two(a, |x: i64, y: i16| times(x, y.into())),
        "int4_mul_cash" => two(a, |x: i32, y: i64| times(x.into(), y)),
        "int2_mul_cash" => two(a, |x: i16, y: i64| times(x.into(), y)),
        "cash_div_int8" => two(a, |x: i64, y: i64| over(x, y)),
        "cash_div_int4" => two(a, |x: i64, y: i32| over(x, y.into())),
        "cash_div_int2" => two(a, |x: i64, y: i16| over(x, y.into())),
        _ => two(a, |x: i64, y: i64| times(x, y)),
    }
}

fn with_float(call: &KernelCall, a: &[ArrayRef]) -> Outcome<ArrayRef> {
    let room = Room::of(call);
    let times = |x: i64, y: f64| product(room, x as f64, y);
    let over = |x: i64, y: f64| quotient(room, x as f64, y);
    match &*call.key {
        "cash_mul_flt8" => two(a, |x: i64, y: f64| times(x, y)),
        "cash_mul_flt4" => two(a, |x: i64, y: f32| times(x, y.into())),
        "flt8_mul_cash" => two(a, |x: f64, y: i64| times(y, x)),
        "flt4_mul_cash" => two(a, |x: f32, y: i64| times(y, x.into())),
        "cash_div_flt4" => two(a, |x: i64, y: f32| over(x, y.into())),
        _ => two(a, |x: i64, y: f64| over(x, y)),
    }
}

fn product(room: Room, x: f64, y: f64) -> Outcome<i64> {
    match x * y {
        found if found.is_infinite() && y.is_finite() => Err(overflow(room)),
        found => room.found(rounded(found)),
    }
}

fn quotient(room: Room, x: f64, y: f64) -> Outcome<i64> {
    match x / y {
        _ if y == 0.0 => Err(division_by_zero()),
        found if found.is_infinite() => Err(overflow(room)),
        found => room.found(rounded(found)),
    }
}

#[cold]
fn overflow(room: Room) -> StatementError {
    let message = "value out of range: overflow";
    room.error(StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, message))
}

/// To the next integer, of two equally near the even one.
fn rounded(number: f64) -> Option<i64> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    let whole = number.round_ties_even();
    (-END..END).contains(&whole).then_some(whole as i64)
}

/// The smallest units that one of the currency has.
fn scale(call: &KernelCall) -> Outcome<(u32, i64)> {
    let known = call.catalog.values().value_type(oid::MONEY);
    let known = known.map_err(|error| StatementError::unsupported(error.to_string()))?;
    let TypeOutput::Money(format) = &known.output else {
        return Err(StatementError::unsupported("money in this locale"));
    };
    let places = u32::from(format.fraction_digits);
    let units = 10i64.checked_pow(places);
    Ok((places, units.ok_or_else(|| StatementError::unsupported("money of so many places"))?))
}

fn of_integer(call: &KernelCall, of: impl FnOnce(i64) -> Outcome<ArrayRef>) -> Outcome<ArrayRef> {
    let (_, units) = scale(call)?;
    of(units)
}

fn scaled(number: i64, units: i64) -> Outcome<i64> {
    number.checked_mul(units).ok_or_else(|| out_of_range("bigint"))
}

fn of_numeric(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let (_, units) = scale(call)?;
    let units = Number::new(units, 0).into();
    let amounts = column::map(&arguments[0], |value| numeric::arithmetic::multiply(value, &units))?;
    numbers::integers::<Int64Type>(&amounts)
}

fn to_numeric(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let (places, _) = scale(call)?;
    let amounts = arguments[0].as_primitive::<Int64Type>();
    column::build(amounts.len(), |row| {
        Ok((!amounts.is_null(row)).then(|| Number::new(amounts.value(row), places).into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_rounded_to_units() {
        assert_eq!(rounded(2.5), Some(2));
        assert_eq!(rounded(-3.5), Some(-4));
        assert_eq!(rounded(9.3e18), None);
        assert_eq!(rounded(f64::NAN), None);
        assert_eq!(rounded(-9_223_372_036_854_775_808.0), Some(i64::MIN));
    }

    #[test]
    fn what_has_no_room_is_an_error_or_refused() {
        let (checked, other) = (Room { is_checked: true }, Room { is_checked: false });
        assert_eq!(checked.found(None).unwrap_err().message, "money out of range");
        assert_eq!(other.found(None).unwrap_err().state, SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(
            product(checked, 2.0, 1e308).unwrap_err().message,
            "value out of range: overflow"
        );
        assert_eq!(product(checked, 1.0, f64::INFINITY).unwrap_err().message, "money out of range");
        assert_eq!(quotient(checked, 7.0, f64::INFINITY).unwrap(), 0);
        assert_eq!(quotient(other, 7.0, 0.0).unwrap_err().message, "division by zero");
    }
}
