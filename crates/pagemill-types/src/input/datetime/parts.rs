//! The parts of a date and time, taken from the fields one by one.
//!
//! What a number means depends on what was seen before it; the rules, odd as some are, are the
//! server's. Each function says which parts it found, and the caller sees to it that none comes twice.
//! No part may come twice, which is most of what tells a date from nonsense; some words are parts too ([`Mask`]),
//! so that they cannot be repeated.
//! Sources: `DTK_M` and the field types in `src/include/utils/datetime.h`, `DecodeDate`, `DecodeNumber`, `DecodeNumberField`, `DecodeTimeCommon`, `DecodeTimezone`
//! and `ValidateDate` in `src/backend/utils/adt/datetime.c`, PostgreSQL 14 to 18. (18 takes digits
//! only in dates and times without punctuation, where others read what is no digit as 0.)

use std::ops::{BitOr, BitOrAssign};

use pagemill_format::ids::PgVersion;

use super::calendar::{Moment, days_in_month, julian_day};
use super::fault::{Fault, Result};
use super::numbers::{fraction_micros, int, long, micros, real, wrapping_int};
use super::words::{DateWord, date_word};
use super::{DateOrder, DateTimeContext};

/// Parts of one date at most, counted as the server counts fields.
const MOST_PARTS: usize = 25;
/// Hours of an offset from UTC at most.
const MOST_ZONE_HOURS: i32 = 15;

/// A date and time in the making.
pub(super) struct Parts<'a> {
    pub(super) context: &'a DateTimeContext,
    pub(super) moment: Moment,
    /// The year was written with one or two digits.
    pub(super) two_digit_year: bool,
    /// The date came as a Julian day.
    pub(super) is_julian: bool,
    /// The year counts backward.
    pub(super) bc: bool,
}

impl<'a> Parts<'a> {
    pub(super) fn new(context: &'a DateTimeContext) -> Self {
        let moment = Moment::default();
        Self { context, moment, two_digit_year: false, is_julian: false, bc: false }
    }

    /// A date with delimiters.
    pub(super) fn date(&mut self, text: &[u8], mut seen: Mask) -> Result<Mask> {
        let (parts, count) = split_date(text)?;
        let parts = parts.get(..count).unwrap_or_default();
        let version = self.context.version;
        let (mut found, mut text_month) = (Mask::NONE, false);
        let mut note = |part: Mask| {
            if seen.has_any(part) {
                return Err(Fault::Syntax);
            }
            seen |= part;
            found |= part;
            Ok(seen)
        };
        let mut all = note(Mask::NONE)?;
        for part in parts {
            match date_word(part, version) {
                Some(DateWord::Month(month)) => self.moment.month = month,
                // Not a number either, which the second walk finds.
                Some(DateWord::Ignored) => continue,
                _ if is_word(part) => return Err(Fault::Syntax),
                _ => continue,
            }
            text_month = true;
            all = note(Mask::MONTH)?;
        }
        let is_month = |part: &[u8]| matches!(date_word(part, version), Some(DateWord::Month(_)));
        for part in parts.iter().filter(|part| !is_month(part)) {
            let mask = self.number(part, text_month, all)?;
            all = note(mask)?;
        }
        if all.without(Mask::DAY_OF_YEAR | Mask::ZONE) != Mask::DATE {
            return Err(Fault::Syntax);
        }
        Ok(found)
    }

    /// A plain number, by what was seen before it.
    pub(super) fn number(&mut self, text: &[u8], text_month: bool, seen: Mask) -> Result<Mask> {
        let (value, rest) = int(text);
        let value = value?;
        if rest.len() == text.len() {
            return Err(Fault::Syntax);
        }
        match rest.first() {
            Some(b'.') if text.len() - rest.len() > 2 => {
                return self.number_field(text, seen | Mask::DATE);
            }
            Some(b'.') => self.moment.micros = fraction_micros(rest, self.context.version)?,
            Some(_) => return Err(Fault::Syntax),
            None => {}
        }
        let dates = seen.within(Mask::DATE);
        if text.len() == 3 && dates == Mask::YEAR && (1..=366).contains(&value) {
            self.moment.day_of_year = value;
            return Ok(Mask::DAY_OF_YEAR | Mask::MONTH | Mask::DAY);
        }
        if dates == Mask::DATE {
            return self.number_field(text, seen);
        }
        let part = self.date_part(value, text.len(), text_month, dates)?;
        if part == Mask::YEAR {
            self.two_digit_year = text.len() <= 2;
        }
        Ok(part)
    }

