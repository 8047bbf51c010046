//! RANGE with an offset: whether the value of one row is within a distance of another's.
//!
//! Numbers near the ends of their types are compared as what they are, sums beyond them included; whatever is infinite is
//! within any distance of itself.
//!
//! Source: `in_range_int4_int8` and its kin in `src/backend/utils/adt/int.c` and `int8.c`, `in_range_float8_float8` in `float.c`,
//! `in_range_numeric_numeric` in `numeric.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};

use super::frame::{Distances, Side};
use crate::error::{SqlState, StatementError};
use crate::functions::KernelCall;
use crate::functions::datetime::in_range;
use crate::functions::keys::payloads;
use crate::functions::numeric::arithmetic::{add, sign, subtract};
use crate::functions::numeric::column::Numbers;
use crate::functions::numeric::value::Value;
use crate::functions::rows::Outcome;

/// What kind of distance there is between values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Measure {
    /// Of whole numbers.
    Whole,
    Float,
    Numeric,
    Date,
    Timestamp,
    /// Of timestamps with zones.
    Moment,
    Time,
    ZonedTime,
    Interval,
}

/// The values that rows are sorted by, and the offsets of the frame's start and end.
pub(super) struct Ranged<'r> {
    pub(super) call: &'r KernelCall,
    pub(super) measure: Measure,
    pub(super) values: &'r ArrayRef,
    /// In their first row.
    pub(super) offsets: [Option<&'r ArrayRef>; 2],
}

/// An offset that no frame has.
pub(crate) fn bad_offset() -> StatementError {
    let message = "invalid preceding or following size in window function";
    StatementError::new(SqlState("22013"), message)
}

impl Distances for Ranged<'_> {
    type Error = StatementError;

    fn is_null(&self, row: usize) -> bool {
        self.values.is_null(row)
    }

    fn holds(&self, (row, of): (usize, usize), is_end: bool, side: Side) -> Outcome<bool> {
        let Some(offset) = self.offsets[usize::from(is_end)] else { return Ok(false) };
        let bytes = |row: usize| payloads(self.values).value(row);
        let moment = |row: usize| self.values.as_primitive::<Int64Type>().value(row);
        let distance = || (payloads(offset).value(0), side);
        match self.measure {
            Measure::Whole => whole(
                (whole_at(self.values, row), whole_at(self.values, of)),
                whole_at(offset, 0),
                side,
            ),
            Measure::Float => float(
                (float_at(self.values, row), float_at(self.values, of)),
                float_at(offset, 0),
                side,
            ),
            Measure::Numeric => self.numeric((row, of), offset, side),
            Measure::Date => {
                let day = |row: usize| self.values.as_primitive::<Int32Type>().value(row);
                in_range::of_dates(self.call, (day(row), day(of)), distance())
            }
            Measure::Timestamp | Measure::Moment => {
                let is_zoned = self.measure == Measure::Moment;
                in_range::of_timestamps(self.call, (moment(row), moment(of)), distance(), is_zoned)
            }
            Measure::Time => in_range::of_times((moment(row), moment(of)), distance()),
            Measure::ZonedTime => in_range::of_zoned_times((bytes(row), bytes(of)), distance()),
            Measure::Interval => {
                in_range::of_intervals(self.call, (bytes(row), bytes(of)), distance())
            }
        }
    }
}

impl Ranged<'_> {
    fn numeric(&self, rows: (usize, usize), offset: &ArrayRef, side: Side) -> Outcome<bool> {
        let values = Numbers::of(self.values);
        let found = (values.get(rows.0)?, values.get(rows.1)?, Numbers::of(offset).get(0)?);
        match found {
            (Some(value), Some(base), Some(offset)) => numeric((&value, &base), &offset, side),
            _ => Ok(false),
        }
    }
}

fn whole_at(array: &ArrayRef, row: usize) -> i128 {
    match array.data_type() {
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        _ => array.as_primitive::<Int64Type>().value(row).into(),
    }
}

