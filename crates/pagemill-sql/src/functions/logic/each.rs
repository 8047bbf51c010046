//! Documents taken apart into rows: `json_each`, `json_array_elements`, `json_object_keys` and their kin.
//!
//! Source: `each_worker`, `elements_worker`, `json_object_keys` and those of jsonb in `src/backend/utils/adt/jsonfuncs.c`,
//! PostgreSQL 14 to 18.

use arrow::array::ArrayRef;

use super::super::rows::Outcome;
use super::super::sets::{Cells, Series, SetCall, made};
use super::documents::{Kind, as_text, elements as elements_of, members as members_of};
use super::documents::{require_characters, trimmed};
use super::members::{document, payload_of};
use crate::error::{SqlState, StatementError};

/// A value as the last column has it.
enum Part {
    Null,
    Text(String),
    Binary(Vec<u8>),
}

fn put(part: Part, out: &mut Cells) -> Outcome<()> {
    match part {
        Part::Null => out.null(),
        Part::Text(text) => out.text(&text),
        Part::Binary(payload) => out.bytes(&payload),
    }
}

fn part(call: &SetCall, value: &str) -> Outcome<Part> {
    let is_text = call.key.ends_with("_text");
    Ok(match (is_text, call.key.starts_with("jsonb")) {
        (true, _) => as_text(value)?.map_or(Part::Null, Part::Text),
        (false, true) => Part::Binary(payload_of(&call.catalog, value)?),
        (false, false) => Part::Text(trimmed(value).to_owned()),
    })
}

/// The text of the document, refused where its strings cannot be told.
fn text_of(call: &SetCall, arguments: &[ArrayRef], row: usize) -> Outcome<String> {
    let (text, is_binary) = document(&arguments[0], row)?;
    let has_encoding = call.catalog.database().row().encoding != 0;
    if !has_encoding && !is_binary && text.contains("\\u") {
        return Err(StatementError::unsupported("an escape of Unicode in SQL_ASCII"));
    }
    // Elements that stay as they are written are not read.
    if !is_binary && &*call.key != "json_array_elements" {
        require_characters(&text)?;
    }
    Ok(text)
}

#[cold]
fn wrong(message: String) -> StatementError {
    StatementError::new(SqlState::INVALID_PARAMETER, message)
}

/// `json_each` and its kin: names and values.
pub(crate) fn members(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let text = text_of(call, arguments, row)?;
    match (Kind::of(&text), call.key.starts_with("jsonb")) {
        (Kind::Object, _) => {}
        (_, true) => return Err(wrong(format!("cannot call {} on a non-object", call.key))),
        (Kind::Array, _) => return Err(wrong("cannot deconstruct an array as an object".into())),
        _ => return Err(wrong("cannot deconstruct a scalar".into())),
    }
    let row = |(name, value): (String, &str)| Ok((name, part(call, value)?));
    let rows = members_of(&text)?.into_iter().map(row).collect::<Outcome<Vec<_>>>()?;
    Ok(made(rows, |(name, value): (String, Part), out| {
        out[0].text(&name)?;
        put(value, &mut out[1])
    }))
}

/// `json_array_elements` and its kin.
pub(crate) fn elements(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let text = text_of(call, arguments, row)?;
    match (Kind::of(&text), call.key.starts_with("jsonb")) {
        (Kind::Array, _) => {}
        (Kind::Object, true) => return Err(wrong("cannot extract elements from an object".into())),
        (_, true) => return Err(wrong("cannot extract elements from a scalar".into())),
        (Kind::Object, _) => {
            return Err(wrong(format!("cannot call {} on a non-array", call.key)));
        }
        _ => return Err(wrong(format!("cannot call {} on a scalar", call.key))),
    }
    let values = elements_of(&text).into_iter().map(|value| part(call, value));
    Ok(made(values.collect::<Outcome<Vec<_>>>()?, |value, out| put(value, &mut out[0])))
}

/// `json_object_keys` and its twin.
pub(crate) fn keys(call: &SetCall, arguments: &[ArrayRef], row: usize) -> Outcome<Box<dyn Series>> {
    let text = text_of(call, arguments, row)?;
    match Kind::of(&text) {
        Kind::Object => {}
        Kind::Array => return Err(wrong(format!("cannot call {} on an array", call.key))),
        _ => return Err(wrong(format!("cannot call {} on a scalar", call.key))),
    }
    let names = members_of(&text)?.into_iter().map(|(name, _)| name).collect();
    Ok(made(names, |name: String, out| out[0].text(&name)))
}
