//! What a text was read as by a template, put together to a date, a time or a timestamp.
//!
//! Which of the types it is depends on the template alone: on whether it speaks of days, of clocks and of zones.
//!
//! Source: `do_to_timestamp`, `parse_datetime` in `src/backend/utils/adt/formatting.c`, `ValidateDate` in `datetime.c`,
//! PostgreSQL 14 to 18.

use super::calendar::iso_week;
use super::moment::{Moment, Type, overflow};
use super::template::{Convention, Template};
use super::template_scan::{Fault, Fields, Scan, scan, wrong};
use crate::error::{SqlState, StatementError};
use crate::functions::datetime::calendar::{
    Civil, DAY, EPOCH_JULIAN_DAY, SECOND, is_leap, is_valid as is_valid_timestamp, is_valid_date,
    month_length,
};
use crate::functions::datetime::round_to;

/// Seven days, a hundred years and a thousand microseconds of less are within 32 bits.
const MOST_KNOWN: u32 = 20_000_000;
/// The greatest hours of an offset.
const MAX_OFFSET_HOUR: i32 = 15;

/// Reads a text as the type that the template is of.
pub(super) fn read(template: &Template, text: &str, major: u32) -> Scan<Moment> {
    let fields = scan(template, text, major)?;
    require_known(&fields, major)?;
    let parts = Parts::new(&fields, text)?;
    let scope = template.scope();
    let west = parts.west;
    let ty = match (scope.has_date, scope.has_time, scope.has_zone) {
        (true, true, true) => Type::TimestampTz,
        (true, true, false) => Type::Timestamp,
        (true, false, true) => return Err(wrong("datetime format is zoned but not timed")),
        (true, false, false) => Type::Date,
        (false, true, true) => Type::TimeTz,
        (false, true, false) => Type::Time,
        (false, false, _) => return Err(wrong("datetime format is not dated and not timed")),
    };
    let places = if fields.places == 0 { 6 } else { fields.places };
    match ty {
        Type::Date => parts.date(text).map(|value| Moment { ty, value, west: 0 }),
        Type::Time => Ok(Moment { ty, value: rounded(parts.clock, places)?, west: 0 }),
        Type::TimeTz => match west {
            Some(west) => Ok(Moment { ty, value: rounded(parts.clock, places)?, west }),
            None => Err(wrong("missing time zone in input string for type timetz")),
        },
        Type::Timestamp => parts.timestamp(ty, 0, places),
        Type::TimestampTz => match west {
            Some(west) => parts.timestamp(ty, west, places),
            None => Err(wrong("missing time zone in input string for type timestamptz")),
        },
    }
}

fn rounded(micros: i64, places: i32) -> Scan<i64> {
    round_to(micros, places).ok_or_else(|| Fault::Wrong(overflow("timestamp out of range")))
}

/// Refuses numbers that leave the 32 bits in which some servers compute with them.
fn require_known(fields: &Fields, major: u32) -> Scan<()> {
    let is_iso = fields.convention == Some(Convention::IsoWeek);
    let known = [fields.week, fields.week_of_month, fields.day_of_year, fields.century];
    let are_small = known.iter().all(|number| number.unsigned_abs() <= MOST_KNOWN);
    let is_known = are_small && fields.millisecond.unsigned_abs() <= MOST_KNOWN / 10;
    if fields.julian < 0 || !(is_known || (major >= 18 && !is_iso)) {
        let what = "so great or so small a number in a date";
        return Err(Fault::Refused(StatementError::unsupported(what)));
    }
    Ok(())
}

/// A day, a clock and an offset.
struct Parts {
    date: Civil,
    clock: i64,
    west: Option<i32>,
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
        Ok(Self { date, clock, west: offset(fields, text)? })
    }

    fn date(&self, text: &str) -> Scan<i64> {
        let days = Some(self.date).filter(|date| date.is_valid()).map(|date| date.days());
        days.filter(|days| is_valid_date(*days))
            .ok_or_else(|| Fault::Wrong(overflow(format!("date out of range: \"{text}\""))))
    }

    fn timestamp(&self, ty: Type, west: i32, places: i32) -> Scan<Moment> {
        let name = if ty == Type::Timestamp { "timestamp" } else { "timestamptz" };
        let refused = || Fault::Wrong(overflow(format!("{name} out of range")));
        if !self.date.is_valid() {
            return Err(refused());
        }
        let micros = self.date.days().checked_mul(DAY).and_then(|day| day.checked_add(self.clock));
        let micros = micros.and_then(|local| local.checked_add(i64::from(west) * SECOND));
        let value = micros.filter(|made| is_valid_timestamp(*made)).ok_or_else(refused)?;
        Ok(Moment { ty, value: rounded(value, places)?, west })
    }
}

fn clock(fields: &Fields) -> Scan<(i32, i32, i32)> {
    let all = fields.second_of_day;
    let or = |own: i32, other: i32| if own == 0 { other } else { own };
    let mut hour = or(fields.hour, all / 3600);
    if fields.is_half_day {
        if !(1..=12).contains(&hour) {
            let message = format!("hour \"{hour}\" is invalid for the 12-hour clock");
            let error = StatementError::new(super::template::INVALID_FORMAT, message);
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

/// Seconds west, where an offset was given.
fn offset(fields: &Fields, text: &str) -> Scan<Option<i32>> {
    if fields.zone_sign == 0 {
        return Ok(fields.is_utc.then_some(0));
    }
    let (hour, minute) = (fields.zone_hour, fields.zone_minute);
    if !(0..=MAX_OFFSET_HOUR).contains(&hour) || !(0..60).contains(&minute) {
        let message = format!("time zone displacement out of range: \"{text}\"");
        return Err(Fault::Wrong(StatementError::new(SqlState("22009"), message)));
    }
    Ok(Some(-fields.zone_sign * (hour * 60 + minute) * 60))
}
