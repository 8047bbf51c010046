//! `extract` and `date_part`: parts of dates, times, timestamps and intervals, as numerics or as floats.
//!
//! Source: `timestamp_part_common`, `timestamptz_part_common`, `interval_part_common` in `src/backend/utils/adt/timestamp.c`,
//! `extract_date`, `time_part_common` in `date.c`, `int64_div_fast_to_numeric`, `select_div_scale` in `numeric.c`, PostgreSQL 14 to 18.

use pagemill_types::input::numeric::read_numeric;

use super::super::rows::{Outcome, Plain, two};
use super::calendar::{Civil, DAY, EPOCH_JULIAN_DAY, HOUR, MINUTE, Parts, SECOND, UNIX_EPOCH};
use super::calendar::{is_infinite, is_infinite_date};
use super::casts::date_to_timestamp;
use super::interval::Interval;
use super::units::{Named, Unit, of_extraction};
use super::zoned_times;
use crate::error::{SqlState, StatementError};

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "extract_timestamp" => |a| two(a, |unit: &str, t: i64| numeric(timestamp(unit, t)?)),
        "extract_timestamptz" => |a| two(a, |unit: &str, t: i64| numeric_of_moment(unit, (t, t))),
        "extract_date" => |a| two(a, |unit: &str, date: i32| numeric(day(unit, date)?)),
        "extract_time" => |a| two(a, |unit: &str, t: i64| numeric(Some(time(unit, t)?))),
        "extract_timetz" => |a| two(a, |unit: &str, t: &[u8]| numeric(Some(zoned_time(unit, t)?))),
        "extract_interval" => {
            |a| two(a, |unit: &str, i: Interval| numeric(Some(interval(unit, i)?)))
        }
        "timestamp_part" => |a| two(a, |unit: &str, t: i64| Ok(timestamp(unit, t)?.map(float))),
        "timestamptz_part" => |a| two(a, |unit: &str, t: i64| float_of_moment(unit, (t, t))),
        "date_part(text,date)" => {
            |a| two(a, |unit: &str, d: i32| Ok(timestamp(unit, date_to_timestamp(d)?)?.map(float)))
        }
        "time_part" => |a| two(a, |unit: &str, t: i64| Ok(float(time(unit, t)?))),
        "timetz_part" => |a| two(a, zoned_float),
        "interval_part" => |a| two(a, interval_float),
        _ => return None,
    })
}

/// The first timestamp whose distance from 1970 is divided as a numeric.
const LAST_EXACT: i128 = i64::MAX as i128 + UNIX_EPOCH as i128;

/// A part.
enum Part {
    Whole(i64),
    /// Microseconds in a unit of so many places.
    Micros(i64, u32),
    /// A Julian day and the microseconds of that day.
    Julian(i64, i64),
    /// Seconds from 1970-01-01.
    Epoch(i128),
    /// Microseconds of an interval.
    IntervalEpoch(i128),
    PlusInfinity,
    MinusInfinity,
}

/// Of a moment, and what clocks showed then.
pub(super) fn numeric_of_moment(unit: &str, of: (i64, i64)) -> Outcome<Option<Vec<u8>>> {
    numeric(moment(unit, of, true)?)
}

/// Of a moment, and what clocks showed then.
pub(super) fn float_of_moment(unit: &str, of: (i64, i64)) -> Outcome<Option<f64>> {
    Ok(moment(unit, of, true)?.map(float))
}

fn timestamp(unit: &str, timestamp: i64) -> Outcome<Option<Part>> {
    moment(unit, (timestamp, timestamp), false)
}

fn moment(unit: &str, (utc, local): (i64, i64), has_zone: bool) -> Outcome<Option<Part>> {
    let name = if has_zone { "timestamp with time zone" } else { "timestamp without time zone" };
    let named = of_extraction(unit);
    let Some(unit) = named.unit else { return Err(named.unknown(name)) };
    if is_infinite(utc) {
        return infinite(unit, utc > 0, &named, name);
    }
    let Parts { date, clock } = Parts::of(local);
    if let Some(whole) = of_date(unit, date, has_zone) {
        return Ok(Some(Part::Whole(whole)));
    }
    let east = (local - utc) / SECOND;
    Ok(Some(match unit {
        Unit::Julian => Part::Julian(date.days() + EPOCH_JULIAN_DAY, clock),
        Unit::Epoch => Part::Epoch(i128::from(utc) - i128::from(UNIX_EPOCH)),
        Unit::Zone if has_zone => Part::Whole(east),
        Unit::ZoneHour if has_zone => Part::Whole(east / 3600),
        Unit::ZoneMinute if has_zone => Part::Whole(east / 60 % 60),
        unit => of_clock(unit, clock).ok_or_else(|| named.unsupported(name))?,
    }))
}

