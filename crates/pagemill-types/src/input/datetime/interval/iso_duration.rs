//! Intervals as ISO 8601 writes durations: `P1Y2M3DT4H5M6.7S`, `P0001-02-03T04:05:06`.
//!
//! Numbers are whatever C's `strtod` takes, exponents included. Weeks may stand beside other units,
//! and every number may have a fraction.
//! Source: `DecodeISO8601Interval` in `src/backend/utils/adt/datetime.c`, PostgreSQL 14 to 18.

use super::sum::IntervalSum;
use crate::input::datetime::fault::{Fault, Result};
use crate::input::datetime::numbers::real;
use crate::input::datetime::words::Unit;

/// The largest number taken, 15 digits; version 14 takes 32 bits.
const MOST: f64 = 1.0e15;

/// Reads a duration.
pub(super) fn read<S: IntervalSum>(text: &[u8]) -> Result<S> {
    let rest = text.strip_prefix(b"P").filter(|rest| !rest.is_empty()).ok_or(Fault::Syntax)?;
    let mut duration = Duration { rest, sum: S::default(), in_time: false, has_field: false };
    while !duration.rest.is_empty() {
        if duration.take(b'T') {
            duration.begin_time();
            continue;
        }
        let done = if duration.in_time { duration.time_field()? } else { duration.date_field()? };
        if done {
            break;
        }
    }
    Ok(duration.sum)
}

struct Duration<'a, S> {
    rest: &'a [u8],
    sum: S,
    /// After the `T`.
    in_time: bool,
    /// A field with a designator was read in this part.
    has_field: bool,
}

/// A number: its whole part and the rest, and how many digits it begins with.
struct Number {
    whole: i64,
    fraction: f64,
    digits: usize,
}

impl<S: IntervalSum> Duration<'_, S> {
    fn take(&mut self, byte: u8) -> bool {
        let rest = self.rest.strip_prefix(&[byte]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn begin_time(&mut self) {
        (self.in_time, self.has_field) = (true, false);
    }

    fn number(&mut self) -> Result<Number> {
        if !matches!(self.rest.first(), Some(b'0'..=b'9' | b'-' | b'.')) {
            return Err(Fault::Syntax);
        }
        let real = real(self.rest);
        if real.len == 0 || real.out_of_range {
            return Err(Fault::Syntax);
        }
        let limits = if S::is_narrow() { i32::MIN.into()..=i32::MAX.into() } else { -MOST..=MOST };
        if !limits.contains(&real.value) {
            return Err(Fault::Field);
        }
        let unsigned = self.rest.strip_prefix(b"-").unwrap_or(self.rest);
        let digits = unsigned.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let whole = real.value.trunc();
        self.rest = self.rest.get(real.len..).unwrap_or_default();
        Ok(Number { whole: whole as i64, fraction: real.value - whole, digits })
    }

    /// One field before the `T`; true when it ends the text.
    fn date_field(&mut self) -> Result<bool> {
        let number = self.number()?;
        let (designator, after) = self.rest.split_first().unwrap_or((&0, b""));
        let ends = self.rest.is_empty();
        self.rest = after;
        let unit = match designator {
            b'Y' => Unit::Year,
            b'M' => Unit::Month,
            b'W' => Unit::Week,
            b'D' => Unit::Day,
            b'T' | 0 if (ends || *designator == b'T') && number.digits == 8 && !self.has_field => {
                self.joined_date(&number)?;
                self.begin_time();
                return Ok(ends);
            }
            b'T' | b'-' => return self.dashed_date(&number, *designator),
            0 if ends => return self.dashed_date(&number, 0),
            _ => return Err(Fault::Syntax),
        };
        self.sum.add(unit, number.whole, number.fraction)?;
        self.has_field = true;
        Ok(false)
    }

    /// `yyyymmdd`.
    fn joined_date(&mut self, number: &Number) -> Result<()> {
        self.sum.add(Unit::Year, number.whole / 10_000, 0.0)?;
        self.sum.add(Unit::Month, number.whole / 100 % 100, 0.0)?;
        self.sum.add(Unit::Day, number.whole % 100, number.fraction)
    }

    /// `yyyy-mm-dd`, or less of it, from the year on.
    fn dashed_date(&mut self, year: &Number, after_year: u8) -> Result<bool> {
        if self.has_field {
            return Err(Fault::Syntax);
        }
        self.sum.add(Unit::Year, year.whole, year.fraction)?;
        if after_year != b'-' {
            self.begin_time();
            return Ok(after_year == 0);
        }
        for unit in [Unit::Month, Unit::Day] {
            let number = self.number()?;
            self.sum.add(unit, number.whole, number.fraction)?;
            match self.rest.first() {
                None => return Ok(true),
                Some(b'T') => return Ok(false),
                Some(b'-') if unit == Unit::Month => self.take(b'-'),
                Some(_) => return Err(Fault::Syntax),
            };
        }
        Err(Fault::Syntax)
    }

    /// One field after the `T`; true when it ends the text.
    fn time_field(&mut self) -> Result<bool> {
        let number = self.number()?;
        let (designator, after) = self.rest.split_first().unwrap_or((&0, b""));
        let ends = self.rest.is_empty();
        self.rest = after;
        let unit = match designator {
            b'H' => Unit::Hour,
            b'M' => Unit::Minute,
            b'S' => Unit::Second,
            0 if ends && number.digits == 6 && !self.has_field => {
                self.joined_time(&number)?;
                return Ok(true);
            }
            b':' => return self.colon_time(&number, false),
            0 if ends => return self.colon_time(&number, true),
            _ => return Err(Fault::Syntax),
        };
        self.sum.add(unit, number.whole, number.fraction)?;
        self.has_field = true;
        Ok(false)
    }

    /// `hhmmss`.
    fn joined_time(&mut self, number: &Number) -> Result<()> {
        self.sum.add(Unit::Hour, number.whole / 10_000, 0.0)?;
        self.sum.add(Unit::Minute, number.whole / 100 % 100, 0.0)?;
        // The server scales the fraction as one of a microsecond, since version 15.
        if S::is_narrow() {
            return self.sum.add(Unit::Second, number.whole % 100, number.fraction);
        }
        self.sum.add(Unit::Second, number.whole % 100, 0.0)?;
        self.sum.add(Unit::Microsecond, 0, number.fraction)
    }

    /// `hh:mm:ss`, or less of it, from the hour on.
    fn colon_time(&mut self, hour: &Number, ends: bool) -> Result<bool> {
        if self.has_field {
            return Err(Fault::Syntax);
        }
        self.sum.add(Unit::Hour, hour.whole, hour.fraction)?;
        if ends {
            return Ok(true);
        }
        for unit in [Unit::Minute, Unit::Second] {
            let number = self.number()?;
            self.sum.add(unit, number.whole, number.fraction)?;
            match self.rest.first() {
                None => return Ok(true),
                Some(b':') if unit == Unit::Minute => self.take(b':'),
                Some(_) => return Err(Fault::Syntax),
            };
        }
        Err(Fault::Syntax)
    }
}
