//! `date_trunc`.
//!
//! Source: `timestamp_trunc`, `interval_trunc` in `src/backend/utils/adt/timestamp.c`, PostgreSQL 14 to 18.

use super::super::rows::{Outcome, Plain, two};
use super::calendar::timestamp_out_of_range;
use super::calendar::{Civil, HOUR, MINUTE, Parts, SECOND, first_monday, is_infinite};
use super::interval::Interval;
use super::units::{Named, Unit, of_truncation};
use crate::error::StatementError;

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "timestamp_trunc" => {
            |a| two(a, |unit: &str, t: i64| timestamp(unit, t, "timestamp without time zone"))
        }
        "timestamptz_trunc" => {
            |a| two(a, |unit: &str, t: i64| timestamp(unit, t, "timestamp with time zone"))
        }
        "interval_trunc" => |a| two(a, interval),
        _ => return None,
    })
}

/// Infinite ones are as they are; until 17 whatever the unit, which is refused.
pub(super) fn timestamp(unit: &str, timestamp: i64, name: &str) -> Outcome<i64> {
    let named = of_truncation(unit);
    if is_infinite(timestamp) {
        return infinite(&named, timestamp);
    }
    let Some(unit) = named.unit else { return Err(named.unknown(name)) };
    let made = parts(unit, Parts::of(timestamp)).ok_or_else(|| named.unsupported(name))?;
    made.timestamp().ok_or_else(timestamp_out_of_range)
}

pub(super) fn infinite(named: &Named, timestamp: i64) -> Outcome<i64> {
    match named.unit.and_then(|unit| parts(unit, Parts::of(0))) {
        Some(_) => Ok(timestamp),
        None => {
            let what = format!("unit \"{}\" of an infinite timestamp", named.name);
            Err(StatementError::unsupported(what))
        }
    }
}

/// The start of the unit; nothing where there is none.
pub(super) fn parts(unit: Unit, parts: Parts) -> Option<Parts> {
    let Parts { date, clock } = parts;
    let day = |year, month, day| Some(Parts { date: Civil::new(year, month, day), clock: 0 });
    let year = date.year;
    match unit {
        Unit::Microsecond => Some(parts),
        Unit::Millisecond => Some(Parts { date, clock: clock / 1000 * 1000 }),
        Unit::Second => Some(Parts { date, clock: clock / SECOND * SECOND }),
        Unit::Minute => Some(Parts { date, clock: clock / MINUTE * MINUTE }),
        Unit::Hour => Some(Parts { date, clock: clock / HOUR * HOUR }),
        Unit::Day => Some(Parts { date, clock: 0 }),
        Unit::Week => {
            let (year, week) = date.iso_week();
            let date = Civil::of_days(first_monday(year) + (week - 1) * 7);
            Some(Parts { date, clock: 0 })
        }
        Unit::Month => day(year, date.month, 1),
        Unit::Quarter => day(year, (date.month - 1) / 3 * 3 + 1, 1),
        Unit::Year => day(year, 1, 1),
        Unit::Decade if year > 0 => day(year / 10 * 10, 1, 1),
        Unit::Decade => day(-((9 - year) / 10) * 10, 1, 1),
        Unit::Century => day(era(year, 100), 1, 1),
        Unit::Millennium => day(era(era(year, 1000), 100), 1, 1),
        _ => None,
    }
}

/// The first year of a century or millennium, which begin with a year 1.
fn era(year: i64, length: i64) -> i64 {
    match year > 0 {
        true => (year + length - 1) / length * length - length + 1,
        false => -((length - year) / length) * length + 1,
    }
}

pub(super) fn interval(unit: &str, of: Interval) -> Outcome<Interval> {
    let named = of_truncation(unit);
    let Some(unit) = named.unit else { return Err(named.unknown("interval")) };
    let Interval { micros, days, months } = of;
    let to = |unit: i64| Ok(Interval::new(months, days, micros / unit * unit));
    let whole = |unit: i32| Ok(Interval::new(months / unit * unit, 0, 0));
    match unit {
        Unit::Microsecond => Ok(of),
        Unit::Millisecond => to(1000),
        Unit::Second => to(SECOND),
        Unit::Minute => to(MINUTE),
        Unit::Hour => to(HOUR),
        Unit::Day => Ok(Interval::new(months, days, 0)),
        Unit::Month => whole(1),
        Unit::Quarter => whole(3),
        Unit::Year => whole(12),
        Unit::Decade => whole(120),
        Unit::Century => whole(1200),
        Unit::Millennium => whole(12_000),
        _ => Err(named.unsupported("interval")),
    }
}
