//! `to_timestamp` and `to_date`: texts read by a template, whatever stands between its fields.
//!
//! Names of months and days in the session's language (`TM`) are read where that is English. Abbreviations of time zones are
//! those of the server's default; where it has others they are refused.
//!
//! Source: `to_timestamp`, `to_date`, `do_to_timestamp` in `src/backend/utils/adt/formatting.c`, PostgreSQL 14 to 18.

use arrow::array::ArrayRef;
use pagemill_types::input::datetime::DateTimeContext;

use super::super::number_pictures::is_english;
use super::super::rows::{Given, Outcome, two};
use super::super::{Implementation, KernelCall};
use super::templates::{Fault, Parts, Reading, Scan, Template};
use super::zones::{knows_abbreviations, session};

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "to_timestamp" => |call, a| each(call, a, to_timestamp),
        "to_date" => |call, a| each(call, a, |parts, text, _| Ok(parts.date(text)? as i32)),
        _ => return None,
    }))
}

/// What a text was read as, as a value.
type Value<T> = fn(&Parts, &str, &DateTimeContext) -> Scan<T>;

/// Reads texts by their templates, each of which is made ready once as long as it stays the same.
fn each<T: Given>(call: &KernelCall, arguments: &[ArrayRef], value: Value<T>) -> Outcome<ArrayRef> {
    let session = session(&call.catalog)?;
    let reading = Reading {
        major: call.catalog.database().cluster().version().major(),
        session: knows_abbreviations(&call.catalog)?.then_some(session),
        is_english: is_english(call, "lc_time")?,
    };
    let mut last: Option<(String, Template)> = None;
    two(arguments, |text: &str, template: &str| {
        let known = last.take().filter(|(known, _)| known == template);
        let (_, ready) = match known {
            Some(known) => last.insert(known),
            None => last.insert((template.to_owned(), Template::plain(template, reading.major)?)),
        };
        let parts = Parts::read(ready, text, reading);
        let made = parts.and_then(|parts| value(&parts, text, session));
        made.map_err(|(Fault::Wrong(error) | Fault::Refused(error))| error)
    })
}

/// Without an offset in the text clocks are those of the session's zone.
fn to_timestamp(parts: &Parts, _: &str, session: &DateTimeContext) -> Scan<i64> {
    let west = parts.west.unwrap_or_else(|| parts.west_in(&session.session_zone));
    parts.timestamp(west, "timestamp")
}
