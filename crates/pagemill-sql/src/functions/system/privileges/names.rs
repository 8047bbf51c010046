//! The objects and roles that calls about privileges name by texts.
//!
//! Invariant: what there is not is an error, in the server's words; so is a schema that the session's role cannot use names of.
//!
//! Source: `convert_…_name` in `src/backend/utils/adt/acl.c`, `get_role_oid_or_public`, `RangeVarGetRelidExtended` in
//! `src/backend/catalog/namespace.c`, PostgreSQL 14 to 18.

use datafusion::scalar::ScalarValue;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;

use super::super::super::rows::Outcome;
use super::super::super::text_form;
use super::super::statement_error;
use crate::catalog::Catalog;
use crate::coerce::carrier_of;
use crate::error::{SqlState, StatementError};
use crate::rights::{DATABASES, EVERYBODY, FUNCTIONS, Kind, SCHEMAS, TYPES, schema_in};
use crate::types::PgType;

pub(in super::super) fn role(catalog: &Catalog, name: &str) -> Outcome<Oid> {
    let members = catalog.members().map_err(statement_error)?;
    members.named(name.as_bytes()).ok_or_else(|| absent("role", name, SqlState::UNDEFINED_OBJECT))
}

/// The same, or everybody.
pub(super) fn role_or_public(catalog: &Catalog, name: &str) -> Outcome<Oid> {
    if name == "public" { Ok(EVERYBODY) } else { role(catalog, name) }
}

/// A relation.
pub(in super::super) fn relation(catalog: &Catalog, name: &str) -> Outcome<Oid> {
    let undefined = |error: StatementError| match error.message.starts_with("schema ") {
        true => StatementError { state: SqlState("3F000"), ..error },
        false if error.state == SqlState::DENIED => error,
        false => StatementError { state: SqlState::UNDEFINED_TABLE, ..error },
    };
    // Numbers and a dash are names of relations here, and not in a regclass.
    if name.trim() == "-" || name.trim().bytes().all(|byte| byte.is_ascii_digit()) {
        return match name.trim() {
            "" => Err(StatementError::new(SqlState("42602"), "invalid name syntax")),
            name => Err(absent("relation", name, SqlState::UNDEFINED_TABLE)),
        };
    }
    read(catalog, oid::REGCLASS, name).map_err(|error| {
        // What a regclass does not find in a schema that there is not is told of the schema here.
        let schema = schema_in(name).filter(|_| error.message.starts_with("relation "));
        let is_there = |name: &String| {
            let schemas = catalog.objects(&SCHEMAS);
            schemas.is_ok_and(|schemas| schemas.named(name).is_some())
        };
        match schema.filter(|schema| !is_there(schema)) {
            Some(schema) => absent("schema", &schema, SqlState("3F000")),
            None => undefined(error),
        }
    })
}

/// An object of a kind by its name, or by what else is written for one.
pub(super) fn object(catalog: &Catalog, kind: &Kind, name: &str) -> Outcome<Oid> {
    let by_type = match kind.catalog {
        of if of == FUNCTIONS.catalog => Some((oid::REGPROCEDURE, "function")),
        of if of == TYPES.catalog => Some((oid::REGTYPE, "type")),
        _ => None,
    };
    if let Some((ty, word)) = by_type {
        let found = read(catalog, ty, name)?;
        let state = if word == "type" { "42704" } else { "42883" };
        return match found {
            Oid(0) => Err(absent(word, name, SqlState(state))),
            found => Ok(found),
        };
    }
    let objects = catalog.objects(kind).map_err(statement_error)?;
    let (word, state) = match kind.catalog {
        of if of == DATABASES.catalog => ("database", SqlState("3D000")),
        of if of == SCHEMAS.catalog => ("schema", SqlState("3F000")),
        "pg_foreign_data_wrapper" => ("foreign-data wrapper", SqlState::UNDEFINED_OBJECT),
        "pg_foreign_server" => ("server", SqlState::UNDEFINED_OBJECT),
        "pg_language" => ("language", SqlState::UNDEFINED_OBJECT),
        _ => ("tablespace", SqlState::UNDEFINED_OBJECT),
    };
    objects.named(name).ok_or_else(|| absent(word, name, state))
}

/// A value of one of the types of names.
fn read(catalog: &Catalog, ty: Oid, name: &str) -> Outcome<Oid> {
    let ty = PgType::new(ty);
    match text_form::read(catalog, ty, &carrier_of(catalog, ty), name).map_err(statement_error)? {
        ScalarValue::UInt32(Some(number)) => Ok(Oid(number)),
        _ => Err(StatementError::unsupported(format!("the name \"{name}\""))),
    }
}

fn absent(what: &str, name: &str, state: SqlState) -> StatementError {
    StatementError::new(state, format!("{what} \"{name}\" does not exist"))
}
