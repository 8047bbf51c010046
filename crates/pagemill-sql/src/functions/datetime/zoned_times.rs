//! Times with time zones: their order, what they are with intervals, dates and fewer places.
//!
//! A payload is the time of day in microseconds, 8 bytes, and how many seconds its zone is west of Greenwich, 4.
//!
//! Source: `timetz_cmp_internal`, `timetz_pl_interval`, `timetz_mi_interval`, `timetz_time`, `timetz_scale`,
//! `datetimetz_timestamptz` in `src/backend/utils/adt/date.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use super::super::rows::{Outcome, Plain, one, two};
use super::calendar::{DAY, SECOND, is_infinite, is_valid, overflow, timestamp_out_of_range};
use super::casts::date_to_timestamp;
use super::interval::Interval;
use super::{places, round_to};
use crate::error::{SqlState, StatementError};

/// Such a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ZonedTime {
    micros: i64,
    west: i32,
}

impl ZonedTime {
    fn read(payload: &[u8]) -> Outcome<Self> {
        match (payload.first_chunk::<8>(), payload.get(8..).map(<[u8; 4]>::try_from)) {
            (Some(micros), Some(Ok(west))) => {
                Ok(Self { micros: i64::from_le_bytes(*micros), west: i32::from_le_bytes(west) })
            }
            _ => {
                let message = format!("a time with a zone of {} bytes is damaged", payload.len());
                Err(StatementError::new(SqlState::DATA_CORRUPTED, message))
            }
        }
    }

    fn payload(self) -> Vec<u8> {
        [&self.micros.to_le_bytes()[..], &self.west.to_le_bytes()].concat()
    }

    /// What sorts as it does: the time in Greenwich, and if that is the same the zone.
    fn place(self) -> (i128, i32) {
        (i128::from(self.micros) + i128::from(self.west) * i128::from(SECOND), self.west)
    }

    /// Earlier or later by so much, around midnight.
    fn moved(self, by: i64) -> Self {
        Self {
            micros: (i128::from(self.micros) + i128::from(by)).rem_euclid(DAY.into()) as i64,
            ..self
        }
    }
}

/// The time of day in microseconds, and how many seconds its zone is west of Greenwich.
pub(super) fn parts(payload: &[u8]) -> Outcome<(i64, i32)> {
    let ZonedTime { micros, west } = ZonedTime::read(payload)?;
    Ok((micros, west))
}

/// Where a time stands among others, of a payload.
pub(super) fn place(payload: &[u8]) -> Outcome<(i128, i32)> {
    Ok(ZonedTime::read(payload)?.place())
}

/// Bytes that sort as such times do.
pub(in crate::functions) fn order_key(payload: &[u8]) -> Outcome<Vec<u8>> {
    let (time, west) = place(payload)?;
    // Numbers with their sign turned sort as their bytes do.
    let (time, west) = ((time as u128) ^ (1 << 127), west.cast_unsigned() ^ (1 << 31));
    Ok([&time.to_be_bytes()[..], &west.to_be_bytes()].concat())
}

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "timetz_cmp" => |a| two(a, compared),
        "timetz_larger" => |a| two(a, |x: &[u8], y: &[u8]| chosen(x, y, Ordering::Greater)),
        "timetz_smaller" => |a| two(a, |x: &[u8], y: &[u8]| chosen(x, y, Ordering::Less)),
        "timetz_pl_interval" => |a| two(a, |time: &[u8], by: Interval| moved(time, by.micros)),
        "timetz_mi_interval" => {
            |a| two(a, |time: &[u8], by: Interval| moved(time, by.micros.wrapping_neg()))
        }
        "timetz_time" => |a| one(a, |time: &[u8]| Ok(ZonedTime::read(time)?.micros)),
        "time_timetz" => |a| one(a, |time: i64| Ok(payload(time, 0))),
        "timestamptz_timetz" => |a| one(a, |moment: i64| at_moment(moment, 0)),
        "timetz_scale" => |a| two(a, scaled),
        "datetimetz_timestamptz" => |a| two(a, on_day),
        _ => return None,
    })
}

/// A time of day in a zone so many seconds west of Greenwich.
pub(super) fn payload(micros: i64, west: i32) -> Vec<u8> {
    ZonedTime { micros, west }.payload()
}

/// What clocks showed at a moment, so many seconds west of Greenwich; NULL at one that never comes.
pub(super) fn at_moment(moment: i64, west: i32) -> Outcome<Option<Vec<u8>>> {
    let local = moment.checked_sub(i64::from(west) * SECOND).ok_or_else(timestamp_out_of_range)?;
    let time = || payload(local.rem_euclid(DAY), west);
    Ok((!is_infinite(moment)).then(time))
}

fn compared(x: &[u8], y: &[u8]) -> Outcome<i32> {
    Ok(place(x)?.cmp(&place(y)?) as i32)
}

/// The second one only where it is not as wanted behind the first.
fn chosen(x: &[u8], y: &[u8], wanted: Ordering) -> Outcome<Vec<u8>> {
    let is_first = place(x)?.cmp(&place(y)?) == wanted;
    Ok(if is_first { x } else { y }.to_vec())
}

fn moved(time: &[u8], by: i64) -> Outcome<Vec<u8>> {
    Ok(ZonedTime::read(time)?.moved(by).payload())
}

fn scaled(time: &[u8], modifier: i32) -> Outcome<Vec<u8>> {
    let time = ZonedTime::read(time)?;
    let micros = round_to(time.micros, places(modifier)).ok_or_else(timestamp_out_of_range)?;
    Ok(ZonedTime { micros, ..time }.payload())
}

/// The moment that a time is on a day.
fn on_day(date: i32, time: &[u8]) -> Outcome<i64> {
    let begin = date_to_timestamp(date)?;
    if is_infinite(begin) {
        return Ok(begin);
    }
    let (time, _) = place(time)?;
    let moment = i64::try_from(i128::from(begin) + time).ok().filter(|moment| is_valid(*moment));
    moment.ok_or_else(|| overflow("date out of range for timestamp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(micros: i64, west: i32) -> Vec<u8> {
        ZonedTime { micros, west }.payload()
    }

    #[test]
    fn times_are_in_the_order_of_what_they_are_in_greenwich() {
        let ascending = [
            time(0, -3600),
            time(0, 0),
            time(3600 * SECOND, -3600),
            time(3600 * SECOND, 0),
            time(DAY, 57_599),
        ];
        let ascending = [&ascending[0], &ascending[2], &ascending[1], &ascending[3], &ascending[4]];
        for pair in ascending.windows(2) {
            assert_eq!(compared(pair[0], pair[1]).unwrap(), -1);
            assert!(order_key(pair[0]).unwrap() < order_key(pair[1]).unwrap());
        }
        assert!(order_key(&[1, 2, 3]).is_err() && place(&[0; 13]).is_err());
    }

    #[test]
    fn intervals_go_around_midnight() {
        let late = ZonedTime { micros: DAY - SECOND, west: 60 };
        assert_eq!(late.moved(3 * SECOND).micros, 2 * SECOND);
        assert_eq!(late.moved(-DAY - SECOND).micros, DAY - 2 * SECOND);
    }
}
