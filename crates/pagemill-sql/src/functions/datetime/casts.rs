//! Dates, times and timestamps as each other, in UTC, and to a precision; comparisons between them.
//!
//! Source: `date2timestamp_opt_overflow`, `date_cmp_timestamp_internal` in `src/backend/utils/adt/date.c`, `AdjustTimestampForTypmod` in
//! `timestamp.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use super::super::rows::{Outcome, Plain, one, two};
use super::calendar::{DAY, END_TIMESTAMP_DAY, is_infinite, overflow};
use super::{places, round_to};

pub(super) fn plain(key: &str) -> Option<Plain> {
    comparison(key).or_else(|| conversion(key))
}

fn conversion(key: &str) -> Option<Plain> {
    Some(match key {
        "date_timestamp" | "date_timestamptz" => |a| one(a, date_to_timestamp),
        "timestamp_date" | "timestamptz_date" => {
            |a| one(a, |timestamp: i64| Ok(date_of(timestamp)))
        }
        "timestamp_timestamptz" | "timestamptz_timestamp" => {
            |a| one(a, |timestamp: i64| Ok(timestamp))
        }
        "timestamp_time" | "timestamptz_time" => {
            |a| one(a, |timestamp: i64| Ok(time_of(timestamp)))
        }
        "timestamp_scale" | "timestamptz_scale" => |a| two(a, timestamp_scale),
        "time_scale" => {
            |a| two(a, |time: i64, p: i32| Ok(round_to(time, places(p)).unwrap_or(time)))
        }
        "timestamp_finite" => |a| one(a, |timestamp: i64| Ok(!is_infinite(timestamp))),
        "date_finite" => |a| one(a, |date: i32| Ok(!super::calendar::is_infinite_date(date))),
        "date_larger" => |a| two(a, |x: i32, y: i32| Ok(x.max(y))),
        "date_smaller" => |a| two(a, |x: i32, y: i32| Ok(x.min(y))),
        "timestamp_larger" | "time_larger" => |a| two(a, |x: i64, y: i64| Ok(x.max(y))),
        "timestamp_smaller" | "time_smaller" => |a| two(a, |x: i64, y: i64| Ok(x.min(y))),
        "date_cmp_timestamp" | "date_cmp_timestamptz" => {
            |a| two(a, |x: i32, y: i64| Ok(against(x, y) as i32))
        }
        "timestamp_cmp_date" | "timestamptz_cmp_date" => {
            |a| two(a, |x: i64, y: i32| Ok(against(y, x).reverse() as i32))
        }
        _ => return None,
    })
}

fn comparison(key: &str) -> Option<Plain> {
    let (from, rest) = key.split_once('_')?;
    let (name, to) = rest.split_once('_')?;
    match (from, to) {
        ("date", "timestamp" | "timestamptz") => Some(match name {
            "eq" => |a| two(a, |x: i32, y: i64| Ok(against(x, y).is_eq())),
            "ne" => |a| two(a, |x: i32, y: i64| Ok(against(x, y).is_ne())),
            "lt" => |a| two(a, |x: i32, y: i64| Ok(against(x, y).is_lt())),
            "le" => |a| two(a, |x: i32, y: i64| Ok(against(x, y).is_le())),
            "gt" => |a| two(a, |x: i32, y: i64| Ok(against(x, y).is_gt())),
            "ge" => |a| two(a, |x: i32, y: i64| Ok(against(x, y).is_ge())),
            _ => return None,
        }),
        ("timestamp" | "timestamptz", "date") => Some(match name {
            "eq" => |a| two(a, |x: i64, y: i32| Ok(against(y, x).is_eq())),
            "ne" => |a| two(a, |x: i64, y: i32| Ok(against(y, x).is_ne())),
            "lt" => |a| two(a, |x: i64, y: i32| Ok(against(y, x).is_gt())),
            "le" => |a| two(a, |x: i64, y: i32| Ok(against(y, x).is_ge())),
            "gt" => |a| two(a, |x: i64, y: i32| Ok(against(y, x).is_lt())),
            "ge" => |a| two(a, |x: i64, y: i32| Ok(against(y, x).is_le())),
            _ => return None,
        }),
        ("timestamp", "timestamptz") | ("timestamptz", "timestamp") => Some(match name {
            "eq" => |a| two(a, |x: i64, y: i64| Ok(x == y)),
            "ne" => |a| two(a, |x: i64, y: i64| Ok(x != y)),
            "lt" => |a| two(a, |x: i64, y: i64| Ok(x < y)),
            "le" => |a| two(a, |x: i64, y: i64| Ok(x <= y)),
            "gt" => |a| two(a, |x: i64, y: i64| Ok(x > y)),
            "ge" => |a| two(a, |x: i64, y: i64| Ok(x >= y)),
            _ => return None,
        }),
        _ => None,
    }
}

/// A date's midnight against a timestamp; a date beyond all timestamps is later than each but infinity.
pub(crate) fn against(date: i32, timestamp: i64) -> Ordering {
    match date_to_timestamp(date) {
        Ok(midnight) => midnight.cmp(&timestamp),
        Err(_) if timestamp == i64::MAX => Ordering::Less,
        Err(_) => Ordering::Greater,
    }
}

pub(crate) fn date_to_timestamp(date: i32) -> Outcome<i64> {
    match date {
        i32::MIN => Ok(i64::MIN),
        i32::MAX => Ok(i64::MAX),
        days if i64::from(days) >= END_TIMESTAMP_DAY => {
            Err(overflow("date out of range for timestamp"))
        }
        days => Ok(i64::from(days) * DAY),
    }
}

pub(super) fn date_of(timestamp: i64) -> i32 {
    match timestamp {
        i64::MIN => i32::MIN,
        i64::MAX => i32::MAX,
        // A timestamp's days are a date's.
        finite => finite.div_euclid(DAY) as i32,
    }
}

pub(super) fn time_of(timestamp: i64) -> Option<i64> {
    (!is_infinite(timestamp)).then(|| timestamp.rem_euclid(DAY))
}

fn timestamp_scale(timestamp: i64, modifier: i32) -> Outcome<i64> {
    if is_infinite(timestamp) || modifier < 0 {
        return Ok(timestamp);
    }
    let rounded = round_to(timestamp, modifier);
    rounded
        .filter(|made| super::calendar::is_valid(*made))
        .ok_or_else(super::calendar::timestamp_out_of_range)
}
