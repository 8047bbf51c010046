//! Texts and their values, and the way back from what this crate prints. Thousands of other texts
//! are held against servers by the tests of `pagemill-cluster`.

use proptest::prelude::*;

use super::values::{
    date_by_grammar, time_by_grammar, timestamp_by_grammar, timestamptz_by_grammar,
};
use super::*;
use crate::datetime::{write_date, write_time, write_timestamp, write_timestamptz, write_timetz};
use crate::interval::write_interval;
use crate::{ScalarWriter, printed};

/// Rules in POSIX's notation only, and one city.
struct FewZones;

impl ZoneLookup for FewZones {
    fn zone(&self, name: &str) -> Option<Arc<Zone>> {
        let upper = name.to_ascii_uppercase();
        let rule = if upper == "AMERICA/NEW_YORK" { "EST5EDT" } else { upper.as_str() };
        Zone::from_posix(rule.as_bytes()).map(Arc::new)
    }
}

/// 2024-06-15 12:34:56.789 UTC.
const START: i64 = 771_770_096_789_000;

fn context() -> DateTimeContext {
    DateTimeContext {
        version: PgVersion::V18,
        date_order: DateOrder::Mdy,
        interval_style: IntervalStyle::Postgres,
        session_zone: Arc::new(Zone::gmt()),
        zones: Arc::new(FewZones),
        transaction_start: START,
    }
}

fn payload(
    read: DateTimeReader,
    text: &[u8],
    typmod: i32,
    context: &DateTimeContext,
) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    read(text, typmod, context, &mut out).map_err(|error| error.message)?;
    Ok(out)
}

/// What this crate prints for the value of a text, or the message.
fn shown(read: DateTimeReader, write: ScalarWriter, text: &str) -> String {
    let value = payload(read, text.as_bytes(), -1, &context());
    value.map_or_else(|message| message, |value| printed(write, &value))
}

fn timestamp(text: &str) -> String {
    shown(read_timestamp, write_timestamp, text)
}

fn timestamptz(text: &str) -> String {
    shown(read_timestamptz, write_timestamptz, text)
}

fn interval(text: &str) -> String {
    shown(read_interval, write_interval, text)
}

#[test]
fn one_day_has_many_spellings() {
    for text in [
        "1999-01-08",
        "January 8, 1999",
        "1/8/1999",
        "1/8/99",
        "19990108",
        "990108",
        "1999.008",
        "J2451187",
        "1999-Jan-08",
        "Jan-08-1999",
        "08-Jan-1999",
        "08-Jan-99",
        "Jan-08-99",
        "  fri jan 8 1999",
        "99-1-8 BC",
    ] {
        let expected = if text.ends_with("BC") {
            "date/time field value out of range: \"99-1-8 BC\""
        } else {
            "1999-01-08"
        };
        assert_eq!(shown(read_date, write_date, text), expected, "{text}");
    }
}

#[test]
fn the_order_of_short_numbers_is_the_sessions() {
    let date = |order| {
        let context = DateTimeContext { date_order: order, ..context() };
        let value = payload(read_date, b"01/02/03", -1, &context).unwrap();
        printed(write_date, &value)
    };
    assert_eq!(date(DateOrder::Mdy), "2003-01-02");
    assert_eq!(date(DateOrder::Dmy), "2003-02-01");
    assert_eq!(date(DateOrder::Ymd), "2001-02-03");
}

#[test]
fn words_stand_for_moments() {
    assert_eq!(timestamp("now"), "2024-06-15 12:34:56.789");
    assert_eq!(timestamp("today"), "2024-06-15 00:00:00");
    assert_eq!(timestamp("tomorrow 04:05"), "2024-06-16 04:05:00");
    assert_eq!(timestamp("yesterday allballs"), "2024-06-14 00:00:00");
    assert_eq!(timestamp("epoch"), "1970-01-01 00:00:00");
    assert_eq!(timestamp("-infinity"), "-infinity");
    assert_eq!(timestamp("infinity"), "infinity");
    assert_eq!(shown(read_time, write_time, "now"), "12:34:56.789");
}

