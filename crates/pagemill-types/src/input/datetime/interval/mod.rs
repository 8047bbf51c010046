//! The text of an interval, in PostgreSQL's and in the standard's notation.
//!
//! Fields are read from the right, so that a unit is known before its number. Without a unit the
//! type modifier decides: a number in an `interval day to hour` is hours.
//! Source: `DecodeInterval` and `interval_in` in `src/backend/utils/adt/datetime.c` and
//! `timestamp.c`, PostgreSQL 14 to 18. Since 17 there are infinities, `ago` comes last, and every
//! unit needs a number. A sign that holds for all fields is given to each of them, in 14 to their sums.

mod iso_duration;
mod sum;
mod type_modifier;

use pagemill_format::ids::PgVersion;

use crate::input::datetime::fault::{Fault, Result};
use crate::input::datetime::fields::{FieldKind, Fields};
use crate::input::datetime::numbers::{fraction, int, long};
use crate::input::datetime::parts::{ColonTime, Mask};
use crate::input::datetime::words::{
    DateWord, IntervalWord, Reserved, Unit, date_word, interval_word,
};
use crate::input::datetime::{DateTimeContext, IntervalStyle};
use sum::{CheckedSum, Interval, IntervalSum, WrappingSum};

pub(super) use type_modifier::IntervalType;

/// Reads the text of an interval; nothing when it is no longer than the type can hold.
pub(super) fn read(
    text: &[u8],
    room: usize,
    kind: IntervalType,
    context: &DateTimeContext,
) -> Result<Option<Interval>> {
    if context.version == PgVersion::V14 {
        read_with::<WrappingSum>(text, room, kind, context)
    } else {
        read_with::<CheckedSum>(text, room, kind, context)
    }
}

fn read_with<S: IntervalSum>(
    text: &[u8],
    room: usize,
    kind: IntervalType,
    context: &DateTimeContext,
) -> Result<Option<Interval>> {
    let traditional = Fields::split(text, room).and_then(|fields| {
        let mut decoder = Decoder::<S>::new(&fields, kind, context);
        decoder.decode()
    });
    match traditional {
        Err(Fault::Syntax) => Ok(iso_duration::read::<S>(text)?.interval()),
        decided => decided,
    }
}

struct Decoder<'a, S> {
    fields: &'a Fields,
    kind: IntervalType,
    context: &'a DateTimeContext,
    sum: S,
    seen: Mask,
    /// The unit of the next number to the left.
    unit: Option<Unit>,
    /// That unit was written, and its number is still to come.
    is_unit_open: bool,
    ago: bool,
    infinity: Option<Interval>,
    /// The sign before the first field holds for all of them.
    all_negative: bool,
}

impl<'a, S: IntervalSum> Decoder<'a, S> {
    fn new(fields: &'a Fields, kind: IntervalType, context: &'a DateTimeContext) -> Self {
        let starts_with = |number: usize, signs: &[u8]| {
            let first = fields.get(number).and_then(|(_, text)| text.first());
            first.is_some_and(|byte| signs.contains(byte))
        };
        let all_negative = context.interval_style == IntervalStyle::SqlStandard
            && starts_with(0, b"-")
            && !(1..fields.len()).any(|number| starts_with(number, b"+-"));
        Self {
            fields,
            kind,
            context,
            sum: S::default(),
            seen: Mask::NONE,
            unit: None,
            is_unit_open: false,
            ago: false,
            infinity: None,
            all_negative,
        }
    }

    /// Units need numbers, and `ago` comes last.
    fn is_strict(&self) -> bool {
        self.context.version >= PgVersion::V17
    }

    fn decode(&mut self) -> Result<Option<Interval>> {
        for number in (0..self.fields.len()).rev() {
            let found = self.field(number)?;
            if self.seen.has_any(found) {
                return Err(Fault::Syntax);
            }
            self.seen |= found;
        }
        if self.seen == Mask::NONE || (self.is_strict() && self.is_unit_open) {
            return Err(Fault::Syntax);
        }
        if self.all_negative && S::is_narrow() {
            self.sum.make_negative();
        }
        if self.ago {
            self.sum.negate()?;
        }
        Ok(self.infinity.or_else(|| self.sum.interval()))
    }

    fn field(&mut self, number: usize) -> Result<Mask> {
        let (kind, text) = self.fields.get(number).ok_or(Fault::Syntax)?;
        match kind {
            FieldKind::Time => {
                let time = self.colon_time(text)?;
                self.time(time, false)
            }
            FieldKind::Zone => match self.signed_time(text) {
                Some(time) => self.time(time, text.first() == Some(&b'-')),
                None => self.number(text),
            },
            FieldKind::Date | FieldKind::Number => self.number(text),
            FieldKind::Word | FieldKind::SignedWord => self.word(number, text),
        }
    }

    fn colon_time(&self, text: &[u8]) -> Result<ColonTime> {
        ColonTime::read(text, self.kind.is_minute_to_second(), self.context.version)
    }

