//! Dates, times, timestamps and intervals: as if the session's TimeZone were UTC, and by another zone.
//!
//! Intervals that are infinite, as they may be from 17 on, are in mind of `endless` alone.
//!
//! Source: `src/backend/utils/adt/date.c`, `timestamp.c`, `datetime.c`, PostgreSQL 14 to 18.

mod arithmetic;
mod by_template;
pub(super) mod calendar;
mod casts;
mod endless;
mod extract;
pub(super) mod in_range;
pub(super) mod interval;
mod interval_pictures;
mod make;
mod named_zones;
mod overlaps;
pub(super) mod pictures;
pub(crate) mod series;
pub(crate) mod session_zone;
pub(super) mod templates;
mod truncate;
mod units;
pub(super) mod zoned_times;
mod zones;

use arrow::array::ArrayRef;
#[cfg(test)]
pub(crate) use casts::against;
pub(crate) use casts::date_to_timestamp;
use pagemill_types::builtin::oid;

use super::keys::payloads;
use super::rows::{Outcome, Plain, run, two};
use super::{Implementation, KernelCall};
use crate::error::StatementError;

pub(crate) fn find(key: &str) -> Option<Implementation> {
    if plain(key).is_some() {
        return Some(Implementation::Kernel(kernel));
    }
    zones::find(key).or_else(|| by_template::find(key))
}

/// Functions that depend on their arguments alone.
pub(super) fn plain(key: &str) -> Option<Plain> {
    casts::plain(key)
        .or_else(|| arithmetic::plain(key))
        .or_else(|| interval::plain(key))
        .or_else(|| extract::plain(key))
        .or_else(|| truncate::plain(key))
        .or_else(|| make::plain(key))
        .or_else(|| overlaps::plain(key))
        .or_else(|| zoned_times::plain(key))
        .or_else(|| pictures::plain(key))
        .or_else(|| interval_pictures::plain(key))
}

fn kernel(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let has_infinity = call.catalog.database().cluster().version().major() >= 17;
    if has_infinity && matches!(&*call.key, "timestamp_mi" | "timestamptz_mi") {
        return two(arguments, arithmetic::between_any);
    }
    if has_infinity {
        return endless::completed(call, arguments, |arguments| finite(call, arguments));
    }
    require_finite(call, arguments)?;
    finite(call, arguments)
}

fn finite(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    if call.key.ends_with("_to_char") {
        pictures::refuse_foreign_names(call, arguments)?;
    }
    match call.catalog.time_zone().zip(session_zone::find(&call.key)) {
        Some((zone, zoned)) => zoned(zone, arguments),
        None => run(plain, call, arguments),
    }
}

/// Refuses what an infinite interval would be until 16: a number like any other, which no function here has in mind.
fn require_finite(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<()> {
    for (ty, argument) in call.arguments.iter().zip(arguments) {
        let is_interval = call.catalog.base_type(ty.oid, -1).0 == oid::INTERVAL;
        let infinite = |payload: &[u8]| interval::Interval::of_payload(payload).is_infinite();
        if is_interval && payloads(argument).iter().flatten().any(infinite) {
            return Err(StatementError::unsupported("a function of an infinite interval"));
        }
    }
    Ok(())
}

/// The places of a second that a modifier of a time leaves.
fn places(modifier: i32) -> i32 {
    if (0..=6).contains(&modifier) { modifier } else { 6 }
}

/// Microseconds rounded to places of a second, halves away from zero.
pub(super) fn round_to(micros: i64, places: i32) -> Option<i64> {
    let unit = 10i64.checked_pow(u32::try_from(6 - places).ok()?)?;
    let size = micros.checked_abs()?.checked_add(unit / 2)? / unit * unit;
    Some(if micros < 0 { -size } else { size })
}
