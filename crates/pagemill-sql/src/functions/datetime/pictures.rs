//! `to_char` of timestamps: a picture of fields, marks and quoted texts.
//!
//! Names of months and days are English. `TM` before one asks for those of `lc_time`, and is refused where that is not English.
//!
//! Source: `DCH_keywords`, `parse_format`, `DCH_to_char` in `src/backend/utils/adt/formatting.c`, PostgreSQL 14 to 18.

use arrow::array::ArrayRef;

use super::super::KernelCall;
use super::super::keys::strings;
use super::super::number_pictures::is_english;
use super::super::rows::{Outcome, Plain, two};
use super::calendar::{EPOCH_JULIAN_DAY, HOUR, MINUTE, Parts, SECOND, first_monday, is_infinite};
use crate::error::StatementError;

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "timestamp_to_char" => |a| two(a, |t: i64, picture: &str| to_char(t, picture, NOWHERE)),
        "timestamptz_to_char" => |a| two(a, |t: i64, picture: &str| to_char(t, picture, UTC)),
        _ => return None,
    })
}

/// Fields in capitals, no one before a longer one that begins with it.
const FIELDS: [&str; 53] = [
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "D", "FF1", "FF2",
    "FF3", "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY",
    "IY", "I", "J", "MI", "MM", "MONTH", "MON", "MS", "OF", "P.M.", "PM", "Q", "RM", "SSSSS",
    "SSSS", "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY",
];

/// How letters of a field were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Capitals,
    Initial,
    Small,
}

/// The field that a picture begins with.
fn field(picture: &str) -> Option<(&'static str, Case, usize)> {
    let is_it =
        |name: &&&str| picture.get(..name.len()).is_some_and(|p| p.eq_ignore_ascii_case(name));
    let mut found = FIELDS.iter().chain(&["Y"]).filter(is_it);
    found.find_map(|name| {
        let written = &picture[..name.len()];
        let small = written.to_ascii_lowercase();
        let initial = format!("{}{}", &name[..1], &small[1..]);
        let case = match written {
            capitals if capitals == *name => Case::Capitals,
            all_small if all_small == small => Case::Small,
            // Names also have a form with one capital.
            mixed if mixed == initial && matches!(*name, "DAY" | "DY" | "MONTH" | "MON") => {
                Case::Initial
            }
            _ => return None,
        };
        Some((*name, case, name.len()))
    })
}

/// What clocks show, by its abbreviation.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedOffset<'z> {
    pub(super) name: &'z str,
    /// Seconds east of Greenwich.
    pub(super) east: i32,
}

const UTC: NamedOffset<'_> = NamedOffset { name: "UTC", east: 0 };
/// A timestamp without time zone.
const NOWHERE: NamedOffset<'_> = NamedOffset { name: "", east: 0 };

/// NULL of an empty picture, or an infinite timestamp.
pub(super) fn to_char(
    timestamp: i64,
    picture: &str,
    zone: NamedOffset<'_>,
) -> Outcome<Option<String>> {
    if picture.is_empty() || is_infinite(timestamp) {
        return Ok(None);
    }
    let moment = Moment { parts: Parts::of(timestamp), zone };
    pictured(picture, |name, case, is_short| moment.write(name, case, is_short)).map(Some)
}