    /// Which part of a date a number is, given those seen.
    fn date_part(&mut self, value: i32, len: usize, text_month: bool, dates: Mask) -> Result<Mask> {
        let order = self.context.date_order;
        let is_year = len >= 3 || order == DateOrder::Ymd;
        let year_or = |part: Mask| if is_year { Mask::YEAR } else { part };
        let part = match dates {
            Mask::NONE if order == DateOrder::Dmy => year_or(Mask::DAY),
            Mask::NONE => year_or(Mask::MONTH),
            Mask::MONTH if text_month => year_or(Mask::DAY),
            Mask::MONTH => Mask::DAY,
            Mask::YEAR | Mask::DAY => Mask::MONTH,
            _ if dates == Mask::MONTH | Mask::DAY => Mask::YEAR,
            _ if dates == Mask::YEAR | Mask::MONTH => {
                if text_month && len >= 3 && self.two_digit_year {
                    // The number taken for the year was the day: 01-jan-1999 in order YMD.
                    self.moment.day = self.moment.year;
                    self.moment.year = value;
                    self.two_digit_year = false;
                    return Ok(Mask::DAY);
                }
                Mask::DAY
            }
            _ => return Err(Fault::Syntax),
        };
        match part {
            Mask::YEAR => self.moment.year = value,
            Mask::MONTH => self.moment.month = value,
            _ => self.moment.day = value,
        }
        Ok(part)
    }

    /// Digits run together: a date (`19990108`) or a time (`040506.789`).
    pub(super) fn number_field(&mut self, text: &[u8], seen: Mask) -> Result<Mask> {
        let mut digits = text;
        if let Some(point) = text.iter().position(|&byte| byte == b'.') {
            let (whole, rest) = text.split_at(point);
            let is_strict = self.context.version >= PgVersion::V18;
            let found = real(rest);
            if found.out_of_range || (is_strict && rest.len() > 1 && found.len != rest.len()) {
                return Err(Fault::Syntax);
            }
            self.moment.micros = micros(found.value);
            digits = whole;
        } else if !seen.has_all(Mask::DATE) && text.len() >= 6 && self.are_digits(text) {
            return Ok(self.joined_date(text));
        }
        if !seen.has_all(Mask::TIME) && self.are_digits(digits) {
            let part = |range| wrapping_int(digits.get(range).unwrap_or_default());
            let second = match digits.len() {
                6 => part(4..6),
                4 => 0,
                _ => return Err(Fault::Syntax),
            };
            (self.moment.hour, self.moment.minute) = (part(0..2), part(2..4));
            self.moment.second = second;
            return Ok(Mask::TIME);
        }
        Err(Fault::Syntax)
    }

    /// Only version 18 looks whether a number without punctuation is one.
    fn are_digits(&self, text: &[u8]) -> bool {
        self.context.version < PgVersion::V18 || text.iter().all(u8::is_ascii_digit)
    }

    /// Two digits for the day, two for the month before them, and the rest for the year.
    fn joined_date(&mut self, text: &[u8]) -> Mask {
        let (rest, day) = text.split_at(text.len().saturating_sub(2));
        let (year, month) = rest.split_at(rest.len().saturating_sub(2));
        self.moment.day = wrapping_int(day);
        self.moment.month = wrapping_int(month);
        self.moment.year = wrapping_int(year);
        self.two_digit_year |= year.len() == 2;
        Mask::DATE
    }

    /// A time with colons.
    pub(super) fn time(&mut self, text: &[u8]) -> Result<()> {
        let time = ColonTime::read(text, false, self.context.version)?;
        self.moment.hour = i32::try_from(time.hour).map_err(|_| Fault::Field)?;
        (self.moment.minute, self.moment.second) = (time.minute, time.second);
        self.moment.micros = time.micros;
        Ok(())
    }

