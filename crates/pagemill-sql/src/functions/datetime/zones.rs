//! `AT TIME ZONE`, and `date_trunc` in a zone: zones by the names of the zone database that have a slash, UTC and GMT, and
//! offsets as intervals.
//!
//! Other names may be abbreviations, which a server's configuration can change; they are refused.
//!
//! Source: `timestamp_zone`, `timestamptz_zone`, `timestamp_izone`, `timestamptz_izone`, `timestamptz_trunc_internal` in
//! `src/backend/utils/adt/timestamp.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use arrow::array::ArrayRef;
use pagemill_types::input::datetime::ZoneLookup;
use pagemill_types::time_zone::Zone;

use super::super::rows::{Outcome, three, two};
use super::super::{Implementation, KernelCall};
use super::calendar::{DAY, Parts, SECOND, is_infinite, is_valid, timestamp_out_of_range};
use super::interval::Interval;
use super::session_zone::{to_local, to_utc};
use super::truncate::{infinite, parts};
use super::units::{Unit, of_truncation};
use crate::error::{SqlState, StatementError};

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "timestamp_zone" => |call, a| by_name(call, a, to_utc),
        "timestamptz_zone" => |call, a| by_name(call, a, to_local),
        "timestamp_izone" => |_, a| by_offset(a, -1),
        "timestamptz_izone" => |_, a| by_offset(a, 1),
        "timestamptz_trunc_zone" => truncated,
        "make_timestamptz_at_timezone" => made,
        _ => return None,
    }))
}

/// The zone asked for last, as most often one serves a whole column.
struct ZoneCache<'c> {
    zones: &'c Arc<dyn ZoneLookup>,
    last: Option<(String, Arc<Zone>)>,
}

impl<'c> ZoneCache<'c> {
    fn new(call: &'c KernelCall) -> Outcome<Self> {
        let inputs = call
            .catalog
            .inputs()
            .map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()))?;
        Ok(Self { zones: &inputs.context().date_time.zones, last: None })
    }

    fn zone(&mut self, name: &str) -> Outcome<Arc<Zone>> {
        if let Some((last, zone)) = &self.last
            && last == name
        {
            return Ok(zone.clone());
        }
        let is_utc = ["utc", "gmt"].iter().any(|utc| name.eq_ignore_ascii_case(utc));
        let zone = match is_utc {
            true => Some(Arc::new(Zone::gmt())),
            false if name.contains('/') => self.zones.zone(name),
            false => {
                let what = format!("the time zone \"{name}\", which may be an abbreviation,");
                return Err(StatementError::unsupported(what));
            }
        };
        let zone = zone.ok_or_else(|| {
            let message = format!("time zone \"{name}\" not recognized");
            StatementError::new(SqlState::INVALID_PARAMETER, message)
        })?;
        self.last = Some((name.to_owned(), zone.clone()));
        Ok(zone)
    }
}

fn by_name(
    call: &KernelCall,
    arguments: &[ArrayRef],
    of: fn(&Zone, i64) -> Option<i64>,
) -> Outcome<ArrayRef> {
    let mut cache = ZoneCache::new(call)?;
    two(arguments, |name: &str, timestamp: i64| {
        if is_infinite(timestamp) {
            return Ok(timestamp);
        }
        of(&*cache.zone(name)?, timestamp).ok_or_else(timestamp_out_of_range)
    })
}

fn by_offset(arguments: &[ArrayRef], sign: i64) -> Outcome<ArrayRef> {
    two(arguments, |zone: Interval, timestamp: i64| {
        if is_infinite(timestamp) {
            return Ok(timestamp);
        }
        if zone.months != 0 || zone.days != 0 {
            let message = "an interval time zone must not include months or days";
            return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
        }
        let east = zone.micros / SECOND * SECOND;
        if east.abs() >= 7 * DAY {
            return Err(StatementError::unsupported("a time zone of more than a week"));
        }
        let made = timestamp.checked_add(sign * east).filter(|made| is_valid(*made));
        made.ok_or_else(timestamp_out_of_range)
    })
}

/// The moment at which clocks of a zone showed these numbers.
///
/// Source: `make_timestamptz_at_timezone` in `src/backend/utils/adt/timestamp.c`, PostgreSQL 14 to 18.
fn made(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let (names, numbers) = arguments.split_last().expect("it has a zone"); // infallible: it is declared so
    let local = (super::make::plain("make_timestamp").expect("it is known"))(numbers)?; // infallible: it is there
    let mut cache = ZoneCache::new(call)?;
    two(&[names.clone(), local], |name: &str, local: i64| {
        to_utc(&*cache.zone(name)?, local).ok_or_else(timestamp_out_of_range)
    })
}

fn truncated(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let mut cache = ZoneCache::new(call)?;
    three(arguments, |unit: &str, timestamp: i64, name: &str| match of_truncation(unit).unit {
        Some(_) if !is_infinite(timestamp) => truncate(&*cache.zone(name)?, unit, timestamp),
        // An error whatever the zone.
        _ => truncate(&Zone::gmt(), unit, timestamp),
    })
}

/// Truncated as clocks of the zone show it. Units of a day and more begin when those clocks showed midnight, smaller ones
/// keep the offset.
pub(super) fn truncate(zone: &Zone, unit: &str, timestamp: i64) -> Outcome<i64> {
    let type_name = "timestamp with time zone";
    let named = of_truncation(unit);
    if is_infinite(timestamp) {
        return infinite(&named, timestamp);
    }
    let Some(unit) = named.unit else { return Err(named.unknown(type_name)) };
    let local = to_local(zone, timestamp).ok_or_else(timestamp_out_of_range)?;
    let made = parts(unit, Parts::of(local)).ok_or_else(|| named.unsupported(type_name))?;
    let made = made.timestamp().ok_or_else(timestamp_out_of_range)?;
    use Unit::{Hour, Microsecond, Millisecond, Minute, Second};
    let utc = match unit {
        Hour | Minute | Second | Millisecond | Microsecond => Some(made - (local - timestamp)),
        _ => to_utc(zone, made),
    };
    utc.filter(|utc| is_valid(*utc)).ok_or_else(timestamp_out_of_range)
}
