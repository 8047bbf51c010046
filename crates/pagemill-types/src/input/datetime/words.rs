//! The words of dates and times, and those of intervals.
//!
//! Only the first ten letters of a word count: `microseconds` is known as `microsecon`, and so is
//! `microsecondary`. Words are in small letters and sorted.
//! Facts: `datetktbl` and `deltatktbl` in `src/backend/utils/adt/datetime.c`, PostgreSQL 14 to 18
//! (`+infinity` from 16 on).

use pagemill_format::ids::PgVersion;

use DateWord::{
    DaylightModifier, Era, Ignored, IsoTime, Meridian, Month, Reserved as Word, Unit as Label,
    Weekday,
};

/// Letters of a word that count.
const SIGNIFICANT: usize = 10;

/// A word in a date or time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DateWord {
    /// A date or time by itself.
    Reserved(Reserved),
    /// A month, from 1.
    Month(i32),
    /// A word that says nothing.
    Ignored,
    /// `am` or `pm`.
    Meridian { pm: bool },
    /// `ad` or `bc`.
    Era { bc: bool },
    /// What the number after it is.
    Unit(Unit),
    /// `dst`, which adds an hour to the zone before it.
    DaylightModifier,
    /// A day of the week, which is not checked.
    Weekday,
    /// The `T` between date and time.
    IsoTime,
}

/// A word that is a date or time by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reserved {
    /// `-infinity`.
    Early,
    /// `infinity`.
    Late,
    /// 1970-01-01 00:00:00.
    Epoch,
    /// The begin of the transaction.
    Now,
    /// Midnight of the day before.
    Yesterday,
    /// Midnight of the transaction's day.
    Today,
    /// Midnight of the day after.
    Tomorrow,
    /// 00:00:00 UTC.
    Allballs,
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
    /// A Julian day.
    Julian,
    /// A time of day without colons.
    Time,
    /// A unit that no number can have here.
    Other,
}

/// A word in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IntervalWord {
    /// What the number before it counts.
    Unit(Unit),
    /// Turns round the sign of all.
    Ago,
}

/// The meaning of a word in a date or time.
pub(super) fn date_word(word: &[u8], version: PgVersion) -> Option<DateWord> {
    let is_newer = word == b"+infinity" && version < PgVersion::V16;
    find(&DATE_WORDS, word).filter(|_| !is_newer)
}

/// The meaning of a word in an interval.
pub(super) fn interval_word(word: &[u8]) -> Option<IntervalWord> {
    find(&INTERVAL_WORDS, word)
}

fn find<T: Copy>(words: &[(&str, T)], word: &[u8]) -> Option<T> {
    let word = word.get(..SIGNIFICANT).unwrap_or(word);
    let found = words.binary_search_by(|(known, _)| known.as_bytes().cmp(word));
    found.ok().and_then(|place| words.get(place)).map(|(_, meaning)| *meaning)
}

static DATE_WORDS: [(&str, DateWord); 72] = [
    ("+infinity", Word(Reserved::Late)),
    ("-infinity", Word(Reserved::Early)),
    ("ad", Era { bc: false }),
    ("allballs", Word(Reserved::Allballs)),
    ("am", Meridian { pm: false }),
    ("apr", Month(4)),
    ("april", Month(4)),
    ("at", Ignored),
    ("aug", Month(8)),
    ("august", Month(8)),
    ("bc", Era { bc: true }),
    ("d", Label(Unit::Day)),
    ("dec", Month(12)),
    ("december", Month(12)),
    ("dow", Label(Unit::Other)),
    ("doy", Label(Unit::Other)),
    ("dst", DaylightModifier),
    ("epoch", Word(Reserved::Epoch)),
    ("feb", Month(2)),
    ("february", Month(2)),
    ("fri", Weekday),
    ("friday", Weekday),
    ("h", Label(Unit::Hour)),
    ("infinity", Word(Reserved::Late)),
    ("isodow", Label(Unit::Other)),
    ("isoyear", Label(Unit::Other)),
    ("j", Label(Unit::Julian)),
    ("jan", Month(1)),
    ("january", Month(1)),
    ("jd", Label(Unit::Julian)),
    ("jul", Month(7)),
    ("julian", Label(Unit::Julian)),
    ("july", Month(7)),
    ("jun", Month(6)),
    ("june", Month(6)),
    ("m", Label(Unit::Month)),
    ("mar", Month(3)),
    ("march", Month(3)),
    ("may", Month(5)),
    ("mm", Label(Unit::Minute)),
    ("mon", Weekday),
    ("monday", Weekday),
    ("nov", Month(11)),
    ("november", Month(11)),
    ("now", Word(Reserved::Now)),
    ("oct", Month(10)),
    ("october", Month(10)),
    ("on", Ignored),
    ("pm", Meridian { pm: true }),
    ("s", Label(Unit::Second)),
    ("sat", Weekday),
    ("saturday", Weekday),
    ("sep", Month(9)),
    ("sept", Month(9)),
    ("september", Month(9)),
    ("sun", Weekday),
    ("sunday", Weekday),
    ("t", IsoTime),
    ("thu", Weekday),
    ("thur", Weekday),
    ("thurs", Weekday),
    ("thursday", Weekday),
    ("today", Word(Reserved::Today)),
    ("tomorrow", Word(Reserved::Tomorrow)),
    ("tue", Weekday),
    ("tues", Weekday),
    ("tuesday", Weekday),
    ("wed", Weekday),
    ("wednesday", Weekday),
    ("weds", Weekday),
    ("y", Label(Unit::Year)),
    ("yesterday", Word(Reserved::Yesterday)),
];

