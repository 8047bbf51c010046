//! jsonb within another, together with another, without parts, and over lines: `@>`, `<@`, `||`, `-`, `jsonb_pretty`.
//!
//! A jsonb is worked on by way of its text, which is one for each value but for the zeros behind the point of a number.
//!
//! Source: `JsonbDeepContains` in `src/backend/utils/adt/jsonb_util.c`, `jsonb_concat`, `jsonb_delete`, `jsonb_delete_idx` in
//! `jsonfuncs.c`, `JsonbToCStringIndent` in `jsonb.c`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef};
use arrow::datatypes::Int32Type;

use super::super::integers::numbers;
use super::super::keys::strings;
use super::super::rows::{Made, Outcome};
use super::super::{Implementation, KernelCall};
use super::documents::{Kind, elements, members, trimmed, unescaped};
use super::members::{document, jsonb_payload};
use crate::error::{SqlState, StatementError};

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "jsonb_contains" => |_, a| truths(a, contains),
        "jsonb_contained" => |_, a| truths(a, |a, b| contains(b, a)),
        "jsonb_concat" => {
            |call, a| changed(call, a, |text, row| Ok(concatenated(text, &document(&a[1], row)?.0)))
        }
        "jsonb_delete" => {
            |call, a| changed(call, a, |text, row| without_name(text, strings(&a[1]).value(row)))
        }
        "jsonb_delete_idx" => |call, a| {
            changed(call, a, |text, row| {
                without_place(text, numbers::<Int32Type>(&a[1]).value(row))
            })
        },
        "jsonb_pretty" => |_, a| {
            let pretty = |text: &str, _| {
                let mut out = String::new();
                write_pretty(text, 0, &mut out);
                Ok(out)
            };
            Made::column(each(a, pretty)?)
        },
        _ => return None,
    }))
}

/// What comes of the first document of each row.
pub(super) fn each<G>(
    arguments: &[ArrayRef],
    of: impl Fn(&str, usize) -> Outcome<G>,
) -> Outcome<Vec<Option<G>>> {
    let one = |row: usize| {
        if arguments.iter().any(|argument| argument.is_null(row)) {
            return Ok(None);
        }
        of(&document(&arguments[0], row)?.0, row).map(Some)
    };
    (0..arguments[0].len()).map(one).collect()
}

fn truths(arguments: &[ArrayRef], of: fn(&str, &str) -> Outcome<bool>) -> Outcome<ArrayRef> {
    Made::column(each(arguments, |text, row| of(text, &document(&arguments[1], row)?.0))?)
}

pub(super) fn changed(
    call: &KernelCall,
    arguments: &[ArrayRef],
    of: impl Fn(&str, usize) -> Outcome<String>,
) -> Outcome<ArrayRef> {
    let of = |text: &str, row| of(text, row).and_then(|text| jsonb_payload(call, &text));
    Made::column(each(arguments, of)?)
}

fn is_container(text: &str) -> bool {
    matches!(Kind::of(text), Kind::Object | Kind::Array)
}

/// Numbers are the same whatever zeros stand at their end.
fn same_scalar(a: &str, b: &str) -> bool {
    match (Kind::of(a), Kind::of(b)) {
        (Kind::Number, Kind::Number) => shortened(trimmed(a)) == shortened(trimmed(b)),
        (x, y) => x == y && trimmed(a) == trimmed(b),
    }
}

/// Texts that are the same for equal documents: numbers without zeros at their end.
pub(in super::super) fn equality_key(_: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let key = |text: &str, _| {
        let mut out = String::new();
        write_key(text, &mut out);
        Ok(out)
    };
    Made::column(each(arguments, key)?)
}

