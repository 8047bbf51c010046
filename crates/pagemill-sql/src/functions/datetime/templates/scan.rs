//! A text read by a template: which number each field of it has.
//!
//! Numbers take as many characters as their field has, unless something that is no digit follows in the template; then they
//! take all digits. In standard mode what stands between fields has to be there as written; in the other one a template's
//! space or separator stands for one or none, and any other character for one of any kind.
//!
//! Source: `DCH_from_char`, `from_char_parse_int_len`, `from_char_seq_search`, `is_next_separator` in
//! `src/backend/utils/adt/formatting.c`, PostgreSQL 14 to 18.

use pagemill_types::input::datetime::DateTimeContext;

use super::super::pictures::{DAYS, MONTHS};
use super::numbers::{is_space, leading_integer, near_2020, set};
use super::zone::Abbreviated;
use super::{Convention, Field, INVALID_FORMAT, Keyword, Part, Template, is_separator};
use crate::error::{SqlState, StatementError};

/// Why a text was not read.
#[derive(Debug)]
pub(crate) enum Fault {
    /// As the server says it.
    Wrong(StatementError),
    /// What a server would make of it is not known here.
    Refused(StatementError),
}

pub(crate) type Scan<T> = Result<T, Fault>;

/// What the reading of a text depends on beside it and its template.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'r> {
    /// The server's major version.
    pub(crate) major: u32,
    /// The session, where all abbreviations of time zones are known; else those of UTC are.
    pub(crate) session: Option<&'r DateTimeContext>,
    /// Whether months and days in the language of the session are in English.
    pub(crate) is_english: bool,
}

/// What was read; 0 is what was not there.
#[derive(Debug, Default, Clone)]
pub(super) struct Fields {
    pub(super) convention: Option<Convention>,
    pub(super) hour: i32,
    pub(super) half: i32,
    pub(super) is_half_day: bool,
    pub(super) minute: i32,
    pub(super) second: i32,
    pub(super) second_of_day: i32,
    pub(super) millisecond: i32,
    pub(super) microsecond: i32,
    pub(super) places: i32,
    pub(super) day_of_week: i32,
    pub(super) day: i32,
    pub(super) day_of_year: i32,
    pub(super) month: i32,
    pub(super) year: i32,
    pub(super) year_digits: u8,
    pub(super) before_christ: i32,
    pub(super) week: i32,
    pub(super) week_of_month: i32,
    pub(super) century: i32,
    pub(super) julian: i32,
    pub(super) zone_sign: i32,
    pub(super) zone_hour: i32,
    pub(super) zone_minute: i32,
    pub(super) abbreviated: Option<Abbreviated>,
}

#[cold]
pub(crate) fn wrong(message: impl Into<String>) -> Fault {
    Fault::Wrong(StatementError::new(INVALID_FORMAT, message))
}

const ROMAN: [&str; 12] =
    ["XII", "XI", "X", "IX", "VIII", "VII", "VI", "V", "IV", "III", "II", "I"];

/// Reads `text` by a template.
pub(super) fn scan(template: &Template, text: &str, reading: Reading<'_>) -> Scan<Fields> {
    let is_exact = template.is_standard;
    let fields = Fields::default();
    let mut scanner = Scanner { text, at: 0, fields, is_exact, skipped: 0, template, reading };
    let mut number = 0;
    while number < template.parts.len() && !scanner.rest().is_empty() {
        scanner.part(number)?;
        number += 1;
    }
    if !template.is_standard {
        return Ok(scanner.fields);
    }
    if number < template.parts.len() {
        return Err(wrong("input string is too short for datetime format"));
    }
    scanner.skip_spaces();
    if !scanner.rest().is_empty() {
        return Err(wrong("trailing characters remain in input string after datetime format"));
    }
    Ok(scanner.fields)
}

pub(super) struct Scanner<'s> {
    pub(super) text: &'s str,
    pub(super) at: usize,
    pub(super) fields: Fields,
    /// `FX`, or standard mode.
    is_exact: bool,
    /// Characters that were passed beyond what the template has.
    pub(super) skipped: i64,
    pub(super) template: &'s Template,
    pub(super) reading: Reading<'s>,
}

/// A field, and where in the template it stands.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) keyword: &'static Keyword,
    pub(super) number: usize,
    pub(super) is_filled: bool,
    pub(super) has_ending: bool,
}