#[test]
fn zones_are_offsets_abbreviations_and_names() {
    for text in [
        "2024-07-01 08:00:00-04",
        "2024-07-01 08:00:00 -0400",
        "2024-07-01 08:00:00 EDT",
        "2024-07-01 08:00:00 America/New_York",
        "20240701T080000-04",
        "2024-07-01 13:00:00 FOO-1",
        "2024-07-01 12:00:00 Z",
    ] {
        assert_eq!(timestamptz(text), "2024-07-01 12:00:00+00", "{text}");
    }
    assert_eq!(
        timestamptz("2024-07-01 08:00 Mars/Phobos"),
        "time zone \"mars/phobos\" not recognized"
    );
    assert_eq!(
        timestamptz("2024-07-01 08:00+16"),
        "time zone displacement out of range: \"2024-07-01 08:00+16\""
    );
}

#[test]
fn refusals_are_the_servers() {
    assert_eq!(timestamp("2001-02-30"), "date/time field value out of range: \"2001-02-30\"");
    assert_eq!(timestamp("never"), "invalid input syntax for type timestamp: \"never\"");
    assert_eq!(timestamp("300000-01-01"), "timestamp out of range: \"300000-01-01\"");
    assert_eq!(timestamptz("x"), "invalid input syntax for type timestamp with time zone: \"x\"");
    assert_eq!(interval("1 fortnight"), "invalid input syntax for type interval: \"1 fortnight\"");
    assert_eq!(
        interval("99999999999 years"),
        "interval field value out of range: \"99999999999 years\""
    );
}

#[test]
fn intervals_add_up() {
    assert_eq!(interval("1 year 2 mons 3 days 04:05:06.789"), "1 year 2 mons 3 days 04:05:06.789");
    assert_eq!(interval("P1Y2M3DT4H5M6.789S"), "1 year 2 mons 3 days 04:05:06.789");
    assert_eq!(interval("P0001-02-03T04:05:06.789"), "1 year 2 mons 3 days 04:05:06.789");
    assert_eq!(interval("1-2 3 4:05:06"), "1 year 2 mons 3 days 04:05:06");
    assert_eq!(interval("1.5 months ago"), "-1 mons -15 days");
    assert_eq!(interval("-infinity"), "-infinity");
    assert_eq!(interval("@ 1 minute"), "00:01:00");
}

#[test]
fn modifiers_round_and_cut() {
    let context = context();
    let value = payload(read_timestamp, b"2001-02-03 04:05:06.789", 1, &context).unwrap();
    assert_eq!(printed(write_timestamp, &value), "2001-02-03 04:05:06.8");
    // interval day to hour.
    let typmod = (((1 << 3) | (1 << 10)) << 16) | 0xFFFF;
    let value = payload(read_interval, b"1 year 2 days 03:59:59", typmod, &context).unwrap();
    assert_eq!(printed(write_interval, &value), "1 year 2 days 03:00:00");
    let value = payload(read_interval, b"2 3", typmod, &context).unwrap();
    assert_eq!(printed(write_interval, &value), "2 days 03:00:00");
}

fn back(read: DateTimeReader, write: ScalarWriter, value: &[u8]) -> Result<(), TestCaseError> {
    let text = printed(write, value);
    let again = payload(read, text.as_bytes(), -1, &context());
    prop_assert_eq!(again.as_deref(), Ok(value), "{}", text);
    Ok(())
}

