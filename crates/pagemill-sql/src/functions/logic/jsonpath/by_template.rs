//! A text read by a template as the type that the template is of.
//!
//! Which of the types it is depends on the template alone: on whether it speaks of days, of clocks and of zones.
//!
//! Source: `parse_datetime` in `src/backend/utils/adt/formatting.c`, PostgreSQL 14 to 18.

use super::moment::{Moment, Type};
use crate::functions::datetime::templates::{Parts, Reading, Scan, Template, rounded, wrong};

/// Reads a text as the type that the template is of.
pub(super) fn read(template: &Template, text: &str, major: u32) -> Scan<Moment> {
    let reading = Reading { major, session: None, is_english: false };
    let parts = Parts::read(template, text, reading)?;
    let scope = template.scope();
    let ty = match (scope.has_date, scope.has_time, scope.has_zone) {
        (true, true, true) => Type::TimestampTz,
        (true, true, false) => Type::Timestamp,
        (true, false, true) => return Err(wrong("datetime format is zoned but not timed")),
        (true, false, false) => Type::Date,
        (false, true, true) => Type::TimeTz,
        (false, true, false) => Type::Time,
        (false, false, _) => return Err(wrong("datetime format is not dated and not timed")),
    };
    let (value, west) = match ty {
        Type::Date => (parts.date(text)?, 0),
        Type::Time => (rounded(parts.clock, parts.places())?, 0),
        Type::Timestamp => (parts.timestamp(0, "timestamp")?, 0),
        Type::TimeTz => (rounded(parts.clock, parts.places())?, offset(&parts, "timetz")?),
        Type::TimestampTz => {
            let west = offset(&parts, "timestamptz")?;
            (parts.timestamp(west, "timestamptz")?, west)
        }
    };
    Ok(Moment { ty, value, west })
}

/// Seconds west, which have to be given.
fn offset(parts: &Parts, type_name: &str) -> Scan<i32> {
    let missing = || wrong(format!("missing time zone in input string for type {type_name}"));
    parts.west.ok_or_else(missing)
}
