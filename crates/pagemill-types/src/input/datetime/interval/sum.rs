//! An interval added up from its parts.
//!
//! Parts are whole numbers with a fraction. Below a month they are added exactly, and a fraction of
//! a month is taken as days of 24 hours, a month having 30 of them.
//!
//! Since version 15 every sum is checked, and a fraction of a year is rounded to months. Version 14
//! keeps hours, minutes and seconds apart in 32 bits each, which wrap round, and cuts off what is
//! less than a month. So there are two sums behind one trait.
//! Sources: `AdjustFractMicroseconds` and its kin and `itmin2interval` (15 to 18), `DecodeInterval`
//! and `tm2interval` (14), in `src/backend/utils/adt/datetime.c` and `timestamp.c`.

use crate::input::datetime::fault::{Fault, Result};
use crate::input::datetime::parts::ColonTime;
use crate::input::datetime::words::Unit;

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
const MICROS_PER_HOUR: i64 = 60 * MICROS_PER_MINUTE;
const MICROS_PER_DAY: i64 = 24 * MICROS_PER_HOUR;
const SECONDS_PER_DAY: i32 = 86_400;

/// The value of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::input::datetime) struct Interval {
    pub(in crate::input::datetime) micros: i64,
    pub(in crate::input::datetime) days: i32,
    pub(in crate::input::datetime) months: i32,
}

impl Interval {
    pub(in crate::input::datetime) const INFINITY: Self =
        Self { micros: i64::MAX, days: i32::MAX, months: i32::MAX };
    pub(in crate::input::datetime) const MINUS_INFINITY: Self =
        Self { micros: i64::MIN, days: i32::MIN, months: i32::MIN };
}

/// Adds parts up.
pub(in crate::input::datetime) trait IntervalSum: Default {
    /// Adds `value + fraction` units, the fraction being less than one.
    ///
    /// # Errors
    /// [`Fault::Field`] when the sum has no room for it.
    fn add(&mut self, unit: Unit, value: i64, fraction: f64) -> Result<()>;

    /// Puts a time of day, with this sign, in the place of what was counted of time so far.
    ///
    /// # Errors
    /// [`Fault::Field`] when it is too long.
    fn set_time(&mut self, time: ColonTime, negative: bool) -> Result<()>;

    /// Gives every part the sign minus.
    fn make_negative(&mut self);

    /// Turns all signs round.
    ///
    /// # Errors
    /// [`Fault::Field`] when some part has no opposite.
    fn negate(&mut self) -> Result<()>;

    /// True when the text of a part must fit 32 bits.
    fn is_narrow() -> bool;

    /// The sum; nothing when months are too many.
    fn interval(&self) -> Option<Interval>;
}

/// The sum of version 15 and later.
#[derive(Debug, Default, Clone, Copy)]
pub(in crate::input::datetime) struct CheckedSum {
    micros: i64,
    days: i32,
    months: i32,
    years: i32,
}

impl CheckedSum {
    fn add_micros(&mut self, value: i64, fraction: f64, scale: i64) -> Option<()> {
        self.micros = value.checked_mul(scale).and_then(|part| self.micros.checked_add(part))?;
        self.add_fraction(fraction, scale)
    }

    fn add_fraction(&mut self, fraction: f64, scale: i64) -> Option<()> {
        let exact = fraction * scale as f64;
        let whole = exact as i64;
        let rest = exact - whole as f64;
        let rounded = whole + i64::from(rest > 0.5) - i64::from(rest < -0.5);
        self.micros = self.micros.checked_add(rounded)?;
        Some(())
    }

    fn add_days(&mut self, value: i64, scale: i32) -> Option<()> {
        let days = i32::try_from(value).ok()?.checked_mul(scale)?;
        self.days = self.days.checked_add(days)?;
        Some(())
    }

    /// Adds a fraction of so many days.
    fn add_day_fraction(&mut self, fraction: f64, scale: i32) -> Option<()> {
        let exact = fraction * f64::from(scale);
        let whole = exact as i32;
        self.days = self.days.checked_add(whole)?;
        self.add_fraction(exact - f64::from(whole), MICROS_PER_DAY)
    }

