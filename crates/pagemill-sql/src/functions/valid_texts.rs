//! `pg_input_is_valid`: whether a text is a value of a type.
//!
//! Invariant: an input that is refused here is neither valid nor invalid.
//!
//! Source: `pg_input_is_valid` in `src/backend/utils/adt/misc.c`, PostgreSQL 16 to 18.

use arrow::array::{Array as _, ArrayRef};
use pagemill_types::input::tree::TypeInput;

use super::keys::strings;
use super::rows::{Made, Outcome};
use super::text_form::payload_of_text;
use super::{Implementation, KernelCall};
use crate::bind::type_of_text;
use crate::catalog::Catalog;
use crate::error::{Error, SqlState, StatementError};
use crate::types::PgType;

pub(super) fn find(key: &str) -> Option<Implementation> {
    (key == "pg_input_is_valid").then_some(Implementation::Kernel(are_valid))
}

fn are_valid(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let (texts, names) = (strings(&arguments[0]), strings(&arguments[1]));
    let mut known: Option<(&str, PgType)> = None;
    let mut found = Vec::with_capacity(texts.len());
    for row in 0..texts.len() {
        if texts.is_null(row) || names.is_null(row) {
            found.push(None);
            continue;
        }
        let name = names.value(row);
        let ty = match known {
            Some((before, ty)) if before == name => ty,
            _ => type_of_values(&call.catalog, name)?,
        };
        known = Some((name, ty));
        found.push(Some(is_valid(&call.catalog, ty, texts.value(row))?));
    }
    Made::column(found)
}

fn is_valid(catalog: &Catalog, ty: PgType, text: &str) -> Outcome<bool> {
    match payload_of_text(catalog, ty, text) {
        Ok(_) => Ok(true),
        Err(error) if error.state == SqlState::FEATURE_NOT_SUPPORTED => Err(error),
        Err(_) => Ok(false),
    }
}

/// True for names of objects, of which some texts end the statement on the server.
fn is_of_objects(input: &TypeInput) -> bool {
    match input {
        TypeInput::Name(_) => true,
        TypeInput::Array(element) => is_of_objects(&element.input),
        _ => false,
    }
}

/// The type of a name, if all that makes a text one of its values is known here: not what domains check.
fn type_of_values(catalog: &Catalog, name: &str) -> Outcome<PgType> {
    let refused = || StatementError::unsupported(format!("whether a text is of type {name}"));
    let of_report = |error: Error| error.report();
    let found = type_of_text(catalog, name).map_err(of_report)?;
    let Some(ty) = found else {
        let message = format!("type \"{name}\" does not exist");
        return Err(StatementError::new(SqlState::UNDEFINED_OBJECT, message));
    };
    let row = catalog.type_row(ty.oid).ok_or_else(refused)?;
    let element = row.is_array().then(|| catalog.type_row(row.element)).flatten();
    let is_known = |kind: u8| matches!(kind, b'b' | b'e' | b'r' | b'm');
    if !is_known(row.kind) || element.is_some_and(|element| !is_known(element.kind)) {
        return Err(refused());
    }
    let inputs = catalog.inputs().map_err(of_report)?;
    let wanted = inputs.value_type(ty.oid).map_err(|_| refused())?;
    match is_of_objects(&wanted.input) {
        true => Err(refused()),
        false => Ok(ty),
    }
}