/// Parts that never end are infinite too, those that come again are NULL.
fn infinite(unit: Unit, is_late: bool, named: &Named, name: &str) -> Outcome<Option<Part>> {
    use Unit::{Century, Decade, Epoch, IsoYear, Julian, Millennium, Word, Year};
    Ok(match unit {
        Word => return Err(named.unsupported(name)),
        Year | Decade | Century | Millennium | Julian | IsoYear | Epoch => {
            Some(if is_late { Part::PlusInfinity } else { Part::MinusInfinity })
        }
        _ => None,
    })
}

fn of_date(unit: Unit, date: Civil, has_zone: bool) -> Option<i64> {
    let Civil { year, month, day } = date;
    // Years before 1 count from 1 BC on, without a year 0.
    let of_era = |length: i64| match year > 0 {
        true => (year + length - 1) / length,
        false => -((length - year) / length),
    };
    Some(match unit {
        Unit::Day => day,
        Unit::Month => month,
        Unit::Quarter => (month - 1) / 3 + 1,
        Unit::Year if year > 0 => year,
        Unit::Year => year - 1,
        Unit::Decade if year >= i64::from(has_zone) => year / 10,
        Unit::Decade => -((9 - year) / 10),
        Unit::Century => of_era(100),
        Unit::Millennium => of_era(1000),
        Unit::Week => date.iso_week().1,
        Unit::IsoYear => match date.iso_week().0 {
            early @ ..=0 => early - 1,
            year => year,
        },
        Unit::DayOfWeek => date.day_of_week(),
        Unit::IsoDayOfWeek => (date.day_of_week() + 6) % 7 + 1,
        Unit::DayOfYear => date.day_of_year(),
        _ => return None,
    })
}

fn of_clock(unit: Unit, clock: i64) -> Option<Part> {
    let second = clock % MINUTE;
    Some(match unit {
        Unit::Microsecond => Part::Whole(second),
        Unit::Millisecond => Part::Micros(second, 3),
        Unit::Second => Part::Micros(second, 6),
        Unit::Minute => Part::Whole(clock / MINUTE % 60),
        Unit::Hour => Part::Whole(clock / HOUR),
        _ => return None,
    })
}

fn day(unit: &str, date: i32) -> Outcome<Option<Part>> {
    let named = of_extraction(unit);
    let Some(unit) = named.unit else { return Err(named.unknown("date")) };
    use Unit::{Hour, Microsecond, Millisecond, Minute, Second, Zone, ZoneHour, ZoneMinute};
    if matches!(
        unit,
        Hour | Minute | Second | Millisecond | Microsecond | Zone | ZoneHour | ZoneMinute
    ) {
        return Err(named.unsupported("date"));
    }
    if is_infinite_date(date) {
        return infinite(unit, date > 0, &named, "date");
    }
    let days = i64::from(date);
    Ok(Some(Part::Whole(match unit {
        Unit::Julian => days + EPOCH_JULIAN_DAY,
        Unit::Epoch => (days - UNIX_EPOCH / DAY) * (DAY / SECOND),
        unit => {
            let whole = of_date(unit, Civil::of_days(days), false);
            whole.ok_or_else(|| named.unsupported("date"))?
        }
    })))
}

fn time(unit: &str, time: i64) -> Outcome<Part> {
    let name = "time without time zone";
    let named = of_extraction(unit);
    match named.unit {
        Some(Unit::Epoch) => Ok(Part::Micros(time, 6)),
        None | Some(Unit::Word) => Err(named.unknown(name)),
        Some(unit) => of_clock(unit, time).ok_or_else(|| named.unsupported(name)),
    }
}

