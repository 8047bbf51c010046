//! What the texts of dates, timestamps and times have in common, field by field.
//!
//! [`super::date_text`] and [`super::time_text`] walk the fields and differ in what they take where;
//! the state of such a walk, and what both do alike, is here.
//! Source: `DecodeDateTime`, `DecodeTimeOnly`, `DetermineTimeZoneOffset` and
//! `DecodeTimezoneAbbrev` in `src/backend/utils/adt/datetime.c`, PostgreSQL 14 to 18. Since 16 a
//! label such as `y` or `mm` is taken only for Julian days, and no label may stand alone; since 18
//! the session's zone is asked before the table of abbreviations.

use std::sync::Arc;

use pagemill_format::ids::PgVersion;

use super::DateTimeContext;
use super::abbreviations::{Abbreviation, abbreviation};
use super::calendar::{MICROS_PER_DAY, Moment};
use super::fault::{Fault, Result};
use super::fields::{FieldKind, Fields};
use super::numbers::{fraction, fraction_micros, int};
use super::parts::{Mask, Parts, zone_offset};
use super::words::{DateWord, Reserved, Unit, date_word};
use crate::time_zone::{AbbreviationMeaning, Zone};

/// A walk over the fields of a text.
pub(super) struct Decoder<'a> {
    pub(super) context: &'a DateTimeContext,
    pub(super) fields: &'a Fields,
    pub(super) parts: Parts<'a>,
    /// What was seen so far.
    pub(super) seen: Mask,
    /// The offset, in seconds west of Greenwich.
    pub(super) west: i32,
    /// A word that stands for the whole, and is no date.
    pub(super) word: Option<Reserved>,
    /// What the next number is.
    pub(super) label: Option<Unit>,
    pub(super) afternoon: Option<bool>,
    pub(super) text_month: bool,
    pub(super) named_zone: Option<Arc<Zone>>,
    pub(super) abbreviated_zone: Option<(Arc<Zone>, &'a [u8])>,
}

/// What a word in a date or time turned out to be.
pub(super) enum Meaning {
    Word(DateWord),
    /// An offset, in seconds east, and whether it is one of daylight-saving time.
    Offset(i32, bool),
    /// An abbreviation that is one thing today and another tomorrow.
    Abbreviation(Arc<Zone>),
    Unknown,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(context: &'a DateTimeContext, fields: &'a Fields) -> Self {
        Self {
            context,
            fields,
            parts: Parts::new(context),
            seen: Mask::NONE,
            west: 0,
            word: None,
            label: None,
            afternoon: None,
            text_month: false,
            named_zone: None,
            abbreviated_zone: None,
        }
    }

    /// True from version 16 on, which is stricter with labels.
    pub(super) fn is_strict(&self) -> bool {
        self.context.version >= PgVersion::V16
    }

    /// Notes what a field was.
    pub(super) fn note(&mut self, found: Mask) -> Result<()> {
        if self.seen.has_any(found) {
            return Err(Fault::Syntax);
        }
        self.seen |= found;
        Ok(())
    }

    /// The begin of the transaction, as the session's clock showed it, and its offset west.
    pub(super) fn now(&self) -> (Moment, i32) {
        self.context.now()
    }

    /// A time run together with its zone: `040506-08`.
    pub(super) fn time_and_zone(&mut self, text: &[u8], seen: Mask) -> Result<Mask> {
        if self.seen.has_all(Mask::TIME) {
            return Err(Fault::Syntax);
        }
        let sign = text.iter().position(|&byte| byte == b'-').ok_or(Fault::Syntax)?;
        let (time, zone) = text.split_at(sign);
        self.west = zone_offset(zone)?;
        Ok(self.parts.number_field(time, seen)? | Mask::ZONE)
    }

    /// A zone by its full name.
    pub(super) fn named_zone(&mut self, name: &[u8]) -> Result<Mask> {
        match self.context.zone(name) {
            Some(zone) => {
                self.named_zone = Some(zone);
                Ok(Mask::ZONE)
            }
            None => Err(Fault::UnknownZone(String::from_utf8_lossy(name).into_owned())),
        }
    }

