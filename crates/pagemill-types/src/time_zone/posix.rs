//! Zones in POSIX's notation: `EST5EDT,M3.2.0,M11.1.0`, `<+0530>-5:30`.
//!
//! Offsets count west, as POSIX has it. Daylight-saving time without a rule follows that of the
//! United States; an empty abbreviation of standard time is allowed (`5` is a zone).
//! Source: `tzparse` in `src/timezone/localtime.c`, PostgreSQL 14 to 18.

use super::{LocalTimeKind, MOST_TRANSITIONS, SECONDS_PER_DAY, Zone};

const HOUR: i64 = 3600;
/// The rule of the United States since 2007.
const DEFAULT_RULE: &[u8] = b",M3.2.0,M11.1.0";
/// The longest list of names.
const MOST_NAME_BYTES: usize = 2 * (255 + 1);
/// The first year whose transitions are laid out: 200 years before 1970.
const FIRST_YEAR: i64 = 1770;

/// A day of the year and a time of that day.
struct Change {
    day: YearDay,
    /// Seconds after midnight, negative before it.
    time: i64,
}

enum YearDay {
    /// From 1, 29 February never counted.
    Julian(i64),
    /// From 0, 29 February counted.
    Counted(i64),
    /// The `week`th `weekday` (0 is Sunday) of a month; the fifth is the last.
    Weekday { month: i64, week: i64, weekday: i64 },
}

impl Zone {
    /// Reads a zone in POSIX's notation; nothing when it is none.
    pub fn from_posix(text: &[u8]) -> Option<Self> {
        let mut cursor = Cursor { rest: text };
        let standard_name = cursor.name()?;
        if cursor.rest.is_empty() {
            return None;
        }
        let standard_west = cursor.offset()?;
        let standard = kind(standard_west, false, 0);
        let mut names = [standard_name, b"\0"].concat();
        if cursor.rest.is_empty() {
            return has_room(&names).then(|| Self::of_kinds(vec![standard], names, standard));
        }
        let daylight_start = names.len();
        let daylight_name = cursor.name().filter(|name| !name.is_empty())?;
        names.extend_from_slice(daylight_name);
        names.push(0);
        let daylight_west = match cursor.rest.first() {
            None | Some(b',' | b';') => standard_west - HOUR,
            Some(_) => cursor.offset()?,
        };
        if cursor.rest.is_empty() {
            cursor.rest = DEFAULT_RULE;
        }
        let rule = cursor.rule()?;
        let daylight = kind(daylight_west, true, daylight_start);
        let mut zone = Self::of_kinds(vec![standard, daylight], names, standard);
        zone.lay_out(&rule, standard_west, daylight_west);
        has_room(&zone.names).then_some(zone)
    }

    /// Writes down the transitions of all years, as many as there is room for.
    fn lay_out(&mut self, (start, end): &(Change, Change), standard_west: i64, daylight_west: i64) {
        let mut january = SECONDS_PER_DAY * days_to(FIRST_YEAR);
        let mut last_year = FIRST_YEAR + 400;
        let mut year = FIRST_YEAR;
        while year <= last_year {
            let year_len = SECONDS_PER_DAY * (365 + i64::from(is_leap(year)));
            let starts = start.seconds_into(year) + standard_west;
            let ends = end.seconds_into(year) + daylight_west;
            let reversed = ends < starts;
            let is_short = ends - starts < year_len + (standard_west - daylight_west);
            if reversed || (starts < ends && is_short) {
                if self.transitions.len() + 2 > MOST_TRANSITIONS {
                    break;
                }
                let (early, late) = (starts.min(ends), starts.max(ends));
                self.transitions.push((january + early, u8::from(!reversed)));
                self.transitions.push((january + late, u8::from(reversed)));
                last_year = year + 400;
            }
            january += year_len;
            year += 1;
        }
        if self.transitions.is_empty() {
            // Daylight-saving time all year round.
            self.kinds.remove(0);
            self.first = self.first_kind();
        } else {
            let repeats = year - FIRST_YEAR > 400;
            (self.repeats_before, self.repeats_after) = (repeats, repeats);
        }
    }
}

fn kind(west: i64, is_daylight: bool, name: usize) -> LocalTimeKind {
    // An offset has at most 167 hours.
    LocalTimeKind { east: -west as i32, is_daylight, name }
}

