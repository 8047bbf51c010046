//! The text of a time of day.
//!
//! A date beside it is taken too, where it can serve to find the offset of a zone.
//! Source: `DecodeTimeOnly` in `src/backend/utils/adt/datetime.c`, PostgreSQL 14 to 18.

use super::DateTimeContext;
use super::calendar::Moment;
use super::decoder::{Decoder, Meaning, abbreviation_west, offset_west};
use super::fault::{Fault, Result};
use super::fields::{FieldKind, Fields};
use super::parts::{Mask, zone_offset};
use super::words::{DateWord, Reserved, Unit};

/// Reads the text of a time: microseconds after midnight, and its offset in seconds west of
/// Greenwich. `room` is the size of the server's buffer for it.
pub(super) fn read(text: &[u8], room: usize, context: &DateTimeContext) -> Result<(i64, i32)> {
    let fields = Fields::split(text, room)?;
    let mut decoder = Decoder::new(context, &fields);
    for number in 0..fields.len() {
        if let Some(found) = decoder.time_field(number)? {
            decoder.note(found)?;
        }
    }
    decoder.finish_time()
}

impl Decoder<'_> {
    /// The parts a field holds; nothing for a word that says nothing.
    fn time_field(&mut self, number: usize) -> Result<Option<Mask>> {
        let (kind, text) = self.fields.get(number).ok_or(Fault::Syntax)?;
        let found = match kind {
            FieldKind::Date => self.date_beside_time(number, text)?,
            FieldKind::Time => {
                self.check_time_label()?;
                self.parts.time(text)?;
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
                    found
                }
                None => self.time_number(number, text)?,
            },
            FieldKind::Word | FieldKind::SignedWord => match self.meaning(text)? {
                Meaning::Word(DateWord::Ignored) => return Ok(None),
                meaning => self.time_meaning(number, meaning)?,
            },
        };
        Ok(Some(found))
    }

    /// Before version 16 a label before a time with colons is left for the next number.
    fn check_time_label(&mut self) -> Result<()> {
        if !self.is_strict() {
            return Ok(());
        }
        match self.label.take() {
            None | Some(Unit::Time) => Ok(()),
            Some(_) => Err(Fault::Syntax),
        }
    }

    fn date_beside_time(&mut self, number: usize, text: &[u8]) -> Result<Mask> {
        let count = self.fields.len();
        let last_is_date = self.fields.kind(count.saturating_sub(1)) == Some(FieldKind::Date);
        let second_is_time = self.fields.kind(1) == Some(FieldKind::Time);
        if number == 0 && count >= 2 && (last_is_date || second_is_time) {
            return self.parts.date(text, self.seen);
        }
        if text.first().is_some_and(u8::is_ascii_digit) {
            return self.time_and_zone(text, self.seen | Mask::DATE);
        }
        self.named_zone(text)
    }

    /// A number without a label.
    fn time_number(&mut self, number: usize, text: &[u8]) -> Result<Mask> {
        let count = self.fields.len();
        let last_is_date = self.fields.kind(count.saturating_sub(1)) == Some(FieldKind::Date);
        let seen = self.seen | Mask::DATE;
        match text.iter().position(|&byte| byte == b'.') {
            Some(_) if number == 0 && count >= 2 && last_is_date => {
                self.parts.date(text, self.seen)
            }
            Some(3..) => self.parts.number_field(text, seen),
            Some(_) => Err(Fault::Syntax),
            None if text.len() > 4 => self.parts.number_field(text, seen),
            None => self.parts.number(text, false, seen),
        }
    }

    fn time_meaning(&mut self, number: usize, meaning: Meaning) -> Result<Mask> {
        match meaning {
            Meaning::Word(DateWord::Reserved(Reserved::Now)) => {
                self.parts.moment = self.now().0;
                Ok(Mask::TIME)
            }
            Meaning::Word(DateWord::Reserved(Reserved::Allballs)) => {
                self.parts.moment.set_time_of_midnight();
                Ok(Mask::TIME | Mask::ZONE)
            }
            Meaning::Word(DateWord::IsoTime) => self.iso_time(number),
            meaning => self.zone_or_word(number, meaning),
        }
    }

    fn finish_time(mut self) -> Result<(i64, i32)> {
        self.check_labels()?;
        self.parts.validate_date(self.seen)?;
        self.apply_meridian()?;
        let moment = self.parts.moment;
        if moment.time_overflows() {
            return Err(Fault::Field);
        }
        if !self.seen.has_all(Mask::TIME) {
            return Err(Fault::Syntax);
        }
        let west = self.time_zone(&moment)?;
        Ok((moment.micros_of_day(), west))
    }

    /// The offset of the zone, found by the date where there is one, else by today's.
    fn time_zone(&self, moment: &Moment) -> Result<i32> {
        let mut west = self.west;
        if let Some(zone) = &self.named_zone {
            self.refuse_modifier()?;
            west = match zone.only_offset() {
                Some(east) => -east,
                None if !self.seen.has_all(Mask::DATE) => return Err(Fault::Syntax),
                None => offset_west(moment, zone),
            };
        }
        if let Some((zone, name)) = &self.abbreviated_zone {
            self.refuse_modifier()?;
            west = abbreviation_west(&self.on_a_day(moment)?, zone, name);
        }
        if !self.seen.has_any(Mask::ZONE) {
            self.refuse_modifier()?;
            west = offset_west(&self.on_a_day(moment)?, &self.context.session_zone);
        }
        Ok(west)
    }

    /// The time on its date, or on the transaction's day; a date in part is none.
    fn on_a_day(&self, moment: &Moment) -> Result<Moment> {
        let mut moment = *moment;
        if !self.seen.has_any(Mask::DATE) {
            moment.set_date_of(&self.now().0);
        } else if !self.seen.has_all(Mask::DATE) {
            return Err(Fault::Syntax);
        }
        Ok(moment)
    }
}
