//! `AT TIME ZONE`, and `date_trunc` and `make_timestamptz` in a zone: zones by name, and offsets as intervals.
//!
//! Source: `timestamp_zone`, `timestamptz_zone`, `timestamp_izone`, `timestamptz_izone`, `timestamptz_trunc_internal`,
//! `make_timestamptz_at_timezone` in `src/backend/utils/adt/timestamp.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use arrow::array::ArrayRef;
use pagemill_types::builtin::oid;
use pagemill_types::input::datetime::DateTimeContext;
use pagemill_types::time_zone::Zone;

use super::super::rows::{Outcome, three, two};
use super::super::text_form::text_of_payload;
use super::super::{Implementation, KernelCall};
use super::calendar::{Parts, SECOND, is_infinite, is_valid, timestamp_out_of_range};
use super::interval::Interval;
use super::named_zones::{Named, numeric_offset};
use super::session_zone::{plus_in, to_local, to_utc};
use super::truncate::{infinite, parts};
use super::units::{Unit, of_truncation};
use crate::catalog::Catalog;
use crate::error::{SqlState, StatementError};

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "timestamp_zone" => |call, a| by_name(call, a, Named::to_utc),
        "timestamptz_zone" => |call, a| by_name(call, a, Named::to_local),
        "timestamp_izone" => |call, a| by_offset(call, a, -1),
        "timestamptz_izone" => |call, a| by_offset(call, a, 1),
        "timestamptz_trunc_zone" => truncated,
        "make_timestamptz_at_timezone" => made,
        "timestamptz_pl_interval_at_zone" => |call, a| moved(call, a, Ok),
        "timestamptz_mi_interval_at_zone" => |call, a| moved(call, a, Interval::negated),
        _ => return None,
    }))
}

/// What the session says about texts of dates and times.
pub(super) fn session(catalog: &Catalog) -> Outcome<&DateTimeContext> {
    let inputs = catalog
        .inputs()
        .map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()))?;
    Ok(&inputs.context().date_time)
}

/// Whether the server's abbreviations of time zones are the default ones.
pub(super) fn knows_abbreviations(catalog: &Catalog) -> Outcome<bool> {
    let settings = catalog.database().session_settings();
    let settings = settings.map_err(|error| StatementError::unsupported(error.to_string()))?;
    Ok(settings.get("timezone_abbreviations").is_none_or(|name| name == b"Default".as_slice()))
}

/// The zone asked for last, as most often one serves a whole column.
struct ZoneCache<'c> {
    session: &'c DateTimeContext,
    knows_abbreviations: bool,
    last: Option<(String, Named)>,
}

impl<'c> ZoneCache<'c> {
    fn new(call: &'c KernelCall) -> Outcome<Self> {
        let knows_abbreviations = knows_abbreviations(&call.catalog)?;
        Ok(Self { session: session(&call.catalog)?, knows_abbreviations, last: None })
    }

    fn named(&mut self, name: &str) -> Outcome<&Named> {
        let known = self.last.take().filter(|(last, _)| last == name);
        let (_, named) = match known {
            Some(known) => self.last.insert(known),
            None => {
                let named = Named::find(name, self.session, self.knows_abbreviations)?;
                self.last.insert((name.to_owned(), named))
            }
        };
        Ok(named)
    }
}

/// The zone of this name.
pub(super) fn zone_named(catalog: &Catalog, name: &str) -> Outcome<Arc<Zone>> {
    Named::find(name, session(catalog)?, knows_abbreviations(catalog)?)?.zone().ok_or_else(too_far)
}

#[cold]
fn too_far() -> StatementError {
    StatementError::unsupported("a time zone so far from Greenwich")
}

/// A moment earlier or later by an interval, whose days are those of a zone.
fn moved(
    call: &KernelCall,
    arguments: &[ArrayRef],
    of: fn(Interval) -> Outcome<Interval>,
) -> Outcome<ArrayRef> {
    super::require_finite(call, arguments)?;
    let mut cache = ZoneCache::new(call)?;
    three(arguments, |moment: i64, by: Interval, name: &str| {
        let zone = cache.named(name)?.zone().ok_or_else(too_far)?;
        plus_in(&zone, moment, of(by)?)
    })
}

fn by_name(
    call: &KernelCall,
    arguments: &[ArrayRef],
    of: fn(&Named, i64) -> Option<i64>,
) -> Outcome<ArrayRef> {
    let mut cache = ZoneCache::new(call)?;
    two(arguments, |name: &str, timestamp: i64| {
        if is_infinite(timestamp) {
            return Ok(timestamp);
        }
        of(cache.named(name)?, timestamp).ok_or_else(timestamp_out_of_range)
    })
}

fn by_offset(call: &KernelCall, arguments: &[ArrayRef], sign: i64) -> Outcome<ArrayRef> {
    let has_infinity = call.catalog.database().cluster().version().major() >= 17;
    two(arguments, |zone: Interval, timestamp: i64| {
        if is_infinite(timestamp) {
            return Ok(timestamp);
        }
        if zone.months != 0 || zone.days != 0 {
            return Err(no_offset(call, zone, has_infinity));
        }
        let east = zone.micros / SECOND * SECOND;
        if i32::try_from(east / SECOND).is_err() {
            return Err(StatementError::unsupported("a time zone of more than 68 years"));
        }
        let made = timestamp.checked_add(sign * east).filter(|made| is_valid(*made));
        made.ok_or_else(timestamp_out_of_range)
    })
}

#[cold]
fn no_offset(call: &KernelCall, zone: Interval, has_infinity: bool) -> StatementError {
    let is_infinite = has_infinity && zone.is_infinite();
    let text = match text_of_payload(&call.catalog, oid::INTERVAL, &zone.payload()) {
        Ok(text) => text,
        Err(error) => return error.report(),
    };
    let wrong = if is_infinite { "must be finite" } else { "must not include months or days" };
    let message = format!("interval time zone \"{text}\" {wrong}");
    StatementError::new(SqlState::INVALID_PARAMETER, message)
}

/// The moment at which clocks of a zone showed these numbers.
///
/// Source: `make_timestamptz_at_timezone` in `src/backend/utils/adt/timestamp.c`, PostgreSQL 14 to 18.
fn made(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let (names, numbers) = arguments.split_last().expect("it has a zone"); // infallible: it is declared so
    let local = (super::make::plain("make_timestamp").expect("it is known"))(numbers)?; // infallible: it is there
    let mut cache = ZoneCache::new(call)?;
    two(&[names.clone(), local], |name: &str, local: i64| {
        let moment = match numeric_offset(name)? {
            Some(east) => Named::East(east).to_utc(local),
            None => cache.named(name)?.to_utc(local),
        };
        moment.ok_or_else(timestamp_out_of_range)
    })
}

fn truncated(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let mut cache = ZoneCache::new(call)?;
    three(arguments, |unit: &str, timestamp: i64, name: &str| match of_truncation(unit).unit {
        Some(_) if !is_infinite(timestamp) => {
            let zone = cache.named(name)?.zone().ok_or_else(too_far)?;
            truncate(&zone, unit, timestamp)
        }
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
