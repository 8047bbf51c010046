//! Intervals: their arithmetic, justification and precision.
//!
//! Source: `interval_pl`, `interval_mul`, `interval_div`, `interval_justify_interval`, `AdjustIntervalForTypmod` in
//! `src/backend/utils/adt/timestamp.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, BinaryBuilder};
use pagemill_types::interval_fields as field;

use super::super::integers::division_by_zero;
use super::super::rows::{Given, Held, Made, Outcome, Plain, one, two};
use super::calendar::{DAY, HOUR, MINUTE, interval_out_of_range};
use super::round_to;
use crate::error::StatementError;

/// An interval; from 17 on three maxima or minima are an infinity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) micros: i64,
    pub(crate) days: i32,
    pub(crate) months: i32,
}

impl Interval {
    pub(crate) fn new(months: i32, days: i32, micros: i64) -> Self {
        Self { micros, days, months }
    }

    pub(crate) fn of_payload(payload: &[u8]) -> Self {
        let number = |at: usize| {
            let bytes = payload.get(at..at + 4).and_then(|bytes| bytes.first_chunk::<4>());
            i32::from_le_bytes(bytes.copied().unwrap_or_default())
        };
        let micros = payload.first_chunk::<8>().copied().unwrap_or_default();
        Self { micros: i64::from_le_bytes(micros), days: number(8), months: number(12) }
    }

    pub(crate) fn payload(&self) -> [u8; 16] {
        let mut payload = [0; 16];
        payload[..8].copy_from_slice(&self.micros.to_le_bytes());
        payload[8..12].copy_from_slice(&self.days.to_le_bytes());
        payload[12..].copy_from_slice(&self.months.to_le_bytes());
        payload
    }

    pub(crate) fn is_infinite(&self) -> bool {
        let all = (self.micros, self.days, self.months);
        all == (i64::MAX, i32::MAX, i32::MAX) || all == (i64::MIN, i32::MIN, i32::MIN)
    }

    /// The time it is taken for in comparisons: 30 days a month.
    pub(super) fn length(&self) -> i128 {
        let days = i128::from(self.months) * 30 + i128::from(self.days);
        days * i128::from(DAY) + i128::from(self.micros)
    }

    pub(super) fn negated(self) -> Outcome<Self> {
        let parts = (self.months.checked_neg(), self.days.checked_neg(), self.micros.checked_neg());
        let (Some(months), Some(days), Some(micros)) = parts else {
            return Err(interval_out_of_range());
        };
        Ok(Self { micros, days, months })
    }
}

impl<'a> Held<'a> for Interval {
    type Column = BinaryArray;
    fn at(column: &'a BinaryArray, row: usize) -> Self {
        Self::of_payload(column.value(row))
    }
}

impl Made for Interval {
    fn column(values: Vec<Option<Self>>) -> Outcome<ArrayRef> {
        let mut payloads = BinaryBuilder::with_capacity(values.len(), values.len() * 16);
        for value in values {
            let Some(value) = value else {
                payloads.append_null();
                continue;
            };
            if value.is_infinite() {
                return Err(interval_out_of_range());
            }
            payloads.append_value(value.payload());
        }
        Ok(Arc::new(payloads.finish()))
    }
}

impl Given for Interval {
    type Value = Self;
    fn given(self) -> Option<Self> {
        Some(self)
    }
}

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "interval_pl" => |a| two(a, plus),
        "interval_mi" => |a| two(a, |x: Interval, y: Interval| minus(x, y)),
        "interval_um" => |a| one(a, Interval::negated),
        "interval_mul" => |a| two(a, |x: Interval, by: f64| scaled(x, |number| number * by)),
        "mul_d_interval" => |a| two(a, |by: f64, x: Interval| scaled(x, |number| number * by)),
        "interval_div" => |a| two(a, divided),
        "interval_justify_hours" => |a| one(a, justify_hours),
        "interval_justify_days" => |a| one(a, justify_days),
        "interval_justify_interval" => |a| one(a, justify),
        "interval_scale" => |a| two(a, to_precision),
        "interval_larger" => |a| two(a, |x: Interval, y: Interval| Ok(pick(x, y, true))),
        "interval_smaller" => |a| two(a, |x: Interval, y: Interval| Ok(pick(x, y, false))),
        "interval_time" => |a| one(a, |x: Interval| Ok(x.micros.rem_euclid(DAY))),
        "time_interval" => |a| one(a, |time: i64| Ok(Interval::new(0, 0, time))),
        "interval_finite" => |a| one(a, |_: Interval| Ok(true)),
        _ => return None,
    })
}

/// The longer or the shorter one.
pub(super) fn pick(x: Interval, y: Interval, larger: bool) -> Interval {
    let is_first = if larger { x.length() > y.length() } else { x.length() < y.length() };
    if is_first { x } else { y }
}

pub(crate) fn plus(x: Interval, y: Interval) -> Outcome<Interval> {
    let months = x.months.checked_add(y.months);
    let (days, micros) = (x.days.checked_add(y.days), x.micros.checked_add(y.micros));
    match (months, days, micros) {
        (Some(months), Some(days), Some(micros)) => Ok(Interval { micros, days, months }),
        _ => Err(interval_out_of_range()),
    }
}

