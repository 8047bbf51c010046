//! `to_char` of intervals: the fields of a picture that an interval has.
//!
//! What is of a day of the calendar is an error, as the server has it; its weeks and Julian days, which mean nothing of an
//! interval, are refused.
//!
//! Source: `interval_to_char`, `DCH_to_char` in `src/backend/utils/adt/formatting.c`, `interval2itm` in `timestamp.c`,
//! PostgreSQL 14 to 18.

use super::super::rows::{Outcome, Plain, two};
use super::calendar::{HOUR, MINUTE, SECOND};
use super::interval::Interval;
use super::pictures::{Case, ROMAN, cased, pictured};
use crate::error::{SqlState, StatementError};

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "interval_to_char" => |a| two(a, to_char),
        _ => return None,
    })
}

/// NULL of an empty picture.
pub(super) fn to_char(interval: Interval, picture: &str) -> Outcome<Option<String>> {
    if picture.is_empty() {
        return Ok(None);
    }
    let span = Span::of(interval);
    pictured(picture, |name, case, is_short| span.write(name, case, is_short)).map(Some)
}

/// An interval taken apart; all parts of one of its three numbers have its sign.
struct Span {
    years: i64,
    months: i64,
    days: i64,
    hours: i64,
    minutes: i64,
    seconds: i64,
    micros: i64,
}

impl Span {
    fn of(interval: Interval) -> Self {
        let (months, micros) = (i64::from(interval.months), interval.micros);
        Self {
            years: months / 12,
            months: months % 12,
            days: interval.days.into(),
            hours: micros / HOUR,
            minutes: micros % HOUR / MINUTE,
            seconds: micros % MINUTE / SECOND,
            micros: micros % SECOND,
        }
    }

    /// The text of a field, and whether it is a number.
    fn write(&self, name: &str, case: Case, is_short: bool) -> Outcome<(String, bool)> {
        if let Some(text) = self.word(name, case, is_short) {
            return Ok((text, false));
        }
        // Small ones are no fields in 14.
        if case == Case::Small && matches!(name, "OF" | "TZH" | "TZM") {
            return Err(StatementError::unsupported("to_char with small \"of\" or \"tz\""));
        }
        if name == "Y,YYY" {
            let thousands = self.years / 1000;
            return Ok((format!("{thousands},{:03}", self.years - thousands * 1000), true));
        }
        if let Some((fraction, width)) = self.fraction(name) {
            return Ok((format!("{fraction:0width$}"), true));
        }
        let (number, width) = match self.signed(name) {
            // A sign has a place of its own.
            Some((number, size, width)) => (number, width + usize::from(size < 0)),
            None => self.counted(name)?,
        };
        let width = if is_short { 0 } else { width };
        Ok((format!("{number:0width$}"), true))
    }

    fn word(&self, name: &str, case: Case, is_short: bool) -> Option<String> {
        let is_late = self.hours % 24 >= 12;
        Some(match name {
            "A.M." | "P.M." => cased(if is_late { "P.M." } else { "A.M." }, case),
            "AM" | "PM" => cased(if is_late { "PM" } else { "AM" }, case),
            "FX" => String::new(),
            "Q" if self.months == 0 => String::new(),
            "RM" => match self.roman() {
                Some(month) if is_short => cased(month, case),
                Some(month) => format!("{:4}", cased(month, case)),
                None => String::new(),
            },
            _ => return None,
        })
    }

    /// Months below zero are counted from December back; whole years are a December, or a January if below zero.
    fn roman(&self) -> Option<&'static str> {
        let month = match (self.months, self.years) {
            (0, 0) => return None,
            (0, years) if years > 0 => 12,
            (0, _) => 1,
            (months, _) if months < 0 => 13 + months,
            (months, _) => months,
        };
        ROMAN.get(usize::try_from(month - 1).ok()?).copied()
    }

    fn fraction(&self, name: &str) -> Option<(i64, usize)> {
        Some(match name {
            "FF1" => (self.micros / 100_000, 1),
            "FF2" => (self.micros / 10_000, 2),
            "FF3" | "MS" => (self.micros / 1000, 3),
            "FF4" => (self.micros / 100, 4),
            "FF5" => (self.micros / 10, 5),
            "FF6" | "US" => (self.micros, 6),
            _ => return None,
        })
    }

    /// A number, the one by whose sign it is wider, and its width without that.
    fn signed(&self, name: &str) -> Option<(i64, i64, usize)> {
        let hour = match self.hours % 12 {
            0 => 12,
            hour => hour,
        };
        let century = self.years / 100;
        Some(match name {
            "HH" | "HH12" => (hour, self.hours, 2),
            "HH24" => (self.hours, self.hours, 2),
            "MI" => (self.minutes, self.minutes, 2),
            "SS" => (self.seconds, self.seconds, 2),
            "MM" => (self.months, self.months, 2),
            "CC" => (century, century, 2),
            "YYYY" => (self.years, self.years, 4),
            "YYY" => (self.years % 1000, self.years, 3),
            "YY" => (self.years % 100, self.years, 2),
            _ => return None,
        })
    }

    /// A number and its width.
    fn counted(&self, name: &str) -> Outcome<(i64, usize)> {
        let seconds = self.hours * 3600 + self.minutes * 60 + self.seconds;
        Ok(match name {
            "SSSS" | "SSSSS" => (seconds, 0),
            "DDD" => (self.all_days()?, 3),
            "DD" => (self.days, 2),
            "WW" => ((self.all_days()? - 1) / 7 + 1, 2),
            "W" => ((self.days - 1) / 7 + 1, 0),
            "Q" => ((self.months - 1) / 3 + 1, 0),
            "Y" => (self.years % 10, 0),
            "IDDD" | "IW" | "IYYY" | "IYY" | "IY" | "I" | "J" => {
                let what = format!("to_char of an interval with {name}");
                return Err(StatementError::unsupported(what));
            }
            _ => return Err(no_day()),
        })
    }

    /// Days, of which a month has 30.
    fn all_days(&self) -> Outcome<i64> {
        let days = (self.years * 12 + self.months) * 30 + self.days;
        match i32::try_from(days) {
            Ok(_) => Ok(days),
            Err(_) => Err(StatementError::unsupported("to_char of so many days")),
        }
    }
}

#[cold]
fn no_day() -> StatementError {
    let message = "invalid format specification for an interval value";
    let error = StatementError::new(SqlState("22007"), message);
    error.with_hint("Intervals are not tied to specific calendar dates.")
}
