//! Templates of dates and times (`YYYY-MM-DD HH24:MI:SS`), taken apart into fields and what stands between them.
//!
//! ```text
//! template ─► parts ─┐
//! text ──────────────┴─► scan, numbers ─► parts: a day, a clock, an offset
//! ```
//!
//! In standard mode, the one of `.datetime(template)`, only a few characters may stand between fields, and text in quotes;
//! in the other one, that of `to_timestamp` and `to_date`, any may.
//!
//! Source: `DCH_keywords`, `DCH_suff`, `parse_format`, `index_seq_search`, `DCH_datetime_type` in
//! `src/backend/utils/adt/formatting.c`, PostgreSQL 14 to 18.

mod numbers;
mod parts;
mod scan;
#[cfg(test)]
mod tests;
mod zone;

use crate::error::{SqlState, StatementError};
use crate::functions::rows::Outcome;
pub(crate) use parts::{Parts, rounded};
pub(crate) use scan::{Fault, Reading, Scan, wrong};
pub(super) use zone::{Abbreviated, meaning};

/// SQLSTATE of what does not fit a template.
pub(crate) const INVALID_FORMAT: SqlState = SqlState("22007");

/// Which field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    /// `a.m.`, where true, or `am`.
    Half(bool),
    Hour12,
    Hour24,
    Minute,
    Second,
    Millisecond,
    /// So many digits of a second's fraction; none for `US`.
    Fraction(Option<u8>),
    SecondOfDay,
    Zone,
    Offset,
    OffsetHour,
    OffsetMinute,
    /// `a.d.`, where true, or `ad`.
    Era(bool),
    MonthName,
    MonthShort,
    Month,
    DayName,
    DayShort,
    DayOfYear,
    IsoDayOfYear,
    Day,
    DayOfWeek,
    IsoDayOfWeek,
    Week,
    IsoWeek,
    Quarter,
    Century,
    CommaYear,
    /// So many last digits.
    Year(u8),
    MonthRoman,
    WeekOfMonth,
    Julian,
    Exact,
}

/// Which calendar a field is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Convention {
    Gregorian,
    IsoWeek,
}

/// A field's name, as it may be written.
#[derive(Debug)]
pub(crate) struct Keyword {
    pub(crate) name: &'static str,
    pub(crate) field: Field,
}

impl Keyword {
    /// Whether it is made of digits.
    pub(crate) fn is_digits(&self) -> bool {
        use Field::{
            DayName, DayShort, Era, Exact, Half, MonthName, MonthRoman, MonthShort, Offset,
            OffsetHour, Zone,
        };
        !matches!(
            self.field,
            Half(_)
                | Era(_)
                | DayName
                | DayShort
                | Exact
                | MonthName
                | MonthShort
                | Offset
                | MonthRoman
                | OffsetHour
                | Zone
        )
    }

    pub(crate) fn convention(&self) -> Option<Convention> {
        use Field::{
            CommaYear, Day, DayOfWeek, DayOfYear, IsoDayOfWeek, IsoDayOfYear, IsoWeek, Month,
            MonthName, MonthRoman, MonthShort, Week, WeekOfMonth, Year,
        };
        match self.field {
            IsoDayOfYear | IsoDayOfWeek | IsoWeek => Some(Convention::IsoWeek),
            Year(_) if self.name.starts_with(['I', 'i']) => Some(Convention::IsoWeek),
            DayOfYear | Day | DayOfWeek | Month | MonthName | MonthShort | MonthRoman | Week
            | WeekOfMonth | CommaYear | Year(_) => Some(Convention::Gregorian),
            _ => None,
        }
    }
}

/// A part of a template.
#[derive(Debug)]
pub(crate) enum Part {
    Field {
        keyword: &'static Keyword,
        /// `FM`
        is_filled: bool,
        /// `TM`
        is_translated: bool,
        /// `TH`
        has_ending: bool,
    },
    Separator(char),
    Space(char),
    Character(char),
}

/// What a template speaks of.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Scope {
    pub(crate) has_date: bool,
    pub(crate) has_time: bool,
    pub(crate) has_zone: bool,
}

