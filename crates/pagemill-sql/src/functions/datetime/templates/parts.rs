//! What a text was read as by a template, put together to a day, a clock and an offset.
//!
//! A year that was not given is 1 BC, a month or a day the first one.
//!
//! Source: `do_to_timestamp` in `src/backend/utils/adt/formatting.c`, `ValidateDate`, `DetermineTimeZoneAbbrevOffset` in
//! `datetime.c`, `isoweek2j` in `timestamp.c`, PostgreSQL 14 to 18.

use pagemill_types::time_zone::Zone;

use super::super::calendar::{
    Civil, DAY, EPOCH_JULIAN_DAY, SECOND, first_monday, is_leap, is_valid as is_valid_timestamp,
    is_valid_date, month_length, overflow,
};
use super::super::round_to;
use super::super::session_zone::unix_second;
use super::scan::{Fault, Fields, Reading, Scan, scan, wrong};
use super::zone::Abbreviated;
use super::{Convention, INVALID_FORMAT, Template};
use crate::error::{SqlState, StatementError};

/// Seven days, a hundred years and a thousand microseconds of less are within 32 bits.
const MOST_KNOWN: u32 = 20_000_000;
/// Julian days far below this are other days on servers, whose arithmetic has no sign.
const LEAST_KNOWN_DAY: i32 = -30_000;
/// The greatest hours of an offset.
const MAX_OFFSET_HOUR: i32 = 15;

/// Rounded to places of a second.
pub(crate) fn rounded(micros: i64, places: i32) -> Scan<i64> {
    round_to(micros, places).ok_or_else(|| Fault::Wrong(overflow("timestamp out of range")))
}

/// Refuses numbers that leave the 32 bits in which some servers compute with them.
fn require_known(fields: &Fields, major: u32) -> Scan<()> {
    let is_iso = fields.convention == Some(Convention::IsoWeek);
    let known = [fields.week, fields.week_of_month, fields.day_of_year, fields.century];
    let are_small = known.iter().all(|number| number.unsigned_abs() <= MOST_KNOWN);
    let is_known = are_small && fields.millisecond.unsigned_abs() <= MOST_KNOWN / 10;
    if fields.julian < LEAST_KNOWN_DAY || !(is_known || (major >= 18 && !is_iso)) {
        let what = "so great or so small a number in a date";
        return Err(Fault::Refused(StatementError::unsupported(what)));
    }
    Ok(())
}

/// A day, a clock and an offset.
#[derive(Debug)]
pub(crate) struct Parts {
    date: Civil,
    /// Microseconds of the day.
    pub(crate) clock: i64,
    /// Seconds west of Greenwich, where an offset was given.
    pub(crate) west: Option<i32>,
    /// Of a second, where they were given.
    places: i32,
}

/// Which parts of a date were given.
#[derive(Default, Clone, Copy)]
struct Given {
    year: bool,
    month: bool,
    day: bool,
}

impl Given {
    const ALL: Self = Self { year: true, month: true, day: true };
}

impl Parts {
    /// Reads a text by a template.
    pub(crate) fn read(template: &Template, text: &str, reading: Reading<'_>) -> Scan<Self> {
        let fields = scan(template, text, reading)?;
        require_known(&fields, reading.major)?;
        Self::new(&fields, text)
    }

    fn new(fields: &Fields, text: &str) -> Scan<Self> {
        let out_of_range =
            || Fault::Wrong(overflow(format!("date/time field value out of range: \"{text}\"")));
        let (hour, minute, second) = clock(fields)?;
        let (date, given) = date(fields)?.ok_or_else(out_of_range)?;
        let fraction = i64::from(fields.millisecond) * 1000 + i64::from(fields.microsecond);
        if !is_valid(date, given) {
            return Err(out_of_range());
        }
        let is_clock =
            (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
        if !is_clock || !(0..SECOND).contains(&fraction) {
            return Err(out_of_range());
        }
        let clock = (i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second)) * SECOND
            + fraction;
        let mut parts = Self { date, clock, west: None, places: fields.places };
        parts.west = parts.offset(fields, text)?;
        Ok(parts)
    }

