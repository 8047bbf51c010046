//! Functions of intervals without end, which there are from 17 on, and of what is infinitely far apart.
//!
//! ```text
//! columns ─┬─ rows with an end everywhere ─── the functions that the other modules have ─┬─► one column
//!          └─ rows without ────────────────── answered here, one by one ─────────────────┘
//! ```
//!
//! Invariant: a batch without such rows is computed as it was before there were any.
//!
//! Source: `INTERVAL_NOT_FINITE` in `src/include/datatype/timestamp.h`, `timestamp_pl_interval`, `interval_pl`, `interval_mul`,
//! `interval_div`, `timestamp_age`, `timestamp_bin`, `NonFiniteIntervalPart`, `interval_trunc` in
//! `src/backend/utils/adt/timestamp.c`, `time_pl_interval` in `date.c`, `interval_to_char` in `formatting.c`,
//! PostgreSQL 17 and 18.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, BooleanArray, Float64Array, Int64Array, new_null_array,
};
use arrow::compute::kernels::zip::zip;
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Float64Type, Int32Type, Int64Type};
use pagemill_types::builtin::oid;

use super::super::KernelCall;
use super::super::integers::division_by_zero;
use super::super::keys::{payloads, strings};
use super::super::rows::Outcome;
use super::calendar::{
    interval_out_of_range, is_infinite, is_infinite_date, overflow, timestamp_out_of_range,
};
use super::casts::date_to_timestamp;
use super::interval::{Interval, pick};
use super::{extract, truncate};
use crate::error::StatementError;

/// What a row gives.
enum Answer {
    Null,
    Truth(bool),
    Number(i64),
    Float(f64),
    Payload(Vec<u8>),
}

/// Which end a value stands at: -1, 1, or 0 for neither.
type End = i64;

/// What `finite` gives, and here what it has not in mind.
pub(super) fn completed(
    call: &KernelCall,
    arguments: &[ArrayRef],
    finite: impl Fn(&[ArrayRef]) -> Outcome<ArrayRef>,
) -> Outcome<ArrayRef> {
    let is_interval =
        |ty: &crate::types::PgType| call.catalog.base_type(ty.oid, -1).0 == oid::INTERVAL;
    let intervals: Vec<usize> = (0..arguments.len())
        .filter(|at| call.arguments.get(*at).is_some_and(is_interval))
        .collect();
    let is_age = matches!(&*call.key, "timestamp_age" | "timestamptz_age");
    if intervals.is_empty() && !is_age {
        return finite(arguments);
    }
    let is_product = matches!(&*call.key, "interval_mul" | "mul_d_interval");
    let batch = Batch { call, arguments, intervals, is_age, is_product };
    let count = arguments.first().map_or(0, |first| first.len());
    let endless: Vec<bool> = (0..count).map(|row| batch.is_endless(row)).collect();
    if !endless.contains(&true) {
        return finite(arguments);
    }
    let mut answers = Vec::with_capacity(count);
    for (row, is_endless) in endless.iter().enumerate() {
        answers.push(if *is_endless { batch.answer(row)? } else { Answer::Null });
    }
    let mask = BooleanArray::from(endless);
    let told = |error: arrow::error::ArrowError| StatementError::unsupported(error.to_string());
    let others = arguments.iter().map(|argument| nullif(argument, &mask).map_err(told));
    let others = finite(&others.collect::<Outcome<Vec<_>>>()?)?;
    let answers = column(answers, others.data_type())?;
    zip(&mask, &answers, &others).map_err(told)
}

/// The answers as a column of this type.
fn column(answers: Vec<Answer>, carrier: &DataType) -> Outcome<ArrayRef> {
    let answers = answers.into_iter();
    Ok(match carrier {
        DataType::Boolean => {
            Arc::new(BooleanArray::from_iter(answers.map(|answer| match answer {
                Answer::Truth(truth) => Some(truth),
                _ => None,
            })))
        }
        DataType::Int64 => Arc::new(Int64Array::from_iter(answers.map(|answer| match answer {
            Answer::Number(number) => Some(number),
            _ => None,
        }))),
        DataType::Float64 => {
            Arc::new(Float64Array::from_iter(answers.map(|answer| match answer {
                Answer::Float(number) => Some(number),
                _ => None,
            })))
        }
        DataType::Binary => {
            let mut built = BinaryBuilder::new();
            for answer in answers {
                match answer {
                    Answer::Payload(payload) => built.append_value(payload),
                    _ => built.append_null(),
                }
            }
            Arc::new(built.finish())
        }
        other => new_null_array(other, answers.len()),
    })
}