fn zoned_time(unit: &str, payload: &[u8]) -> Outcome<Part> {
    let name = "time with time zone";
    let (named, (micros, west)) = (of_extraction(unit), zoned_times::parts(payload)?);
    let east = -i64::from(west);
    match named.unit {
        Some(Unit::Epoch) => Ok(Part::Micros(micros + i64::from(west) * SECOND, 6)),
        Some(Unit::Zone) => Ok(Part::Whole(east)),
        Some(Unit::ZoneHour) => Ok(Part::Whole(east / 3600)),
        Some(Unit::ZoneMinute) => Ok(Part::Whole(east / 60 % 60)),
        None | Some(Unit::Word) => Err(named.unknown(name)),
        Some(unit) => of_clock(unit, micros).ok_or_else(|| named.unsupported(name)),
    }
}

/// The epoch of a float is a sum of two.
fn zoned_float(unit: &str, payload: &[u8]) -> Outcome<f64> {
    if of_extraction(unit).unit != Some(Unit::Epoch) {
        return Ok(float(zoned_time(unit, payload)?));
    }
    let (micros, west) = zoned_times::parts(payload)?;
    Ok(micros as f64 / 1e6 + f64::from(west))
}

fn interval(unit: &str, interval: Interval) -> Outcome<Part> {
    let named = of_extraction(unit);
    let (years, months) = (i64::from(interval.months / 12), i64::from(interval.months % 12));
    let micros = interval.micros;
    Ok(match named.unit {
        Some(Unit::Epoch) => Part::IntervalEpoch(epoch(interval)),
        None | Some(Unit::Word) => return Err(named.unknown("interval")),
        Some(Unit::Microsecond) => Part::Whole(micros % MINUTE),
        Some(Unit::Millisecond) => Part::Micros(micros % MINUTE, 3),
        Some(Unit::Second) => Part::Micros(micros % MINUTE, 6),
        Some(Unit::Minute) => Part::Whole(micros / MINUTE % 60),
        Some(Unit::Hour) => Part::Whole(micros / HOUR),
        Some(Unit::Day) => Part::Whole(interval.days.into()),
        Some(Unit::Month) => Part::Whole(months),
        // Negative ones are counted otherwise from 18 on.
        Some(Unit::Quarter) if interval.months < 0 => {
            return Err(StatementError::unsupported("the quarter of a negative interval"));
        }
        Some(Unit::Quarter) => Part::Whole(months / 3 + 1),
        Some(Unit::Year) => Part::Whole(years),
        Some(Unit::Decade) => Part::Whole(years / 10),
        Some(Unit::Century) => Part::Whole(years / 100),
        Some(Unit::Millennium) => Part::Whole(years / 1000),
        Some(_) => return Err(named.unsupported("interval")),
    })
}

/// Of an interval without end.
pub(super) fn numeric_of_endless(
    unit: &str,
    is_negative: bool,
    has_weeks: bool,
) -> Outcome<Option<Vec<u8>>> {
    numeric(endless_interval(unit, is_negative, has_weeks)?)
}

/// Of an interval without end.
pub(super) fn float_of_endless(
    unit: &str,
    is_negative: bool,
    has_weeks: bool,
) -> Outcome<Option<f64>> {
    Ok(endless_interval(unit, is_negative, has_weeks)?.map(float))
}

/// Parts that never end are infinite too, those that come again are NULL; weeks are parts from 18 on.
fn endless_interval(unit: &str, is_negative: bool, has_weeks: bool) -> Outcome<Option<Part>> {
    use Unit::{
        Century, Day, Decade, Epoch, Hour, Microsecond, Millennium, Millisecond, Minute, Month,
        Quarter, Second, Week, Year,
    };
    let named = of_extraction(unit);
    let Some(unit) = named.unit else { return Err(named.unknown("interval")) };
    match unit {
        Microsecond | Millisecond | Second | Minute | Month | Quarter => Ok(None),
        Week if has_weeks => Ok(None),
        Hour | Day | Year | Decade | Century | Millennium | Epoch => {
            Ok(Some(if is_negative { Part::MinusInfinity } else { Part::PlusInfinity }))
        }
        _ => Err(named.unsupported("interval")),
    }
}