    /// A time with a sign before it, if that is what it is.
    fn signed_time(&mut self, text: &[u8]) -> Option<ColonTime> {
        let unsigned = text.get(1..).filter(|rest| rest.contains(&b':'))?;
        let time = self.colon_time(unsigned).ok()?;
        let fits = S::default().set_time(time, false).is_ok();
        fits.then_some(time)
    }

    fn time(&mut self, time: ColonTime, negative: bool) -> Result<Mask> {
        self.sum.set_time(time, negative)?;
        if self.all_negative && !S::is_narrow() {
            self.sum.make_negative();
        }
        // A number before it is days.
        self.unit = Some(Unit::Day);
        self.is_unit_open = false;
        Ok(Mask::TIME)
    }

    fn number(&mut self, text: &[u8]) -> Result<Mask> {
        let mut unit = self.unit.unwrap_or_else(|| self.kind.last_unit());
        let (value, rest) = long(text);
        let mut value = value?;
        if S::is_narrow() && i32::try_from(value).is_err() {
            return Err(Fault::Field);
        }
        let is_negative = text.first() == Some(&b'-');
        let mut part = match rest {
            b"" => 0.0,
            [b'.', ..] => fraction(rest, self.context.version)?,
            [b'-', months @ ..] => {
                unit = Unit::Month;
                value = years_and_months::<S>(value, months, is_negative)?;
                0.0
            }
            _ => return Err(Fault::Syntax),
        };
        part = if is_negative { -part } else { part };
        if self.all_negative && !S::is_narrow() {
            (value, part) = (value.min(value.wrapping_neg()), -part.abs());
        }
        let found = mask_of(unit, part != 0.0).ok_or(Fault::Syntax)?;
        self.sum.add(unit, value, part)?;
        // A number before hours is days.
        self.unit = Some(if unit == Unit::Hour { Unit::Day } else { unit });
        self.is_unit_open = false;
        Ok(found)
    }

    fn word(&mut self, number: usize, word: &[u8]) -> Result<Mask> {
        if self.is_strict() && self.is_unit_open {
            return Err(Fault::Syntax);
        }
        let is_last = number + 1 == self.fields.len();
        match interval_word(word) {
            Some(IntervalWord::Unit(unit)) => {
                self.unit = Some(unit);
                self.is_unit_open = true;
                Ok(Mask::NONE)
            }
            Some(IntervalWord::Ago) if is_last || !self.is_strict() => {
                self.ago = true;
                // What stands before it must say its unit.
                self.unit = Some(Unit::Other);
                Ok(Mask::NONE)
            }
            None if self.is_strict() => self.date_word(is_last, word),
            _ => Err(Fault::Syntax),
        }
    }

    /// A word of dates: the infinities, which stand alone, and those that say nothing.
    fn date_word(&mut self, is_last: bool, word: &[u8]) -> Result<Mask> {
        self.infinity = match date_word(word, self.context.version) {
            Some(DateWord::Reserved(Reserved::Late)) if is_last => Some(Interval::INFINITY),
            Some(DateWord::Reserved(Reserved::Early)) if is_last => Some(Interval::MINUS_INFINITY),
            Some(DateWord::Ignored) => {
                self.unit = None;
                return Ok(Mask::NONE);
            }
            Some(DateWord::Unit(unit)) => {
                self.unit = Some(unit);
                self.is_unit_open = true;
                return Ok(Mask::NONE);
            }
            _ => return Err(Fault::Syntax),
        };
        // A number before it would need a unit.
        self.unit = Some(Unit::Other);
        Ok(Mask::DATE | Mask::TIME)
    }
}

/// `years-months` in months.
fn years_and_months<S: IntervalSum>(years: i64, text: &[u8], is_negative: bool) -> Result<i64> {
    let (months, rest) = int(text);
    let months = months.ok().filter(|months| (0..12).contains(months)).ok_or(Fault::Field)?;
    if !rest.is_empty() {
        return Err(Fault::Syntax);
    }
    let months = i64::from(if is_negative { -months } else { months });
    let sum = years.checked_mul(12).and_then(|all| all.checked_add(months));
    sum.filter(|sum| !S::is_narrow() || i32::try_from(*sum).is_ok()).ok_or(Fault::Field)
}

/// What a number of this unit counts as; nothing for a unit that no interval has.
fn mask_of(unit: Unit, has_fraction: bool) -> Option<Mask> {
    Some(match unit {
        Unit::Microsecond => Mask::MICROSECOND,
        Unit::Millisecond => Mask::MILLISECOND,
        Unit::Second if has_fraction => Mask::ALL_SECONDS,
        Unit::Second => Mask::SECOND,
        Unit::Minute => Mask::MINUTE,
        Unit::Hour => Mask::HOUR,
        Unit::Day => Mask::DAY,
        Unit::Week => Mask::WEEK,
        Unit::Month => Mask::MONTH,
        Unit::Year => Mask::YEAR,
        Unit::Decade => Mask::DECADE,
        Unit::Century => Mask::CENTURY,
        Unit::Millennium => Mask::MILLENNIUM,
        Unit::Julian | Unit::Time | Unit::Other => return None,
    })
}