/// Pieces of dates and times, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[0-9]{1,8}",
        "[0-9]{1,4}[-/.:][0-9]{1,2}[-/.:][0-9]{1,2}",
        "[+-][0-9:]{1,8}",
        "[A-Za-z]{1,5}",
        proptest::sample::select(
            &[
                " ",
                "T",
                "jan",
                "BC",
                "am",
                "pm",
                "now",
                "today",
                "epoch",
                "infinity",
                "est",
                "J",
                "P",
                "day",
                "hours",
                "years",
                "ago",
                "msk",
                "america/new_york",
                "d",
                "mm",
                "y",
                ".",
                ":",
                "-",
            ][..]
        )
        .prop_map(str::to_owned),
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn what_is_printed_is_read_again(
        days in -2_451_545i32..2_145_031_949,
        micros in -211_813_488_000_000_000i64..9_223_371_331_200_000_000,
        time in 0i64..=86_400_000_000,
        west in -57_599i32..57_600,
        months: i32,
        span in -i64::MAX..,
    ) {
        back(read_date, write_date, &days.to_le_bytes())?;
        back(read_timestamp, write_timestamp, &micros.to_le_bytes())?;
        back(read_timestamptz, write_timestamptz, &micros.to_le_bytes())?;
        back(read_time, write_time, &time.to_le_bytes())?;
        back(read_timetz, write_timetz, &[&time.to_le_bytes()[..], &west.to_le_bytes()].concat())?;
        let interval = [&span.to_le_bytes()[..], &days.to_le_bytes(), &months.to_le_bytes()];
        back(read_interval, write_interval, &interval.concat())?;
    }

    #[test]
    fn any_text_is_a_value_or_an_error(
        bytes: Vec<u8>,
        text in pieces(),
        typmod: i32,
        version in proptest::sample::select(&PgVersion::ALL[..]),
    ) {
        let context = DateTimeContext { version, ..context() };
        let readers: [DateTimeReader; 6] = [
            read_date, read_time, read_timetz, read_timestamp, read_timestamptz, read_interval,
        ];
        for read in readers {
            let _ = payload(read, &bytes, typmod, &context);
            let _ = payload(read, text.as_bytes(), typmod, &context);
        }
    }

    #[test]
    fn the_short_way_and_the_grammar_agree(
        year in 0u32..10_000, month in 0u32..14, day in 0u32..33,
        hour in 0u32..26, minute in 0u32..61, second in 0u32..62,
        fraction in "(\\.[0-9]{0,7})?",
        offset in "([+-][01][0-9](:[0-6][0-9](:[0-6][0-9])?)?)?",
        change in "[0-9: .+-]", at in 0usize..200,
    ) {
        let date = format!("{year:04}-{month:02}-{day:02}");
        let time = format!("{hour:02}:{minute:02}:{second:02}{fraction}");
        let mut texts = vec![date.clone(), time.clone(), format!("{time}{offset}")];
        texts.push(format!("{date} {time}{offset}"));
        for text in &mut texts {
            if at < text.len() {
                text.replace_range(at..=at, &change);
            }
            agree(text.as_bytes(), Zone::gmt())?;
            agree(text.as_bytes(), Zone::from_posix(b"EST5EDT").unwrap())?;
        }
    }
}

/// Every reader gives what the grammar gives.
fn agree(text: &[u8], zone: Zone) -> Result<(), TestCaseError> {
    let context = DateTimeContext { session_zone: Arc::new(zone), ..context() };
    let context = &context;
    let error = |error: InputError| error.message;
    let date = date_by_grammar(text, context).map(|days| days.to_le_bytes().to_vec());
    prop_assert_eq!(payload(read_date, text, -1, context), date.map_err(error));
    let plain = timestamp_by_grammar(text, context).map(|micros| micros.to_le_bytes().to_vec());
    prop_assert_eq!(payload(read_timestamp, text, -1, context), plain.map_err(error));
    let zoned = timestamptz_by_grammar(text, context).map(|micros| micros.to_le_bytes().to_vec());
    prop_assert_eq!(payload(read_timestamptz, text, -1, context), zoned.map_err(error));
    let time = time_by_grammar(text, "time", context).map(|(time, _)| time.to_le_bytes().to_vec());
    prop_assert_eq!(payload(read_time, text, -1, context), time.map_err(error));
    let zoned = time_by_grammar(text, "time with time zone", context)
        .map(|(time, west)| [&time.to_le_bytes()[..], &west.to_le_bytes()].concat());
    prop_assert_eq!(payload(read_timetz, text, -1, context), zoned.map_err(error));
    Ok(())
}