static INTERVAL_WORDS: [(&str, IntervalWord); 58] = [
    ("ago", IntervalWord::Ago),
    ("c", IntervalWord::Unit(Unit::Century)),
    ("cent", IntervalWord::Unit(Unit::Century)),
    ("centuries", IntervalWord::Unit(Unit::Century)),
    ("century", IntervalWord::Unit(Unit::Century)),
    ("d", IntervalWord::Unit(Unit::Day)),
    ("day", IntervalWord::Unit(Unit::Day)),
    ("days", IntervalWord::Unit(Unit::Day)),
    ("dec", IntervalWord::Unit(Unit::Decade)),
    ("decade", IntervalWord::Unit(Unit::Decade)),
    ("decades", IntervalWord::Unit(Unit::Decade)),
    ("decs", IntervalWord::Unit(Unit::Decade)),
    ("h", IntervalWord::Unit(Unit::Hour)),
    ("hour", IntervalWord::Unit(Unit::Hour)),
    ("hours", IntervalWord::Unit(Unit::Hour)),
    ("hr", IntervalWord::Unit(Unit::Hour)),
    ("hrs", IntervalWord::Unit(Unit::Hour)),
    ("m", IntervalWord::Unit(Unit::Minute)),
    ("microsecon", IntervalWord::Unit(Unit::Microsecond)),
    ("mil", IntervalWord::Unit(Unit::Millennium)),
    ("millennia", IntervalWord::Unit(Unit::Millennium)),
    ("millennium", IntervalWord::Unit(Unit::Millennium)),
    ("millisecon", IntervalWord::Unit(Unit::Millisecond)),
    ("mils", IntervalWord::Unit(Unit::Millennium)),
    ("min", IntervalWord::Unit(Unit::Minute)),
    ("mins", IntervalWord::Unit(Unit::Minute)),
    ("minute", IntervalWord::Unit(Unit::Minute)),
    ("minutes", IntervalWord::Unit(Unit::Minute)),
    ("mon", IntervalWord::Unit(Unit::Month)),
    ("mons", IntervalWord::Unit(Unit::Month)),
    ("month", IntervalWord::Unit(Unit::Month)),
    ("months", IntervalWord::Unit(Unit::Month)),
    ("ms", IntervalWord::Unit(Unit::Millisecond)),
    ("msec", IntervalWord::Unit(Unit::Millisecond)),
    ("msecond", IntervalWord::Unit(Unit::Millisecond)),
    ("mseconds", IntervalWord::Unit(Unit::Millisecond)),
    ("msecs", IntervalWord::Unit(Unit::Millisecond)),
    ("qtr", IntervalWord::Unit(Unit::Other)),
    ("quarter", IntervalWord::Unit(Unit::Other)),
    ("s", IntervalWord::Unit(Unit::Second)),
    ("sec", IntervalWord::Unit(Unit::Second)),
    ("second", IntervalWord::Unit(Unit::Second)),
    ("seconds", IntervalWord::Unit(Unit::Second)),
    ("secs", IntervalWord::Unit(Unit::Second)),
    ("timezone", IntervalWord::Unit(Unit::Other)),
    ("us", IntervalWord::Unit(Unit::Microsecond)),
    ("usec", IntervalWord::Unit(Unit::Microsecond)),
    ("usecond", IntervalWord::Unit(Unit::Microsecond)),
    ("useconds", IntervalWord::Unit(Unit::Microsecond)),
    ("usecs", IntervalWord::Unit(Unit::Microsecond)),
    ("w", IntervalWord::Unit(Unit::Week)),
    ("week", IntervalWord::Unit(Unit::Week)),
    ("weeks", IntervalWord::Unit(Unit::Week)),
    ("y", IntervalWord::Unit(Unit::Year)),
    ("year", IntervalWord::Unit(Unit::Year)),
    ("years", IntervalWord::Unit(Unit::Year)),
    ("yr", IntervalWord::Unit(Unit::Year)),
    ("yrs", IntervalWord::Unit(Unit::Year)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_sorted_so_that_each_is_found() {
        assert!(DATE_WORDS.is_sorted_by(|(one, _), (other, _)| one < other));
        assert!(INTERVAL_WORDS.is_sorted_by(|(one, _), (other, _)| one < other));
    }

    #[test]
    fn ten_letters_of_a_word_count() {
        assert_eq!(interval_word(b"microseconds"), Some(IntervalWord::Unit(Unit::Microsecond)));
        assert_eq!(interval_word(b"microsecondary"), interval_word(b"microsecond"));
        assert_eq!(interval_word(b"hoursx"), None);
        assert_eq!(date_word(b"september", PgVersion::V14), Some(Month(9)));
        assert_eq!(date_word(b"-infinity", PgVersion::V14), Some(Word(Reserved::Early)));
        assert_eq!(date_word(b"+infinity", PgVersion::V15), None);
    }
}
