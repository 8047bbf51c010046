//! `interval`, IntervalStyle postgres.
//!
//! ```text
//! microseconds i64 | days i32 | months i32
//! ```
//!
//! From PostgreSQL 17 on, three maxima are `infinity` and three minima `-infinity`; before, they
//! are numbers like any other, hence two writers. (PostgreSQL 14 itself fails to print more than
//! 2^31 hours; here they print as they do in 15.)
//! Sources: `interval_out` in `src/backend/utils/adt/timestamp.c`, `EncodeInterval` and
//! `AddPostgresIntPart` in `datetime.c`, `INTERVAL_IS_NOEND` in
//! `src/include/datatype/timestamp.h` (17), PostgreSQL 14 to 18.

use pagemill_format::error::Result;

use super::datetime::push_clock;
use super::digits::push_integer;
use super::payload::fixed;

/// `interval`, as PostgreSQL 17 and later print it.
///
/// # Errors
/// When the value is not 16 bytes.
pub fn write_interval(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    match Interval::read(value)? {
        Interval::MAX => out.extend_from_slice(b"infinity"),
        Interval::MIN => out.extend_from_slice(b"-infinity"),
        finite => finite.push(out),
    }
    Ok(())
}

/// `interval`, as PostgreSQL 14 to 16 print it: there are no infinities.
///
/// # Errors
/// When the value is not 16 bytes.
pub fn write_interval_before_17(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    Interval::read(value)?.push(out);
    Ok(())
}

#[derive(PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) micros: i64,
    pub(super) days: i32,
    pub(super) months: i32,
}

impl Interval {
    pub(super) const MAX: Self = Self { micros: i64::MAX, days: i32::MAX, months: i32::MAX };
    pub(super) const MIN: Self = Self { micros: i64::MIN, days: i32::MIN, months: i32::MIN };

    pub(super) fn read(value: &[u8]) -> Result<Self> {
        let [micros @ .., a, b, c, d, e, f, g, h] = fixed::<16>("interval", value)?;
        Ok(Self {
            micros: i64::from_le_bytes(micros),
            days: i32::from_le_bytes([a, b, c, d]),
            months: i32::from_le_bytes([e, f, g, h]),
        })
    }

    fn push(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let mut sign_before = 0;
        let parts = [(self.months / 12, "year"), (self.months % 12, "mon"), (self.days, "day")];
        for (number, unit) in parts {
            if number == 0 {
                continue;
            }
            if out.len() > start {
                out.push(b' ');
            }
            // A positive part right after a negative one carries its sign.
            if sign_before < 0 && number > 0 {
                out.push(b'+');
            }
            push_integer(number, out);
            out.push(b' ');
            out.extend_from_slice(unit.as_bytes());
            if number != 1 {
                out.push(b's');
            }
            sign_before = number.signum();
        }
        let nothing_yet = out.len() == start;
        if nothing_yet || self.micros != 0 {
            if !nothing_yet {
                out.push(b' ');
            }
            match self.micros {
                ..0 => out.push(b'-'),
                _ if sign_before < 0 => out.push(b'+'),
                _ => {}
            }
            push_clock(self.micros.unsigned_abs(), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    fn value(months: i32, days: i32, micros: i64) -> Vec<u8> {
        [&micros.to_le_bytes()[..], &days.to_le_bytes(), &months.to_le_bytes()].concat()
    }

    fn interval(months: i32, days: i32, micros: i64) -> String {
        printed(write_interval, &value(months, days, micros))
    }

    #[test]
    fn parts_that_are_zero_are_left_out() {
        assert_eq!(interval(0, 0, 0), "00:00:00");
        assert_eq!(interval(14, 3, 0), "1 year 2 mons 3 days");
        assert_eq!(interval(0, 1, 1_500_000), "1 day 00:00:01.5");
        assert_eq!(interval(24, 0, 100 * 3_600_000_000), "2 years 100:00:00");
    }

    #[test]
    fn a_positive_part_after_a_negative_one_has_a_plus() {
        assert_eq!(interval(-14, 3, 0), "-1 years -2 mons +3 days");
        assert_eq!(interval(0, -1, 1), "-1 days +00:00:00.000001");
        assert_eq!(interval(-1, 2, 1_000_000), "-1 mons +2 days 00:00:01");
        assert_eq!(interval(0, 0, -1), "-00:00:00.000001");
    }

    #[test]
    fn infinities_exist_from_version_17_on() {
        assert_eq!(interval(i32::MAX, i32::MAX, i64::MAX), "infinity");
        assert_eq!(interval(i32::MIN, i32::MIN, i64::MIN), "-infinity");
        assert_eq!(
            printed(write_interval_before_17, &value(i32::MAX, i32::MAX, i64::MAX)),
            "178956970 years 7 mons 2147483647 days 2562047788:00:54.775807"
        );
        assert_eq!(
            printed(write_interval_before_17, &value(i32::MIN, i32::MIN, i64::MIN)),
            "-178956970 years -8 mons -2147483648 days -2562047788:00:54.775808"
        );
    }
}
