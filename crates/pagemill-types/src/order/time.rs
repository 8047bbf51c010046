//! The orders of interval and of time with time zone. (The other times are plain integers.)
//!
//! An interval counts with months of 30 days and days of 24 hours, in microseconds; 128 bits are needed.
//! Times with time zone count by their time in UTC, and equal ones by their zone.
//!
//! Sources: `interval_cmp_value` in `src/backend/utils/adt/timestamp.c`, `timetz_cmp_internal` in
//! `src/backend/utils/adt/date.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use super::binary::biased;

const DAYS_PER_MONTH: i64 = 30;
const MICROSECONDS_PER_DAY: i128 = 86_400_000_000;
const MICROSECONDS_PER_SECOND: i64 = 1_000_000;
/// The longest interval has 73 bits.
const INTERVAL_BITS_CUT: u32 = 10;

/// The microseconds that an interval is taken for.
pub(crate) fn span(value: &[u8]) -> i128 {
    let (time, rest) = time(value);
    let (days, rest) = split_i32(rest);
    let (months, _) = split_i32(rest);
    let days = i64::from(months) * DAYS_PER_MONTH + i64::from(days);
    i128::from(days) * MICROSECONDS_PER_DAY + i128::from(time)
}

pub(super) fn compare_intervals(a: &[u8], b: &[u8]) -> Ordering {
    span(a).cmp(&span(b))
}

pub(super) fn abbreviate_interval(value: &[u8]) -> u64 {
    biased((span(value) >> INTERVAL_BITS_CUT) as i64)
}

/// Time in UTC, and the zone in seconds west of it.
fn zoned(value: &[u8]) -> (i64, i32) {
    let (time, rest) = time(value);
    let (zone, _) = split_i32(rest);
    (time.wrapping_add(i64::from(zone) * MICROSECONDS_PER_SECOND), zone)
}

pub(super) fn compare_times_with_zone(a: &[u8], b: &[u8]) -> Ordering {
    zoned(a).cmp(&zoned(b))
}

pub(super) fn abbreviate_time_with_zone(value: &[u8]) -> u64 {
    biased(zoned(value).0)
}

fn time(value: &[u8]) -> (i64, &[u8]) {
    let (time, rest) = value.split_first_chunk().unwrap_or((&[0; 8], &[]));
    (i64::from_le_bytes(*time), rest)
}

fn split_i32(value: &[u8]) -> (i32, &[u8]) {
    let (number, rest) = value.split_first_chunk().unwrap_or((&[0; 4], &[]));
    (i32::from_le_bytes(*number), rest)
}
