//! Dates, times, timestamps and intervals of their parts.
//!
//! Source: `make_date`, `make_time`, `float_time_overflows` in `src/backend/utils/adt/date.c`, `make_timestamp_internal` and
//! `make_interval` in `timestamp.c`, PostgreSQL 14 to 18.

use arrow::array::{Array, ArrayRef, Float64Array, Int32Array};

use super::super::rows::{Made, Outcome, Plain, one, three};
use super::calendar::overflow;
use super::calendar::{
    Civil, DAY, END_TIMESTAMP_DAY, EPOCH_JULIAN_DAY, HOUR, MINUTE, Parts, SECOND, UNIX_EPOCH,
    interval_out_of_range, is_valid, is_valid_date, month_length, timestamp_out_of_range,
};
use super::interval::Interval;
use crate::error::{SqlState, StatementError};

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "make_date" => |a| three(a, make_date),
        "make_time" => |a| three(a, make_time),
        "make_timestamp" | "make_timestamptz" => |a| made(a, make_timestamp),
        "make_interval" => |a| made(a, make_interval),
        "float8_timestamptz" => |a| one(a, of_unix_seconds),
        _ => return None,
    })
}

/// Of integers and, last, a float.
fn made<T: Made>(
    arguments: &[ArrayRef],
    of: impl Fn(&[i32], f64) -> Outcome<T>,
) -> Outcome<ArrayRef> {
    let (seconds, whole) = arguments.split_last().expect("they have arguments"); // infallible: they are declared so
    let seconds: &Float64Array = seconds.as_any().downcast_ref().expect("a float"); // infallible: types were settled
    let whole: Vec<&Int32Array> =
        whole.iter().map(|array| array.as_any().downcast_ref().expect("an integer")).collect(); // infallible: so too
    let one = |row: usize| {
        if seconds.is_null(row) || whole.iter().any(|array| array.is_null(row)) {
            return Ok(None);
        }
        let numbers: Vec<i32> = whole.iter().map(|array| array.value(row)).collect();
        of(&numbers, seconds.value(row)).map(Some)
    };
    Made::column((0..seconds.len()).map(one).collect::<Outcome<Vec<Option<T>>>>()?)
}

#[cold]
fn field_overflow(message: String) -> StatementError {
    StatementError::new(SqlState("22008"), message)
}

/// A day of its numbers; years below zero are BC.
fn civil(year: i32, month: i32, day: i32) -> Option<Civil> {
    let made = match year {
        0 | i32::MIN => return None,
        ..0 => i64::from(year) + 1,
        _ => i64::from(year),
    };
    let (month, day) = (i64::from(month), i64::from(day));
    let fits = (1..=12).contains(&month) && day >= 1 && day <= month_length(made, month);
    fits.then(|| Civil::new(made, month, day))
}

fn make_date(year: i32, month: i32, day: i32) -> Outcome<i32> {
    // In the message years before 1 count from 0.
    let shown = if year < 0 {
        year.checked_add(1).filter(|year| *year > i32::MIN + 1).unwrap_or(year)
    } else {
        year
    };
    let named = format!("{shown}-{month:02}-{day:02}");
    let date = civil(year, month, day)
        .ok_or_else(|| field_overflow(format!("date field value out of range: {named}")))?;
    let days = date.days();
    match is_valid_date(days) {
        true => Ok(days as i32),
        false => Err(overflow(format!("date out of range: {named}"))),
    }
}

/// The microseconds of a time up to 24:00.
fn clock(hour: i32, minute: i32, second: f64) -> Option<i64> {
    let micros = (second * 1e6).round_ties_even();
    let fits =
        (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=6e7).contains(&micros);
    let clock = i64::from(hour) * HOUR + i64::from(minute) * MINUTE;
    Some(clock + if fits { micros as i64 } else { return None }).filter(|clock| *clock <= DAY)
}

#[cold]
fn time_overflow(hour: i32, minute: i32) -> StatementError {
    field_overflow(format!("time field value out of range: {hour}:{minute:02} and seconds"))
}

fn make_time(hour: i32, minute: i32, second: f64) -> Outcome<i64> {
    clock(hour, minute, second).ok_or_else(|| time_overflow(hour, minute))
}

fn make_timestamp(whole: &[i32], second: f64) -> Outcome<i64> {
    let &[year, month, day, hour, minute] = whole else {
        return Err(StatementError::unsupported("a timestamp of these parts"));
    };
    let named = format!("{year}-{month:02}-{day:02}");
    let date = civil(year, month, day)
        .ok_or_else(|| field_overflow(format!("date field value out of range: {named}")))?;
    if !date.is_valid() {
        return Err(overflow(format!("date out of range: {named}")));
    }
    let clock = clock(hour, minute, second).ok_or_else(|| time_overflow(hour, minute))?;
    let made = Parts { date, clock }.timestamp();
    made.ok_or_else(|| overflow(format!("timestamp out of range: {named}")))
}

/// `to_timestamp`: the moment so many seconds after 1970.
///
/// Source: `float8_timestamptz` in `src/backend/utils/adt/timestamp.c`, PostgreSQL 14 to 18.
fn of_unix_seconds(seconds: f64) -> Outcome<i64> {
    if seconds.is_nan() {
        return Err(overflow("timestamp cannot be NaN"));
    }
    if seconds.is_infinite() {
        return Ok(if seconds > 0.0 { i64::MAX } else { i64::MIN });
    }
    let days = seconds / 86_400.0 + (UNIX_EPOCH / DAY) as f64;
    let micros = ((seconds + (UNIX_EPOCH / SECOND) as f64) * 1e6).round_ties_even();
    let fits = days >= -EPOCH_JULIAN_DAY as f64 && days < END_TIMESTAMP_DAY as f64;
    let made = Some(micros as i64).filter(|made| fits && is_valid(*made));
    made.ok_or_else(timestamp_out_of_range)
}

/// Too large a part is an error, as from 17 on; before, some were other parts.
fn make_interval(whole: &[i32], seconds: f64) -> Outcome<Interval> {
    let &[years, months, weeks, days, hours, minutes] = whole else {
        return Err(StatementError::unsupported("an interval of these parts"));
    };
    let months = years.checked_mul(12).and_then(|years| years.checked_add(months));
    let days = weeks.checked_mul(7).and_then(|weeks| weeks.checked_add(days));
    let micros = (seconds * 1e6).round_ties_even();
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&micros);
    let whole = i64::from(hours) * HOUR + i64::from(minutes) * MINUTE;
    let micros = if fits { whole.checked_add(micros as i64) } else { None };
    match (months, days, micros) {
        (Some(months), Some(days), Some(micros)) => Ok(Interval::new(months, days, micros)),
        _ => Err(interval_out_of_range()),
    }
}