impl<'s> Scanner<'s> {
    pub(super) fn rest(&self) -> &'s str {
        self.text.get(self.at..).unwrap_or_default() // default: it only moves by whole characters
    }

    pub(super) fn first(&self) -> u8 {
        self.rest().bytes().next().unwrap_or(0) // default: the NUL behind a text of C
    }

    pub(super) fn skip_spaces(&mut self) -> i64 {
        let spaces = self.rest().bytes().take_while(|byte| is_space(*byte)).count();
        self.at += spaces;
        spaces as i64
    }

    fn skip_character(&mut self) {
        self.at += self.rest().chars().next().map_or(0, char::len_utf8);
    }

    fn part(&mut self, number: usize) -> Scan<()> {
        let Some(part) = self.template.parts.get(number) else { return Ok(()) };
        let is_field = matches!(part, Part::Field { .. });
        let is_mark = matches!(part, Part::Field { keyword, .. } if keyword.field == Field::Exact);
        if !self.is_exact && !is_mark && (is_field || number == 0) {
            self.skipped += self.skip_spaces();
        }
        match *part {
            Part::Separator(wanted) | Part::Space(wanted) => self.separator(wanted)?,
            Part::Character(wanted) => self.character(wanted)?,
            Part::Field { keyword, is_filled, is_translated, has_ending } => {
                if is_translated {
                    self.refuse_languages(keyword)?;
                }
                self.set_convention(keyword)?;
                self.field(Place { keyword, number, is_filled, has_ending })?;
                if has_ending && keyword.is_digits() && keyword.field != Field::OffsetMinute {
                    self.skip_character();
                    self.skip_character();
                }
                if !self.is_exact {
                    self.skipped = self.skip_spaces();
                }
            }
        }
        Ok(())
    }

    /// In standard mode it has to stand in the text, too.
    fn separator(&mut self, wanted: char) -> Scan<()> {
        let is_one = is_space(self.first()) || is_separator(self.first().into());
        match (self.template.is_standard, self.is_exact) {
            (true, _) if self.rest().starts_with(wanted) => self.at += 1,
            (true, _) => return Err(wrong(format!("unmatched format separator \"{wanted}\""))),
            (false, false) if is_one => self.at += 1,
            (false, false) => self.skipped -= 1,
            (false, true) => self.skip_character(),
        }
        Ok(())
    }

    /// In standard mode it has to stand in the text; else it stands for any, or for one that was passed already.
    fn character(&mut self, wanted: char) -> Scan<()> {
        if self.template.is_standard && !self.rest().starts_with(wanted) {
            return Err(wrong(format!("unmatched format character \"{wanted}\"")));
        }
        match !self.is_exact && self.skipped > 0 {
            true => self.skipped -= 1,
            false => self.skip_character(),
        }
        Ok(())
    }

    /// Refuses names of months and days that are not known to be in English, or are no letters of it.
    fn refuse_languages(&self, keyword: &Keyword) -> Scan<()> {
        use Field::{DayName, DayShort, MonthName, MonthShort};
        let is_name = matches!(keyword.field, DayName | DayShort | MonthName | MonthShort);
        if !is_name || (self.reading.is_english && self.rest().is_ascii()) {
            return Ok(());
        }
        let what = "names of months and days in another language";
        Err(Fault::Refused(StatementError::unsupported(what)))
    }

    fn set_convention(&mut self, keyword: &Keyword) -> Scan<()> {
        let Some(convention) = keyword.convention() else { return Ok(()) };
        if self.fields.convention.is_some_and(|other| other != convention) {
            let error =
                StatementError::new(INVALID_FORMAT, "invalid combination of date conventions");
            let hint =
                "Do not mix Gregorian and ISO week date conventions in a formatting template.";
            return Err(Fault::Wrong(error.with_hint(hint)));
        }
        self.fields.convention = Some(convention);
        Ok(())
    }

    fn field(&mut self, place: Place) -> Scan<()> {
        let own = place.keyword.name.len();
        match place.keyword.field {
            Field::Exact => self.is_exact = true,
            Field::Half(is_long) => {
                let words: &[&str] = if is_long { &["a.m.", "p.m."] } else { &["am", "pm"] };
                let value = self.word(words, 4, place)?;
                set(&mut self.fields.half, value, place)?;
                self.fields.is_half_day = true;
            }
            Field::Era(is_long) => {
                let words: &[&str] = if is_long { &["a.d.", "b.c."] } else { &["ad", "bc"] };
                let value = self.word(words, 4, place)?;
                set(&mut self.fields.before_christ, value, place)?;
            }
            Field::Hour12 => {
                self.number(2, place, |fields| &mut fields.hour)?;
                self.fields.is_half_day = true;
            }
            Field::Hour24 => self.plain_number(2, place, |fields| &mut fields.hour)?,
            Field::Minute => self.plain_number(own, place, |fields| &mut fields.minute)?,
            Field::Second => self.plain_number(own, place, |fields| &mut fields.second)?,
            Field::Millisecond => self.milliseconds(place)?,
            Field::Fraction(digits) => self.fraction(digits, place)?,
            Field::SecondOfDay => {
                self.plain_number(own, place, |fields| &mut fields.second_of_day)?
            }
            Field::Zone | Field::Offset | Field::OffsetHour => self.offset(place)?,
            Field::OffsetMinute => {
                if self.fields.zone_sign == 0 {
                    self.fields.zone_sign = 1;
                }
                self.number(2, place, |fields| &mut fields.zone_minute)?;
            }
            _ => self.date_field(place)?,
        }
        Ok(())
    }

    fn date_field(&mut self, place: Place) -> Scan<()> {
        let own = place.keyword.name.len();
        match place.keyword.field {
            Field::MonthName => {
                let value = self.word(&MONTHS, usize::MAX, place)? + 1;
                set(&mut self.fields.month, value, place)?;
            }
            Field::MonthShort => {
                let value = self.word(&MONTHS, 3, place)? + 1;
                set(&mut self.fields.month, value, place)?;
            }
            Field::MonthRoman => {
                let value = 12 - self.word(&ROMAN, usize::MAX, place)?;
                set(&mut self.fields.month, value, place)?;
            }
            Field::DayName | Field::DayShort => {
                let letters = if place.keyword.field == Field::DayName { usize::MAX } else { 3 };
                let value = self.word(&DAYS, letters, place)?;
                set(&mut self.fields.day_of_week, value, place)?;
                self.fields.day_of_week = self.fields.day_of_week.saturating_add(1);
            }
            Field::Month => self.plain_number(own, place, |fields| &mut fields.month)?,
            Field::DayOfYear => self.plain_number(own, place, |fields| &mut fields.day_of_year)?,
            Field::IsoDayOfYear => self.plain_number(3, place, |fields| &mut fields.day_of_year)?,
            Field::Day => self.plain_number(own, place, |fields| &mut fields.day)?,
            Field::DayOfWeek => self.plain_number(own, place, |fields| &mut fields.day_of_week)?,
            Field::IsoDayOfWeek => {
                self.number(1, place, |fields| &mut fields.day_of_week)?;
                // Of a week that begins on a Monday, to one that begins on a Sunday.
                let day = self.fields.day_of_week.wrapping_add(1);
                self.fields.day_of_week = if day > 7 { 1 } else { day };
            }
            Field::Week | Field::IsoWeek => {
                self.plain_number(own, place, |fields| &mut fields.week)?
            }
            Field::WeekOfMonth => {
                self.plain_number(own, place, |fields| &mut fields.week_of_month)?
            }
            Field::Quarter => {
                self.integer(own, place)?;
            }
            Field::Century => self.plain_number(own, place, |fields| &mut fields.century)?,
            Field::Julian => self.plain_number(own, place, |fields| &mut fields.julian)?,
            Field::CommaYear => self.comma_year(place)?,
            Field::Year(digits) => {
                let len = self.number(own, place, |fields| &mut fields.year)?;
                if digits < 4 && len < 4 {
                    self.fields.year = near_2020(self.fields.year);
                }
                self.fields.year_digits = digits;
            }
            _ => {}
        }
        Ok(())
    }

    /// 25 is 0.25 and 250 as well, 025 is 0.025.
    fn milliseconds(&mut self, place: Place) -> Scan<()> {
        let len = self.number(3, place, |fields| &mut fields.millisecond)?;
        let by = 10i32.pow(3u32.saturating_sub(len as u32).min(2));
        self.fields.millisecond = self.fields.millisecond.wrapping_mul(by);
        Ok(())
    }

    fn fraction(&mut self, digits: Option<u8>, place: Place) -> Scan<()> {
        self.fields.places = digits.map_or(self.fields.places, i32::from);
        let room = digits.map_or(6, usize::from);
        let len = self.number(room, place, |fields| &mut fields.microsecond)?;
        let by = 10i32.pow(6u32.saturating_sub(len as u32).min(5));
        self.fields.microsecond = self.fields.microsecond.wrapping_mul(by);
        Ok(())
    }

    /// `2,024`
    fn comma_year(&mut self, place: Place) -> Scan<()> {
        let refused = || match self.reading.major {
            18.. => wrong(format!("invalid value \"{}\" for \"Y,YYY\"", self.rest())),
            _ => wrong("invalid input string for \"Y,YYY\""),
        };
        let (thousands, first) = leading_integer(self.rest(), usize::MAX);
        let behind = self.rest().get(first..).and_then(|rest| rest.strip_prefix(','));
        let behind = behind.ok_or_else(refused)?;
        // Spaces are none of its three characters.
        let spaces = behind.bytes().take_while(|byte| is_space(*byte)).count();
        let (rest, second) = leading_integer(behind, spaces + 3);
        if first == 0 || second == 0 {
            return Err(refused());
        }
        if i32::try_from(thousands).is_err() {
            return Err(Fault::Refused(StatementError::unsupported(
                "a number of more than 32 bits in Y,YYY",
            )));
        }
        let year =
            i32::try_from(thousands * 1000 + rest).map_err(|_| match self.reading.major {
                18.. => {
                    let message = "value for \"Y,YYY\" in source string is out of range";
                    Fault::Wrong(StatementError::new(SqlState::DATETIME_OVERFLOW, message))
                }
                _ => Fault::Refused(StatementError::unsupported("so great a number in Y,YYY")),
            })?;
        set(&mut self.fields.year, year, place)?;
        self.fields.year_digits = 4;
        self.at += first + 1 + second;
        Ok(())
    }
}
