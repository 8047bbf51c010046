//! `date`, `time`, `timetz`, `timestamp` and `timestamptz`, DateStyle ISO; `timestamptz` in UTC, or as clocks of a zone show it.
//!
//! Dates count days and timestamps microseconds from 2000-01-01; times count microseconds from
//! midnight; `timetz` adds its zone in seconds west of Greenwich. The extreme values are the
//! infinities. Years before 1 print as years `BC`, a fraction of a second without zeros at its
//! end. Sources, PostgreSQL 14 to 18: `date_out`, `time_out` and `timetz_out` in
//! `src/backend/utils/adt/date.c`, `timestamp_out` and `timestamp2tm` in `timestamp.c`,
//! `EncodeDateTime` and `j2date` in `datetime.c`.

use pagemill_format::error::{Error, Result};

use super::digits::{pair, push_integer, push_two, quad};
use super::payload::fixed;
use super::time_zone::Zone;

pub(super) const MICROS_PER_SECOND: u64 = 1_000_000;
pub(super) const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND as i64;
/// From 1970-01-01 to 2000-01-01.
pub(crate) const UNIX_SECONDS: i64 = 946_684_800;
/// So many days before the first Julian day a cycle of the calendar begins.
const MARCH_OF_4801_BC: i64 = 32_044;
/// The Julian day of 2000-01-01.
const EPOCH_JULIAN_DAY: i64 = 2_451_545;

/// `date`.
///
/// # Errors
/// When the value is not 4 bytes, or lies before 4714-11-24 BC.
pub fn write_date(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    match i32::from_le_bytes(fixed("date", value)?) {
        i32::MIN => out.extend_from_slice(b"-infinity"),
        i32::MAX => out.extend_from_slice(b"infinity"),
        days => {
            let date = CivilDate::from_days("date", days.into())?;
            date.push(out);
            date.push_era(out);
        }
    }
    Ok(())
}

/// `time`, alias `time without time zone`.
///
/// # Errors
/// When the value is not 8 bytes, or negative.
pub fn write_time(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_time_of_day("time", i64::from_le_bytes(fixed("time", value)?), out)
}

/// `timetz`, alias `time with time zone`.
///
/// # Errors
/// When the value is not 12 bytes, or its time is negative.
pub fn write_timetz(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let [t @ .., a, b, c, d] = fixed::<12>("timetz", value)?;
    push_time_of_day("timetz", i64::from_le_bytes(t), out)?;
    push_zone(i32::from_le_bytes([a, b, c, d]), out);
    Ok(())
}

/// `timestamp`, alias `timestamp without time zone`.
///
/// # Errors
/// When the value is not 8 bytes, or lies before 4714-11-24 BC.
pub fn write_timestamp(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_timestamp("timestamp", i64::from_le_bytes(fixed("timestamp", value)?), &ISO, out)
}

/// `timestamptz`, alias `timestamp with time zone`, in UTC.
///
/// # Errors
/// When the value is not 8 bytes, or lies before 4714-11-24 BC.
pub fn write_timestamptz(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_timestamp("timestamptz", i64::from_le_bytes(fixed("timestamptz", value)?), &ISO_ZONED, out)
}

/// `timestamptz` as clocks of a zone show it.
///
/// # Errors
/// As [`write_timestamptz`].
pub fn write_timestamptz_in(zone: &Zone, value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_zoned(zone, value, b' ', out)
}

/// `timestamp` in the form of XML Schema, which JSON has: a `T` stands before the time.
///
/// # Errors
/// As [`write_timestamp`].
pub fn write_xsd_timestamp(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_timestamp("timestamp", i64::from_le_bytes(fixed("timestamp", value)?), &XSD, out)
}

/// `timestamptz` in the form of XML Schema, in UTC: the zone has its minutes.
///
/// # Errors
/// As [`write_timestamp`].
pub fn write_xsd_timestamptz(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_timestamp("timestamptz", i64::from_le_bytes(fixed("timestamptz", value)?), &XSD_ZONED, out)
}

/// The same as clocks of a zone show it.
///
/// # Errors
/// As [`write_timestamp`].
pub fn write_xsd_timestamptz_in(zone: &Zone, value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_zoned(zone, value, b'T', out)
}

/// A `timestamptz` in a zone, whose minutes XML Schema always has.
fn push_zoned(zone: &Zone, value: &[u8], separator: u8, out: &mut Vec<u8>) -> Result<()> {
    let micros = i64::from_le_bytes(fixed("timestamptz", value)?);
    let second = micros.div_euclid(MICROS_PER_SECOND as i64) + UNIX_SECONDS;
    let east = zone.at(second).east;
    let mut offset = Vec::with_capacity(9);
    push_zone(-east, &mut offset);
    if separator == b'T' && offset.len() == 3 {
        offset.extend_from_slice(b":00");
    }
    let local = match micros {
        i64::MIN | i64::MAX => micros,
        finite => finite.saturating_add(i64::from(east) * MICROS_PER_SECOND as i64),
    };
    push_timestamp("timestamptz", local, &TimestampForm { separator, zone: &offset }, out)
}

