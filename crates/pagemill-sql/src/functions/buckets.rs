//! `width_bucket`: in which of some equal parts of a range a number lies, or between which of some thresholds a value.
//!
//! Before 18 the server divides numerics to so many digits and may round a share up to the next bucket: where that is near
//! there is no answer.
//!
//! Source: `width_bucket_numeric`, `compute_bucket` in `src/backend/utils/adt/numeric.c`, `width_bucket_float8` in `float.c`,
//! `width_bucket_array` in `arrayfuncs.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::Int32Type;

use super::arrays::array_at;
use super::arrays::value::{ArrayParts, ElementType};
use super::numeric::column::Numbers;
use super::numeric::value::{Integer, Number, Value};
use super::rows::{Made, Outcome, four};
use super::{Implementation, KernelCall};
use crate::error::{SqlState, StatementError};

/// The first version that divides floats before it multiplies by the count.
const FIRST_WITH_SHARE: u32 = 16;
/// A share that is no more than this part of a bucket below the next one may be rounded to it.
const ROUNDED_PART: i64 = 1_000_000_000;

pub(crate) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "width_bucket_float8" => |call, arguments| {
            let rule = FloatRule::of(major(call));
            four(arguments, |operand: f64, from: f64, to: f64, count: i32| {
                Buckets { from, to, count }.of_float(operand, rule)
            })
        },
        "width_bucket_numeric" => of_numerics,
        "width_bucket_array" => of_thresholds,
        _ => return None,
    }))
}

fn major(call: &KernelCall) -> u32 {
    call.catalog.database().cluster().version().major()
}

#[cold]
fn wrong(message: &str) -> StatementError {
    StatementError::new(SqlState("2201G"), message)
}

/// One more than there are, for what lies behind all.
fn behind_all(count: i32) -> Outcome<i32> {
    let refused = || StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, "integer out of range");
    count.checked_add(1).ok_or_else(refused)
}

/// How the bucket of a float is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FloatRule {
    /// The count times the distance, and only then divided.
    CountFirst,
    /// The count times the share, which is never all of it.
    ShareFirst,
}

impl FloatRule {
    fn of(major: u32) -> Self {
        if major < FIRST_WITH_SHARE { Self::CountFirst } else { Self::ShareFirst }
    }
}

/// Equal parts of a range, which begins with `from` and ends before `to`.
struct Buckets {
    from: f64,
    to: f64,
    count: i32,
}

impl Buckets {
    fn of_float(&self, operand: f64, rule: FloatRule) -> Outcome<i32> {
        let Self { from, to, count } = *self;
        if count <= 0 {
            return Err(wrong("count must be greater than zero"));
        }
        if operand.is_nan() || from.is_nan() || to.is_nan() {
            return Err(wrong("operand, lower bound, and upper bound cannot be NaN"));
        }
        if from.is_infinite() || to.is_infinite() {
            return Err(wrong("lower and upper bounds must be finite"));
        }
        if from == to {
            return Err(wrong("lower bound cannot equal upper bound"));
        }
        // A range that goes down is the same with all signs changed.
        let turn = |number: f64| if from < to { number } else { -number };
        let (operand, from, to) = (turn(operand), turn(from), turn(to));
        if operand < from {
            return Ok(0);
        }
        if operand >= to {
            return behind_all(count);
        }
        match rule {
            FloatRule::CountFirst => {
                let number = f64::from(count) * (operand - from) / (to - from) + 1.0;
                match number < 2_147_483_648.0 {
                    true => Ok(number as i32),
                    false => Err(StatementError::unsupported("a width_bucket of so great bounds")),
                }
            }
            FloatRule::ShareFirst => {
                let share = match (to - from).is_finite() {
                    true => (operand - from) / (to - from),
                    false => (operand / 2.0 - from / 2.0) / (to / 2.0 - from / 2.0),
                };
                Ok(((f64::from(count) * share) as i32).min(count - 1) + 1)
            }
        }
    }
}

fn of_numerics(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let [operands, from, to] = [0, 1, 2].map(|at| Numbers::of(&arguments[at]));
    let counts = arguments[3].as_primitive::<Int32Type>();
    let rounds = major(call) < 18;
    let one = |row: usize| {
        let all = operands.get(row)?.zip(from.get(row)?).zip(to.get(row)?);
        let Some(((operand, from), to)) = all.filter(|_| counts.is_valid(row)) else {
            return Ok(None);
        };
        of_numeric(&operand, (&from, &to), counts.value(row), rounds).map(Some)
    };
    Made::column((0..counts.len()).map(one).collect::<Outcome<Vec<Option<i32>>>>()?)
}

