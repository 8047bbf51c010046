//! The proleptic Gregorian calendar, and timestamps taken apart and put together.
//!
//! Year 0 is 1 BC. Days count from 2000-01-01.
//!
//! Source: `date2j`, `j2date`, `timestamp2tm`, `tm2timestamp` in `src/backend/utils/adt/datetime.c` and `timestamp.c`, limits in
//! `src/include/datatype/timestamp.h`, PostgreSQL 14 to 18.

use crate::error::{SqlState, StatementError};

pub(crate) const SECOND: i64 = 1_000_000;
pub(super) const MINUTE: i64 = 60 * SECOND;
pub(super) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;
/// The Julian day of 2000-01-01.
pub(crate) const EPOCH_JULIAN_DAY: i64 = 2_451_545;
/// 1970-01-01.
pub(in crate::functions) const UNIX_EPOCH: i64 = -10_957 * DAY;
/// 4714-11-24 BC.
pub(super) const FIRST_TIMESTAMP: i64 = -211_813_488_000_000_000;
/// The first moment that is too late.
pub(super) const END_TIMESTAMP: i64 = 9_223_371_331_200_000_000;
/// The first day that is too late for a date.
const END_DATE: i64 = 2_147_483_494 - EPOCH_JULIAN_DAY;
/// The first day that is too late for a timestamp.
pub(crate) const END_TIMESTAMP_DAY: i64 = 109_203_528 - EPOCH_JULIAN_DAY;

/// A day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
}

pub(crate) fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// The days of a month from 1 to 12.
pub(crate) fn month_length(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Civil {
    pub(crate) fn new(year: i64, month: i64, day: i64) -> Self {
        Self { year, month, day }
    }

    /// The day so many days from 2000-01-01.
    pub(crate) fn of_days(days: i64) -> Self {
        // Counted from 0000-03-01, so that a year ends with its leap day.
        let days = days + 730_425;
        let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // Five months from March on have 153 days.
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        Self { year: year_of_era + era * 400 + i64::from(month <= 2), month, day }
    }

    /// The days from 2000-01-01; a month or day outside its range counts on.
    pub(crate) fn days(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let month = if self.month > 2 { self.month - 3 } else { self.month + 9 };
        let of_year = (153 * month + 2) / 5 + self.day - 1;
        era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 730_425
    }

    /// The same day so many months on, or the last one of that month.
    pub(super) fn plus_months(self, months: i64) -> Self {
        let months = self.year * 12 + self.month - 1 + months;
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        Self { year, month, day: self.day.min(month_length(year, month)) }
    }

    /// Whether Julian days can tell it.
    pub(crate) fn is_valid(self) -> bool {
        (self.year, self.month) >= (-4713, 11) && (self.year, self.month) < (5_874_898, 6)
    }

    /// The day of the week, 0 for a Sunday.
    pub(crate) fn day_of_week(self) -> i64 {
        (self.days() + 6).rem_euclid(7)
    }

    /// The day of the year, from 1.
    pub(super) fn day_of_year(self) -> i64 {
        self.days() - Self::new(self.year, 1, 1).days() + 1
    }

    /// The year and the week of ISO 8601, which begins on a Monday.
    pub(super) fn iso_week(self) -> (i64, i64) {
        let days = self.days();
        let mut year = self.year + 1;
        // The first week is the one of 4 January.
        while first_monday(year) > days {
            year -= 1;
        }
        (year, (days - first_monday(year)) / 7 + 1)
    }
}

/// The first day of a year of ISO 8601.
pub(crate) fn first_monday(year: i64) -> i64 {
    let fourth = Civil::new(year, 1, 4);
    fourth.days() - (fourth.day_of_week() + 6) % 7
}

/// A timestamp taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) date: Civil,
    /// Microseconds of the day.
    pub(super) clock: i64,
}

impl Parts {
    pub(super) fn of(timestamp: i64) -> Self {
        let date = Civil::of_days(timestamp.div_euclid(DAY));
        Self { date, clock: timestamp.rem_euclid(DAY) }
    }

    /// The timestamp, if there is one.
    pub(super) fn timestamp(self) -> Option<i64> {
        if !self.date.is_valid() {
            return None;
        }
        let micros = i128::from(self.date.days()) * i128::from(DAY) + i128::from(self.clock);
        i64::try_from(micros).ok().filter(|micros| is_valid(*micros))
    }
}

/// Whether a timestamp is within its range, and finite.
pub(crate) fn is_valid(timestamp: i64) -> bool {
    (FIRST_TIMESTAMP..END_TIMESTAMP).contains(&timestamp)
}

/// Whether a date is within its range, and finite.
pub(crate) fn is_valid_date(days: i64) -> bool {
    (-EPOCH_JULIAN_DAY..END_DATE).contains(&days)
}

pub(super) fn is_infinite(timestamp: i64) -> bool {
    matches!(timestamp, i64::MIN | i64::MAX)
}

pub(super) fn is_infinite_date(days: i32) -> bool {
    matches!(days, i32::MIN | i32::MAX)
}

#[cold]
pub(super) fn overflow(message: impl Into<String>) -> StatementError {
    StatementError::new(SqlState::DATETIME_OVERFLOW, message)
}

#[cold]
pub(super) fn timestamp_out_of_range() -> StatementError {
    overflow("timestamp out of range")
}

#[cold]
pub(crate) fn interval_out_of_range() -> StatementError {
    overflow("interval out of range")
}