/// What stands between a date and its time, and behind that.
struct TimestampForm<'z> {
    separator: u8,
    zone: &'z [u8],
}

const ISO: TimestampForm<'_> = TimestampForm { separator: b' ', zone: b"" };
const ISO_ZONED: TimestampForm<'_> = TimestampForm { separator: b' ', zone: b"+00" };
const XSD: TimestampForm<'_> = TimestampForm { separator: b'T', zone: b"" };
const XSD_ZONED: TimestampForm<'_> = TimestampForm { separator: b'T', zone: b"+00:00" };

fn push_timestamp(
    structure: &'static str,
    micros: i64,
    form: &TimestampForm<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    match micros {
        i64::MIN => out.extend_from_slice(b"-infinity"),
        i64::MAX => out.extend_from_slice(b"infinity"),
        _ => {
            let date = CivilDate::from_days(structure, micros.div_euclid(MICROS_PER_DAY))?;
            out.reserve(32);
            date.push(out);
            out.push(form.separator);
            push_clock(micros.rem_euclid(MICROS_PER_DAY) as u64, out);
            out.extend_from_slice(form.zone);
            date.push_era(out);
        }
    }
    Ok(())
}

fn push_time_of_day(structure: &'static str, micros: i64, out: &mut Vec<u8>) -> Result<()> {
    let Ok(micros) = u64::try_from(micros) else {
        return Err(Error::corrupt(structure, 0, format!("a negative time, {micros}")));
    };
    push_clock(micros, out);
    Ok(())
}

/// Appends `hh:mm:ss` and the fraction of a number of microseconds; hours may exceed 24.
pub(super) fn push_clock(micros: u64, out: &mut Vec<u8>) {
    let seconds = micros / MICROS_PER_SECOND;
    let (hours, rest) = (seconds / 3600, (seconds % 3600) as u32);
    let ([m, n], [s, t]) = (pair(rest / 60), pair(rest % 60));
    if hours < 100 {
        let [h, i] = pair(hours as u32);
        out.extend_from_slice(&[h, i, b':', m, n, b':', s, t]);
    } else {
        push_integer(hours, out);
        out.extend_from_slice(&[b':', m, n, b':', s, t]);
    }
    push_fraction((micros % MICROS_PER_SECOND) as u32, out);
}

/// Appends a point and the microseconds without zeros at their end, or nothing for none.
pub(super) fn push_fraction(micros: u32, out: &mut Vec<u8>) {
    if micros == 0 {
        return;
    }
    let ([a, b, c, d], [e, f]) = (quad(micros / 100), pair(micros));
    let text = [b'.', a, b, c, d, e, f];
    let length = text.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
    out.extend_from_slice(text.get(..length).unwrap_or_default());
}

/// Appends a zone given in seconds west: the sign is turned round, minutes and seconds are
/// printed when they are there.
fn push_zone(west: i32, out: &mut Vec<u8>) {
    let seconds = west.unsigned_abs();
    out.push(if west <= 0 { b'+' } else { b'-' });
    push_two((seconds / 3600).into(), out);
    if !seconds.is_multiple_of(3600) {
        out.push(b':');
        out.extend_from_slice(&pair(seconds / 60 % 60));
    }
    if !seconds.is_multiple_of(60) {
        out.push(b':');
        out.extend_from_slice(&pair(seconds % 60));
    }
}

/// A day of the proleptic Gregorian calendar; year 0 is 1 BC.
pub(super) struct CivilDate {
    pub(super) year: i32,
    pub(super) month: u32,
    pub(super) day: u32,
}

impl CivilDate {
    /// The day so many days after 2000-01-01. No type reaches back before the first Julian day, but clocks west of
    /// Greenwich show the day before it; what the server prints beyond the last date it accepts, this prints too.
    pub(super) fn from_days(structure: &'static str, days: i64) -> Result<Self> {
        let day = days + EPOCH_JULIAN_DAY;
        let is_shown = day >= 0 || day == -1 && structure == "timestamptz";
        match u32::try_from(day + MARCH_OF_4801_BC) {
            Ok(day) if is_shown && days <= i32::MAX.into() => Ok(Self::from_first_march(day)),
            _ => Err(out_of_range(structure, days)),
        }
    }

    /// The day so many days after 1 March 4801 BC, where a cycle of 400 years begins; a year then ends with its leap day.
    fn from_first_march(days: u32) -> Self {
        let centuries = days / 146_097 * 4 + (days % 146_097 * 4 + 3) / 146_097;
        // Give every century the leap day it lacks: each fourth year is then a leap year.
        let days = days + centuries - centuries / 4;
        let year = (u64::from(days) * 4 + 3) / 1461;
        let day_of_year = days - (year * 1461 / 4) as u32;
        // From March on, five months have 153 days.
        let month = (day_of_year * 5 + 2) / 153;
        let after_december = month >= 10;
        Self {
            year: year as i32 - 4800 + i32::from(after_december),
            month: if after_december { month - 9 } else { month + 3 },
            day: day_of_year - (month * 153 + 2) / 5 + 1,
        }
    }

