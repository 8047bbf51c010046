//! `pg_input_is_valid` and `pg_input_error_info`: whether a text is a value of a type, and what the server says if it is none.
//!
//! Invariant: an input that is refused here is neither valid nor invalid. Names of objects are told only where no part of the
//! text ends the statement on the server.
//!
//! Source: `pg_input_is_valid` and `pg_input_error_info` in `src/backend/utils/adt/misc.c`, PostgreSQL 16 to 18.

use arrow::array::{Array as _, ArrayRef};
use pagemill_types::builtin::oid;
use pagemill_types::input::tree::TypeInput;
use pagemill_types::output::NameKind;

use super::error_details::{Failure, Told, told};
use super::keys::strings;
use super::numeric::arithmetic::Modifier;
use super::rows::{Made, Outcome};
use super::system::statement_error;
use super::text_form::payload_of_text;
use super::{Implementation, KernelCall};
use crate::bind::type_of_text;
use crate::catalog::{Catalog, quote_identifier};
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
        Err(error) if error.state == SqlState::FEATURE_NOT_SUPPORTED => Err(error),
        found if names_of(catalog, ty)?.is_none() => Ok(found.is_ok()),
        found => {
            check_name(catalog, ty, text)?;
            match found {
                Ok(_) => Ok(true),
                Err(error) => failed(catalog, ty, (text, &error)).map(|_| false),
            }
        }
    }
}

/// Why a text is no value of the type of this name: the message and what is told beside it. Nothing of one that is a value.
pub(super) fn failure(
    catalog: &Catalog,
    name: &str,
    text: &str,
) -> Outcome<Option<(String, Told)>> {
    let ty = type_of_values(catalog, name)?;
    let found = payload_of_text(catalog, ty, text);
    match found {
        Err(error) if error.state == SqlState::FEATURE_NOT_SUPPORTED => Err(error),
        found => {
            if names_of(catalog, ty)?.is_some() {
                check_name(catalog, ty, text)?;
            }
            let Err(error) = found else { return Ok(None) };
            let told = failed(catalog, ty, (text, &error))?;
            Ok(Some((error.message, told)))
        }
    }
}

/// What is told of an error beside its message.
fn failed(catalog: &Catalog, ty: PgType, (text, error): (&str, &StatementError)) -> Outcome<Told> {
    let is_numeric = ty.oid == oid::NUMERIC;
    let modifier = Modifier::parse(ty.modifier).filter(|_| is_numeric);
    let name = catalog.type_name(ty.oid);
    let failure = Failure {
        precision: modifier.map(|modifier| (modifier.precision, modifier.scale)),
        type_name: &name,
        text,
        message: &error.message,
    };
    let refused = || {
        let message = &error.message;
        StatementError::unsupported(format!("what a server tells beside \"{message}\""))
    };
    told(&failure).ok_or_else(refused)
}

/// The objects that texts of a type name, if they do.
fn names_of(catalog: &Catalog, ty: PgType) -> Outcome<Option<NameKind>> {
    let inputs = catalog.inputs().map_err(|error| error.report())?;
    let wanted = inputs.value_type(ty.oid);
    let wanted = wanted.map_err(|error| statement_error(error.into()))?;
    Ok(match wanted.input {
        TypeInput::Name(kind) => Some(kind),
        _ => None,
    })
}

/// Refuses a name with types in it that end the statement on the server if they are wrong; and what the role may not see.
fn check_name(catalog: &Catalog, ty: PgType, text: &str) -> Outcome<()> {
    let most = match names_of(catalog, ty)? {
        Some(NameKind::Type) => 0,
        Some(NameKind::Procedure | NameKind::Operator) => 1,
        _ => usize::MAX,
    };
    if text.matches('(').count() > most || (most == 0 && !is_plain(text)) {
        return Err(StatementError::unsupported(format!("whether \"{text}\" is a name")));
    }
    catalog.check_written_name(ty.oid, text).map_err(statement_error)
}

/// True for a name of one word that is no key word, and of a schema before it, at most.
fn is_plain(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && quote_identifier(word) == word;
    text.split('.').count() <= 2 && text.split('.').all(is_word)
}

/// True for arrays of names of objects, of which some texts end the statement on the server.
fn is_of_objects(input: &TypeInput) -> bool {
    match input {
        TypeInput::Array(element) => {
            matches!(element.input, TypeInput::Name(_)) || is_of_objects(&element.input)
        }
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
