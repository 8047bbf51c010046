//! The input functions of the date and time types.
//!
//! Source: `date_in`, `time_in` and `timetz_in` in `src/backend/utils/adt/date.c`, `timestamp_in`,
//! `timestamptz_in`, `interval_in` and `tm2timestamp` in `timestamp.c`, PostgreSQL 14 to 18.

use pagemill_format::ids::PgVersion;

use super::calendar::{
    MICROS_PER_DAY, MICROS_PER_SECOND, MOST_DIGITS, Moment, POSTGRES_EPOCH, round, unix_seconds_of,
};
use super::date_text::{self, DateTime};
use super::interval::IntervalType;
use super::iso_text::{self, IsoTime};
use super::{DateTimeContext, interval, time_text};
use crate::input::InputError;

/// The server's buffer for a date or time of day, in bytes.
const DATE_ROOM: usize = 128 + 1;
/// The server's buffer for a timestamp, in bytes.
const TIMESTAMP_ROOM: usize = 128 + 25;
/// The server's buffer for an interval, in bytes.
const INTERVAL_ROOM: usize = 256;
/// Days from 2000-01-01 to 5874898-01-01, the first day no date reaches.
const END_DATE: i32 = 2_147_483_494 - POSTGRES_EPOCH;
/// 4714-11-24 BC, the first day.
const FIRST_TIMESTAMP: i64 = -(POSTGRES_EPOCH as i64) * MICROS_PER_DAY;
/// 294277-01-01, the first day no timestamp reaches.
const END_TIMESTAMP: i64 = (109_203_528 - POSTGRES_EPOCH as i64) * MICROS_PER_DAY;
/// Days from 2000-01-01 to 1970-01-01.
const UNIX_EPOCH: i32 = -10_957;

/// `date`: days from 2000-01-01 in 4 bytes.
///
/// # Errors
/// When the text is no date.
pub fn read_date(
    text: &[u8],
    _typmod: i32,
    context: &DateTimeContext,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let days = match iso_text::date(text) {
        Some(days) => days,
        None => date_by_grammar(text, context)?,
    };
    out.extend_from_slice(&days.to_le_bytes());
    Ok(())
}

pub(super) fn date_by_grammar(text: &[u8], context: &DateTimeContext) -> Result<i32, InputError> {
    let read = date_text::read(text, DATE_ROOM, context);
    let moment = match read.map_err(|fault| fault.explain("date", text))? {
        DateTime::At(moment, _) => moment,
        DateTime::Epoch => return Ok(UNIX_EPOCH),
        DateTime::Infinity => return Ok(i32::MAX),
        DateTime::MinusInfinity => return Ok(i32::MIN),
    };
    let days = moment.julian_day().wrapping_sub(POSTGRES_EPOCH);
    let in_range = moment.is_valid_julian() && (-POSTGRES_EPOCH..END_DATE).contains(&days);
    if in_range { Ok(days) } else { Err(out_of_range("date", text)) }
}

#[cold]
fn out_of_range(what: &str, text: &[u8]) -> InputError {
    InputError::new(format!("{what} out of range: \"{}\"", String::from_utf8_lossy(text)))
}

/// `time`: microseconds after midnight in 8 bytes. The modifier is the number of digits of a
/// second.
///
/// # Errors
/// When the text is no time.
pub fn read_time(
    text: &[u8],
    typmod: i32,
    context: &DateTimeContext,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let micros = match iso_text::time(text) {
        Some(IsoTime { micros, west: None }) => micros,
        _ => time_by_grammar(text, "time", context)?.0,
    };
    out.extend_from_slice(&rounded(micros, typmod).to_le_bytes());
    Ok(())
}

/// `timetz`: microseconds after midnight in 8 bytes, then the offset in seconds west of Greenwich
/// in 4. The modifier is the number of digits of a second.
///
/// # Errors
/// When the text is no time.
pub fn read_timetz(
    text: &[u8],
    typmod: i32,
    context: &DateTimeContext,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let (micros, west) = match iso_text::time(text) {
        Some(IsoTime { micros, west: Some(west) }) => (micros, west),
        _ => time_by_grammar(text, "time with time zone", context)?,
    };
    out.extend_from_slice(&rounded(micros, typmod).to_le_bytes());
    out.extend_from_slice(&west.to_le_bytes());
    Ok(())
}

pub(super) fn time_by_grammar(
    text: &[u8],
    type_name: &str,
    context: &DateTimeContext,
) -> Result<(i64, i32), InputError> {
    let read = time_text::read(text, DATE_ROOM, context);
    read.map_err(|fault| fault.explain(type_name, text))
}

/// Any other modifier than a number of digits leaves the time as it is.
fn rounded(micros: i64, typmod: i32) -> i64 {
    if (0..=MOST_DIGITS).contains(&typmod) { round(micros, typmod).0 } else { micros }
}

/// `timestamp`: microseconds from 2000-01-01 in 8 bytes. The modifier is the number of digits of a
/// second.
///
/// # Errors
/// When the text is no timestamp.
pub fn read_timestamp(
    text: &[u8],
    typmod: i32,
    context: &DateTimeContext,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let micros = match iso_text::timestamp(text) {
        Some((days, time)) => i64::from(days) * MICROS_PER_DAY + time.micros,
        None => timestamp_by_grammar(text, context)?,
    };
    push_timestamp(micros, typmod, out)
}

