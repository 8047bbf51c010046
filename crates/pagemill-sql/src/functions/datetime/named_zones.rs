//! Time zones as statements name them: an abbreviation, a name of the zone database, or a rule in POSIX's notation.
//!
//! Abbreviations come first, as they do in texts of timestamps. They are the server's default ones; where a server has
//! others, only names that no abbreviation can have are known.
//!
//! Source: `DecodeTimezoneName`, `DecodeTimezone`, `DetermineTimeZoneAbbrevOffset`, `DetermineTimeZoneAbbrevOffsetTS` in
//! `src/backend/utils/adt/datetime.c`, `parse_sane_timezone` in `timestamp.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use pagemill_types::input::datetime::DateTimeContext;
use pagemill_types::time_zone::Zone;

use super::super::rows::Outcome;
use super::calendar::{SECOND, UNIX_EPOCH, is_valid};
use super::session_zone::{to_local, to_utc, unix_second};
use super::templates::{Abbreviated, meaning};
use crate::error::{SqlState, StatementError};

/// The longest identifier; names are cut there before they are looked for among the abbreviations.
const MOST_BYTES: usize = 63;
/// The greatest hours of an offset.
const MOST_HOURS: i64 = 15;

/// What a name stands for.
#[derive(Debug, Clone)]
pub(super) enum Named {
    /// Seconds east of Greenwich.
    East(i32),
    /// An abbreviation, whose meaning at a time is that in a zone.
    Abbreviation(Arc<Zone>, String),
    Zone(Arc<Zone>),
}

impl Named {
    /// The zone of a name in any case. `knows_abbreviations`: they are the default ones.
    pub(super) fn find(
        name: &str,
        session: &DateTimeContext,
        knows_abbreviations: bool,
    ) -> Outcome<Self> {
        let is_utc = ["utc", "gmt"].iter().any(|utc| name.eq_ignore_ascii_case(utc));
        let is_known = knows_abbreviations || is_utc || name.contains('/');
        if !is_known || name.len() > MOST_BYTES {
            let what = format!("the time zone \"{name}\", which may be an abbreviation,");
            return Err(StatementError::unsupported(what));
        }
        match meaning(&name.to_ascii_lowercase(), session) {
            Some(Abbreviated::East(east)) => return Ok(Self::East(east)),
            Some(Abbreviated::Zone(zone, name)) => return Ok(Self::Abbreviation(zone, name)),
            None => {}
        }
        let unknown = || {
            let message = format!("time zone \"{name}\" not recognized");
            StatementError::new(SqlState::INVALID_PARAMETER, message)
        };
        session.zones.zone(name).map(Self::Zone).ok_or_else(unknown)
    }

    /// The moment at which clocks showed this, if it is one.
    pub(super) fn to_utc(&self, local: i64) -> Option<i64> {
        match self {
            Self::East(east) => shifted(local, -i64::from(*east)),
            Self::Zone(zone) => to_utc(zone, local),
            Self::Abbreviation(zone, name) => {
                let shown = zone.resolve(unix_second(local));
                let named = zone.abbreviation_at(name.as_bytes(), shown.utc);
                shifted(local, -i64::from(named.map_or(shown.east, |kind| kind.east)))
            }
        }
    }

    /// What clocks showed at this moment, if it is a timestamp.
    pub(super) fn to_local(&self, utc: i64) -> Option<i64> {
        match self {
            Self::East(east) => shifted(utc, (*east).into()),
            Self::Zone(zone) => to_local(zone, utc),
            Self::Abbreviation(zone, name) => {
                // Parts of a second are cut off towards 2000.
                let second = utc / SECOND - UNIX_EPOCH / SECOND;
                let east = match zone.abbreviation_at(name.as_bytes(), second) {
                    Some(kind) => kind.east,
                    None => zone.resolve(unix_second(to_local(zone, utc)?)).east,
                };
                shifted(utc, east.into())
            }
        }
    }

    /// A zone whose clocks are those of this.
    pub(super) fn zone(&self) -> Option<Arc<Zone>> {
        match self {
            Self::Zone(zone) | Self::Abbreviation(zone, _) => Some(zone.clone()),
            Self::East(east) => fixed(*east).map(Arc::new),
        }
    }
}

/// The zone that is always so many seconds east of Greenwich.
fn fixed(east: i32) -> Option<Zone> {
    let size = east.unsigned_abs();
    let (hours, minutes, seconds) = (size / 3600, size / 60 % 60, size % 60);
    // POSIX counts to the west.
    let sign = if east < 0 { '+' } else { '-' };
    Zone::from_posix(format!("<own>{sign}{hours:02}:{minutes:02}:{seconds:02}").as_bytes())
}

fn shifted(timestamp: i64, seconds: i64) -> Option<i64> {
    let made = timestamp.checked_add(seconds.checked_mul(SECOND)?)?;
    Some(made).filter(|made| is_valid(*made))
}

/// The offset in seconds east that a zone of `make_timestamptz` is where it is a number with a sign, which counts to the
/// east and not as POSIX has it.
pub(super) fn numeric_offset(name: &str) -> Outcome<Option<i32>> {
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        let message = format!("invalid input syntax for type numeric time zone: \"{name}\"");
        let error = StatementError::new(SqlState::INVALID_PARAMETER, message);
        let hint = "Numeric time zones must have \"-\" or \"+\" as first character.";
        return Err(error.with_hint(hint));
    }
    let (sign, digits) = match (name.strip_prefix('-'), name.strip_prefix('+')) {
        (Some(digits), _) => (-1, digits),
        (None, Some(digits)) => (1, digits),
        (None, None) => return Ok(None),
    };
    let known = digits.split(':').map(|part| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<i64>().ok().filter(|_| is_number)
    });
    let parts: Option<Vec<i64>> = known.collect();
    let (hour, minute, second) = match parts.as_deref() {
        Some(&[number]) if digits.len() > 2 => (number / 100, number % 100, 0),
        Some(&[hour]) => (hour, 0, 0),
        Some(&[hour, minute]) => (hour, minute, 0),
        Some(&[hour, minute, second]) => (hour, minute, second),
        _ => {
            let what = format!("the time zone \"{name}\", which is no plain number,");
            return Err(StatementError::unsupported(what));
        }
    };
    if hour > MOST_HOURS || minute >= 60 || second >= 60 {
        let message = format!("numeric time zone \"{name}\" out of range");
        return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
    }
    Ok(Some(sign * (hour * 3600 + minute * 60 + second) as i32))
}
