//! Offsets from Greenwich in a text that is read by a template: as numbers, or as an abbreviation of a time zone.
//!
//! What an abbreviation means is taken from the session; where there is none only those of UTC are known.
//!
//! Source: `DCH_from_char` in `src/backend/utils/adt/formatting.c`, `DecodeTimezoneAbbrevPrefix` in `datetime.c`,
//! PostgreSQL 14 to 18.

use std::sync::Arc;

use pagemill_format::ids::PgVersion;
use pagemill_types::input::datetime::{Abbreviation, DateTimeContext, abbreviation};
use pagemill_types::time_zone::{AbbreviationMeaning, Zone};

use super::Field;
use super::scan::{Fault, Place, Scan, Scanner, wrong};
use crate::error::{SqlState, StatementError};

/// The longest abbreviation of a time zone.
///
/// Source: `TOKMAXLEN` in `src/include/utils/datetime.h`, PostgreSQL 14 to 18.
const MOST_LETTERS: usize = 10;

/// What an abbreviation of a time zone stands for.
#[derive(Debug, Clone)]
pub(in super::super) enum Abbreviated {
    /// Seconds east of Greenwich.
    East(i32),
    /// What it means in this zone at the time in question.
    Zone(Arc<Zone>, String),
}

impl Scanner<'_> {
    /// Hours, with minutes behind a colon but in `TZH`.
    pub(super) fn offset(&mut self, place: Place) -> Scan<()> {
        let is_hour = place.keyword.field == Field::OffsetHour;
        if !is_hour && self.reading.major < 17 {
            let name = place.keyword.name;
            let message = format!("formatting field \"{name}\" is only supported in to_char");
            return Err(Fault::Wrong(StatementError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                message,
            )));
        }
        if place.keyword.field == Field::Zone && self.first().is_ascii_alphabetic() {
            return self.abbreviation(place);
        }
        // A minus may have been passed as what separates.
        let is_minus_behind =
            self.skipped > 0 && self.text.as_bytes().get(self.at.wrapping_sub(1)) == Some(&b'-');
        self.fields.zone_sign = match self.first() {
            b'-' => -1,
            b'+' | b' ' => 1,
            _ if is_minus_behind => -1,
            _ => 1,
        };
        if matches!(self.first(), b'+' | b'-' | b' ') {
            self.at += 1;
        }
        self.number(2, place, |fields| &mut fields.zone_hour)?;
        if !is_hour && self.first() == b':' {
            self.at += 1;
            self.number(2, place, |fields| &mut fields.zone_minute)?;
        }
        Ok(())
    }

    /// The longest abbreviation that the text begins with.
    fn abbreviation(&mut self, place: Place) -> Scan<()> {
        let letters = self.rest().bytes().take_while(u8::is_ascii_alphabetic).count();
        let Some(session) = self.reading.session else { return self.abbreviation_of_utc(letters) };
        for taken in (1..=letters.min(MOST_LETTERS)).rev() {
            let name = self.rest().get(..taken).unwrap_or_default(); // default: letters of ASCII
            if let Some(meaning) = meaning(&name.to_ascii_lowercase(), session) {
                self.fields.abbreviated = Some(meaning);
                self.fields.zone_sign = 0;
                self.at += taken;
                return Ok(());
            }
        }
        let (shown, name) = (self.rest(), place.keyword.name);
        Err(wrong(format!("invalid value \"{shown}\" for \"{name}\"")))
    }

    fn abbreviation_of_utc(&mut self, letters: usize) -> Scan<()> {
        let name = self.rest().get(..letters).unwrap_or_default(); // default: letters of ASCII
        if !["utc", "gmt", "z"].iter().any(|utc| name.eq_ignore_ascii_case(utc)) {
            let what = format!("the abbreviation of a time zone in \"{}\"", self.rest());
            return Err(Fault::Refused(StatementError::unsupported(what)));
        }
        self.fields.abbreviated = Some(Abbreviated::East(0));
        self.fields.zone_sign = 0;
        self.at += letters;
        Ok(())
    }
}

/// What an abbreviation, in small letters, stands for in a session: from 18 on its own zone comes first.
pub(in super::super) fn meaning(name: &str, session: &DateTimeContext) -> Option<Abbreviated> {
    let zone = &session.session_zone;
    if session.version >= PgVersion::V18
        && let Some(meaning) = zone.abbreviation(name.as_bytes())
    {
        return Some(match meaning {
            AbbreviationMeaning::Fixed(kind) => Abbreviated::East(kind.east),
            AbbreviationMeaning::Changing => Abbreviated::Zone(zone.clone(), name.to_owned()),
        });
    }
    match abbreviation(name.as_bytes())? {
        Abbreviation::Standard(east) | Abbreviation::Daylight(east) => {
            Some(Abbreviated::East(east))
        }
        Abbreviation::Zone(zone) => {
            session.zones.zone(zone).map(|zone| Abbreviated::Zone(zone, name.to_owned()))
        }
    }
}