/// Microseconds, with 365.25 days a year and 30 days a month.
fn epoch(interval: Interval) -> i128 {
    let (years, months) = (i128::from(interval.months / 12), i128::from(interval.months % 12));
    let quarter_days = years * 1461 + months * 120 + i128::from(interval.days) * 4;
    quarter_days * i128::from(DAY / 4) + i128::from(interval.micros)
}

/// The epoch of a float is summed part by part.
fn interval_float(unit: &str, of: Interval) -> Outcome<f64> {
    if of_extraction(unit).unit != Some(Unit::Epoch) {
        return Ok(float(interval(unit, of)?));
    }
    const DAY_SECONDS: f64 = 86_400.0;
    let mut seconds = of.micros as f64 / 1e6;
    seconds += 365.25 * DAY_SECONDS * f64::from(of.months / 12);
    seconds += 30.0 * DAY_SECONDS * f64::from(of.months % 12);
    seconds += DAY_SECONDS * f64::from(of.days);
    Ok(seconds)
}

fn float(part: Part) -> f64 {
    match part {
        Part::Whole(number) => number as f64,
        // As whole seconds and the fraction, each rounded.
        Part::Micros(micros, 3) => {
            (micros / SECOND) as f64 * 1000.0 + (micros % SECOND) as f64 / 1000.0
        }
        Part::Micros(micros, _) if micros.abs() < MINUTE => {
            (micros / SECOND) as f64 + (micros % SECOND) as f64 / 1e6
        }
        Part::Micros(micros, _) => micros as f64 / 1e6,
        Part::Julian(day, clock) => {
            let seconds = (clock / SECOND) as f64 + (clock % SECOND) as f64 / 1e6;
            day as f64 + seconds / 86_400.0
        }
        Part::Epoch(micros) => match i64::try_from(micros) {
            Ok(micros) => micros as f64 / 1e6,
            Err(_) => ((micros + i128::from(UNIX_EPOCH)) as f64 - UNIX_EPOCH as f64) / 1e6,
        },
        // Summed part by part, before.
        Part::IntervalEpoch(micros) => micros as f64 / 1e6,
        Part::PlusInfinity => f64::INFINITY,
        Part::MinusInfinity => f64::NEG_INFINITY,
    }
}

fn numeric(part: Option<Part>) -> Outcome<Option<Vec<u8>>> {
    let Some(part) = part else { return Ok(None) };
    let text = match part {
        Part::Whole(number) => number.to_string(),
        Part::Micros(micros, places) => decimal(micros.into(), places),
        // Where the difference has no room the server divides, and keeps four places.
        Part::Epoch(micros) if micros + i128::from(UNIX_EPOCH) >= LAST_EXACT => {
            decimal((micros + 50) / 100 * 100, 6)
        }
        Part::Epoch(micros) | Part::IntervalEpoch(micros) => decimal(micros, 6),
        Part::Julian(day, clock) => julian(day, clock),
        Part::PlusInfinity => "Infinity".to_owned(),
        Part::MinusInfinity => "-Infinity".to_owned(),
    };
    let mut payload = Vec::new();
    read_numeric(text.as_bytes(), -1, &mut payload)
        .map_err(|error| StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, error.message))?;
    Ok(Some(payload))
}

/// A number of units of so many places.
fn decimal(units: i128, places: u32) -> String {
    let (unit, sign) = (10u128.pow(places), if units < 0 { "-" } else { "" });
    let (size, width) = (units.unsigned_abs(), places as usize);
    format!("{sign}{}.{:0width$}", size / unit, size % unit)
}

/// The day and its fraction, with as many places as a quotient of numerics has.
fn julian(day: i64, clock: i64) -> String {
    // Base-10000 digits: a day of microseconds is 864 with two more behind it.
    let (weight, first) = match clock {
        100_000_000.. => (2, clock / 100_000_000),
        10_000.. => (1, clock / 10_000),
        _ => (0, clock),
    };
    let quotient_weight = weight - 2 - i32::from(first <= 864);
    let places = (16 - quotient_weight * 4) as u32;
    // Halves away from zero; the shorter ones have few digits, so that nothing outgrows 128 bits.
    let scaled = clock as u128 * 10u128.pow(places);
    let units = (scaled + DAY as u128 / 2) / DAY as u128;
    decimal(day as i128 * 10i128.pow(places) + units as i128, places)
}