    fn add_years(&mut self, value: i64, fraction: f64, scale: i32) -> Option<()> {
        let years = i32::try_from(value).ok()?.checked_mul(scale)?;
        self.years = self.years.checked_add(years)?;
        let months = (fraction * f64::from(scale) * 12.0).round_ties_even() as i32;
        self.months = self.months.checked_add(months)?;
        Some(())
    }

    fn add_part(&mut self, unit: Unit, value: i64, fraction: f64) -> Option<()> {
        match unit {
            Unit::Microsecond => self.add_micros(value, fraction, 1),
            Unit::Millisecond => self.add_micros(value, fraction, 1000),
            Unit::Second => self.add_micros(value, fraction, MICROS_PER_SECOND),
            Unit::Minute => self.add_micros(value, fraction, MICROS_PER_MINUTE),
            Unit::Hour => self.add_micros(value, fraction, MICROS_PER_HOUR),
            Unit::Day => {
                self.add_days(value, 1)?;
                self.add_fraction(fraction, MICROS_PER_DAY)
            }
            Unit::Week => {
                self.add_days(value, 7)?;
                self.add_day_fraction(fraction, 7)
            }
            Unit::Month => {
                self.months = self.months.checked_add(i32::try_from(value).ok()?)?;
                self.add_day_fraction(fraction, 30)
            }
            _ => self.add_years(value, fraction, years_in(unit)),
        }
    }

    fn opposite(&self) -> Option<Self> {
        Some(Self {
            micros: self.micros.checked_neg()?,
            days: self.days.checked_neg()?,
            months: self.months.checked_neg()?,
            years: self.years.checked_neg()?,
        })
    }
}

/// Years of a unit of at least one year.
fn years_in(unit: Unit) -> i32 {
    match unit {
        Unit::Decade => 10,
        Unit::Century => 100,
        Unit::Millennium => 1000,
        _ => 1,
    }
}

impl IntervalSum for CheckedSum {
    fn add(&mut self, unit: Unit, value: i64, fraction: f64) -> Result<()> {
        self.add_part(unit, value, fraction).ok_or(Fault::Field)
    }

    fn set_time(&mut self, time: ColonTime, negative: bool) -> Result<()> {
        let hours = time.hour.checked_mul(MICROS_PER_HOUR);
        let rest = i64::from(time.minute) * MICROS_PER_MINUTE
            + i64::from(time.second) * MICROS_PER_SECOND
            + i64::from(time.micros);
        let micros = hours.and_then(|hours| hours.checked_add(rest)).ok_or(Fault::Field)?;
        self.micros = if negative { -micros } else { micros };
        Ok(())
    }

    fn make_negative(&mut self) {
        self.micros = self.micros.min(self.micros.wrapping_neg());
        for part in [&mut self.days, &mut self.months, &mut self.years] {
            *part = (*part).min(part.wrapping_neg());
        }
    }

    fn negate(&mut self) -> Result<()> {
        *self = self.opposite().ok_or(Fault::Field)?;
        Ok(())
    }

    fn is_narrow() -> bool {
        false
    }

    fn interval(&self) -> Option<Interval> {
        let months = i64::from(self.years) * 12 + i64::from(self.months);
        let months = i32::try_from(months).ok()?;
        Some(Interval { micros: self.micros, days: self.days, months })
    }
}

/// The sum of version 14.
#[derive(Debug, Default, Clone, Copy)]
pub(in crate::input::datetime) struct WrappingSum {
    years: i32,
    months: i32,
    days: i32,
    hours: i32,
    minutes: i32,
    seconds: i32,
    micros: i32,
}

/// `value` rounded to 32 bits, as the processor converts it: what does not fit is the least number.
fn converted(value: f64) -> i32 {
    let fits = value > -2_147_483_649.0 && value < 2_147_483_648.0;
    if fits { value as i32 } else { i32::MIN }
}

impl WrappingSum {
    fn add_micros(&mut self, micros: f64) {
        self.micros = converted(f64::from(self.micros) + micros.round_ties_even());
    }