    /// Places of a second that are kept.
    pub(crate) fn places(&self) -> i32 {
        if self.places == 0 { 6 } else { self.places }
    }

    /// The date.
    pub(crate) fn date(&self, text: &str) -> Scan<i64> {
        let days = Some(self.date).filter(|date| date.is_valid()).map(|date| date.days());
        days.filter(|days| is_valid_date(*days))
            .ok_or_else(|| Fault::Wrong(overflow(format!("date out of range: \"{text}\""))))
    }

    /// What clocks show, in microseconds, if there is such a day. It may be beyond all timestamps.
    fn local(&self) -> Option<i64> {
        let date = Some(self.date).filter(|date| date.is_valid())?;
        date.days().checked_mul(DAY)?.checked_add(self.clock)
    }

    /// The timestamp so many seconds west, as the type of this name.
    pub(crate) fn timestamp(&self, west: i32, type_name: &str) -> Scan<i64> {
        let micros = self.local().and_then(|local| local.checked_add(i64::from(west) * SECOND));
        let value = micros.filter(|made| is_valid_timestamp(*made));
        let refused = || Fault::Wrong(overflow(format!("{type_name} out of range")));
        rounded(value.ok_or_else(refused)?, self.places())
    }

    /// How many seconds west of Greenwich clocks of a zone are when they show this.
    pub(crate) fn west_in(&self, zone: &Zone) -> i32 {
        self.local().map_or(0, |local| -zone.resolve(unix_second(local)).east)
    }

    /// Seconds west, where an offset was given.
    fn offset(&self, fields: &Fields, text: &str) -> Scan<Option<i32>> {
        if fields.zone_sign == 0 {
            return Ok(fields.abbreviated.as_ref().map(|name| self.west_by(name)));
        }
        let (hour, minute) = (fields.zone_hour, fields.zone_minute);
        if !(0..=MAX_OFFSET_HOUR).contains(&hour) || !(0..60).contains(&minute) {
            let message = format!("time zone displacement out of range: \"{text}\"");
            return Err(Fault::Wrong(StatementError::new(SqlState("22009"), message)));
        }
        Ok(Some(-fields.zone_sign * (hour * 60 + minute) * 60))
    }

    fn west_by(&self, abbreviated: &Abbreviated) -> i32 {
        let (zone, name) = match abbreviated {
            Abbreviated::East(east) => return -east,
            Abbreviated::Zone(zone, name) => (zone, name),
        };
        let utc = self.local().map_or(0, |local| zone.resolve(unix_second(local)).utc);
        match zone.abbreviation_at(name.as_bytes(), utc) {
            Some(kind) => -kind.east,
            None => self.west_in(zone),
        }
    }
}

fn clock(fields: &Fields) -> Scan<(i32, i32, i32)> {
    let all = fields.second_of_day;
    let or = |own: i32, other: i32| if own == 0 { other } else { own };
    let mut hour = or(fields.hour, all / 3600);
    if fields.is_half_day {
        if !(1..=12).contains(&hour) {
            let message = format!("hour \"{hour}\" is invalid for the 12-hour clock");
            let error = StatementError::new(INVALID_FORMAT, message);
            let hint = "Use the 24-hour clock, or give an hour between 1 and 12.";
            return Err(Fault::Wrong(error.with_hint(hint)));
        }
        hour = hour % 12 + if fields.half == 0 { 0 } else { 12 };
    }
    Ok((hour, or(fields.minute, all % 3600 / 60), or(fields.second, all % 60)))
}

