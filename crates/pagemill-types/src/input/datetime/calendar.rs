//! Days of the proleptic Gregorian calendar, numbered as Julian days, and a moment in parts.
//!
//! Years are counted astronomically: year 0 is 1 BC. Arithmetic wraps round as the server's does
//! (it is compiled so that integers wrap), because what it makes of absurd fields before it checks
//! their range decides whether it takes them.
//! Sources: `AdjustTimeForTypmod` in `src/backend/utils/adt/date.c`, `AdjustTimestampForTypmod` in `timestamp.c`, `date2j`, `j2date` and `day_tab` in `src/backend/utils/adt/datetime.c`,
//! `IS_VALID_JULIAN` in `src/include/datatype/timestamp.h`, PostgreSQL 14 to 18.

/// The Julian day of 1970-01-01.
const UNIX_EPOCH: i32 = 2_440_588;
/// The Julian day of 2000-01-01.
pub(super) const POSTGRES_EPOCH: i32 = 2_451_545;
pub(super) const MICROS_PER_SECOND: i64 = 1_000_000;
pub(super) const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// Seconds from 1970-01-01 to 2000-01-01.
const EPOCHS_APART: i64 = (POSTGRES_EPOCH - UNIX_EPOCH) as i64 * 86_400;

/// A moment as it is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) year: i32,
    pub(super) month: i32,
    pub(super) day: i32,
    pub(super) day_of_year: i32,
    pub(super) hour: i32,
    pub(super) minute: i32,
    pub(super) second: i32,
    pub(super) micros: i32,
}

/// The Julian day of a date.
pub(super) fn julian_day(year: i32, month: i32, day: i32) -> i32 {
    let (month, year) = if month > 2 {
        (month.wrapping_add(1), year.wrapping_add(4800))
    } else {
        (month.wrapping_add(13), year.wrapping_add(4799))
    };
    let century = year / 100;
    let leaps = (year / 4).wrapping_sub(century).wrapping_add(century / 4);
    let before = year.wrapping_mul(365).wrapping_sub(32_167).wrapping_add(leaps);
    before.wrapping_add(month.wrapping_mul(7834) / 256).wrapping_add(day)
}

