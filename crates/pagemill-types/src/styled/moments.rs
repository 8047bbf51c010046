//! Dates and timestamps by the styles SQL, German and Postgres.
//!
//! ```text
//! SQL       02/03/2001 04:05:06.7 UTC          03/02/2001 where days come first
//! German    03.02.2001 04:05:06.7 UTC
//! Postgres  Sat Feb 03 04:05:06.7 2001 UTC     Sat 03 Feb; a date alone is 02-03-2001 or 03-02-2001
//! ```
//!
//! A zone is there by its abbreviation, of which ten letters are printed; ` BC` comes last.
//!
//! Source: `EncodeDateOnly` and `EncodeDateTime` in `src/backend/utils/adt/datetime.c`, `MAXTZLEN` in
//! `src/include/miscadmin.h`, PostgreSQL 14 to 18.

use pagemill_format::error::Result;

use crate::datetime::{CivilDate, MICROS_PER_DAY, MICROS_PER_SECOND, UNIX_SECONDS, push_clock};
use crate::digits::{pair, push_integer, quad};
use crate::input::datetime::DateOrder;
use crate::payload::fixed;
use crate::time_zone::Zone;
use crate::value_styles::{DateSetting, DateStyle};

/// Letters of an abbreviation that are printed.
const MOST_LETTERS: usize = 10;
/// From Monday on, as the first Julian day was one.
const DAYS: [&[u8; 3]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];
const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];
/// 2000-01-01 was a Saturday.
const EPOCH_DAY_OF_WEEK: i64 = 5;

pub(super) fn write_date(dates: DateSetting, value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    match i32::from_le_bytes(fixed("date", value)?) {
        i32::MIN => out.extend_from_slice(b"-infinity"),
        i32::MAX => out.extend_from_slice(b"infinity"),
        days => {
            let date = CivilDate::from_days("date", days.into())?;
            push_date(dates, &date, out);
            date.push_era(out);
        }
    }
    Ok(())
}

pub(super) fn write_timestamp(dates: DateSetting, value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_timestamp(dates, i64::from_le_bytes(fixed("timestamp", value)?), None, out)
}

/// As clocks of a zone show it, or UTC.
pub(super) fn write_timestamptz(
    dates: DateSetting,
    zone: Option<&Zone>,
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let micros = i64::from_le_bytes(fixed("timestamptz", value)?);
    let Some(zone) = zone else { return push_timestamp(dates, micros, Some(b"UTC"), out) };
    let second = MICROS_PER_SECOND as i64;
    let kind = zone.at(micros.div_euclid(second) + UNIX_SECONDS);
    let local = match micros {
        i64::MIN | i64::MAX => micros,
        finite => finite.saturating_add(i64::from(kind.east) * second),
    };
    let name = zone.name_of(kind).as_bytes();
    push_timestamp(dates, local, Some(&name[..name.len().min(MOST_LETTERS)]), out)
}

fn push_timestamp(
    dates: DateSetting,
    micros: i64,
    zone: Option<&[u8]>,
    out: &mut Vec<u8>,
) -> Result<()> {
    if let i64::MIN | i64::MAX = micros {
        out.extend_from_slice(if micros < 0 { b"-infinity" } else { b"infinity" });
        return Ok(());
    }
    let days = micros.div_euclid(MICROS_PER_DAY);
    let structure = if zone.is_some() { "timestamptz" } else { "timestamp" };
    let date = CivilDate::from_days(structure, days)?;
    let clock = micros.rem_euclid(MICROS_PER_DAY) as u64;
    match dates.style {
        DateStyle::Postgres => {
            push_day(dates.order, days, &date, out);
            push_clock(clock, out);
            out.push(b' ');
            push_year(&date, out);
        }
        _ => {
            push_date(dates, &date, out);
            out.push(b' ');
            push_clock(clock, out);
        }
    }
    if let Some(zone) = zone {
        out.push(b' ');
        out.extend_from_slice(zone);
    }
    date.push_era(out);
    Ok(())
}

/// A day of the week, a month and a day, with a blank behind them.
fn push_day(order: DateOrder, days: i64, date: &CivilDate, out: &mut Vec<u8>) {
    // default: a calendar has no other days and months
    let name = |names: &[&[u8; 3]], at: usize| names.get(at).map_or(*b"   ", |name| **name);
    let of_week = (days + EPOCH_DAY_OF_WEEK).rem_euclid(7) as usize;
    let month = name(&MONTHS, (date.month as usize).wrapping_sub(1));
    let day = pair(date.day);
    out.extend_from_slice(&name(&DAYS, of_week));
    out.push(b' ');
    let (first, second): (&[u8], &[u8]) = match order {
        DateOrder::Dmy => (&day, &month),
        DateOrder::Mdy | DateOrder::Ymd => (&month, &day),
    };
    out.extend_from_slice(first);
    out.push(b' ');
    out.extend_from_slice(second);
    out.push(b' ');
}

/// A date without its era.
fn push_date(dates: DateSetting, date: &CivilDate, out: &mut Vec<u8>) {
    let (month, day) = (pair(date.month), pair(date.day));
    let (mark, is_day_first) = match dates.style {
        DateStyle::German => (b'.', true),
        DateStyle::Sql => (b'/', dates.order == DateOrder::Dmy),
        DateStyle::Postgres | DateStyle::Iso => (b'-', dates.order == DateOrder::Dmy),
    };
    let (first, second) = if is_day_first { (day, month) } else { (month, day) };
    out.extend_from_slice(&[first[0], first[1], mark, second[0], second[1], mark]);
    push_year(date, out);
}

/// The year within its era, of four digits at least.
fn push_year(date: &CivilDate, out: &mut Vec<u8>) {
    let year = if date.year > 0 { date.year } else { 1 - date.year };
    match u32::try_from(year) {
        Ok(short @ 0..=9999) => out.extend_from_slice(&quad(short)),
        _ => push_integer(year, out),
    }
}