/// A template made ready.
#[derive(Debug)]
pub(crate) struct Template {
    parts: Vec<Part>,
    is_standard: bool,
}

impl Template {
    /// In standard mode, for a server of this version.
    ///
    /// # Errors
    /// When something stands between fields that may not.
    pub(crate) fn standard(text: &str, major: u32) -> Outcome<Self> {
        Self::new(text, true, major)
    }

    /// With any characters between fields.
    ///
    /// # Errors
    /// Never, as all may be there.
    pub(crate) fn plain(text: &str, major: u32) -> Outcome<Self> {
        Self::new(text, false, major)
    }

    fn new(text: &str, is_standard: bool, major: u32) -> Outcome<Self> {
        let mut reader = Reader { rest: text, parts: Vec::new(), is_standard, major };
        while !reader.rest.is_empty() {
            reader.part()?;
        }
        Ok(Self { parts: reader.parts, is_standard })
    }

    pub(crate) fn scope(&self) -> Scope {
        use Field::{
            Exact, Fraction, Half, Hour12, Hour24, IsoWeek, Millisecond, Minute, Offset,
            OffsetHour, OffsetMinute, Second, SecondOfDay, Zone,
        };
        let mut scope = Scope::default();
        for part in &self.parts {
            let Part::Field { keyword, .. } = part else { continue };
            match keyword.field {
                Half(_) | Hour12 | Hour24 | Minute | Second | Millisecond | Fraction(_)
                | SecondOfDay => {
                    scope.has_time = true;
                }
                Zone | Offset | OffsetHour | OffsetMinute => scope.has_zone = true,
                // The server has forgotten the one of weeks.
                Exact | IsoWeek => {}
                _ => scope.has_date = true,
            }
        }
        scope
    }
}

struct Reader<'t> {
    rest: &'t str,
    parts: Vec<Part>,
    is_standard: bool,
    major: u32,
}

impl Reader<'_> {
    fn part(&mut self) -> Outcome<()> {
        let prefix = ["FM", "fm", "TM", "tm"].into_iter().find(|prefix| self.take(prefix));
        let is_it = |keyword: &&Keyword| {
            self.rest.starts_with(keyword.name)
                && !(self.major < 15 && SINCE_15.contains(&keyword.name))
        };
        if let Some(keyword) = KEYWORDS.iter().find(is_it) {
            self.take(keyword.name);
            let has_ending = self.take("TH") || self.take("th");
            if !has_ending {
                // It says nothing.
                self.take("SP");
            }
            let is_filled = matches!(prefix, Some("FM" | "fm"));
            let is_translated = matches!(prefix, Some("TM" | "tm"));
            self.parts.push(Part::Field { keyword, is_filled, is_translated, has_ending });
            return Ok(());
        }
        match self.rest.chars().next() {
            None => Ok(()),
            Some('"') => {
                self.quoted();
                Ok(())
            }
            Some(character) if self.is_standard => self.separator(character),
            Some(character) => {
                self.other(character);
                Ok(())
            }
        }
    }

    fn take(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn next(&mut self) -> Option<char> {
        let mut rest = self.rest.chars();
        let next = rest.next();
        self.rest = rest.as_str();
        next
    }

    /// In standard mode.
    fn separator(&mut self, character: char) -> Outcome<()> {
        if !"-./,':; ".contains(character) {
            let message = format!("invalid datetime format separator: \"{character}\"");
            return Err(StatementError::new(INVALID_FORMAT, message));
        }
        self.next();
        self.parts.push(match character {
            ' ' => Part::Space(' '),
            other => Part::Separator(other),
        });
        Ok(())
    }

    /// A backslash quotes the next character.
    fn quoted(&mut self) {
        self.next();
        while let Some(next) = self.next() {
            match next {
                '"' => return,
                '\\' => {
                    let quoted = self.next().unwrap_or('\\'); // default: the last one stands for itself
                    self.parts.push(Part::Character(quoted));
                }
                other => self.parts.push(Part::Character(other)),
            }
        }
    }
    /// Outside of standard mode. A backslash is one unless a quotation mark follows.
    fn other(&mut self, character: char) {
        self.next();
        let character = match character == '\\' && self.take("\"") {
            true => '"',
            false => character,
        };
        self.parts.push(match character {
            c if is_separator(c) => Part::Separator(c),
            c if c.is_ascii_whitespace() || c == '\u{B}' => Part::Space(c),
            c => Part::Character(c),
        });
    }
}

