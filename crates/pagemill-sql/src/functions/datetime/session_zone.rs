//! What functions of `timestamptz` give where the session's TimeZone is not UTC: as the same functions of `timestamp`, on
//! what clocks of the zone show.
//!
//! Months and days are added to what clocks show, hours and less to the moment itself.
//!
//! Source: `timestamp2timestamptz_opt_overflow`, `timestamptz_pl_interval`, `timestamptz_age`, `timestamp_cmp_timestamptz_internal`
//! in `src/backend/utils/adt/timestamp.c`, `date2timestamptz_opt_overflow` in `date.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use arrow::array::ArrayRef;
use pagemill_types::time_zone::Zone;

use super::super::rows::{Outcome, one, two};
use super::arithmetic::{age, at_time, plus};
use super::calendar::{
    DAY, SECOND, UNIX_EPOCH, is_infinite, is_valid, overflow, timestamp_out_of_range,
};
use super::casts::{date_of, date_to_timestamp, time_of};
use super::interval::Interval;
use super::{extract, make, pictures, zoned_times, zones};
use crate::scan::now;

/// A function of one session's zone.
pub(crate) type Zoned = fn(&Zone, &[ArrayRef]) -> Outcome<ArrayRef>;

pub(crate) fn find(key: &str) -> Option<Zoned> {
    Some(match key {
        "date_timestamptz" => |zone, a| one(a, |date: i32| date_to_moment(zone, date)),
        "timestamp_timestamptz" => |zone, a| one(a, |local: i64| moment_of(zone, local)),
        "timestamptz_timestamp" => |zone, a| one(a, |moment: i64| shown(zone, moment)),
        "timestamptz_date" => |zone, a| one(a, |moment: i64| Ok(date_of(shown(zone, moment)?))),
        "timestamptz_time" => |zone, a| one(a, |moment: i64| Ok(time_of(shown(zone, moment)?))),
        "timestamptz_timetz" => |zone, a| {
            one(a, |moment: i64| zoned_times::at_moment(moment, -zone.at(unix_second(moment)).east))
        },
        "time_timetz" => |zone, a| {
            let midnight = shown(zone, now())?.div_euclid(DAY) * DAY;
            one(a, |time: i64| {
                let east = zone.resolve(unix_second(midnight + time)).east;
                Ok(zoned_times::payload(time, -east))
            })
        },
        "timestamptz(date,time)" => {
            |zone, a| two(a, |date: i32, time: i64| moment_of(zone, at_time(date, time)?))
        }
        "make_timestamptz" => |zone, a| {
            let local = (make::plain("make_timestamp").expect("it is known"))(a)?; // infallible: it is there
            one(&[local], |local: i64| moment_of(zone, local))
        },
        "timestamptz_trunc" => {
            |zone, a| two(a, |unit: &str, moment: i64| zones::truncate(zone, unit, moment))
        }
        "timestamptz_pl_interval" => {
            |zone, a| two(a, |moment: i64, by: Interval| plus_in(zone, moment, by))
        }
        "timestamptz_mi_interval" => {
            |zone, a| two(a, |moment: i64, by: Interval| plus_in(zone, moment, by.negated()?))
        }
        "interval_pl_timestamptz(interval,timestamptz)" => {
            |zone, a| two(a, |by: Interval, moment: i64| plus_in(zone, moment, by))
        }
        "timestamptz_age" => {
            |zone, a| two(a, |x: i64, y: i64| age((shown(zone, x)?, shown(zone, y)?), x < y))
        }
        "extract_timestamptz" => |zone, a| {
            two(a, |unit: &str, moment: i64| {
                extract::numeric_of_moment(unit, (moment, shown(zone, moment)?))
            })
        },
        "timestamptz_part" => |zone, a| {
            two(a, |unit: &str, moment: i64| {
                extract::float_of_moment(unit, (moment, shown(zone, moment)?))
            })
        },
        "timestamptz_to_char" => |zone, a| {
            two(a, |moment: i64, picture: &str| {
                let kind = zone.at(unix_second(moment));
                let named = pictures::NamedOffset { name: zone.name_of(kind), east: kind.east };
                pictures::to_char(shown(zone, moment)?, picture, named)
            })
        },
        _ => return comparison(key),
    })
}