fn has_room(names: &[u8]) -> bool {
    names.len() <= MOST_NAME_BYTES
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days from 1970-01-01 to the first of January of a year from 1 on.
fn days_to(year: i64) -> i64 {
    let before = year - 1;
    before * 365 + before / 4 - before / 100 + before / 400 - 719_162
}

const MONTH_DAYS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

impl Change {
    /// Seconds from the begin of the year, by the clock that is about to change.
    fn seconds_into(&self, year: i64) -> i64 {
        let leap = is_leap(year);
        let day = match self.day {
            YearDay::Julian(day) => day - 1 + i64::from(leap && day >= 60),
            YearDay::Counted(day) => day,
            YearDay::Weekday { month, week, weekday } => {
                let len = |month: i64| {
                    let days = usize::try_from(month - 1).ok().and_then(|n| MONTH_DAYS.get(n));
                    days.copied().unwrap_or(31) + i64::from(leap && month == 2)
                };
                let before = (1..month).map(len).sum::<i64>();
                // 1970-01-01 was a Thursday.
                let first_weekday = (days_to(year) + before + 4).rem_euclid(7);
                let first = (weekday - first_weekday).rem_euclid(7);
                let weeks = (week - 1).min((len(month) - 1 - first) / 7);
                before + first + weeks * 7
            }
        };
        day * SECONDS_PER_DAY + self.time
    }
}

/// What is left to read of a zone.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at_checked(len).unwrap_or((self.rest, b""));
        self.rest = rest;
        taken
    }

    fn take_byte(&mut self, byte: u8) -> Option<()> {
        self.rest = self.rest.strip_prefix(&[byte])?;
        Some(())
    }

    /// An abbreviation: in angle brackets, or up to what cannot be in one.
    fn name(&mut self) -> Option<&'a [u8]> {
        if self.take_byte(b'<').is_some() {
            let end = self.rest.iter().position(|&byte| byte == b'>')?;
            let name = self.take(end);
            self.take(1);
            return Some(name);
        }
        let ends = |byte: &u8| byte.is_ascii_digit() || matches!(byte, 0 | b',' | b'-' | b'+');
        let end = self.rest.iter().position(ends).unwrap_or(self.rest.len());
        Some(self.take(end))
    }

    fn number(&mut self, least: i64, most: i64) -> Option<i64> {
        let len = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = self.take(len);
        let add = |number: i64, &digit: &u8| {
            Some(number * 10 + i64::from(digit - b'0')).filter(|number| *number <= most)
        };
        let number = digits.iter().try_fold(0, add)?;
        (len > 0 && number >= least).then_some(number)
    }

    /// `hh[:mm[:ss]]` in seconds; up to a week, which rules need.
    fn seconds(&mut self) -> Option<i64> {
        let mut seconds = self.number(0, 24 * 7 - 1)? * HOUR;
        if self.take_byte(b':').is_some() {
            seconds += self.number(0, 59)? * 60;
            if self.take_byte(b':').is_some() {
                seconds += self.number(0, 60)?;
            }
        }
        Some(seconds)
    }

    fn offset(&mut self) -> Option<i64> {
        if self.take_byte(b'-').is_some() {
            return self.seconds().map(|seconds| -seconds);
        }
        let _ = self.take_byte(b'+');
        self.seconds()
    }

    /// When daylight-saving time begins and ends, to the end of the text.
    fn rule(&mut self) -> Option<(Change, Change)> {
        if !matches!(self.take(1), b"," | b";") {
            return None;
        }
        let start = self.change()?;
        self.take_byte(b',')?;
        let end = self.change()?;
        self.rest.is_empty().then_some((start, end))
    }

    fn change(&mut self) -> Option<Change> {
        let day = match self.rest.first()? {
            b'J' => {
                self.take(1);
                YearDay::Julian(self.number(1, 365)?)
            }
            b'M' => {
                self.take(1);
                let month = self.number(1, 12)?;
                self.take_byte(b'.')?;
                let week = self.number(1, 5)?;
                self.take_byte(b'.')?;
                YearDay::Weekday { month, week, weekday: self.number(0, 6)? }
            }
            _ => YearDay::Counted(self.number(0, 365)?),
        };
        let time = match self.take_byte(b'/') {
            Some(()) => self.offset()?,
            None => 2 * HOUR,
        };
        Some(Change { day, time })
    }
}