struct Batch<'b> {
    call: &'b KernelCall,
    arguments: &'b [ArrayRef],
    /// Which arguments are intervals.
    intervals: Vec<usize>,
    is_age: bool,
    is_product: bool,
}

impl Batch<'_> {
    /// Whether a row has something without end, and no NULL.
    fn is_endless(&self, row: usize) -> bool {
        if self.arguments.iter().any(|argument| argument.is_null(row)) {
            return false;
        }
        self.is_age && (0..2).any(|at| self.time_end(at, row) != 0)
            || self.is_product && self.factor(row).is_infinite()
            || self.intervals.iter().any(|at| self.interval(*at, row).is_infinite())
    }

    fn interval(&self, at: usize, row: usize) -> Interval {
        Interval::of_payload(payloads(&self.arguments[at]).value(row))
    }

    /// Which end the interval stands at.
    fn end(&self, at: usize, row: usize) -> End {
        end_of(self.interval(at, row))
    }

    /// The number that an interval is scaled by.
    fn factor(&self, row: usize) -> f64 {
        let at = usize::from(&*self.call.key != "mul_d_interval");
        self.arguments[at].as_primitive::<Float64Type>().value(row)
    }

    fn time(&self, at: usize, row: usize) -> Outcome<i64> {
        let argument = &self.arguments[at];
        match argument.data_type() {
            DataType::Int32 => date_to_timestamp(argument.as_primitive::<Int32Type>().value(row)),
            _ => Ok(argument.as_primitive::<Int64Type>().value(row)),
        }
    }

    /// Which end a timestamp or date stands at.
    fn time_end(&self, at: usize, row: usize) -> End {
        let argument = &self.arguments[at];
        match argument.data_type() {
            DataType::Int32 => {
                let date = argument.as_primitive::<Int32Type>().value(row);
                if is_infinite_date(date) { date.signum().into() } else { 0 }
            }
            _ => {
                let time = argument.as_primitive::<Int64Type>().value(row);
                if is_infinite(time) { time.signum() } else { 0 }
            }
        }
    }

    fn answer(&self, row: usize) -> Outcome<Answer> {
        match &*self.call.key {
            "interval_um" => Ok(interval(-self.end(0, row))),
            "interval_pl" => sum(self.end(0, row), self.end(1, row)),
            "interval_mi" => sum(self.end(0, row), -self.end(1, row)),
            "interval_mul" => scaled(self.interval(0, row), self.factor(row)),
            "mul_d_interval" => scaled(self.interval(1, row), self.factor(row)),
            "interval_div" => divided(self.end(0, row), self.factor(row)),
            "interval_justify_hours"
            | "interval_justify_days"
            | "interval_justify_interval"
            | "interval_scale" => Ok(interval(self.end(0, row))),
            "interval_larger" | "interval_smaller" => {
                let is_larger = &*self.call.key == "interval_larger";
                let found = pick(self.interval(0, row), self.interval(1, row), is_larger);
                Ok(Answer::Payload(found.payload().to_vec()))
            }
            "interval_finite" => Ok(Answer::Truth(false)),
            "interval_time" => Err(overflow("cannot convert infinite interval to time")),
            "interval_to_char" => Ok(Answer::Null),
            _ => self.part(row),
        }
    }

    fn part(&self, row: usize) -> Outcome<Answer> {
        let unit = || strings(&self.arguments[0]).value(row);
        let is_negative = |at: usize| self.end(at, row) < 0;
        let has_weeks = self.call.catalog.database().cluster().version().major() >= 18;
        match &*self.call.key {
            "extract_interval" => {
                let part = extract::numeric_of_endless(unit(), is_negative(1), has_weeks)?;
                Ok(part.map_or(Answer::Null, Answer::Payload))
            }
            "interval_part" => {
                let part = extract::float_of_endless(unit(), is_negative(1), has_weeks)?;
                Ok(part.map_or(Answer::Null, Answer::Float))
            }
            "interval_trunc" => {
                // 17 does not look at the unit.
                if has_weeks {
                    truncate::interval(unit(), Interval::new(0, 0, 0))?;
                }
                Ok(interval(self.end(1, row)))
            }
            _ => self.moment(row),
        }
    }

    fn moment(&self, row: usize) -> Outcome<Answer> {
        match &*self.call.key {
            "timestamp_pl_interval" | "timestamptz_pl_interval" | "date_pl_interval" => {
                self.moved((0, row), self.end(1, row))
            }
            "timestamp_mi_interval" | "timestamptz_mi_interval" | "date_mi_interval" => {
                self.moved((0, row), -self.end(1, row))
            }
            "interval_pl_date(interval,date)"
            | "interval_pl_timestamp(interval,timestamp)"
            | "interval_pl_timestamptz(interval,timestamptz)" => {
                self.moved((1, row), self.end(0, row))
            }
            "timestamp_age" | "timestamptz_age" => {
                sum(self.time_end(0, row), -self.time_end(1, row))
            }
            "timestamp_bin" | "timestamptz_bin" => {
                let (time, origin) = (self.time(1, row)?, self.time(2, row)?);
                match () {
                    () if is_infinite(time) => Ok(Answer::Number(time)),
                    () if is_infinite(origin) => Err(overflow("origin out of range")),
                    () => Err(overflow("timestamps cannot be binned into infinite intervals")),
                }
            }
            "time_pl_interval" | "timetz_pl_interval" | "interval_pl_time(interval,time)" => {
                Err(overflow("cannot add infinite interval to time"))
            }
            "time_mi_interval" | "timetz_mi_interval" => {
                Err(overflow("cannot subtract infinite interval from time"))
            }
            _ => Err(StatementError::unsupported("a function of an infinite interval")),
        }
    }

    /// A time of an argument and a row, moved to an end.
    fn moved(&self, (at, row): (usize, usize), end: End) -> Outcome<Answer> {
        self.time(at, row)?;
        match self.time_end(at, row) + end {
            0 => Err(timestamp_out_of_range()),
            _ if end > 0 => Ok(Answer::Number(i64::MAX)),
            _ => Ok(Answer::Number(i64::MIN)),
        }
    }
}