/// True in a leap year.
pub(super) fn is_leap_year(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// The days of a month (1 to 12).
pub(super) fn days_in_month(year: i32, month: i32) -> i32 {
    match month {
        2 => 28 + i32::from(is_leap_year(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Moment {
    /// The Julian day of the date.
    pub(super) fn julian_day(&self) -> i32 {
        julian_day(self.year, self.month, self.day)
    }

    /// Sets the date to a Julian day.
    pub(super) fn set_julian_day(&mut self, julian_day: i32) {
        let day = (julian_day as u32).wrapping_add(32_044);
        let (cycles, in_cycle) = (day / 146_097, day % 146_097);
        let day = day.wrapping_add(60 + cycles * 3 + (in_cycle * 4 + 3) / 146_097);
        let (quads, in_quad) = (day / 1461, day % 1461);
        let year = in_quad * 4 / 1461;
        let in_year = if year != 0 { (in_quad + 305) % 365 } else { (in_quad + 306) % 366 } + 123;
        let month = in_year * 2141 / 65_536;
        self.year = (year + quads * 4) as i32 - 4800;
        self.month = ((month + 10) % 12 + 1) as i32;
        self.day = (in_year - 7834 * month / 256) as i32;
    }

    /// Sets the date to that of another moment.
    pub(super) fn set_date_of(&mut self, other: &Self) {
        (self.year, self.month, self.day) = (other.year, other.month, other.day);
    }

    /// Sets the time of day to a number of microseconds after midnight.
    pub(super) fn set_time(&mut self, micros: i64) {
        let seconds = micros / MICROS_PER_SECOND;
        self.hour = (seconds / 3600) as i32;
        self.minute = (seconds / 60 % 60) as i32;
        self.second = (seconds % 60) as i32;
        self.micros = (micros % MICROS_PER_SECOND) as i32;
    }

    /// Sets the time of day to 00:00:00; what was a fraction of a second stays.
    pub(super) fn set_time_of_midnight(&mut self) {
        (self.hour, self.minute, self.second) = (0, 0, 0);
    }

    /// True when the date is one that can be computed with: a little more than the types hold.
    pub(super) fn is_valid_julian(&self) -> bool {
        (self.year, self.month) >= (-4713, 11) && (self.year, self.month) < (5_874_898, 6)
    }

    /// Seconds after midnight.
    pub(super) fn second_of_day(&self) -> i32 {
        let minutes = self.hour.wrapping_mul(60).wrapping_add(self.minute);
        minutes.wrapping_mul(60).wrapping_add(self.second)
    }

    /// Microseconds after midnight.
    pub(super) fn micros_of_day(&self) -> i64 {
        i64::from(self.second_of_day()) * MICROS_PER_SECOND + i64::from(self.micros)
    }

    /// True when the time of day is no time up to 24:00:00.
    pub(super) fn time_overflows(&self) -> bool {
        !(0..=24).contains(&self.hour)
            || !(0..60).contains(&self.minute)
            || !(0..=60).contains(&self.second)
            || !(0..=1_000_000).contains(&self.micros)
            || self.micros_of_day() > MICROS_PER_DAY
    }

    /// Seconds from 1970-01-01, as if the moment were one of UTC.
    pub(super) fn unix_seconds(&self) -> i64 {
        let days = i64::from(self.julian_day()) - i64::from(UNIX_EPOCH);
        days * 86_400 + i64::from(self.second_of_day())
    }

    /// Microseconds from 2000-01-01 in UTC, seen by clocks so many seconds east of Greenwich.
    pub(super) fn of_timestamp(micros: i64, east: i32) -> Self {
        let local = micros.saturating_add(i64::from(east) * MICROS_PER_SECOND);
        let mut moment = Self::default();
        let days = local.div_euclid(MICROS_PER_DAY);
        moment.set_julian_day((days + i64::from(POSTGRES_EPOCH)) as i32);
        moment.set_time(local.rem_euclid(MICROS_PER_DAY));
        moment
    }
}

/// Seconds from 1970-01-01 of microseconds from 2000-01-01.
pub(super) fn unix_seconds_of(timestamp: i64) -> i64 {
    timestamp.div_euclid(MICROS_PER_SECOND) + EPOCHS_APART
}

/// Digits of a second at most that a type modifier allows.
pub(super) const MOST_DIGITS: i32 = 6;

/// Microseconds rounded to so many digits of a second, halves away from zero, and whether that
/// wrapped round.
pub(super) fn round(micros: i64, digits: i32) -> (i64, bool) {
    let scale = match digits {
        0 => 1_000_000,
        1 => 100_000,
        2 => 10_000,
        3 => 1000,
        4 => 100,
        5 => 10,
        _ => return (micros, false),
    };
    let half = if micros < 0 { -scale / 2 } else { scale / 2 };
    let (sum, wrapped) = micros.overflowing_add(half);
    (sum / scale * scale, wrapped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn julian_days_and_dates_are_each_others_inverse(day in 0..=2_147_483_493i32) {
            let mut moment = Moment::default();
            moment.set_julian_day(day);
            prop_assert_eq!(moment.julian_day(), day);
            prop_assert!(moment.is_valid_julian());
            prop_assert!(moment.day <= days_in_month(moment.year, moment.month));
        }
    }

    #[test]
    fn epochs_are_where_they_are() {
        assert_eq!(julian_day(1970, 1, 1), UNIX_EPOCH);
        assert_eq!(julian_day(2000, 1, 1), POSTGRES_EPOCH);
        assert_eq!(unix_seconds_of(0), 946_684_800);
        let moment = Moment::of_timestamp(-1, 3600);
        assert_eq!((moment.year, moment.hour, moment.micros), (2000, 0, 999_999));
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        assert_eq!(round(1_500_000, 0), (2_000_000, false));
        assert_eq!(round(-1_500_000, 0), (-2_000_000, false));
        assert_eq!(round(1_499_999, 0), (1_000_000, false));
        assert_eq!(round(123_456, 3), (123_000, false));
        assert_eq!(round(123_456, 6), (123_456, false));
        assert!(round(i64::MAX, 0).1);
    }
}
