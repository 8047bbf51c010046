//! Days and clocks: what the methods of dates and times need of the calendar.
//!
//! Year 0 is 1 BC, days count from 2000-01-01, times are microseconds.
//!
//! Source: `date2j`, `j2date`, `isoweek2j` in `src/backend/utils/adt/datetime.c` and `timestamp.c`, limits in
//! `src/include/datatype/timestamp.h`, PostgreSQL 14 to 18.

use pagemill_types::time_zone::Zone;

pub(super) const SECOND: i64 = 1_000_000;
pub(super) const DAY: i64 = 86_400 * SECOND;
/// The Julian day of 2000-01-01.
pub(super) const EPOCH_JULIAN_DAY: i64 = 2_451_545;
/// Seconds from 1970-01-01 to 2000-01-01.
const UNIX_SECONDS: i64 = 946_684_800;
/// 4714-11-24 BC.
const FIRST_TIMESTAMP: i64 = -211_813_488_000_000_000;
/// The first moment that is too late.
const END_TIMESTAMP: i64 = 9_223_371_331_200_000_000;
/// The first day that is too late for a date.
const END_DATE: i64 = 2_147_483_494 - EPOCH_JULIAN_DAY;
/// The first day that is too late for a timestamp.
pub(super) const END_TIMESTAMP_DAY: i64 = 109_203_528 - EPOCH_JULIAN_DAY;

/// A day of the proleptic Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Civil {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
}

impl Civil {
    /// The day so many days from 2000-01-01.
    pub(super) fn of_days(days: i64) -> Self {
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

    /// The days from 2000-01-01.
    pub(super) fn days(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let month = if self.month > 2 { self.month - 3 } else { self.month + 9 };
        let of_year = (153 * month + 2) / 5 + self.day - 1;
        era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 730_425
    }

    /// Whether Julian days can tell it.
    pub(super) fn is_valid(self) -> bool {
        (self.year, self.month) >= (-4713, 11) && (self.year, self.month) < (5_874_898, 6)
    }
}

pub(super) fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// The days of a month from 1 to 12.
pub(super) fn month_length(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day on which a week of ISO 8601 begins.
pub(super) fn iso_week(year: i64, week: i64) -> i64 {
    let fourth = Civil { year, month: 1, day: 4 }.days();
    // 2000-01-01 was a Saturday.
    fourth - (fourth + 5).rem_euclid(7) + (week - 1) * 7
}

/// Whether a timestamp is within its range.
pub(super) fn is_valid_timestamp(micros: i64) -> bool {
    (FIRST_TIMESTAMP..END_TIMESTAMP).contains(&micros)
}

/// Whether a date is within its range.
pub(super) fn is_valid_date(days: i64) -> bool {
    (-EPOCH_JULIAN_DAY..END_DATE).contains(&days)
}

/// Seconds from 1970-01-01: in seconds, as the microseconds of the last years do not reach so far.
fn unix_second(micros: i64) -> i64 {
    micros.div_euclid(SECOND) + UNIX_SECONDS
}

/// The offset at a moment, in seconds east.
pub(super) fn east_at(zone: &Zone, moment: i64) -> i32 {
    zone.at(unix_second(moment)).east
}

/// The offset when clocks showed this.
pub(super) fn east_of_clock(zone: &Zone, local: i64) -> i32 {
    zone.resolve(unix_second(local)).east
}

/// Microseconds rounded to places of a second, halves away from zero.
pub(super) fn round_to(micros: i64, places: i32) -> i64 {
    let unit = 10i64.pow(6 - places.clamp(0, 6) as u32);
    let size = (micros.unsigned_abs() + unit as u64 / 2) / unit as u64 * unit as u64;
    if micros < 0 { -(size as i64) } else { size as i64 }
}