    /// Checks the date, as far as it was seen, and settles its year.
    pub(super) fn validate_date(&mut self, seen: Mask) -> Result<()> {
        if seen.has_any(Mask::YEAR) && !self.is_julian {
            self.settle_year()?;
        }
        let Moment { year, day_of_year, .. } = self.moment;
        if seen.has_any(Mask::DAY_OF_YEAR) {
            let first = julian_day(year, 1, 1);
            self.moment.set_julian_day(first.wrapping_add(day_of_year).wrapping_sub(1));
        }
        let Moment { year, month, day, .. } = self.moment;
        let bad_month = seen.has_any(Mask::MONTH) && !(1..=12).contains(&month);
        let bad_day = seen.has_any(Mask::DAY) && !(1..=31).contains(&day);
        let no_such_day = seen.has_all(Mask::DATE) && day > days_in_month(year, month);
        if bad_month || bad_day || no_such_day { Err(Fault::Field) } else { Ok(()) }
    }

    /// There is no year 0; years of two digits are those from 1970 to 2069.
    fn settle_year(&mut self) -> Result<()> {
        let year = self.moment.year;
        let is_short = self.two_digit_year && !self.bc;
        self.moment.year = match year {
            0..70 if is_short => year + 2000,
            70..100 if is_short => year + 1900,
            1.. if self.bc => 1 - year,
            1.. => year,
            _ => return Err(Fault::Field),
        };
        Ok(())
    }
}

fn is_word(part: &[u8]) -> bool {
    part.first().is_some_and(u8::is_ascii_alphabetic)
}

/// Cuts a date into runs of digits and of letters. The byte after a run is dropped, whatever it is.
fn split_date(mut text: &[u8]) -> Result<([&[u8]; MOST_PARTS], usize)> {
    let mut parts = [&b""[..]; MOST_PARTS];
    let mut count = 0;
    for place in &mut parts {
        if text.is_empty() {
            break;
        }
        let start = text.iter().position(u8::is_ascii_alphanumeric).ok_or(Fault::Syntax)?;
        text = text.get(start..).unwrap_or_default();
        let same: fn(&u8) -> bool = match text.first() {
            Some(first) if first.is_ascii_digit() => u8::is_ascii_digit,
            _ => u8::is_ascii_alphabetic,
        };
        let end = text.iter().position(|byte| !same(byte)).unwrap_or(text.len());
        let (part, rest) = text.split_at(end);
        *place = part;
        count += 1;
        text = rest.get(1..).unwrap_or_default();
    }
    Ok((parts, count))
}

/// A time with colons, before it is known to be one of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ColonTime {
    pub(super) hour: i64,
    pub(super) minute: i32,
    pub(super) second: i32,
    pub(super) micros: i32,
}

impl ColonTime {
    /// Reads `h:m`, `h:m:s` or `m:s.f`; two numbers are minutes and seconds where the type has no
    /// others.
    pub(super) fn read(text: &[u8], minute_to_second: bool, version: PgVersion) -> Result<Self> {
        let (hour, rest) = long(text);
        let hour = hour?;
        if version == PgVersion::V14 && i32::try_from(hour).is_err() {
            return Err(Fault::Field);
        }
        let rest = rest.strip_prefix(b":").ok_or(Fault::Syntax)?;
        let (minute, rest) = int(rest);
        let minute = minute?;
        let shifted = |micros| {
            let as_minute = i32::try_from(hour).map_err(|_| Fault::Field)?;
            Ok(Self { hour: 0, minute: as_minute, second: minute, micros })
        };
        let time = match rest {
            b"" if minute_to_second => shifted(0)?,
            b"" => Self { hour, minute, second: 0, micros: 0 },
            [b'.', ..] => shifted(fraction_micros(rest, version)?)?,
            [b':', rest @ ..] => {
                let (second, rest) = int(rest);
                let second = second?;
                let micros = match rest {
                    b"" => 0,
                    [b'.', ..] => fraction_micros(rest, version)?,
                    _ => return Err(Fault::Syntax),
                };
                Self { hour, minute, second, micros }
            }
            _ => return Err(Fault::Syntax),
        };
        time.check()
    }