fn float_at(array: &ArrayRef, row: usize) -> f64 {
    match array.data_type() {
        DataType::Float32 => array.as_primitive::<Float32Type>().value(row).into(),
        _ => array.as_primitive::<Float64Type>().value(row),
    }
}

fn whole((value, base): (i128, i128), offset: i128, side: Side) -> Outcome<bool> {
    if offset < 0 {
        return Err(bad_offset());
    }
    let sum = if side.subtracts { base - offset } else { base + offset };
    Ok(if side.is_upper { value <= sum } else { value >= sum })
}

fn float((value, base): (f64, f64), offset: f64, side: Side) -> Outcome<bool> {
    if offset.is_nan() || offset < 0.0 {
        return Err(bad_offset());
    }
    // NaN is above all numbers.
    match (value.is_nan(), base.is_nan()) {
        (true, true) => return Ok(true),
        (true, false) => return Ok(!side.is_upper),
        (false, true) => return Ok(side.is_upper),
        (false, false) => {}
    }
    let sum = if side.subtracts { base - offset } else { base + offset };
    Ok(match () {
        // From one infinity to the other: all are in between.
        () if sum.is_nan() => true,
        () if side.is_upper => value <= sum,
        () => value >= sum,
    })
}

fn numeric((value, base): (&Value, &Value), offset: &Value, side: Side) -> Outcome<bool> {
    if *offset == Value::NaN || sign(offset).is_some_and(|sign| sign < 0) {
        return Err(bad_offset());
    }
    match (value, base) {
        (Value::NaN, Value::NaN) => return Ok(true),
        (Value::NaN, _) => return Ok(!side.is_upper),
        (_, Value::NaN) => return Ok(side.is_upper),
        _ => {}
    }
    let sum = if side.subtracts { subtract(base, offset)? } else { add(base, offset)? };
    let order = match (value, &sum) {
        (_, Value::NaN) => return Ok(true),
        (value, sum) if value == sum => Ordering::Equal,
        (Value::Infinity, _) | (_, Value::NegativeInfinity) => Ordering::Greater,
        (Value::NegativeInfinity, _) | (_, Value::Infinity) => Ordering::Less,
        (Value::Finite(value), Value::Finite(sum)) => {
            let scale = value.dscale.max(sum.dscale);
            value.at(scale).compare(&sum.at(scale))
        }
        (Value::NaN, _) => Ordering::Greater,
    };
    Ok(if side.is_upper { order.is_le() } else { order.is_ge() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::numeric::value::Number;

    const BELOW: Side = Side { subtracts: true, is_upper: false };
    const ABOVE: Side = Side { subtracts: false, is_upper: true };

    #[test]
    fn sums_beyond_a_type_are_beyond_its_values() {
        let most = i128::from(i64::MAX);
        assert!(whole((most, most - 2), most, ABOVE).unwrap());
        assert!(whole((most, 0), -1, ABOVE).is_err());
        assert!(!whole((most - 3, most), 2, BELOW).unwrap());
    }

    #[test]
    fn infinities_are_within_any_distance_of_themselves() {
        let infinite = f64::INFINITY;
        assert!(float((1.0, infinite), infinite, BELOW).unwrap());
        assert!(!float((1.0, infinite), 5.0, BELOW).unwrap());
        assert!(float((1.0, f64::NAN), 5.0, ABOVE).unwrap());
        assert!(!float((1.0, f64::NAN), 5.0, BELOW).unwrap());
        assert!(float((1.0, 2.0), f64::NAN, BELOW).is_err());
        let (one, all) = (Value::from(Number::new(1i128, 0)), Value::Infinity);
        assert!(numeric((&one, &all), &all, BELOW).unwrap());
        assert!(!numeric((&one, &all), &one, BELOW).unwrap());
        assert!(numeric((&all, &all), &one, BELOW).unwrap());
        assert!(numeric((&one, &one), &Value::NegativeInfinity, BELOW).is_err());
    }
}