/// Refuses pictures that ask for names in a language that is not known here.
pub(super) fn refuse_foreign_names(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<()> {
    let asks = |picture: &str| {
        let mut marks = picture.match_indices("TM").chain(picture.match_indices("tm"));
        marks.any(|(at, mark)| {
            let named = field(&picture[at + mark.len()..]);
            named.is_some_and(|(name, ..)| matches!(name, "MONTH" | "MON" | "DAY" | "DY"))
        })
    };
    let [_, pictures] = arguments else { return Ok(()) };
    match strings(pictures).iter().flatten().any(asks) && !is_english(call, "lc_time")? {
        true => Err(StatementError::unsupported("to_char with names of a locale (TM)")),
        false => Ok(()),
    }
}

/// A picture, of whose fields `field_text` gives the texts, and whether they are numbers.
pub(super) fn pictured(
    picture: &str,
    field_text: impl Fn(&str, Case, bool) -> Outcome<(String, bool)>,
) -> Outcome<String> {
    let (mut out, mut rest) = (String::new(), picture);
    while !rest.is_empty() {
        let behind_prefix =
            |prefixes: [&str; 2]| prefixes.into_iter().find_map(|prefix| rest.strip_prefix(prefix));
        let (filled, translated) = (behind_prefix(["FM", "fm"]), behind_prefix(["TM", "tm"]));
        rest = filled.or(translated).unwrap_or(rest); // default: there is no prefix
        if let Some((name, case, length)) = field(rest) {
            rest = &rest[length..];
            // Names of a locale have no common length to be filled up to.
            let is_name = matches!(name, "MONTH" | "MON" | "DAY" | "DY");
            let is_short = filled.is_some() || translated.is_some() && is_name;
            let written = field_text(name, case, is_short)?;
            rest = ordinal(rest, &mut out, written);
            continue;
        }
        rest = literal(rest, &mut out);
    }
    Ok(out)
}

/// Appends a field, and what `TH` or `th` behind it makes of a number. `SP` says nothing.
fn ordinal<'p>(rest: &'p str, out: &mut String, (text, is_number): (String, bool)) -> &'p str {
    out.push_str(&text);
    let ending = match rest.get(..2) {
        Some("TH") => ["TH", "ST", "ND", "RD"],
        Some("th") => ["th", "st", "nd", "rd"],
        Some("SP") => return &rest[2..],
        _ => return rest,
    };
    if is_number {
        let digits = text.as_bytes();
        let is_teen = digits.len() > 1 && digits[digits.len() - 2] == b'1';
        let last = digits.last().map_or(0, |digit| usize::from(digit - b'0'));
        out.push_str(ending[if is_teen || last > 3 { 0 } else { last }]);
    }
    &rest[2..]
}

/// A text in quotes, or one character. Gives what is behind it.
fn literal<'p>(picture: &'p str, out: &mut String) -> &'p str {
    let Some(quoted) = picture.strip_prefix('"') else {
        let picture = match picture.starts_with("\\\"") {
            true => &picture[1..],
            false => picture,
        };
        let mut rest = picture.chars();
        out.extend(rest.next());
        return rest.as_str();
    };
    let mut rest = quoted.chars();
    while let Some(character) = rest.next() {
        match character {
            '"' => break,
            '\\' if !rest.as_str().is_empty() => out.extend(rest.next()),
            other => out.push(other),
        }
    }
    rest.as_str()
}

/// What is pictured.
struct Moment<'z> {
    parts: Parts,
    zone: NamedOffset<'z>,
}

pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(crate) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
pub(super) const ROMAN: [&str; 12] =
    ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

pub(super) fn cased(text: &str, case: Case) -> String {
    match case {
        Case::Capitals => text.to_ascii_uppercase(),
        Case::Initial => text.to_owned(),
        Case::Small => text.to_ascii_lowercase(),
    }
}