/// The day; none where it is out of all range.
fn date(fields: &Fields) -> Scan<Option<(Civil, Given)>> {
    let (mut date, mut given) = start(fields);
    let is_iso = fields.convention == Some(Convention::IsoWeek);
    let mut day_of_year = i64::from(fields.day_of_year);
    if fields.week != 0 && is_iso {
        let week = iso_week(date.year, fields.week.into());
        (date, given) = (Civil::of_days(week + in_iso_week(fields.day_of_week)), Given::ALL);
    } else if fields.week != 0 {
        day_of_year = (i64::from(fields.week) - 1) * 7 + 1;
    }
    let day = match fields.week_of_month {
        0 => i64::from(fields.day),
        week => (i64::from(week) - 1) * 7 + 1,
    };
    if day != 0 {
        (date.day, given.day) = (day, true);
    }
    if fields.month != 0 {
        (date.month, given.month) = (fields.month.into(), true);
    }
    let is_small = |number: i64| i32::try_from(number).is_ok();
    if ![date.year, date.day, day_of_year].into_iter().all(is_small) {
        return Ok(None);
    }
    if day_of_year == 0 || (date.month > 1 && date.day > 1) {
        return Ok(Some((date, given)));
    }
    if date.year == 0 && fields.before_christ == 0 {
        return Err(wrong("cannot calculate day of year without year information"));
    }
    if is_iso {
        return Ok(Some((Civil::of_days(iso_week(date.year, 1) - 1 + day_of_year), Given::ALL)));
    }
    by_day_of_year(&mut date, day_of_year);
    Ok(Some((date, Given { month: true, day: true, ..given })))
}

/// The first day of the year, or the Julian day.
fn start(fields: &Fields) -> (Civil, Given) {
    if fields.julian != 0 {
        return (Civil::of_days(i64::from(fields.julian) - EPOCH_JULIAN_DAY), Given::ALL);
    }
    let year = year(fields);
    let date = Civil { year: year.unwrap_or(0), month: 1, day: 1 }; // default: 1 BC, as the server has it
    (date, Given { year: year.is_some(), ..Given::default() })
}

/// Days behind Monday, of a day counted from Sunday as 1; none is a Monday.
fn in_iso_week(day_of_week: i32) -> i64 {
    match day_of_week {
        0 => 0,
        2.. => i64::from(day_of_week) - 2,
        _ => 6,
    }
}

/// Month and day where they are still the first.
fn by_day_of_year(date: &mut Civil, day_of_year: i64) {
    let (mut before, mut month) = (0, 1);
    while month <= 12 && day_of_year > before + month_length(date.year, month) {
        before += month_length(date.year, month);
        month += 1;
    }
    debug_assert!(month <= 12 || before == 365 + i64::from(is_leap(date.year)));
    if date.month <= 1 {
        date.month = month;
    }
    if date.day <= 1 {
        date.day = day_of_year - before;
    }
}

fn year(fields: &Fields) -> Option<i64> {
    let is_before = fields.before_christ != 0;
    let century = i64::from(fields.century) * if is_before { -1 } else { 1 };
    if fields.year != 0 {
        if fields.century != 0 && fields.year_digits <= 2 {
            return Some(match i64::from(fields.year) % 100 {
                // A century ends with the year that it is named by.
                0 => century * 100 + i64::from(century < 0),
                year if century >= 0 => year + (century - 1) * 100,
                year => (century + 1) * 100 - year + 1,
            });
        }
        let year = i64::from(fields.year) * if is_before { -1 } else { 1 };
        // There is no year 0.
        return Some(if year < 0 { year + 1 } else { year });
    }
    if fields.century == 0 {
        return None;
    }
    Some(if century >= 0 { (century - 1) * 100 + 1 } else { century * 100 + 1 })
}

fn is_valid(date: Civil, given: Given) -> bool {
    let is_month = !given.month || (1..=12).contains(&date.month);
    let is_day = !given.day || (1..=31).contains(&date.day);
    let is_whole = given.year && given.month && given.day;
    is_month && is_day && (!is_whole || date.day <= month_length(date.year, date.month))
}

/// The day on which a week of ISO 8601 begins.
fn iso_week(year: i64, week: i64) -> i64 {
    first_monday(year) + (week - 1) * 7
}
