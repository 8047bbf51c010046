//! The zones and abbreviations that a session may name, and what each means at this moment.
//!
//! Zones are those of this machine. Abbreviations are those of a server whose setting `timezone_abbreviations` is at its default.
//!
//! Source: `pg_timezone_names` and `pg_timezone_abbrevs` (from 18 on with `_abbrevs` and `_zone`) in
//! `src/backend/utils/adt/datetime.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use arrow::array::ArrayRef;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use pagemill_types::input::datetime::{Abbreviation, all_abbreviations};
use pagemill_types::time_zone::{LocalTimeKind, Zone};

use super::super::datetime::interval::Interval;
use super::super::datetime::session_zone::unix_second;
use super::super::rows::Outcome;
use super::{Series, SetCall, made_of_payloads};
use crate::error::StatementError;
use crate::scan::now;

/// The columns of `pg_timezone_names()`.
pub(super) const NAMES: [(&str, Oid); 4] = [
    ("name", oid::TEXT),
    ("abbrev", oid::TEXT),
    ("utc_offset", oid::INTERVAL),
    ("is_dst", oid::BOOL),
];

/// Those of `pg_timezone_abbrevs()`.
pub(super) const ABBREVIATIONS: [(&str, Oid); 3] =
    [("abbrev", oid::TEXT), ("utc_offset", oid::INTERVAL), ("is_dst", oid::BOOL)];

/// A zone with a longer abbreviation is none: one was made to tell that nobody chose a zone.
const LONGEST_ABBREVIATION: usize = 31;

type Row = Vec<Option<Vec<u8>>>;

fn offset(east: i32) -> Option<Vec<u8>> {
    Some(Interval::new(0, 0, i64::from(east) * 1_000_000).payload().to_vec())
}

pub(super) fn names(call: &SetCall, _: &[ArrayRef], _: usize) -> Outcome<Box<dyn Series>> {
    let moment = unix_second(now());
    let zones = call.catalog.database().all_time_zones();
    let row = |(name, zone): (String, Zone)| {
        let kind = zone.at(moment);
        let abbreviation = zone.name_of(kind);
        (abbreviation.len() <= LONGEST_ABBREVIATION).then(|| {
            let texts = [name, abbreviation.to_owned()].map(|text| Some(text.into_bytes()));
            let [name, abbreviation] = texts;
            vec![name, abbreviation, offset(kind.east), Some(vec![u8::from(kind.is_daylight)])]
        })
    };
    made_of_payloads(call, zones.into_iter().filter_map(row).collect())
}

pub(super) fn abbreviations(call: &SetCall, _: &[ArrayRef], _: usize) -> Outcome<Box<dyn Series>> {
    let moment = unix_second(now());
    let row = |(name, meaning): &(&str, Abbreviation)| {
        let name = name.to_ascii_uppercase();
        let (east, is_daylight) = match meaning {
            Abbreviation::Standard(east) => (*east, false),
            Abbreviation::Daylight(east) => (*east, true),
            Abbreviation::Zone(zone) => {
                let zone = call.catalog.database().time_zone_of_setting(zone)?.zone;
                let LocalTimeKind { east, is_daylight, .. } = of_zone(&zone, &name, moment);
                (east, is_daylight)
            }
        };
        Some(abbreviation_row(&name, east, is_daylight))
    };
    made_of_payloads(call, all_abbreviations().iter().filter_map(row).collect())
}

/// What an abbreviation means in its zone, which shows what it shows now where it does not use it.
fn of_zone(zone: &Arc<Zone>, name: &str, moment: i64) -> LocalTimeKind {
    zone.abbreviation_at(name.as_bytes(), moment).unwrap_or_else(|| zone.at(moment))
}

/// Those of the session's own zone.
pub(super) fn of_session(call: &SetCall, _: &[ArrayRef], _: usize) -> Outcome<Box<dyn Series>> {
    match call.catalog.time_zone() {
        None => made_of_payloads(call, vec![abbreviation_row("UTC", 0, false)]),
        Some(_) => Err(StatementError::unsupported("the abbreviations of another zone than UTC")),
    }
}

fn abbreviation_row(name: &str, east: i32, is_daylight: bool) -> Row {
    vec![Some(name.as_bytes().to_vec()), offset(east), Some(vec![u8::from(is_daylight)])]
}