    fn check(self) -> Result<Self> {
        let sound = self.hour >= 0
            && (0..60).contains(&self.minute)
            && (0..=60).contains(&self.second)
            && (0..=1_000_000).contains(&self.micros);
        if sound { Ok(self) } else { Err(Fault::Field) }
    }
}

/// A numeric offset from UTC, `+hh`, `+hhmm` or `+hh:mm:ss`, in seconds west of Greenwich.
pub(super) fn zone_offset(text: &[u8]) -> Result<i32> {
    let (sign, digits) = match text {
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return Err(Fault::Syntax),
    };
    let number = |text| {
        let (value, rest) = int(text);
        value.map(|value| (value, rest)).map_err(|_| Fault::Displacement)
    };
    let (mut hours, mut rest) = number(digits)?;
    let (mut minutes, mut seconds) = (0, 0);
    if let Some(after) = rest.strip_prefix(b":") {
        (minutes, rest) = number(after)?;
        if let Some(after) = rest.strip_prefix(b":") {
            (seconds, rest) = number(after)?;
        }
    } else if rest.is_empty() && text.len() > 3 {
        (hours, minutes) = (hours / 100, hours % 100);
    }
    let sound = (0..=MOST_ZONE_HOURS).contains(&hours)
        && (0..60).contains(&minutes)
        && (0..60).contains(&seconds);
    match rest {
        _ if !sound => Err(Fault::Displacement),
        b"" => Ok(-sign * (hours * 3600 + minutes * 60 + seconds)),
        _ => Err(Fault::Syntax),
    }
}

/// A set of parts: those that were seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Mask(u32);

impl Mask {
    pub(super) const NONE: Self = Self(0);
    pub(super) const RESERVED: Self = Self(1);
    pub(super) const MONTH: Self = Self(1 << 1);
    pub(super) const YEAR: Self = Self(1 << 2);
    pub(super) const DAY: Self = Self(1 << 3);
    pub(super) const ZONE: Self = Self(1 << 5);
    pub(super) const DAYLIGHT_ZONE: Self = Self(1 << 6);
    pub(super) const CHANGING_ZONE: Self = Self(1 << 7);
    pub(super) const MERIDIAN: Self = Self(1 << 9);
    pub(super) const HOUR: Self = Self(1 << 10);
    pub(super) const MINUTE: Self = Self(1 << 11);
    pub(super) const SECOND: Self = Self(1 << 12);
    pub(super) const MILLISECOND: Self = Self(1 << 13);
    pub(super) const MICROSECOND: Self = Self(1 << 14);
    pub(super) const DAY_OF_YEAR: Self = Self(1 << 15);
    pub(super) const WEEKDAY: Self = Self(1 << 16);
    pub(super) const ERA: Self = Self(1 << 18);
    pub(super) const WEEK: Self = Self(1 << 24);
    pub(super) const DECADE: Self = Self(1 << 25);
    pub(super) const CENTURY: Self = Self(1 << 26);
    pub(super) const MILLENNIUM: Self = Self(1 << 27);
    pub(super) const DAYLIGHT_MODIFIER: Self = Self(1 << 28);

    /// A second and its fractions.
    pub(super) const ALL_SECONDS: Self =
        Self(Self::SECOND.0 | Self::MILLISECOND.0 | Self::MICROSECOND.0);
    pub(super) const DATE: Self = Self(Self::YEAR.0 | Self::MONTH.0 | Self::DAY.0);
    pub(super) const TIME: Self = Self(Self::HOUR.0 | Self::MINUTE.0 | Self::ALL_SECONDS.0);

    /// True when all parts of `other` are in the set.
    pub(super) fn has_all(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// True when some part of `other` is in the set.
    pub(super) fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// What is in both.
    pub(super) fn within(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What is not in `other`.
    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Mask {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Mask {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