    /// A number after a label.
    pub(super) fn labeled_number(&mut self, label: Unit, text: &[u8]) -> Result<Mask> {
        let (value, rest) = int(text);
        let value = value?;
        let takes_fraction = matches!(label, Unit::Julian | Unit::Time | Unit::Second);
        match rest.first() {
            None => {}
            Some(b'.') if takes_fraction || self.is_strict() => {}
            Some(_) => return Err(Fault::Syntax),
        }
        match label {
            Unit::Julian => self.julian_day(value, rest),
            Unit::Time => match self.parts.number_field(text, self.seen | Mask::DATE)? {
                Mask::TIME => Ok(Mask::TIME),
                _ => Err(Fault::Syntax),
            },
            _ if self.is_strict() => Err(Fault::Syntax),
            _ => self.part_by_label(label, value, rest),
        }
    }

    /// A part of the date or time by its label, as in `y2001m02d04`.
    fn part_by_label(&mut self, label: Unit, value: i32, fraction: &[u8]) -> Result<Mask> {
        let is_minute = self.seen.has_all(Mask::MONTH | Mask::HOUR);
        let moment = &mut self.parts.moment;
        let (place, part) = match label {
            Unit::Year => (&mut moment.year, Mask::YEAR),
            Unit::Month if is_minute => (&mut moment.minute, Mask::MINUTE),
            Unit::Month => (&mut moment.month, Mask::MONTH),
            Unit::Day => (&mut moment.day, Mask::DAY),
            Unit::Hour => (&mut moment.hour, Mask::HOUR),
            Unit::Minute => (&mut moment.minute, Mask::MINUTE),
            Unit::Second => (&mut moment.second, Mask::SECOND),
            _ => return Err(Fault::Syntax),
        };
        *place = value;
        if fraction.is_empty() {
            return Ok(part);
        }
        moment.micros = fraction_micros(fraction, self.context.version)?;
        Ok(Mask::ALL_SECONDS)
    }

    /// A Julian day, its fraction the time of day.
    pub(super) fn julian_day(&mut self, day: i32, rest: &[u8]) -> Result<Mask> {
        if day < 0 {
            return Err(Fault::Field);
        }
        self.parts.moment.set_julian_day(day);
        self.parts.is_julian = true;
        if rest.is_empty() {
            return Ok(Mask::DATE);
        }
        let time = fraction(rest, self.context.version)? * MICROS_PER_DAY as f64;
        self.parts.moment.set_time(time as i64);
        Ok(Mask::DATE | Mask::TIME)
    }

    /// What a word means: abbreviations of zones come before the words of dates.
    pub(super) fn meaning(&self, word: &[u8]) -> Result<Meaning> {
        if let Some(found) = self.session_abbreviation(word) {
            return Ok(found);
        }
        match abbreviation(word) {
            Some(Abbreviation::Standard(east)) => return Ok(Meaning::Offset(east, false)),
            Some(Abbreviation::Daylight(east)) => return Ok(Meaning::Offset(east, true)),
            Some(Abbreviation::Zone(name)) => {
                let zone = self.context.zone(name.as_bytes());
                let unknown = || Fault::UnknownZone(name.to_owned());
                return zone.map(Meaning::Abbreviation).ok_or_else(unknown);
            }
            None => {}
        }
        Ok(date_word(word, self.context.version).map_or(Meaning::Unknown, Meaning::Word))
    }

    /// What the session's zone makes of an abbreviation.
    fn session_abbreviation(&self, word: &[u8]) -> Option<Meaning> {
        if self.context.version < PgVersion::V18 {
            return None;
        }
        let zone = &self.context.session_zone;
        Some(match zone.abbreviation(word)? {
            AbbreviationMeaning::Fixed(kind) => Meaning::Offset(kind.east, kind.is_daylight),
            AbbreviationMeaning::Changing => Meaning::Abbreviation(zone.clone()),
        })
    }