fn comparison(key: &str) -> Option<Zoned> {
    let (from, rest) = key.split_once('_')?;
    let (name, to) = rest.split_once('_')?;
    match (from, to) {
        ("date", "timestamptz") => Some(match name {
            "eq" => |zone, a| two(a, |x: i32, y: i64| Ok(day_against(zone, x, y).is_eq())),
            "ne" => |zone, a| two(a, |x: i32, y: i64| Ok(day_against(zone, x, y).is_ne())),
            "lt" => |zone, a| two(a, |x: i32, y: i64| Ok(day_against(zone, x, y).is_lt())),
            "le" => |zone, a| two(a, |x: i32, y: i64| Ok(day_against(zone, x, y).is_le())),
            "gt" => |zone, a| two(a, |x: i32, y: i64| Ok(day_against(zone, x, y).is_gt())),
            "ge" => |zone, a| two(a, |x: i32, y: i64| Ok(day_against(zone, x, y).is_ge())),
            "cmp" => |zone, a| two(a, |x: i32, y: i64| Ok(day_against(zone, x, y) as i32)),
            _ => return None,
        }),
        ("timestamptz", "date") => Some(match name {
            "eq" => |zone, a| two(a, |x: i64, y: i32| Ok(day_against(zone, y, x).is_eq())),
            "ne" => |zone, a| two(a, |x: i64, y: i32| Ok(day_against(zone, y, x).is_ne())),
            "lt" => |zone, a| two(a, |x: i64, y: i32| Ok(day_against(zone, y, x).is_gt())),
            "le" => |zone, a| two(a, |x: i64, y: i32| Ok(day_against(zone, y, x).is_ge())),
            "gt" => |zone, a| two(a, |x: i64, y: i32| Ok(day_against(zone, y, x).is_lt())),
            "ge" => |zone, a| two(a, |x: i64, y: i32| Ok(day_against(zone, y, x).is_le())),
            "cmp" => {
                |zone, a| two(a, |x: i64, y: i32| Ok(day_against(zone, y, x).reverse() as i32))
            }
            _ => return None,
        }),
        ("timestamp", "timestamptz") => Some(match name {
            "eq" => |zone, a| two(a, |x: i64, y: i64| Ok(against(zone, x, y).is_eq())),
            "ne" => |zone, a| two(a, |x: i64, y: i64| Ok(against(zone, x, y).is_ne())),
            "lt" => |zone, a| two(a, |x: i64, y: i64| Ok(against(zone, x, y).is_lt())),
            "le" => |zone, a| two(a, |x: i64, y: i64| Ok(against(zone, x, y).is_le())),
            "gt" => |zone, a| two(a, |x: i64, y: i64| Ok(against(zone, x, y).is_gt())),
            "ge" => |zone, a| two(a, |x: i64, y: i64| Ok(against(zone, x, y).is_ge())),
            _ => return None,
        }),
        ("timestamptz", "timestamp") => Some(match name {
            "eq" => |zone, a| two(a, |x: i64, y: i64| Ok(against(zone, y, x).is_eq())),
            "ne" => |zone, a| two(a, |x: i64, y: i64| Ok(against(zone, y, x).is_ne())),
            "lt" => |zone, a| two(a, |x: i64, y: i64| Ok(against(zone, y, x).is_gt())),
            "le" => |zone, a| two(a, |x: i64, y: i64| Ok(against(zone, y, x).is_ge())),
            "gt" => |zone, a| two(a, |x: i64, y: i64| Ok(against(zone, y, x).is_lt())),
            "ge" => |zone, a| two(a, |x: i64, y: i64| Ok(against(zone, y, x).is_le())),
            _ => return None,
        }),
        _ => None,
    }
}

/// Seconds from 1970: in seconds, as the microseconds of the last years do not reach so far.
pub(crate) fn unix_second(timestamp: i64) -> i64 {
    timestamp.div_euclid(SECOND) - UNIX_EPOCH / SECOND
}