pub(super) fn timestamp_by_grammar(
    text: &[u8],
    context: &DateTimeContext,
) -> Result<i64, InputError> {
    let read = date_text::read(text, TIMESTAMP_ROOM, context);
    let read = read.map_err(|fault| fault.explain("timestamp", text))?;
    timestamp_of(read, false, context).ok_or_else(|| out_of_range("timestamp", text))
}

/// `timestamptz`: microseconds from 2000-01-01 UTC in 8 bytes. The modifier is the number of digits
/// of a second.
///
/// # Errors
/// When the text is no timestamp.
pub fn read_timestamptz(
    text: &[u8],
    typmod: i32,
    context: &DateTimeContext,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let micros = match iso_text::timestamp(text) {
        Some((days, time)) => {
            let local = i64::from(days) * MICROS_PER_DAY + time.micros;
            let west = time
                .west
                .unwrap_or_else(|| -context.session_zone.resolve(unix_seconds_of(local)).east);
            local + i64::from(west) * MICROS_PER_SECOND
        }
        None => timestamptz_by_grammar(text, context)?,
    };
    push_timestamp(micros, typmod, out)
}

/// A `timestamptz` in ISO 8601, in UTC where it names no offset, or a date, which is its first moment: microseconds from
/// 2000-01-01 UTC. `None` for all else.
pub fn iso_timestamptz(text: &str) -> Option<i64> {
    let text = text.trim().replacen('T', " ", 1);
    let text = text.strip_suffix(['Z', 'z']).unwrap_or(&text);
    if let Some(days) = iso_text::date(text.as_bytes()) {
        return Some(i64::from(days) * MICROS_PER_DAY);
    }
    let (days, time) = iso_text::timestamp(text.as_bytes())?;
    let west = i64::from(time.west.unwrap_or(0));
    Some(i64::from(days) * MICROS_PER_DAY + time.micros + west * MICROS_PER_SECOND)
}

pub(super) fn timestamptz_by_grammar(
    text: &[u8],
    context: &DateTimeContext,
) -> Result<i64, InputError> {
    let read = date_text::read(text, TIMESTAMP_ROOM, context);
    let read = read.map_err(|fault| fault.explain("timestamp with time zone", text))?;
    timestamp_of(read, true, context).ok_or_else(|| out_of_range("timestamp", text))
}

/// Microseconds from 2000-01-01; nothing out of range.
fn timestamp_of(read: DateTime, has_zone: bool, context: &DateTimeContext) -> Option<i64> {
    match read {
        DateTime::At(moment, west) => {
            let local = local_timestamp(&moment, context.version)?;
            let shift = if has_zone { i64::from(west) * MICROS_PER_SECOND } else { 0 };
            let micros = local.wrapping_add(shift);
            (FIRST_TIMESTAMP..END_TIMESTAMP).contains(&micros).then_some(micros)
        }
        DateTime::Epoch => Some(i64::from(UNIX_EPOCH) * MICROS_PER_DAY),
        DateTime::Infinity => Some(i64::MAX),
        DateTime::MinusInfinity => Some(i64::MIN),
    }
}

/// Before version 18, a time of day of more than a day must not reach from before 2000 into it.
fn local_timestamp(moment: &Moment, version: PgVersion) -> Option<i64> {
    if !moment.is_valid_julian() {
        return None;
    }
    let days = i64::from(moment.julian_day()) - i64::from(POSTGRES_EPOCH);
    let micros = days.checked_mul(MICROS_PER_DAY)?.checked_add(moment.micros_of_day())?;
    let jumps = (micros < 0 && days > 0) || (micros > 0 && days < -1);
    (version >= PgVersion::V18 || !jumps).then_some(micros)
}

fn push_timestamp(micros: i64, typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let is_finite = micros != i64::MIN && micros != i64::MAX;
    if is_finite && typmod != -1 && !(0..=MOST_DIGITS).contains(&typmod) {
        let message = format!("timestamp({typmod}) precision must be between 0 and {MOST_DIGITS}");
        return Err(InputError::new(message));
    }
    let micros = if is_finite { rounded(micros, typmod) } else { micros };
    out.extend_from_slice(&micros.to_le_bytes());
    Ok(())
}

/// `interval`: microseconds in 8 bytes, then days and months in 4 each. The modifier says which
/// fields there are and the number of digits of a second.
///
/// # Errors
/// When the text is no interval.
pub fn read_interval(
    text: &[u8],
    typmod: i32,
    context: &DateTimeContext,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let kind = IntervalType::new(typmod);
    let read = interval::read(text, INTERVAL_ROOM, kind, context);
    let read = read.map_err(|fault| fault.explain("interval", text))?;
    let mut interval = read.ok_or_else(|| InputError::new("interval out of range"))?;
    kind.adjust(&mut interval, context.version)?;
    out.extend_from_slice(&interval.micros.to_le_bytes());
    out.extend_from_slice(&interval.days.to_le_bytes());
    out.extend_from_slice(&interval.months.to_le_bytes());
    Ok(())
}