fn of_numeric(
    operand: &Value,
    (from, to): (&Value, &Value),
    count: i32,
    rounds: bool,
) -> Outcome<i32> {
    if count <= 0 {
        return Err(wrong("count must be greater than zero"));
    }
    if [operand, from, to].contains(&&Value::NaN) {
        return Err(wrong("operand, lower bound, and upper bound cannot be NaN"));
    }
    let (Value::Finite(from), Value::Finite(to)) = (from, to) else {
        return Err(wrong("lower and upper bounds must be finite"));
    };
    let scale = |other: &Number| other.dscale.max(from.dscale).max(to.dscale);
    let operand = match operand {
        Value::Finite(operand) => operand,
        infinite => {
            let is_up = compare(from, to)?.is_lt();
            let is_behind = (*infinite == Value::Infinity) == is_up;
            return if is_behind { behind_all(count) } else { Ok(0) };
        }
    };
    let at = |number: &Number| number.at(scale(operand));
    let (mut distance, mut width) = (at(operand).minus(&at(from)), at(to).minus(&at(from)));
    if compare(from, to)?.is_gt() {
        (distance, width) = (distance.negated(), width.negated());
    }
    if distance.signum() < 0 {
        return Ok(0);
    }
    if distance.compare(&width).is_ge() {
        return behind_all(count);
    }
    let parts = distance.times(&Integer::from(i64::from(count)));
    let (whole, rest) = parts.divided(&width);
    let missing = width.minus(&rest).times(&Integer::from(ROUNDED_PART));
    if rounds && rest.signum() != 0 && missing.compare(&width).is_lt() {
        return Err(StatementError::unsupported("a width_bucket so near to the next one"));
    }
    match whole {
        Integer::Small(whole) => behind_all(whole as i32),
        Integer::Large(_) => behind_all(i32::MAX),
    }
}

fn compare(from: &Number, to: &Number) -> Outcome<Ordering> {
    let scale = from.dscale.max(to.dscale);
    match from.at(scale).compare(&to.at(scale)) {
        Ordering::Equal => Err(wrong("lower bound cannot equal upper bound")),
        other => Ok(other),
    }
}

fn of_thresholds(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let elements = ElementType::of_array(&call.catalog, call.arguments[1])?;
    let name = || call.catalog.type_name(elements.ty.oid);
    let refused = || StatementError::unsupported(format!("width_bucket of {}", name()));
    let (base, _) = call.catalog.base_type(elements.ty.oid, -1);
    let row = call.catalog.type_row(base).filter(|row| row.collation.0 == 0);
    row.ok_or_else(refused)?;
    let order = call.catalog.database().value_order(elements.ty.oid, None);
    let order = order.map_err(|_| refused())?;
    let one = |row: usize| {
        let operand = elements.element(&arguments[0], row)?;
        let thresholds = array_at(&elements, &arguments[1], row)?;
        let Some((operand, thresholds)) = operand.zip(thresholds) else { return Ok(None) };
        let thresholds = known(&thresholds)?;
        // They are taken to be in order; if they are not, the result is that of the same search.
        let (mut left, mut right) = (0, thresholds.len());
        while left < right {
            let middle = left.midpoint(right);
            match order.compare(&operand, thresholds[middle]).is_lt() {
                true => right = middle,
                false => left = middle + 1,
            }
        }
        Ok(Some(left as i32))
    };
    Made::column((0..arguments[0].len()).map(one).collect::<Outcome<Vec<Option<i32>>>>()?)
}

fn known(thresholds: &ArrayParts) -> Outcome<Vec<&[u8]>> {
    if thresholds.bounds.len() > 1 {
        let message = "thresholds must be one-dimensional array";
        return Err(StatementError::new(SqlState("2202E"), message));
    }
    let all = thresholds.elements.iter().map(Option::as_deref).collect::<Option<Vec<&[u8]>>>();
    all.ok_or_else(|| {
        StatementError::new(SqlState("22004"), "thresholds array must not contain NULLs")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_float(operand: f64, range: (f64, f64), count: i32, major: u32) -> Outcome<i32> {
        let (from, to) = range;
        Buckets { from, to, count }.of_float(operand, FloatRule::of(major))
    }

    #[test]
    fn floats_are_where_servers_find_them() {
        for major in [14, 18] {
            assert_eq!(of_float(5.35, (0.024, 10.06), 5, major), Ok(3));
            assert_eq!(of_float(5.35, (10.06, 0.024), 5, major), Ok(3));
            assert_eq!(of_float(f64::INFINITY, (1.0, 10.0), 5, major), Ok(6));
            assert_eq!(of_float(f64::INFINITY, (10.0, 1.0), 5, major), Ok(0));
            assert_eq!(of_float(10.0, (1.0, 10.0), i32::MAX, major).unwrap_err().state.0, "22003");
            assert_eq!(of_float(1.0, (1.0, 1.0), 5, major).unwrap_err().state.0, "2201G");
        }
        assert_eq!(of_float(0.0, (-1e100, 1.0), 10, 15), Ok(11));
        assert_eq!(of_float(0.0, (-1e100, 1.0), 10, 16), Ok(10));
    }

    #[test]
    fn numerics_are_where_servers_find_them_or_refused() {
        let number = |units: i64, places: u32| Value::from(Number::new(units, places));
        let of = |operand: &Value, rounds| {
            of_numeric(operand, (&number(0, 0), &number(1, 0)), 3, rounds)
        };
        assert_eq!(of(&number(5, 1), true), Ok(2));
        assert_eq!(of(&number(-5, 1), true), Ok(0));
        assert_eq!(of(&Value::Infinity, true), Ok(4));
        assert_eq!(of(&number(333_333_333_333_333_333, 18), false), Ok(1));
        assert_eq!(of(&number(333_333_333_333_333_333, 18), true).unwrap_err().state.0, "0A000");
    }
}