    /// Appends `yyyy-mm-dd`, the year counted within its era.
    #[inline]
    fn push(&self, out: &mut Vec<u8>) {
        let year = if self.year > 0 { self.year } else { 1 - self.year };
        let ([m, n], [d, e]) = (pair(self.month), pair(self.day));
        match u32::try_from(year) {
            Ok(short @ 0..=9999) => {
                let [y, z, w, x] = quad(short);
                out.extend_from_slice(&[y, z, w, x, b'-', m, n, b'-', d, e]);
            }
            _ => {
                push_integer(year, out);
                out.extend_from_slice(&[b'-', m, n, b'-', d, e]);
            }
        }
    }

    /// Appends ` BC` where it belongs.
    #[inline]
    pub(super) fn push_era(&self, out: &mut Vec<u8>) {
        if self.year <= 0 {
            out.extend_from_slice(b" BC");
        }
    }
}

#[cold]
fn out_of_range(structure: &'static str, days: i64) -> Error {
    Error::corrupt(structure, 0, format!("{days} days from 2000-01-01 are out of range"))
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    fn date(days: i32) -> String {
        printed(write_date, &days.to_le_bytes())
    }

    fn timestamp(micros: i64) -> String {
        printed(write_timestamp, &micros.to_le_bytes())
    }

    #[test]
    fn dates_reach_from_4714_bc_to_the_year_5874897() {
        assert_eq!(date(0), "2000-01-01");
        assert_eq!(date(59), "2000-02-29");
        assert_eq!(date(60), "2000-03-01");
        assert_eq!(date(-1), "1999-12-31");
        assert_eq!(date(-2_451_545), "4714-11-24 BC");
        assert_eq!(date(-730_119), "0001-01-01");
        assert_eq!(date(-730_120), "0001-12-31 BC");
        assert_eq!(date(2_145_031_948), "5874897-12-31");
        assert_eq!(date(i32::MAX), "infinity");
        assert_eq!(date(i32::MIN), "-infinity");
        assert!(write_date(&(-2_451_546i32).to_le_bytes(), &mut Vec::new()).is_err());
    }

    #[test]
    fn fractions_of_a_second_lose_their_zeros() {
        assert_eq!(timestamp(0), "2000-01-01 00:00:00");
        assert_eq!(timestamp(1), "2000-01-01 00:00:00.000001");
        assert_eq!(timestamp(100_000), "2000-01-01 00:00:00.1");
        assert_eq!(timestamp(-1), "1999-12-31 23:59:59.999999");
    }

    #[test]
    fn the_zone_comes_before_the_era() {
        let ides_of_march = -64_464_508_800_000_000i64;
        assert_eq!(
            printed(write_timestamptz, &ides_of_march.to_le_bytes()),
            "0044-03-15 00:00:00+00 BC"
        );
        assert_eq!(printed(write_timestamptz, &0i64.to_le_bytes()), "2000-01-01 00:00:00+00");
        assert_eq!(timestamp(i64::MIN), "-infinity");
        assert_eq!(timestamp(i64::MAX), "infinity");
        assert!(write_timestamp(&(i64::MIN + 1).to_le_bytes(), &mut Vec::new()).is_err());
    }

    #[test]
    fn zones_print_only_the_parts_they_have() {
        let berlin = Zone::from_posix(b"CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let local = |micros: i64| {
            let mut out = Vec::new();
            write_timestamptz_in(&berlin, &micros.to_le_bytes(), &mut out).unwrap();
            out.push(b'|');
            write_xsd_timestamptz_in(&berlin, &micros.to_le_bytes(), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(local(0), "2000-01-01 01:00:00+01|2000-01-01T01:00:00+01:00");
        let summer = 182 * MICROS_PER_DAY - 1;
        assert_eq!(local(summer), "2000-07-01 01:59:59.999999+02|2000-07-01T01:59:59.999999+02:00");
        assert_eq!(local(i64::MAX), "infinity|infinity");
        let timetz = |micros: i64, west: i32| {
            let mut value = micros.to_le_bytes().to_vec();
            value.extend(west.to_le_bytes());
            printed(write_timetz, &value)
        };
        assert_eq!(timetz(0, 0), "00:00:00+00");
        assert_eq!(timetz(86_400_000_000, -19_800), "24:00:00+05:30");
        assert_eq!(timetz(1_500_000, 57_367), "00:00:01.5-15:56:07");
        assert_eq!(timetz(0, -3605), "00:00:00+01:00:05");
    }

    #[test]
    fn a_negative_time_is_corrupt() {
        assert!(write_time(&(-1i64).to_le_bytes(), &mut Vec::new()).is_err());
    }
}
