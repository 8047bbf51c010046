//! `hstore` as an object of JSON.
//!
//! Values are strings, or loosely: numbers where their text is one in JSON, true and false where it is `t` or `f`.
//!
//! Invariant: a `jsonb` has the bytes that `jsonb_in` makes of the same object's text; for it the server's version and encoding do not
//! matter, as nothing but control characters is escaped.
//! Source: `hstore_to_json`, `hstore_to_json_loose`, `hstore_to_jsonb`, `hstore_to_jsonb_loose` in `contrib/hstore/hstore_io.c`,
//! `IsValidJsonNumber` in `src/common/jsonapi.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use pagemill_format::error::Result;
use pagemill_format::ids::PgVersion;

use super::{Argument, CallError, Called, Value, pairs, payload_at};
use crate::extension::call::Letters;
use crate::input::InputError;
use crate::input::datetime::{DateOrder, DateTimeContext, IntervalStyle, ZoneLookup};
use crate::input::jsonb::read_jsonb;
use crate::input::tree::InputContext;
use crate::json::write_json_string;
use crate::time_zone::Zone;

const UTF8: i32 = 6;

/// What values become in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonValues {
    /// Strings, whatever they say.
    Strings,
    /// Numbers and truths where they look so.
    Loose,
}

/// Appends the pairs as an object of JSON.
///
/// # Errors
/// As [`pairs`].
pub fn write_json(payload: &[u8], values: JsonValues, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'{');
    for (number, pair) in pairs(payload)?.enumerate() {
        let (key, value) = pair?;
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        write_json_string(key, out);
        out.extend_from_slice(b": ");
        match value {
            None => out.extend_from_slice(b"null"),
            Some(b"t") if values == JsonValues::Loose => out.extend_from_slice(b"true"),
            Some(b"f") if values == JsonValues::Loose => out.extend_from_slice(b"false"),
            Some(value) if values == JsonValues::Loose && is_number(value) => {
                out.extend_from_slice(value);
            }
            Some(value) => write_json_string(value, out),
        }
    }
    out.push(b'}');
    Ok(())
}

/// True for the text of a number in JSON.
fn is_number(text: &[u8]) -> bool {
    let (whole, rest) = digits(text.strip_prefix(b"-").unwrap_or(text));
    if whole.is_empty() || whole.len() > 1 && whole.starts_with(b"0") {
        return false;
    }
    let rest = match rest.strip_prefix(b".").map(digits) {
        None => rest,
        Some(([], _)) => return false,
        Some((_, rest)) => rest,
    };
    match rest {
        [] => true,
        [b'e' | b'E', b'+' | b'-', exponent @ ..] | [b'e' | b'E', exponent @ ..] => {
            !exponent.is_empty() && exponent.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

/// The digits in front, and the rest.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.split_at_checked(count).unwrap_or_default()
}

pub(super) fn to_json(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    json(arguments, JsonValues::Strings)
}

pub(super) fn to_json_loose(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    json(arguments, JsonValues::Loose)
}

pub(super) fn to_jsonb(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    jsonb(arguments, JsonValues::Strings)
}

pub(super) fn to_jsonb_loose(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    jsonb(arguments, JsonValues::Loose)
}

fn json(arguments: &[Argument<'_>], values: JsonValues) -> Called {
    let mut text = Vec::new();
    write_json(payload_at(arguments, 0)?, values, &mut text)?;
    Ok(Value::Payload(text))
}

fn jsonb(arguments: &[Argument<'_>], values: JsonValues) -> Called {
    let (mut text, mut out) = (Vec::new(), Vec::new());
    write_json(payload_at(arguments, 0)?, values, &mut text)?;
    read_jsonb(&text, &context(), &mut out).map_err(no_jsonb)?;
    Ok(Value::Payload(out))
}

#[cold]
fn no_jsonb(error: InputError) -> CallError {
    let is_number = error.message.contains("overflows");
    CallError::new(if is_number { "22003" } else { "54000" }, error.message)
}

struct NoZones;

impl ZoneLookup for NoZones {
    fn zone(&self, _: &str) -> Option<Arc<Zone>> {
        None
    }
}

/// A session: of what it says, objects of strings and numbers need nothing.
fn context() -> InputContext {
    let version = PgVersion::V18;
    let date_time = DateTimeContext {
        version,
        date_order: DateOrder::Mdy,
        interval_style: IntervalStyle::Postgres,
        session_zone: Arc::new(Zone::gmt()),
        zones: Arc::new(NoZones),
        transaction_start: 0,
    };
    InputContext { version, encoding: UTF8, unicode_spaces: true, date_time }
}