/// The moment at which clocks of the zone showed this.
pub(super) fn to_utc(zone: &Zone, local: i64) -> Option<i64> {
    unchecked(zone, local).filter(|made| is_valid(*made))
}

fn unchecked(zone: &Zone, local: i64) -> Option<i64> {
    let east = zone.resolve(unix_second(local)).east;
    local.checked_sub(i64::from(east) * SECOND)
}

/// What clocks of the zone showed at this moment.
pub(super) fn to_local(zone: &Zone, utc: i64) -> Option<i64> {
    let east = zone.at(unix_second(utc)).east;
    utc.checked_add(i64::from(east) * SECOND).filter(|made| is_valid(*made))
}

/// What clocks showed; infinities are what they are.
fn shown(zone: &Zone, moment: i64) -> Outcome<i64> {
    match is_infinite(moment) {
        true => Ok(moment),
        false => to_local(zone, moment).ok_or_else(timestamp_out_of_range),
    }
}

/// The moment at which clocks of the zone showed this; infinities are what they are.
pub(crate) fn moment_of(zone: &Zone, local: i64) -> Outcome<i64> {
    match is_infinite(local) {
        true => Ok(local),
        false => to_utc(zone, local).ok_or_else(timestamp_out_of_range),
    }
}

fn date_to_moment(zone: &Zone, date: i32) -> Outcome<i64> {
    let midnight = date_to_timestamp(date)?;
    match is_infinite(midnight) {
        true => Ok(midnight),
        false => to_utc(zone, midnight).ok_or_else(|| overflow("date out of range for timestamp")),
    }
}

/// A date's midnight against a moment; a date beyond all timestamps is later than each but infinity.
fn day_against(zone: &Zone, date: i32, moment: i64) -> Ordering {
    match date_to_timestamp(date) {
        Ok(midnight) => against(zone, midnight, moment),
        Err(_) if moment == i64::MAX => Ordering::Less,
        Err(_) => Ordering::Greater,
    }
}

/// What clocks show against a moment; what is no moment of the zone is beyond all others but the infinities.
fn against(zone: &Zone, local: i64, moment: i64) -> Ordering {
    if is_infinite(local) || is_infinite(moment) {
        return local.cmp(&moment);
    }
    let utc = unchecked(zone, local);
    let beyond = if local < 0 { i64::MIN } else { i64::MAX };
    utc.filter(|utc| is_valid(*utc)).unwrap_or(beyond).cmp(&moment)
}

/// A moment so much later.
pub(in crate::functions) fn plus_in(zone: &Zone, moment: i64, by: Interval) -> Outcome<i64> {
    if is_infinite(moment) {
        return Ok(moment);
    }
    let mut moment = moment;
    let steps = [Interval::new(by.months, 0, 0), Interval::new(0, by.days, 0)];
    for step in steps.into_iter().filter(|step| step.months != 0 || step.days != 0) {
        moment = moment_of(zone, plus(shown(zone, moment)?, step)?)?;
    }
    plus(moment, Interval::new(0, 0, by.micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_what_clocks_make_of_it() {
        let berlin = Zone::from_posix(b"CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        // 2000-03-25 12:00+01, a day before clocks are put forward.
        let before = 84 * 86_400 * SECOND + 11 * 3600 * SECOND;
        let plus = |by| plus_in(&berlin, before, by).unwrap() - before;
        assert_eq!(plus(Interval::new(0, 1, 0)), 23 * 3600 * SECOND);
        assert_eq!(plus(Interval::new(0, 0, 24 * 3600 * SECOND)), 24 * 3600 * SECOND);
        assert_eq!(plus(Interval::new(1, 0, 0)), (31 * 24 - 1) * 3600 * SECOND);
    }

    #[test]
    fn what_is_no_moment_is_beyond_all() {
        let west = Zone::from_posix(b"<-12>12").unwrap();
        let last = super::super::calendar::END_TIMESTAMP - 1;
        assert!(moment_of(&west, last).is_err());
        assert!(against(&west, last, last).is_gt() && against(&west, last, i64::MAX).is_lt());
    }
}