fn end_of(interval: Interval) -> End {
    if interval.is_infinite() { interval.micros.signum() } else { 0 }
}

/// The interval that stands at an end.
fn interval(end: End) -> Answer {
    let found = match end > 0 {
        true => Interval::new(i32::MAX, i32::MAX, i64::MAX),
        false => Interval::new(i32::MIN, i32::MIN, i64::MIN),
    };
    Answer::Payload(found.payload().to_vec())
}

/// Of two, one of which stands at an end at least: what they are together.
fn sum(x: End, y: End) -> Outcome<Answer> {
    match x + y {
        0 => Err(interval_out_of_range()),
        both => Ok(interval(both)),
    }
}

/// An interval times a number, one of which has no end.
fn scaled(of: Interval, factor: f64) -> Outcome<Answer> {
    let length = of.length().signum();
    match factor.is_nan() || factor == 0.0 || length == 0 {
        true => Err(interval_out_of_range()),
        false => Ok(interval(if (factor > 0.0) == (length > 0) { 1 } else { -1 })),
    }
}

/// An interval without end by a number.
fn divided(end: End, factor: f64) -> Outcome<Answer> {
    match () {
        () if factor == 0.0 => Err(division_by_zero()),
        () if !factor.is_finite() => Err(interval_out_of_range()),
        () => Ok(interval(if factor > 0.0 { end } else { -end })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(answer: Outcome<Answer>) -> Option<End> {
        match answer {
            Ok(Answer::Payload(payload)) => Some(end_of(Interval::of_payload(&payload))),
            _ => None,
        }
    }

    #[test]
    fn what_has_no_end_goes_on_without_one() {
        let (late, early) = (Interval::new(i32::MAX, i32::MAX, i64::MAX), Interval::new(-1, 0, 0));
        assert_eq!((end(sum(1, 0)), end(sum(0, -1)), end(sum(1, -1))), (Some(1), Some(-1), None));
        assert_eq!(end(scaled(late, -2.0)), Some(-1));
        assert_eq!(end(scaled(early, f64::INFINITY)), Some(-1));
        assert_eq!(end(scaled(early, f64::NEG_INFINITY)), Some(1));
        assert_eq!(end(scaled(late, 0.0)), None);
        assert_eq!(end(scaled(Interval::new(0, 0, 0), f64::INFINITY)), None);
        assert_eq!((end(divided(1, -0.5)), end(divided(-1, 2.0))), (Some(-1), Some(-1)));
        assert_eq!((end(divided(1, f64::INFINITY)), end(divided(1, 0.0))), (None, None));
    }
}
