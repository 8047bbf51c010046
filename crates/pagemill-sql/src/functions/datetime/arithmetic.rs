//! Dates and timestamps with days and intervals, and their differences.
//!
//! Source: `date_pli`, `date_mi`, `time_pl_interval` in `src/backend/utils/adt/date.c`, `timestamp_pl_interval`, `timestamp_mi`,
//! `timestamp_age`, `timestamp_bin` in `timestamp.c`, PostgreSQL 14 to 18.

use super::super::rows::{Outcome, Plain, three, two};
use super::calendar::{
    Civil, DAY, Parts, interval_out_of_range, is_infinite, is_infinite_date, is_valid,
    is_valid_date, month_length, overflow, timestamp_out_of_range,
};
use super::casts::date_to_timestamp;
use super::interval::{Interval, justify_hours};
use crate::error::StatementError;

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "date_pli" => |a| two(a, |date: i32, days: i32| date_plus(date, days.into())),
        "integer_pl_date(int4,date)" => {
            |a| two(a, |days: i32, date: i32| date_plus(date, days.into()))
        }
        "date_mii" => |a| two(a, |date: i32, days: i32| date_plus(date, -i64::from(days))),
        "date_mi" => |a| two(a, days_between),
        "date_pl_interval" => |a| two(a, |d: i32, by: Interval| plus(date_to_timestamp(d)?, by)),
        "interval_pl_date(interval,date)" => {
            |a| two(a, |by: Interval, date: i32| plus(date_to_timestamp(date)?, by))
        }
        "date_mi_interval" => |a| two(a, |d: i32, by: Interval| minus(date_to_timestamp(d)?, by)),
        "timestamp_pl_interval" | "timestamptz_pl_interval" => |a| two(a, plus),
        "timestamp_mi_interval" | "timestamptz_mi_interval" => |a| two(a, minus),
        "interval_pl_timestamp(interval,timestamp)"
        | "interval_pl_timestamptz(interval,timestamptz)" => {
            |a| two(a, |by: Interval, timestamp: i64| plus(timestamp, by))
        }
        "timestamp_mi" | "timestamptz_mi" => |a| two(a, between),
        "timestamp_age" | "timestamptz_age" => |a| two(a, |x: i64, y: i64| age((x, y), x < y)),
        "timestamp_bin" | "timestamptz_bin" => |a| three(a, bin),
        "time_pl_interval" => |a| two(a, |time: i64, by: Interval| Ok(clock_plus(time, by.micros))),
        "interval_pl_time(interval,time)" => {
            |a| two(a, |by: Interval, time: i64| Ok(clock_plus(time, by.micros)))
        }
        "time_mi_interval" => {
            |a| two(a, |t: i64, by: Interval| Ok(clock_plus(t, by.micros.wrapping_neg())))
        }
        "time_mi_time" => |a| two(a, |x: i64, y: i64| Ok(Interval::new(0, 0, x - y))),
        "datetime_timestamp" => |a| two(a, at_time),
        "timedate_pl(time,date)" => |a| two(a, |time: i64, date: i32| at_time(date, time)),
        "timestamptz(date,time)" => |a| two(a, at_time),
        _ => return None,
    })
}

fn date_plus(date: i32, days: i64) -> Outcome<i32> {
    if is_infinite_date(date) {
        return Ok(date);
    }
    let sum = i64::from(date) + days;
    match is_valid_date(sum) {
        true => Ok(sum as i32),
        false => Err(overflow("date out of range")),
    }
}

fn days_between(x: i32, y: i32) -> Outcome<i32> {
    match is_infinite_date(x) || is_infinite_date(y) {
        true => Err(overflow("cannot subtract infinite dates")),
        false => Ok(x.wrapping_sub(y)),
    }
}

/// Months first, then days, then the time; a day that a month has not is its last.
pub(super) fn plus(timestamp: i64, by: Interval) -> Outcome<i64> {
    if is_infinite(timestamp) {
        return Ok(timestamp);
    }
    let mut timestamp = timestamp;
    if by.months != 0 {
        let Parts { date, clock } = Parts::of(timestamp);
        let month = i32::try_from(date.month).ok().and_then(|month| month.checked_add(by.months));
        let date = month.map(|_| date.plus_months(by.months.into()));
        let made = date.and_then(|date| Parts { date, clock }.timestamp());
        timestamp = made.ok_or_else(timestamp_out_of_range)?;
    }
    if by.days != 0 {
        let Parts { date, clock } = Parts::of(timestamp);
        let date = Civil::of_days(date.days() + i64::from(by.days));
        timestamp = Parts { date, clock }.timestamp().ok_or_else(timestamp_out_of_range)?;
    }
    let sum = timestamp.checked_add(by.micros).filter(|sum| is_valid(*sum));
    sum.ok_or_else(timestamp_out_of_range)
}

