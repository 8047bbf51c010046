//! The names of the parts of a date or time.
//!
//! Names are compared by their first ten bytes, in any case.
//!
//! Source: `deltatktbl`, `datetktbl`, `datebsearch` in `src/backend/utils/adt/datetime.c`, PostgreSQL 14 to 18.

use crate::error::{SqlState, StatementError};

/// A part of a date or time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    Zone,
    ZoneHour,
    ZoneMinute,
    Julian,
    IsoYear,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    Epoch,
    /// A name with a meaning of its own that is no part.
    Word,
}

/// A unit as it was given, in small letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) unit: Option<Unit>,
}

/// What may be truncated to.
pub(super) fn of_truncation(name: &str) -> Named {
    let name = lowered(name);
    let unit = by_length(key(&name));
    Named { name, unit }
}

/// What may be extracted.
pub(super) fn of_extraction(name: &str) -> Named {
    let mut named = of_truncation(name);
    named.unit = named.unit.or_else(|| of_date(key(&named.name)));
    named
}

/// As identifiers are: letters of ASCII made small, cut to 63 bytes.
fn lowered(name: &str) -> String {
    name[..name.floor_char_boundary(63)].to_ascii_lowercase()
}

fn key(name: &str) -> &str {
    name.get(..10).unwrap_or(name)
}

fn by_length(key: &str) -> Option<Unit> {
    Some(match key {
        "c" | "cent" | "centuries" | "century" => Unit::Century,
        "d" | "day" | "days" => Unit::Day,
        "dec" | "decade" | "decades" | "decs" => Unit::Decade,
        "h" | "hour" | "hours" | "hr" | "hrs" => Unit::Hour,
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
        "microsecon" | "us" | "usec" | "usecond" | "useconds" | "usecs" => Unit::Microsecond,
        "mil" | "millennia" | "millennium" | "mils" => Unit::Millennium,
        "millisecon" | "ms" | "msec" | "msecond" | "mseconds" | "msecs" => Unit::Millisecond,
        "mon" | "mons" | "month" | "months" => Unit::Month,
        "qtr" | "quarter" => Unit::Quarter,
        "s" | "sec" | "second" | "seconds" | "secs" => Unit::Second,
        "timezone" => Unit::Zone,
        "timezone_h" => Unit::ZoneHour,
        "timezone_m" => Unit::ZoneMinute,
        "w" | "week" | "weeks" => Unit::Week,
        "y" | "year" | "years" | "yr" | "yrs" => Unit::Year,
        _ => return None,
    })
}

fn of_date(key: &str) -> Option<Unit> {
    Some(match key {
        "dow" => Unit::DayOfWeek,
        "doy" => Unit::DayOfYear,
        "epoch" => Unit::Epoch,
        "isodow" => Unit::IsoDayOfWeek,
        "isoyear" => Unit::IsoYear,
        "j" | "jd" | "julian" => Unit::Julian,
        "mm" => Unit::Minute,
        "-infinity" | "allballs" | "infinity" | "now" | "today" | "tomorrow" | "yesterday" => {
            Unit::Word
        }
        _ => return None,
    })
}

impl Named {
    #[cold]
    pub(super) fn unknown(&self, type_name: &str) -> StatementError {
        let message = format!("unit \"{}\" not recognized for type {type_name}", self.name);
        StatementError::new(SqlState::INVALID_PARAMETER, message)
    }

    #[cold]
    pub(super) fn unsupported(&self, type_name: &str) -> StatementError {
        let message = format!("unit \"{}\" not supported for type {type_name}", self.name);
        StatementError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
    }
}
