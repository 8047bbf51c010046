//! Intervals by the styles sql_standard, postgres_verbose and iso_8601.
//!
//! ```text
//! sql_standard      1-2    3 4:05:06    +1-2 -3 +4:05:06 where there are months and days, or signs differ
//! postgres_verbose  @ 1 year 2 mons 3 days 4 hours 5 mins 6.7 secs ago
//! iso_8601          P1Y2M3DT4H5M6.7S
//! ```
//!
//! Each style takes years out of the months, and hours and minutes out of the microseconds, all with the sign of what
//! they are of. (PostgreSQL 14 itself fails to print more than 2^31 hours; here they print as they do in 15.)
//!
//! Source: `EncodeInterval`, `AddVerboseIntPart`, `AddISO8601IntPart` in `src/backend/utils/adt/datetime.c`,
//! PostgreSQL 14 to 18.

use pagemill_format::error::Result;

use crate::datetime::{MICROS_PER_SECOND, push_fraction};
use crate::digits::{pair, push_integer};
use crate::input::datetime::IntervalStyle;
use crate::interval::{Interval, write_interval_before_17};

const SECOND: i64 = MICROS_PER_SECOND as i64;

/// An interval in the style; infinite ones have a word of their own from 17 on.
pub(super) fn write_interval(
    style: IntervalStyle,
    has_infinity: bool,
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let interval = Interval::read(value)?;
    match interval {
        Interval::MAX if has_infinity => out.extend_from_slice(b"infinity"),
        Interval::MIN if has_infinity => out.extend_from_slice(b"-infinity"),
        finite => match style {
            IntervalStyle::Postgres => write_interval_before_17(value, out)?,
            IntervalStyle::SqlStandard => push_standard(&Fields::of(&finite), out),
            IntervalStyle::PostgresVerbose => push_verbose(&Fields::of(&finite), out),
            IntervalStyle::Iso8601 => push_iso(&Fields::of(&finite), out),
        },
    }
    Ok(())
}

/// An interval, taken apart.
struct Fields {
    years: i64,
    months: i64,
    days: i64,
    hours: i64,
    minutes: i64,
    /// Microseconds within the minute.
    micros: i64,
}

impl Fields {
    fn of(interval: &Interval) -> Self {
        let minutes = interval.micros / (60 * SECOND);
        Self {
            years: (interval.months / 12).into(),
            months: (interval.months % 12).into(),
            days: interval.days.into(),
            hours: minutes / 60,
            minutes: minutes % 60,
            micros: interval.micros % (60 * SECOND),
        }
    }

    fn all(&self) -> [i64; 6] {
        [self.years, self.months, self.days, self.hours, self.minutes, self.micros]
    }

    /// The clock is negative.
    fn is_clock_negative(&self) -> bool {
        self.hours < 0 || self.minutes < 0 || self.micros < 0
    }

    fn has_clock(&self) -> bool {
        self.hours != 0 || self.minutes != 0 || self.micros != 0
    }
}

fn push_standard(fields: &Fields, out: &mut Vec<u8>) {
    let is_negative = fields.all().iter().any(|field| *field < 0);
    let is_positive = fields.all().iter().any(|field| *field > 0);
    let has_months = fields.years != 0 || fields.months != 0;
    let has_rest = fields.days != 0 || fields.has_clock();
    let sign = |is_negative: bool| if is_negative { b'-' } else { b'+' };
    match () {
        () if !is_negative && !is_positive => out.push(b'0'),
        () if is_negative && is_positive || has_months && has_rest => {
            out.push(sign(fields.years < 0 || fields.months < 0));
            push_months(fields, out);
            out.extend_from_slice(&[b' ', sign(fields.days < 0)]);
            push_integer(fields.days.unsigned_abs(), out);
            out.extend_from_slice(&[b' ', sign(fields.is_clock_negative())]);
            push_hours(fields, out);
        }
        () => {
            if is_negative {
                out.push(b'-');
            }
            match has_months {
                true => push_months(fields, out),
                false => {
                    if fields.days != 0 {
                        push_integer(fields.days.unsigned_abs(), out);
                        out.push(b' ');
                    }
                    push_hours(fields, out);
                }
            }
        }
    }
}

/// `1-2`, without signs.
fn push_months(fields: &Fields, out: &mut Vec<u8>) {
    push_integer(fields.years.unsigned_abs(), out);
    out.push(b'-');
    push_integer(fields.months.unsigned_abs(), out);
}

/// `4:05:06.7`, without signs.
fn push_hours(fields: &Fields, out: &mut Vec<u8>) {
    push_integer(fields.hours.unsigned_abs(), out);
    let (minutes, micros) = (fields.minutes.unsigned_abs(), fields.micros.unsigned_abs());
    let ([m, n], [s, t]) = (pair(minutes as u32), pair((micros / MICROS_PER_SECOND) as u32));
    out.extend_from_slice(&[b':', m, n, b':', s, t]);
    push_fraction((micros % MICROS_PER_SECOND) as u32, out);
}

/// Seconds without zeros before them, and without a sign.
fn push_seconds(micros: i64, out: &mut Vec<u8>) {
    let micros = micros.unsigned_abs();
    push_integer(micros / MICROS_PER_SECOND, out);
    push_fraction((micros % MICROS_PER_SECOND) as u32, out);
}

/// The sign of the first field is said at the end, and that of others against it.
fn push_verbose(fields: &Fields, out: &mut Vec<u8>) {
    let [years, months, days, hours, minutes, micros] = fields.all();
    let parts =
        [(years, "year"), (months, "mon"), (days, "day"), (hours, "hour"), (minutes, "min")];
    out.push(b'@');
    let first = fields.all().into_iter().find(|field| *field != 0);
    let is_before = first.is_some_and(|field| field < 0);
    for (number, unit) in parts.into_iter().filter(|(number, _)| *number != 0) {
        let number = if is_before { -number } else { number };
        out.push(b' ');
        push_integer(number, out);
        out.push(b' ');
        out.extend_from_slice(unit.as_bytes());
        if number != 1 {
            out.push(b's');
        }
    }
    if micros != 0 {
        out.push(b' ');
        if (micros < 0) != is_before {
            out.push(b'-');
        }
        push_seconds(micros, out);
        out.extend_from_slice(if micros.abs() == SECOND { b" sec" } else { b" secs" });
    }
    out.extend_from_slice(match first {
        None => b" 0",
        Some(_) if is_before => b" ago",
        Some(_) => b"",
    });
}

fn push_iso(fields: &Fields, out: &mut Vec<u8>) {
    if fields.all() == [0; 6] {
        out.extend_from_slice(b"PT0S");
        return;
    }
    let push = |number: i64, unit: u8, out: &mut Vec<u8>| {
        if number != 0 {
            push_integer(number, out);
            out.push(unit);
        }
    };
    out.push(b'P');
    push(fields.years, b'Y', out);
    push(fields.months, b'M', out);
    push(fields.days, b'D', out);
    if fields.has_clock() {
        out.push(b'T');
    }
    push(fields.hours, b'H', out);
    push(fields.minutes, b'M', out);
    if fields.micros != 0 {
        if fields.micros < 0 {
            out.push(b'-');
        }
        push_seconds(fields.micros, out);
        out.push(b'S');
    }
}
