//! Whether a date or time is within an interval of another, as RANGE in windows asks it.
//!
//! Sums that are no time of the type are errors, as they are for `+` and `-`; times of day do not go around midnight here.
//!
//! Source: `in_range_timestamp_interval`, `in_range_timestamptz_interval`, `in_range_interval_interval` in
//! `src/backend/utils/adt/timestamp.c`, `in_range_date_interval`, `in_range_time_interval`, `in_range_timetz_interval` in
//! `date.c`, PostgreSQL 14 to 18.

use super::super::KernelCall;
use super::super::rows::Outcome;
use super::super::windows::{Side, bad_offset};
use super::arithmetic::plus;
use super::calendar::SECOND;
use super::casts::date_to_timestamp;
use super::interval::{self, Interval};
use super::session_zone::plus_in;
use super::zoned_times::parts;
use crate::error::StatementError;

/// An interval as a distance.
#[derive(Debug, Clone, Copy)]
struct Distance {
    by: Interval,
    side: Side,
}

impl Distance {
    /// # Errors
    /// When it is below zero.
    fn new(call: &KernelCall, payload: &[u8], side: Side) -> Outcome<Self> {
        let by = Interval::of_payload(payload);
        let has_infinity = call.catalog.database().cluster().version().major() >= 17;
        match () {
            () if by.length() < 0 => Err(bad_offset()),
            () if by.is_infinite() && !has_infinity => {
                Err(StatementError::unsupported("a window of an infinite interval"))
            }
            () => Ok(Self { by, side }),
        }
    }

    fn holds<T: Ord>(&self, value: &T, sum: &T) -> bool {
        if self.side.is_upper { value <= sum } else { value >= sum }
    }

    /// The end that an endless distance leads to.
    fn end(&self) -> Option<bool> {
        self.by.is_infinite().then_some(!self.side.subtracts)
    }
}

/// Of timestamps; with zones where `is_zoned`.
pub(in crate::functions) fn of_timestamps(
    call: &KernelCall,
    (value, base): (i64, i64),
    (offset, side): (&[u8], Side),
    is_zoned: bool,
) -> Outcome<bool> {
    let distance = Distance::new(call, offset, side)?;
    if let Some(is_late) = distance.end() {
        let (to, from) = if is_late { (i64::MAX, i64::MIN) } else { (i64::MIN, i64::MAX) };
        // From one end to the other: all are in between.
        return Ok(base == from || distance.holds(&value, &to));
    }
    let by = if side.subtracts { distance.by.negated()? } else { distance.by };
    let sum = match call.catalog.time_zone().filter(|_| is_zoned) {
        Some(zone) => plus_in(zone, base, by)?,
        None => plus(base, by)?,
    };
    Ok(distance.holds(&value, &sum))
}

/// Of dates, by their midnights.
pub(in crate::functions) fn of_dates(
    call: &KernelCall,
    (value, base): (i32, i32),
    offset: (&[u8], Side),
) -> Outcome<bool> {
    let days = (date_to_timestamp(value)?, date_to_timestamp(base)?);
    of_timestamps(call, days, offset, false)
}

/// Of intervals.
pub(in crate::functions) fn of_intervals(
    call: &KernelCall,
    (value, base): (&[u8], &[u8]),
    (offset, side): (&[u8], Side),
) -> Outcome<bool> {
    let distance = Distance::new(call, offset, side)?;
    let (value, base) = (Interval::of_payload(value), Interval::of_payload(base));
    let has_infinity = call.catalog.database().cluster().version().major() >= 17;
    if !has_infinity && (base.is_infinite() || value.is_infinite()) {
        return Err(StatementError::unsupported("a window over an infinite interval"));
    }
    let late = Interval::new(i32::MAX, i32::MAX, i64::MAX);
    let early = Interval::new(i32::MIN, i32::MIN, i64::MIN);
    let sum = match distance.end() {
        Some(true) if base == early => return Ok(true),
        Some(false) if base == late => return Ok(true),
        Some(true) => late,
        Some(false) => early,
        None if base.is_infinite() => base,
        None if side.subtracts => interval::minus(base, distance.by)?,
        None => interval::plus(base, distance.by)?,
    };
    if sum.is_infinite() && distance.end().is_none() && !base.is_infinite() {
        return Err(super::calendar::interval_out_of_range());
    }
    Ok(distance.holds(&value.length(), &sum.length()))
}

/// What of an interval counts for times of day.
fn clock(offset: &[u8]) -> Outcome<i128> {
    let micros = Interval::of_payload(offset).micros;
    if micros < 0 { Err(bad_offset()) } else { Ok(micros.into()) }
}

fn moved(base: i64, by: i128, side: Side) -> i128 {
    let base = i128::from(base);
    if side.subtracts { base - by } else { base + by }
}

/// Of times of day.
pub(in crate::functions) fn of_times(
    (value, base): (i64, i64),
    (offset, side): (&[u8], Side),
) -> Outcome<bool> {
    let (sum, value) = (moved(base, clock(offset)?, side), i128::from(value));
    Ok(if side.is_upper { value <= sum } else { value >= sum })
}

/// Of times of day with zones: in Greenwich, then by zone.
pub(in crate::functions) fn of_zoned_times(
    (value, base): (&[u8], &[u8]),
    (offset, side): (&[u8], Side),
) -> Outcome<bool> {
    let by = clock(offset)?;
    let ((micros, west), (base, base_west)) = (parts(value)?, parts(base)?);
    let in_greenwich = |micros: i128, west: i32| micros + i128::from(west) * i128::from(SECOND);
    let value = (in_greenwich(micros.into(), west), west);
    let sum = (in_greenwich(moved(base, by, side), base_west), base_west);
    Ok(if side.is_upper { value <= sum } else { value >= sum })
}