impl Moment<'_> {
    /// The text of a field, and whether it is a number.
    fn write(&self, name: &str, case: Case, is_short: bool) -> Outcome<(String, bool)> {
        if let Some(text) = self.word(name, case, is_short)? {
            return Ok((text, false));
        }
        if name == "Y,YYY" {
            let year = year_of_era(self.parts.date.year);
            return Ok((format!("{},{:03}", year / 1000, year % 1000), true));
        }
        let (number, width) = self.clock(name).unwrap_or_else(|| self.calendar(name));
        let is_fraction = name.starts_with("FF") || matches!(name, "MS" | "US");
        let width = if is_short && !is_fraction { 0 } else { width };
        Ok((format!("{number:0width$}"), true))
    }

    fn word(&self, name: &str, case: Case, is_short: bool) -> Outcome<Option<String>> {
        let Parts { date, clock } = self.parts;
        let padded = |text: &str, width: usize| {
            let text = cased(text, case);
            if is_short { text } else { format!("{text:width$}") }
        };
        let (month, day) = (MONTHS[(date.month - 1) as usize], DAYS[date.day_of_week() as usize]);
        let is_late = clock >= 12 * HOUR;
        let east = self.zone.east.abs();
        let sign = if self.zone.east < 0 { '-' } else { '+' };
        let (hours, minutes) = (east / 3600, east % 3600 / 60);
        let is_small_zone = case == Case::Small && matches!(name, "OF" | "TZH" | "TZM");
        Ok(Some(match name {
            "A.M." | "P.M." => cased(if is_late { "P.M." } else { "A.M." }, case),
            "AM" | "PM" => cased(if is_late { "PM" } else { "AM" }, case),
            "A.D." | "B.C." => cased(if date.year <= 0 { "B.C." } else { "A.D." }, case),
            "AD" | "BC" => cased(if date.year <= 0 { "BC" } else { "AD" }, case),
            "MONTH" => padded(month, 9),
            "MON" => cased(&month[..3], case),
            "DAY" => padded(day, 9),
            "DY" => cased(&day[..3], case),
            "RM" => padded(ROMAN[(date.month - 1) as usize], 4),
            "TZ" if case == Case::Small => self.zone.name.to_ascii_lowercase(),
            "TZ" => self.zone.name.to_owned(),
            // Small ones are older than others.
            _ if is_small_zone => {
                return Err(StatementError::unsupported("to_char with small \"of\" or \"tz\""));
            }
            "TZH" => format!("{sign}{hours:02}"),
            "TZM" => format!("{minutes:02}"),
            "OF" => {
                let width = if is_short { 0 } else { 2 };
                let behind =
                    if east % 3600 == 0 { String::new() } else { format!(":{minutes:02}") };
                format!("{sign}{hours:0width$}{behind}")
            }
            "FX" => String::new(),
            _ => return Ok(None),
        }))
    }

    /// A number and its width.
    fn clock(&self, name: &str) -> Option<(i64, usize)> {
        let clock = self.parts.clock;
        let (hour, micros) = (clock / HOUR, clock % SECOND);
        Some(match name {
            "HH" | "HH12" => ((hour + 11) % 12 + 1, 2),
            "HH24" => (hour, 2),
            "MI" => (clock / MINUTE % 60, 2),
            "SS" => (clock / SECOND % 60, 2),
            "FF1" => (micros / 100_000, 1),
            "FF2" => (micros / 10_000, 2),
            "FF3" | "MS" => (micros / 1000, 3),
            "FF4" => (micros / 100, 4),
            "FF5" => (micros / 10, 5),
            "FF6" | "US" => (micros, 6),
            "SSSS" | "SSSSS" => (clock / SECOND, 0),
            _ => return None,
        })
    }

    fn calendar(&self, name: &str) -> (i64, usize) {
        let date = self.parts.date;
        let (iso_year, iso_week) = date.iso_week();
        let (year, iso_year_of_era) = (year_of_era(date.year), year_of_era(iso_year));
        match name {
            "MM" => (date.month, 2),
            "DD" => (date.day, 2),
            "DDD" => (date.day_of_year(), 3),
            "IDDD" => (date.days() - first_monday(iso_year) + 1, 3),
            "D" => (date.day_of_week() + 1, 0),
            "ID" => ((date.day_of_week() + 6) % 7 + 1, 0),
            "WW" => ((date.day_of_year() - 1) / 7 + 1, 2),
            "IW" => (iso_week, 2),
            "W" => ((date.day - 1) / 7 + 1, 0),
            "Q" => ((date.month - 1) / 3 + 1, 0),
            "J" => (date.days() + EPOCH_JULIAN_DAY, 0),
            "CC" if date.year > 0 => ((date.year - 1) / 100 + 1, 2),
            // The sign has a place of its own.
            "CC" => (date.year / 100 - 1, 3),
            "YYYY" => (year, 4),
            "IYYY" => (iso_year_of_era, 4),
            "YYY" => (year % 1000, 3),
            "IYY" => (iso_year_of_era % 1000, 3),
            "YY" => (year % 100, 2),
            "IY" => (iso_year_of_era % 100, 2),
            "Y" => (year % 10, 0),
            _ => (iso_year_of_era % 10, 0),
        }
    }
}

/// Years before 1 are counted as years BC.
fn year_of_era(year: i64) -> i64 {
    if year > 0 { year } else { 1 - year }
}