    /// Takes a word whose meaning does not depend on what is being read.
    pub(super) fn zone_or_word(&mut self, number: usize, meaning: Meaning) -> Result<Mask> {
        match meaning {
            Meaning::Offset(east, is_daylight) => {
                self.west = -east;
                Ok(if is_daylight { Mask::DAYLIGHT_ZONE | Mask::ZONE } else { Mask::ZONE })
            }
            Meaning::Abbreviation(zone) => {
                let (_, name) = self.fields.get(number).ok_or(Fault::Syntax)?;
                self.abbreviated_zone = Some((zone, name));
                Ok(Mask::CHANGING_ZONE | Mask::ZONE)
            }
            Meaning::Word(DateWord::DaylightModifier) => {
                self.west = self.west.wrapping_sub(3600);
                Ok(Mask::DAYLIGHT_MODIFIER | Mask::DAYLIGHT_ZONE)
            }
            Meaning::Word(DateWord::Meridian { pm }) => {
                self.afternoon = Some(pm);
                Ok(Mask::MERIDIAN)
            }
            Meaning::Word(DateWord::Era { bc }) => {
                self.parts.bc = bc;
                Ok(Mask::ERA)
            }
            Meaning::Word(DateWord::Unit(unit)) => self.set_label(unit),
            Meaning::Unknown => {
                let (_, name) = self.fields.get(number).ok_or(Fault::Syntax)?;
                self.named_zone(name).map_err(|_| Fault::Syntax)
            }
            Meaning::Word(_) => Err(Fault::Syntax),
        }
    }

    fn set_label(&mut self, unit: Unit) -> Result<Mask> {
        if self.is_strict() && self.label.is_some() {
            return Err(Fault::Syntax);
        }
        self.label = Some(unit);
        Ok(Mask::NONE)
    }

    /// The `T` before a time. Before version 16 the next field must be one.
    pub(super) fn iso_time(&mut self, number: usize) -> Result<Mask> {
        match self.fields.kind(number + 1) {
            Some(FieldKind::Number | FieldKind::Time | FieldKind::Date) => {}
            _ if self.is_strict() => {}
            _ => return Err(Fault::Syntax),
        }
        self.set_label(Unit::Time)
    }

    /// No label may be left over, from version 16 on.
    pub(super) fn check_labels(&self) -> Result<()> {
        if self.is_strict() && self.label.is_some() { Err(Fault::Syntax) } else { Ok(()) }
    }

    /// Turns hours before and after noon into hours of the day.
    pub(super) fn apply_meridian(&mut self) -> Result<()> {
        let hour = &mut self.parts.moment.hour;
        match self.afternoon {
            Some(_) if *hour > 12 => return Err(Fault::Field),
            Some(false) if *hour == 12 => *hour = 0,
            Some(true) if *hour != 12 => *hour = hour.wrapping_add(12),
            _ => {}
        }
        Ok(())
    }

    /// A word that adds an hour is no part of a zone that knows its own daylight-saving time.
    pub(super) fn refuse_modifier(&self) -> Result<()> {
        let modified = self.seen.has_any(Mask::DAYLIGHT_MODIFIER);
        if modified { Err(Fault::Syntax) } else { Ok(()) }
    }
}

/// The offset of a zone at a local time, in seconds west; 0 for a date out of range.
pub(super) fn offset_west(moment: &Moment, zone: &Zone) -> i32 {
    if !moment.is_valid_julian() {
        return 0;
    }
    -zone.resolve(moment.unix_seconds()).east
}

/// The offset of an abbreviation at a local time, in seconds west. The abbreviation says standard
/// or daylight-saving time by itself; one that the zone does not use says nothing.
pub(super) fn abbreviation_west(moment: &Moment, zone: &Zone, name: &[u8]) -> i32 {
    let resolved = moment.is_valid_julian().then(|| zone.resolve(moment.unix_seconds()));
    let (east, utc) = resolved.map_or((0, 0), |time| (time.east, time.utc));
    let named = zone.abbreviation_at(name, utc);
    -named.map_or(east, |kind| kind.east)
}
