//! The text of a date or timestamp.
//!
//! Source: `DecodeDateTime` in `src/backend/utils/adt/datetime.c`, PostgreSQL 14 to 18. Since 16
//! `epoch` and the infinities stand alone.

use super::DateTimeContext;
use super::calendar::Moment;
use super::decoder::{Decoder, Meaning, abbreviation_west, offset_west};
use super::fault::{Fault, Result};
use super::fields::{FieldKind, Fields};
use super::numbers::int;
use super::parts::{Mask, zone_offset};
use super::words::{DateWord, Reserved, Unit};

/// What the text of a date or timestamp says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DateTime {
    /// A date and time, and the offset of its zone in seconds west of Greenwich.
    At(Moment, i32),
    /// 1970-01-01 00:00:00.
    Epoch,
    /// `infinity`.
    Infinity,
    /// `-infinity`.
    MinusInfinity,
}

/// Reads the text of a date or timestamp. `room` is the size of the server's buffer for it.
pub(super) fn read(text: &[u8], room: usize, context: &DateTimeContext) -> Result<DateTime> {
    let fields = Fields::split(text, room)?;
    let mut decoder = Decoder::new(context, &fields);
    for number in 0..fields.len() {
        if let Some(found) = decoder.date_field(number)? {
            decoder.note(found)?;
        }
    }
    decoder.finish_date()
}