/// Neither a letter nor a digit of ASCII, but to be seen.
fn is_separator(character: char) -> bool {
    character.is_ascii_graphic() && !character.is_ascii_alphanumeric()
}

/// Small ones that 14 does not have.
const SINCE_15: [&str; 3] = ["of", "tzh", "tzm"];

macro_rules! keywords {
    ($($name:literal $field:expr;)*) => {
        &[$(Keyword { name: $name, field: $field }),*]
    };
}

/// In the order in which they are tried: a longer one before those that it begins with.
static KEYWORDS: &[Keyword] = {
    use Field::*;
    keywords![
        "A.D." Era(true); "A.M." Half(true); "AD" Era(false); "AM" Half(false);
        "B.C." Era(true); "BC" Era(false); "CC" Century;
        "DAY" DayName; "DDD" DayOfYear; "DD" Day; "DY" DayShort; "Day" DayName; "Dy" DayShort; "D" DayOfWeek;
        "FF1" Fraction(Some(1)); "FF2" Fraction(Some(2)); "FF3" Fraction(Some(3));
        "FF4" Fraction(Some(4)); "FF5" Fraction(Some(5)); "FF6" Fraction(Some(6)); "FX" Exact;
        "HH24" Hour24; "HH12" Hour12; "HH" Hour12;
        "IDDD" IsoDayOfYear; "ID" IsoDayOfWeek; "IW" IsoWeek;
        "IYYY" Year(4); "IYY" Year(3); "IY" Year(2); "I" Year(1); "J" Julian;
        "MI" Minute; "MM" Month; "MONTH" MonthName; "MON" MonthShort; "MS" Millisecond;
        "Month" MonthName; "Mon" MonthShort; "OF" Offset; "P.M." Half(true); "PM" Half(false);
        "Q" Quarter; "RM" MonthRoman; "SSSSS" SecondOfDay; "SSSS" SecondOfDay; "SS" Second;
        "TZH" OffsetHour; "TZM" OffsetMinute; "TZ" Zone; "US" Fraction(None); "WW" Week; "W" WeekOfMonth;
        "Y,YYY" CommaYear; "YYYY" Year(4); "YYY" Year(3); "YY" Year(2); "Y" Year(1);
        "a.d." Era(true); "a.m." Half(true); "ad" Era(false); "am" Half(false);
        "b.c." Era(true); "bc" Era(false); "cc" Century;
        "day" DayName; "ddd" DayOfYear; "dd" Day; "dy" DayShort; "d" DayOfWeek;
        "ff1" Fraction(Some(1)); "ff2" Fraction(Some(2)); "ff3" Fraction(Some(3));
        "ff4" Fraction(Some(4)); "ff5" Fraction(Some(5)); "ff6" Fraction(Some(6)); "fx" Exact;
        "hh24" Hour24; "hh12" Hour12; "hh" Hour12;
        "iddd" IsoDayOfYear; "id" IsoDayOfWeek; "iw" IsoWeek;
        "iyyy" Year(4); "iyy" Year(3); "iy" Year(2); "i" Year(1); "j" Julian;
        "mi" Minute; "mm" Month; "month" MonthName; "mon" MonthShort; "ms" Millisecond;
        "of" Offset; "p.m." Half(true); "pm" Half(false);
        "q" Quarter; "rm" MonthRoman; "sssss" SecondOfDay; "ssss" SecondOfDay; "ss" Second;
        "tzh" OffsetHour; "tzm" OffsetMinute; "tz" Zone; "us" Fraction(None); "ww" Week; "w" WeekOfMonth;
        "y,yyy" CommaYear; "yyyy" Year(4); "yyy" Year(3); "yy" Year(2); "y" Year(1);
    ]
};
