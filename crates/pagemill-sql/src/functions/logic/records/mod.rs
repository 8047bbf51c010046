//! Rows made of documents: `json_populate_record`, `json_to_record`, `json_populate_recordset`, `json_to_recordset`, those of jsonb,
//! and `jsonb_populate_record_valid`.
//!
//! ```text
//! arguments of a call:  document                                  nothing is known of fields that it does not name
//!                       document, row                             a row as its payload
//!                       document, field, field, …, is there one   a row that is carried as its fields
//! ```
//!
//! The columns of a call are the fields that are filled, under the names that the document has for them.
//!
//! Invariant: a NULL for a document leaves the row that was given, and gives no rows where it stands for several.
//!
//! Source: `populate_record_worker`, `populate_recordset_worker` in `src/backend/utils/adt/jsonfuncs.c`, PostgreSQL 14 to 18.

mod arrays;
mod coerced;
mod fill;
mod makes;
mod one_row;
#[cfg(test)]
mod tests;

use arrow::array::{Array as _, ArrayRef, AsArray as _};

use super::super::keys::payloads;
use super::super::rows::Outcome;
use super::super::sets::{Series, SetCall, SetColumn, made_of_payloads};
use super::super::text_form::payload_of;
use super::documents::{Kind, elements, require_characters};
use super::members::document;
use crate::error::StatementError;
use crate::types::PgType;
use fill::{Filler, Makes as _, Target, Value, wrong};
use makes::{Payloads, target_of};

pub(crate) use coerced::{accept, populated};
pub(crate) use one_row::{arguments_of_row, one_row};

/// True for the functions that make rows of documents, by the server's names of them.
pub(crate) fn makes_rows(key: &str) -> bool {
    let Some(name) = key.strip_prefix("jsonb_").or_else(|| key.strip_prefix("json_")) else {
        return false;
    };
    matches!(name, "populate_record" | "to_record" | "populate_recordset" | "to_recordset")
        || key == VALID
}

/// Tells whether there would be a row.
pub(crate) const VALID: &str = "jsonb_populate_record_valid";

/// True for those that give several rows.
pub(crate) fn gives_rows(key: &str) -> bool {
    key.ends_with("recordset")
}

/// True for those whose first argument is a row.
pub(crate) fn takes_row(key: &str) -> bool {
    key.contains("populate")
}

/// The rows for one row of the arguments.
pub(crate) fn begin(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    made_of_payloads(call, rows(call, arguments, row)?)
}

fn rows(call: &SetCall, arguments: &[ArrayRef], row: usize) -> Outcome<Vec<Vec<Value>>> {
    let fields = fields_of(call)?;
    let mut makes = Payloads(&call.catalog);
    let before = before(call, &mut makes, arguments, row)?;
    if arguments[0].is_null(row) {
        let nothing = || vec![None; fields.len()];
        return Ok(match gives_rows(&call.key) {
            true => Vec::new(),
            false => vec![before.unwrap_or_else(nothing)],
        });
    }
    let (text, is_binary) = document(&arguments[0], row)?;
    if !is_binary && text.contains("\\u") && call.catalog.database().row().encoding == 0 {
        return Err(StatementError::unsupported("an escape of Unicode in SQL_ASCII"));
    }
    // The server reads all strings of what it looks into, once it knows that it may.
    let check = |part: &str| if is_binary { Ok(()) } else { require_characters(part) };
    let mut filler = Filler::new(&mut makes);
    if !gives_rows(&call.key) {
        if Kind::of(&text) != Kind::Array {
            check(&text)?;
        }
        return Ok(vec![filler.row(&fields, &text, before)?]);
    }
    if Kind::of(&text) == Kind::String {
        check(&text)?;
    }
    let parts = objects(call, &text, is_binary)?;
    let checked = |part: &str| {
        let what = || format!("argument of {} must be an array of objects", call.key);
        if Kind::of(part) == Kind::Object { check(part) } else { Err(wrong(what())) }
    };
    filler.rows((&fields, before.as_deref()), &parts, checked)
}

/// The elements of the array.
fn objects<'t>(call: &SetCall, text: &'t str, is_binary: bool) -> Outcome<Vec<&'t str>> {
    let what = match (Kind::of(text), is_binary) {
        (Kind::Array, _) => return Ok(elements(text)),
        (_, true) => "a non-array",
        (Kind::Object, false) => "an object",
        (_, false) => "a scalar",
    };
    Err(wrong(format!("cannot call {} on {what}", call.key)))
}

fn fields_of(call: &SetCall) -> Outcome<Vec<(String, Target)>> {
    let field = |column: &SetColumn| {
        let name = column.name.as_deref().unwrap_or_default().to_owned();
        Ok((name, target_of(&call.catalog, column.ty)?))
    };
    call.columns.iter().map(field).collect()
}

/// The fields of the row that was given; nothing where none was.
fn before(
    call: &SetCall,
    makes: &mut Payloads<'_>,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Option<Vec<Value>>> {
    match arguments {
        [] | [_] => Ok(None),
        [_, given] if given.is_null(row) => Ok(None),
        [_, given] => {
            let of = target_of(&call.catalog, call.arguments[1])?;
            makes.fields(&of, payloads(given).value(row)).map(Some)
        }
        [_, fields @ .., present] => {
            let present = present.as_boolean();
            if present.is_null(row) || !present.value(row) {
                return Ok(None);
            }
            let field = |(column, ty): (&ArrayRef, &PgType)| match column.is_null(row) {
                true => Ok(None),
                false => payload_of(&call.catalog, *ty, column, row).map(Some),
            };
            let types = call.arguments.iter().skip(1);
            fields.iter().zip(types).map(field).collect::<Outcome<Vec<Value>>>().map(Some)
        }
    }
}
