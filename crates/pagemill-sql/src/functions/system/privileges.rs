//! Privileges of the session's role, which is a superuser's here: everything that there is is its own.
//!
//! Invariant: NULL for an object that there is not; an error for a word that is no privilege of its kind.
//!
//! Source: `src/backend/utils/adt/acl.c`, PostgreSQL 14 to 18.

use std::collections::HashSet;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{Int16Type, UInt32Type};
use pagemill_cluster::RelationKind;
use pagemill_format::Oid;

use super::super::keys::strings;
use super::super::rows::{Made, Outcome};
use super::super::{Implementation, KernelCall};
use super::statement_error;
use crate::catalog::Catalog;
use crate::error::{Result, SqlState, StatementError};
use crate::system_rows::for_each_row;

/// For whether a function is known at all.
const NEWEST: u32 = 18;

/// The catalog of a kind of object, and its privileges.
///
/// `MAINTAIN` is one of tables from 17 on; `RULE`, which servers still read as none, is not known here.
fn kind(key: &str, major: u32) -> Option<(&'static str, &'static [&'static str])> {
    const MAINTAINED: &[&str] =
        &["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "MAINTAIN"];
    let table = if major >= 17 { MAINTAINED } else { &MAINTAINED[..MAINTAINED.len() - 1] };
    const COLUMN: &[&str] = &["SELECT", "INSERT", "UPDATE", "REFERENCES"];
    Some(match key {
        "has_table_privilege_id" => ("pg_class", table),
        "has_any_column_privilege_id" => ("pg_class", COLUMN),
        "has_sequence_privilege_id" => ("pg_class", &["USAGE", "SELECT", "UPDATE"]),
        "has_schema_privilege_id" => ("pg_namespace", &["CREATE", "USAGE"]),
        "has_database_privilege_id" => ("pg_database", &["CREATE", "TEMPORARY", "TEMP", "CONNECT"]),
        "has_function_privilege_id" => ("pg_proc", &["EXECUTE"]),
        "has_language_privilege_id" => ("pg_language", &["USAGE"]),
        "has_type_privilege_id" => ("pg_type", &["USAGE"]),
        "has_tablespace_privilege_id" => ("pg_tablespace", &["CREATE"]),
        "has_server_privilege_id" => ("pg_foreign_server", &["USAGE"]),
        "has_foreign_data_wrapper_privilege_id" => ("pg_foreign_data_wrapper", &["USAGE"]),
        "has_column_privilege_id_attnum" => ("pg_attribute", COLUMN),
        _ => return None,
    })
}

pub(super) fn find(key: &str) -> Option<Implementation> {
    match (key, kind(key, NEWEST)) {
        ("pg_has_role_id", _) => Some(Implementation::Kernel(of_roles)),
        ("row_security_active", _) => Some(Implementation::Kernel(is_row_security_active)),
        ("has_column_privilege_id_attnum", _) => Some(Implementation::Kernel(of_columns)),
        (_, Some(_)) => Some(Implementation::Kernel(of_objects)),
        _ => None,
    }
}

/// `SELECT, INSERT WITH GRANT OPTION`: words of the kind, in any case.
///
/// # Errors
/// For any other word; `RULE` is refused.
fn check(words: &str, known: &[&str]) -> Outcome<()> {
    for word in words.split(',') {
        let word = word.trim();
        let plain = word.to_ascii_uppercase();
        let plain = plain.strip_suffix(" WITH GRANT OPTION").unwrap_or(&plain);
        if plain == "RULE" && known.contains(&"TRIGGER") {
            return Err(StatementError::unsupported("the privilege RULE"));
        }
        if !known.contains(&plain) {
            return Err(unknown(word));
        }
    }
    Ok(())
}

pub(super) fn unknown(word: &str) -> StatementError {
    let message = format!("unrecognized privilege type: \"{word}\"");
    StatementError::new(SqlState::INVALID_PARAMETER, message)
}

fn objects(catalog: &Catalog, table: &str) -> Result<HashSet<Oid>> {
    let mut found = HashSet::new();
    for_each_row(catalog.values(), table, &["oid"], |row| {
        found.insert(row.oid(0));
        Ok(())
    })?;
    Ok(found)
}

/// What the call is about.
fn kind_of(call: &KernelCall) -> (&'static str, &'static [&'static str]) {
    let major = call.catalog.database().cluster().version().major();
    kind(&call.key, major).expect("a kernel is found by its name") // infallible: it was when the call was made
}

fn of_objects(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let (table, known) = kind_of(call);
    let objects = objects(&call.catalog, table).map_err(statement_error)?;
    let of_sequences = &*call.key == "has_sequence_privilege_id";
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    let one = |(number, words): (Option<u32>, Option<&str>)| {
        let (Some(number), Some(words)) = (number, words) else { return Ok(None) };
        check(words, known)?;
        if of_sequences {
            check_sequence(&call.catalog, Oid(number))?;
        }
        Ok(objects.contains(&Oid(number)).then_some(true))
    };
    let rows = numbers.iter().zip(strings(&arguments[1]).iter()).map(one);
    Made::column(rows.collect::<Outcome<Vec<Option<bool>>>>()?)
}

/// Refuses a relation of another kind.
fn check_sequence(catalog: &Catalog, oid: Oid) -> Outcome<()> {
    match catalog.database().class(oid).filter(|class| class.kind != RelationKind::Sequence) {
        None => Ok(()),
        Some(class) => {
            let name = String::from_utf8_lossy(&class.name);
            Err(StatementError::new(SqlState("42809"), format!("\"{name}\" is not a sequence")))
        }
    }
}

fn of_columns(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let (_, known) = kind_of(call);
    let mut columns = HashSet::new();
    let wanted = ["attrelid", "attnum", "attisdropped"];
    let read = for_each_row(call.catalog.values(), "pg_attribute", &wanted, |row| {
        if !row.bool(2) {
            columns.insert((row.oid(0), row.int2(1)));
        }
        Ok(())
    });
    read.map_err(statement_error)?;
    let tables = arguments[0].as_primitive::<UInt32Type>();
    let numbers = arguments[1].as_primitive::<Int16Type>();
    let words = strings(&arguments[2]);
    let one = |((table, number), words): ((Option<u32>, Option<i16>), Option<&str>)| {
        let (Some(table), Some(number), Some(words)) = (table, number, words) else {
            return Ok(None);
        };
        check(words, known)?;
        Ok(columns.contains(&(Oid(table), number)).then_some(true))
    };
    let rows = tables.iter().zip(numbers.iter()).zip(words.iter()).map(one);
    Made::column(rows.collect::<Outcome<Vec<Option<bool>>>>()?)
}

/// A superuser is a member of all roles, of those that there are not, too.
fn of_roles(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let major = call.catalog.database().cluster().version().major();
    let known: &[&str] =
        if major >= 16 { &["USAGE", "MEMBER", "SET"] } else { &["USAGE", "MEMBER"] };
    let one = |(number, words): (Option<u32>, Option<&str>)| {
        let (Some(_), Some(words)) = (number, words) else { return Ok(None) };
        for word in words.split(',').map(str::trim) {
            let plain = word.to_ascii_uppercase();
            let plain = ["GRANT", "ADMIN"].iter().fold(plain.as_str(), |plain, option| {
                plain.strip_suffix(&format!(" WITH {option} OPTION")).unwrap_or(plain)
            });
            known.contains(&plain).then_some(()).ok_or_else(|| unknown(word))?;
        }
        Ok(Some(true))
    };
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    let rows = numbers.iter().zip(strings(&arguments[1]).iter()).map(one);
    Made::column(rows.collect::<Outcome<Vec<Option<bool>>>>()?)
}

/// Never for a superuser.
fn is_row_security_active(_: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    let none = |number: Option<u32>| number.map(|_| false);
    Made::column(numbers.iter().map(none).collect::<Vec<Option<bool>>>())
}