pub(crate) fn minus(x: Interval, y: Interval) -> Outcome<Interval> {
    let months = x.months.checked_sub(y.months);
    let (days, micros) = (x.days.checked_sub(y.days), x.micros.checked_sub(y.micros));
    match (months, days, micros) {
        (Some(months), Some(days), Some(micros)) => Ok(Interval { micros, days, months }),
        _ => Err(interval_out_of_range()),
    }
}

pub(crate) fn divided(interval: Interval, by: f64) -> Outcome<Interval> {
    match by == 0.0 {
        true => Err(division_by_zero()),
        false => scaled(interval, |number| number / by),
    }
}

/// To whole microseconds of a second.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round_ties_even() / 1e6
}

fn to_i32(number: f64) -> Outcome<i32> {
    match (-2_147_483_648.0..2_147_483_648.0).contains(&number) {
        true => Ok(number as i32),
        false => Err(interval_out_of_range()),
    }
}

/// Every part by a number; what is not whole of one part goes on to the next smaller one.
pub(crate) fn scaled(interval: Interval, by: impl Fn(f64) -> f64) -> Outcome<Interval> {
    const DAY_SECONDS: f64 = 86_400.0;
    let (all_months, all_days) = (by(interval.months.into()), by(interval.days.into()));
    let (months, days) = (to_i32(all_months)?, to_i32(all_days)?);
    let month_days = rounded((all_months - f64::from(months)) * 30.0);
    let mut seconds = (all_days - f64::from(days) + month_days - month_days.trunc()) * DAY_SECONDS;
    seconds = rounded(seconds);
    let mut days = Some(days);
    if seconds.abs() >= DAY_SECONDS {
        let whole = (seconds / DAY_SECONDS) as i32;
        days = days.and_then(|days| days.checked_add(whole));
        seconds -= f64::from(whole) * DAY_SECONDS;
    }
    let days = days.and_then(|days| days.checked_add(month_days as i32));
    let micros = (by(interval.micros as f64) + seconds * 1e6).round_ties_even();
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&micros);
    match days {
        Some(days) if fits => Ok(Interval { micros: micros as i64, days, months }),
        _ => Err(interval_out_of_range()),
    }
}

/// Whole days of the time, of one sign with the days.
pub(super) fn justify_hours(mut of: Interval) -> Outcome<Interval> {
    let days = of.days.checked_add((of.micros / DAY) as i32).ok_or_else(interval_out_of_range)?;
    of.micros %= DAY;
    of.days = days;
    Ok(same_sign_of_days(of))
}

fn same_sign_of_days(mut of: Interval) -> Interval {
    if of.days > 0 && of.micros < 0 {
        of.micros += DAY;
        of.days -= 1;
    } else if of.days < 0 && of.micros > 0 {
        of.micros -= DAY;
        of.days += 1;
    }
    of
}

/// Whole months, of 30 days, of the days.
fn months_of_days(mut of: Interval) -> Outcome<Interval> {
    of.months = of.months.checked_add(of.days / 30).ok_or_else(interval_out_of_range)?;
    of.days %= 30;
    Ok(of)
}

fn justify_days(of: Interval) -> Outcome<Interval> {
    let mut of = months_of_days(of)?;
    if of.months > 0 && of.days < 0 {
        of.days += 30;
        of.months -= 1;
    } else if of.months < 0 && of.days > 0 {
        of.days -= 30;
        of.months += 1;
    }
    Ok(of)
}

fn justify(mut of: Interval) -> Outcome<Interval> {
    if (of.days > 0 && of.micros > 0) || (of.days < 0 && of.micros < 0) {
        of = months_of_days(of)?;
    }
    of.days += (of.micros / DAY) as i32;
    of.micros %= DAY;
    of = months_of_days(of)?;
    if of.months > 0 && (of.days < 0 || (of.days == 0 && of.micros < 0)) {
        of.days += 30;
        of.months -= 1;
    } else if of.months < 0 && (of.days > 0 || (of.days == 0 && of.micros > 0)) {
        of.days -= 30;
        of.months += 1;
    }
    Ok(same_sign_of_days(of))
}

/// Only the fields of the type, and its places of a second.
pub(super) fn to_precision(mut of: Interval, modifier: i32) -> Outcome<Interval> {
    use field::{FULL_PRECISION, FULL_RANGE, MONTH, SECOND, YEAR};
    if modifier < 0 {
        return Ok(of);
    }
    let (range, precision) = ((modifier >> 16) & FULL_RANGE, modifier & FULL_PRECISION);
    let smallest = match range {
        YEAR => {
            of.months = of.months / 12 * 12;
            None
        }
        MONTH => None,
        both if both == YEAR | MONTH => None,
        FULL_RANGE => Some(1),
        fields if fields & SECOND != 0 => Some(1),
        fields if fields & field::MINUTE != 0 => Some(MINUTE),
        fields if fields & field::HOUR != 0 => Some(HOUR),
        fields if fields == field::DAY => Some(0),
        _ => return Err(StatementError::unsupported(format!("the interval modifier {modifier}"))),
    };
    match smallest {
        None => (of.days, of.micros) = (0, 0),
        Some(0) => of.micros = 0,
        Some(unit) => of.micros = of.micros / unit * unit,
    }
    if precision != FULL_PRECISION {
        of.micros = round_to(of.micros, precision).ok_or_else(interval_out_of_range)?;
    }
    Ok(of)
}