fn write_key(text: &str, out: &mut String) {
    match Kind::of(text) {
        Kind::Object => {
            out.push('{');
            // Members are in the order that jsonb keeps, whatever their values.
            for (name, value) in members(text).unwrap_or_default() {
                out.push_str(&quoted(&name));
                out.push(':');
                write_key(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Kind::Array => {
            out.push('[');
            for value in elements(text) {
                write_key(value, out);
                out.push(',');
            }
            out.push(']');
        }
        Kind::Number => out.push_str(&shortened(trimmed(text))),
        _ => out.push_str(trimmed(text)),
    }
}

/// A number without zeros behind its last digit that counts.
fn shortened(number: &str) -> String {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => number.to_owned(),
    }
}

/// A scalar by itself is in an array that has it.
fn contains(all: &str, wanted: &str) -> Outcome<bool> {
    match (is_container(all), is_container(wanted)) {
        (false, true) => Ok(false),
        (false, false) => Ok(same_scalar(all, wanted)),
        (true, false) if Kind::of(all) == Kind::Array => {
            Ok(elements(all).iter().any(|one| !is_container(one) && same_scalar(one, wanted)))
        }
        (true, false) => Ok(false),
        (true, true) => contains_parts(all, wanted),
    }
}

fn contains_parts(all: &str, wanted: &str) -> Outcome<bool> {
    match (Kind::of(all), Kind::of(wanted)) {
        (Kind::Object, Kind::Object) => {
            let own = members(all)?;
            for (name, value) in members(wanted)? {
                let found = own.iter().find(|(other, _)| *other == name);
                match found {
                    Some((_, other)) if fits(other, value)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (Kind::Array, Kind::Array) => {
            let own = elements(all);
            for value in elements(wanted) {
                let mut is_there = false;
                for other in &own {
                    is_there = is_there || fits(other, value)?;
                }
                if !is_there {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Within others, a scalar is only in its like.
fn fits(own: &str, wanted: &str) -> Outcome<bool> {
    match (is_container(own), is_container(wanted)) {
        (false, false) => Ok(same_scalar(own, wanted)),
        (true, true) => contains_parts(own, wanted),
        _ => Ok(false),
    }
}

fn concatenated(a: &str, b: &str) -> String {
    let inside = |text: &str| {
        let text = trimmed(text);
        text[1..text.len() - 1].trim().to_owned()
    };
    let as_list = |text: &str| match Kind::of(text) {
        Kind::Array => inside(text),
        _ => text.to_owned(),
    };
    let is_object = |text: &str| Kind::of(text) == Kind::Object;
    let (open, close, a, b) = match is_object(a) && is_object(b) {
        // Of two members of a name the later one stays.
        true => ('{', '}', inside(a), inside(b)),
        false => ('[', ']', as_list(a), as_list(b)),
    };
    let comma = if a.is_empty() || b.is_empty() { "" } else { "," };
    format!("{open}{a}{comma}{b}{close}")
}

#[cold]
pub(super) fn no_container(message: &'static str) -> StatementError {
    StatementError::new(SqlState::INVALID_PARAMETER, message)
}

fn without_name(text: &str, name: &str) -> Outcome<String> {
    match Kind::of(text) {
        Kind::Object => {
            let mut kept = Vec::new();
            // Names as they are written, beside their values.
            for (other, value) in members(text)? {
                if other != name {
                    kept.push(format!("{}:{value}", quoted(&other)));
                }
            }
            Ok(format!("{{{}}}", kept.join(",")))
        }
        Kind::Array => {
            let is_it = |one: &&str| {
                Kind::of(one) == Kind::String && unescaped(one).is_ok_and(|text| text == name)
            };
            let kept: Vec<&str> = elements(text).into_iter().filter(|one| !is_it(one)).collect();
            Ok(format!("[{}]", kept.join(",")))
        }
        _ => Err(no_container("cannot delete from scalar")),
    }
}

pub(crate) fn quoted(name: &str) -> String {
    let mut text = Vec::new();
    pagemill_types::json::write_json_string(name.as_bytes(), &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn without_place(text: &str, place: i32) -> Outcome<String> {
    match Kind::of(text) {
        Kind::Array => {}
        Kind::Object => {
            return Err(no_container("cannot delete from object using integer index"));
        }
        _ => return Err(no_container("cannot delete from scalar")),
    }
    let mut kept = elements(text);
    let place = match usize::try_from(place) {
        Ok(place) => Some(place),
        Err(_) => kept.len().checked_sub(place.unsigned_abs() as usize),
    };
    if let Some(place) = place.filter(|place| *place < kept.len()) {
        kept.remove(place);
    }
    Ok(format!("[{}]", kept.join(",")))
}

/// A line for each member and element, four blanks for each level.
fn write_pretty(text: &str, level: usize, out: &mut String) {
    let line = |level: usize, out: &mut String| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', level * 4));
    };
    let (open, close, parts): (char, char, Vec<(String, &str)>) = match Kind::of(text) {
        Kind::Object => {
            let found = members(text).unwrap_or_default();
            let name = |(name, value): (String, _)| (format!("{}: ", quoted(&name)), value);
            ('{', '}', found.into_iter().map(name).collect())
        }
        Kind::Array => {
            let parts = elements(text).into_iter().map(|part| (String::new(), part)).collect();
            ('[', ']', parts)
        }
        _ => {
            out.push_str(trimmed(text));
            return;
        }
    };
    out.push(open);
    for (number, (name, value)) in parts.iter().enumerate() {
        if number > 0 {
            out.push(',');
        }
        line(level + 1, out);
        out.push_str(name);
        write_pretty(trimmed(value), level + 1, out);
    }
    line(level, out);
    out.push(close);
}