/// By adding what is the other way round.
fn minus(timestamp: i64, by: Interval) -> Outcome<i64> {
    plus(timestamp, by.negated()?)
}

/// The time between, in whole days of 24 hours and the rest.
fn between(x: i64, y: i64) -> Outcome<Interval> {
    if is_infinite(x) || is_infinite(y) {
        return Err(overflow("cannot subtract infinite timestamps"));
    }
    // Until 15 too long a time was a wrong one.
    let micros = x.checked_sub(y).ok_or_else(interval_out_of_range)?;
    justify_hours(Interval::new(0, 0, micros))
}

/// The same from 17 on, where times without end are so far apart.
pub(super) fn between_any(x: i64, y: i64) -> Outcome<Vec<u8>> {
    // Which end a time stands at, if at one.
    let end = |time: i64| if is_infinite(time) { time.signum() } else { 0 };
    let found = match (end(x), end(y)) {
        (0, 0) => between(x, y)?,
        (a, b) if a == b => return Err(interval_out_of_range()),
        (a, b) if a > b => Interval::new(i32::MAX, i32::MAX, i64::MAX),
        _ => Interval::new(i32::MIN, i32::MIN, i64::MIN),
    };
    // As it lies: of others, one without end is an error.
    Ok(found.payload().to_vec())
}

/// Years, months and days between, as a calendar has them; negative where the first is the earlier one.
pub(super) fn age((x, y): (i64, i64), is_negative: bool) -> Outcome<Interval> {
    if is_infinite(x) || is_infinite(y) {
        return Err(StatementError::unsupported("the age of an infinite timestamp"));
    }
    let (later, earlier) = if is_negative { (y, x) } else { (x, y) };
    let (later, earlier) = (Parts::of(later), Parts::of(earlier));
    let mut micros = later.clock - earlier.clock;
    let mut days = later.date.day - earlier.date.day;
    let mut months =
        (later.date.year - earlier.date.year) * 12 + later.date.month - earlier.date.month;
    if micros < 0 {
        micros += DAY;
        days -= 1;
    }
    while days < 0 {
        days += month_length(earlier.date.year, earlier.date.month);
        months -= 1;
    }
    let sign = if is_negative { -1 } else { 1 };
    // Years between timestamps are below 300000.
    Ok(Interval::new((sign * months) as i32, (sign * days) as i32, sign * micros))
}

/// The start of the stretch of this length, counted from an origin, that a timestamp falls in.
fn bin(stride: Interval, timestamp: i64, origin: i64) -> Outcome<i64> {
    if is_infinite(timestamp) {
        return Ok(timestamp);
    }
    if is_infinite(origin) {
        return Err(overflow("origin out of range"));
    }
    if stride.months != 0 {
        let message = "timestamps cannot be binned into intervals containing months or years";
        return Err(StatementError::new(crate::error::SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let days = i64::from(stride.days).checked_mul(DAY);
    let length = days.and_then(|days| days.checked_add(stride.micros));
    let length = length.ok_or_else(interval_out_of_range)?;
    if length <= 0 {
        return Err(overflow("stride must be greater than zero"));
    }
    let distance = timestamp.checked_sub(origin).ok_or_else(interval_out_of_range)?;
    let start = timestamp.checked_sub(distance.rem_euclid(length)).filter(|start| is_valid(*start));
    start.ok_or_else(timestamp_out_of_range)
}

/// The time of day, over midnight.
fn clock_plus(time: i64, micros: i64) -> i64 {
    time.wrapping_add(micros).rem_euclid(DAY)
}

pub(super) fn at_time(date: i32, time: i64) -> Outcome<i64> {
    let midnight = date_to_timestamp(date)?;
    if is_infinite(midnight) {
        return Ok(midnight);
    }
    let sum = midnight.checked_add(time).filter(|sum| is_valid(*sum));
    sum.ok_or_else(timestamp_out_of_range)
}