impl Decoder<'_> {
    /// The parts a field holds; nothing for a word that says nothing.
    fn date_field(&mut self, number: usize) -> Result<Option<Mask>> {
        let (kind, text) = self.fields.get(number).ok_or(Fault::Syntax)?;
        let found = match kind {
            FieldKind::Date => self.date_or_zone(text)?,
            FieldKind::Time => {
                self.take_time_label()?;
                self.parts.time(text)?;
                if self.parts.moment.time_overflows() {
                    return Err(Fault::Field);
                }
                Mask::TIME
            }
            FieldKind::Zone => {
                self.west = zone_offset(text)?;
                Mask::ZONE
            }
            FieldKind::Number => match self.label {
                Some(label) => {
                    let found = self.labeled_number(label, text)?;
                    self.label = None;
                    self.word = None;
                    found
                }
                None => self.date_number(text)?,
            },
            FieldKind::Word | FieldKind::SignedWord => match self.meaning(text)? {
                Meaning::Word(DateWord::Ignored) => return Ok(None),
                meaning => self.date_meaning(number, meaning)?,
            },
        };
        Ok(Some(found))
    }

    /// A label, if there is one, must be the `T` before a time.
    fn take_time_label(&mut self) -> Result<()> {
        match self.label.take() {
            None | Some(Unit::Time) => Ok(()),
            Some(_) => Err(Fault::Syntax),
        }
    }

    /// Digits or letters with delimiters between: a date, a Julian day or a time with its zone, or
    /// the name of a zone.
    fn date_or_zone(&mut self, text: &[u8]) -> Result<Mask> {
        if self.label == Some(Unit::Julian) {
            let (day, zone) = int(text);
            self.julian_day(day?, b"")?;
            self.west = zone_offset(zone)?;
            self.label = None;
            return Ok(Mask::DATE | Mask::TIME | Mask::ZONE);
        }
        if self.label.is_none() && !self.seen.has_all(Mask::MONTH | Mask::DAY) {
            return self.parts.date(text, self.seen);
        }
        if self.label.is_none() && !text.first().is_some_and(u8::is_ascii_digit) {
            return self.named_zone(text);
        }
        self.take_time_label()?;
        self.time_and_zone(text, self.seen)
    }

    /// A number without a label.
    fn date_number(&mut self, text: &[u8]) -> Result<Mask> {
        let point = text.iter().position(|&byte| byte == b'.');
        let is_long = text.len() >= 6;
        let is_open = !self.seen.has_any(Mask::DATE) || !self.seen.has_any(Mask::TIME);
        match point {
            Some(_) if !self.seen.has_any(Mask::DATE) => self.parts.date(text, self.seen),
            Some(3..) => self.parts.number_field(text, self.seen),
            _ if is_long && is_open => self.parts.number_field(text, self.seen),
            _ => self.parts.number(text, self.text_month, self.seen),
        }
    }

    fn date_meaning(&mut self, number: usize, meaning: Meaning) -> Result<Mask> {
        match meaning {
            Meaning::Word(DateWord::Reserved(word)) => Ok(self.reserved_date(word)),
            Meaning::Word(DateWord::Month(month)) => Ok(self.month_name(month)),
            Meaning::Word(DateWord::Weekday) => Ok(Mask::WEEKDAY),
            Meaning::Word(DateWord::IsoTime) => {
                if !self.seen.has_all(Mask::DATE) {
                    return Err(Fault::Syntax);
                }
                self.iso_time(number)
            }
            meaning => self.zone_or_word(number, meaning),
        }
    }

    fn reserved_date(&mut self, word: Reserved) -> Mask {
        let (now, west) = self.now();
        match word {
            Reserved::Now => {
                self.parts.moment = now;
                self.west = west;
                self.word = None;
                Mask::DATE | Mask::TIME | Mask::ZONE
            }
            Reserved::Allballs => {
                self.word = None;
                self.west = 0;
                self.parts.moment.set_time_of_midnight();
                Mask::TIME | Mask::ZONE
            }
            Reserved::Yesterday => self.day_from(&now, -1),
            Reserved::Today => self.day_from(&now, 0),
            Reserved::Tomorrow => self.day_from(&now, 1),
            Reserved::Early | Reserved::Late | Reserved::Epoch => {
                self.word = Some(word);
                let alone = Mask::DATE | Mask::TIME | Mask::ZONE;
                if self.is_strict() { alone } else { Mask::RESERVED }
            }
        }
    }

    /// So many days after another date.
    fn day_from(&mut self, date: &Moment, days: i32) -> Mask {
        self.word = None;
        let mut day = *date;
        day.set_julian_day(date.julian_day().wrapping_add(days));
        self.parts.moment.set_date_of(&day);
        Mask::DATE
    }

    /// The name of a month. A number taken for the month before it was the day.
    fn month_name(&mut self, month: i32) -> Mask {
        let moment = &mut self.parts.moment;
        let mut found = Mask::MONTH;
        if self.seen.has_any(Mask::MONTH)
            && !self.text_month
            && !self.seen.has_any(Mask::DAY)
            && (1..=31).contains(&moment.month)
        {
            moment.day = moment.month;
            found = Mask::DAY;
        }
        self.text_month = true;
        moment.month = month;
        found
    }

    fn finish_date(mut self) -> Result<DateTime> {
        self.check_labels()?;
        if self.word.is_none() || !self.is_strict() {
            self.parts.validate_date(self.seen)?;
            self.apply_meridian()?;
        }
        match self.word {
            Some(Reserved::Late) => return Ok(DateTime::Infinity),
            Some(Reserved::Early) => return Ok(DateTime::MinusInfinity),
            Some(_) => return Ok(DateTime::Epoch),
            None if !self.seen.has_all(Mask::DATE) => return Err(Fault::Syntax),
            None => {}
        }
        let moment = self.parts.moment;
        if let Some(zone) = &self.named_zone {
            self.refuse_modifier()?;
            self.west = offset_west(&moment, zone);
        }
        if let Some((zone, name)) = &self.abbreviated_zone {
            self.refuse_modifier()?;
            self.west = abbreviation_west(&moment, zone, name);
        }
        if !self.seen.has_any(Mask::ZONE) {
            self.refuse_modifier()?;
            self.west = offset_west(&moment, &self.context.session_zone);
        }
        Ok(DateTime::At(moment, self.west))
    }
}