    /// Adds a fraction of so many seconds.
    fn add_fraction(&mut self, fraction: f64, scale: i32) {
        let exact = fraction * f64::from(scale);
        let whole = exact as i32;
        self.seconds = self.seconds.wrapping_add(whole);
        self.add_micros((exact - f64::from(whole)) * 1_000_000.0);
    }

    /// Adds a fraction of so many days.
    fn add_day_fraction(&mut self, fraction: f64, scale: i32) {
        let exact = fraction * f64::from(scale);
        let whole = exact as i32;
        self.days = self.days.wrapping_add(whole);
        self.add_fraction(exact - f64::from(whole), SECONDS_PER_DAY);
    }

    fn add_years(&mut self, value: i32, fraction: f64, scale: i32) {
        self.years = self.years.wrapping_add(value.wrapping_mul(scale));
        let months = fraction * 12.0 * f64::from(scale);
        self.months = converted(f64::from(self.months) + months);
    }

    fn parts(&mut self) -> [&mut i32; 7] {
        let Self { years, months, days, hours, minutes, seconds, micros } = self;
        [years, months, days, hours, minutes, seconds, micros]
    }

    /// Whole seconds out of the microseconds.
    fn settle(&mut self) {
        self.seconds = self.seconds.wrapping_add(self.micros / 1_000_000);
        self.micros %= 1_000_000;
    }
}

impl IntervalSum for WrappingSum {
    fn add(&mut self, unit: Unit, value: i64, fraction: f64) -> Result<()> {
        let value = i32::try_from(value).map_err(|_| Fault::Field)?;
        match unit {
            Unit::Microsecond => self.add_micros(f64::from(value) + fraction),
            Unit::Millisecond => {
                self.seconds = self.seconds.wrapping_add(value / 1000);
                self.add_micros((f64::from(value % 1000) + fraction) * 1000.0);
            }
            Unit::Second => {
                self.seconds = self.seconds.wrapping_add(value);
                self.add_micros(fraction * 1_000_000.0);
            }
            Unit::Minute => {
                self.minutes = self.minutes.wrapping_add(value);
                self.add_fraction(fraction, 60);
            }
            Unit::Hour => {
                self.hours = self.hours.wrapping_add(value);
                self.add_fraction(fraction, 3600);
            }
            Unit::Day => {
                self.days = self.days.wrapping_add(value);
                self.add_fraction(fraction, SECONDS_PER_DAY);
            }
            Unit::Week => {
                self.days = self.days.wrapping_add(value.wrapping_mul(7));
                self.add_day_fraction(fraction, 7);
            }
            Unit::Month => {
                self.months = self.months.wrapping_add(value);
                self.add_day_fraction(fraction, 30);
            }
            _ => self.add_years(value, fraction, years_in(unit)),
        }
        Ok(())
    }

    fn set_time(&mut self, time: ColonTime, negative: bool) -> Result<()> {
        let sign = if negative { -1 } else { 1 };
        let hour = i32::try_from(time.hour).map_err(|_| Fault::Field)?;
        self.hours = sign * hour;
        self.minutes = sign * time.minute;
        self.seconds = sign * time.second;
        self.micros = sign * time.micros;
        Ok(())
    }

    fn make_negative(&mut self) {
        self.settle();
        for part in self.parts() {
            *part = (*part).min(part.wrapping_neg());
        }
    }

    fn negate(&mut self) -> Result<()> {
        self.settle();
        for part in self.parts() {
            *part = part.wrapping_neg();
        }
        Ok(())
    }

    fn is_narrow() -> bool {
        true
    }

    fn interval(&self) -> Option<Interval> {
        let mut sum = *self;
        sum.settle();
        let months = i64::from(sum.years) * 12 + i64::from(sum.months);
        let minutes = i64::from(sum.hours) * 60 + i64::from(sum.minutes);
        let seconds = minutes * 60 + i64::from(sum.seconds);
        let micros = seconds.wrapping_mul(MICROS_PER_SECOND).wrapping_add(sum.micros.into());
        Some(Interval { micros, days: sum.days, months: i32::try_from(months).ok()? })
    }
}
