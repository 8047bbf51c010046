//! What an interval's type modifier says: which fields it has, and how many digits of a second.
//!
//! Fields to the right of the last one are cut off, those to the left of the first one stay. So the
//! last field is all that counts: `interval year to month` is `interval month`.
//! Source: `AdjustIntervalForTypmod` in `src/backend/utils/adt/timestamp.c`, PostgreSQL 14 to 18. (17 and later refuse a value that rounding
//! makes too large; before, it wraps round.)

use pagemill_format::ids::PgVersion;

use super::sum::Interval;
use crate::input::InputError;
use crate::input::datetime::calendar::{MOST_DIGITS, round};
use crate::input::datetime::words::Unit;
use crate::interval_fields::{DAY, FULL_PRECISION, FULL_RANGE, HOUR, MINUTE, MONTH, SECOND, YEAR};

const MICROS_PER_MINUTE: i64 = 60_000_000;
const MICROS_PER_HOUR: i64 = 60 * MICROS_PER_MINUTE;

/// An interval's type modifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::input::datetime) struct IntervalType {
    typmod: i32,
}

impl IntervalType {
    pub(in crate::input::datetime) fn new(typmod: i32) -> Self {
        Self { typmod }
    }

    fn range(self) -> i32 {
        if self.typmod < 0 { FULL_RANGE } else { self.typmod >> 16 & FULL_RANGE }
    }

    /// True for `interval minute to second`.
    pub(in crate::input::datetime) fn is_minute_to_second(self) -> bool {
        self.range() == MINUTE | SECOND
    }

    /// The unit of a number without one.
    pub(in crate::input::datetime) fn last_unit(self) -> Unit {
        self.last_field().unwrap_or(Unit::Second)
    }

    /// The last field; nothing for fields that no type has.
    fn last_field(self) -> Option<Unit> {
        const DAY_HOUR: i32 = DAY | HOUR;
        const HOUR_MINUTE: i32 = HOUR | MINUTE;
        const MINUTE_SECOND: i32 = MINUTE | SECOND;
        Some(match self.range() {
            YEAR => Unit::Year,
            MONTH => Unit::Month,
            range if range == YEAR | MONTH => Unit::Month,
            DAY => Unit::Day,
            HOUR | DAY_HOUR => Unit::Hour,
            MINUTE | HOUR_MINUTE => Unit::Minute,
            range if range == DAY_HOUR | MINUTE => Unit::Minute,
            SECOND | MINUTE_SECOND | FULL_RANGE => Unit::Second,
            range if range == HOUR | MINUTE_SECOND => Unit::Second,
            range if range == DAY_HOUR | MINUTE_SECOND => Unit::Second,
            _ => return None,
        })
    }

    /// Cuts off and rounds what the type does not hold.
    ///
    /// # Errors
    /// When the modifier is none, or rounding makes the value too large.
    pub(in crate::input::datetime) fn adjust(
        self,
        interval: &mut Interval,
        version: PgVersion,
    ) -> Result<(), InputError> {
        let is_infinite = [Interval::INFINITY, Interval::MINUS_INFINITY].contains(interval);
        if self.typmod < 0 || (version >= PgVersion::V17 && is_infinite) {
            return Ok(());
        }
        let Some(last) = self.last_field() else {
            return Err(InputError::new(format!("unrecognized interval typmod: {}", self.typmod)));
        };
        let unit = match last {
            Unit::Hour => MICROS_PER_HOUR,
            Unit::Minute => MICROS_PER_MINUTE,
            Unit::Second => 1,
            _ => i64::MAX,
        };
        interval.micros -= interval.micros % unit;
        if unit == i64::MAX {
            interval.micros = 0;
            interval.days = if last == Unit::Day { interval.days } else { 0 };
        }
        if last == Unit::Year {
            interval.months -= interval.months % 12;
        }
        self.round(interval, version)
    }

    fn round(self, interval: &mut Interval, version: PgVersion) -> Result<(), InputError> {
        let digits = self.typmod & FULL_PRECISION;
        if digits == FULL_PRECISION {
            return Ok(());
        }
        if digits > MOST_DIGITS {
            let message =
                format!("interval({digits}) precision must be between 0 and {MOST_DIGITS}");
            return Err(InputError::new(message));
        }
        match round(interval.micros, digits) {
            (_, true) if version >= PgVersion::V17 => Err(InputError::new("interval out of range")),
            (micros, _) => {
                interval.micros = micros;
                Ok(())
            }
        }
    }
}
