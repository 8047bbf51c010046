//! What a session asks of the database and its catalogs: names of types and owners, what is visible, comments, sizes.
//!
//! Source: `src/backend/utils/adt/format_type.c`, `misc.c`, `dbsize.c`, `pg_get_userbyid` in `ruleutils.c`, `RelationIsVisible` in
//! `src/backend/catalog/namespace.c`, PostgreSQL 14 to 18.

mod acl;
mod catalogs;
pub(crate) mod comments;
mod descriptions;
mod file_places;
mod file_sizes;
mod index_properties;
mod memberships;
mod privileges;
pub(super) mod sequences;
pub(super) mod session_facts;
pub(crate) mod settings;
mod size_words;
mod stored_forms;
mod use_counts;
mod visible;

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryArray, UInt32Array};
use arrow::datatypes::{DataType, Int64Type, UInt32Type};
use datafusion::logical_expr::Expr;
use datafusion::scalar::ScalarValue;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;

use super::arrays::value::{ArrayParts, ElementType};
use super::keys::strings;
use super::rows::{Made, Outcome};
use super::{Build, Implementation, KernelCall};
use crate::bind::type_of_text;
use crate::catalog::Catalog;
use crate::coerce::carrier_of;
use crate::error::{Error, Result, SqlState, StatementError, unsupported};
use crate::system_rows::{PG_CATALOG, for_each_row};
use crate::typed::Typed;
use crate::types::PgType;

/// So many bytes are told in another unit.
const LEAST_WITH_UNIT: u64 = 10 * 1024;
/// Bytes of a `name`.
const NAME_BYTES: usize = 64;

pub(crate) fn find(key: &str) -> Option<Implementation> {
    Some(match key {
        "current_database" => Implementation::Build(|build| {
            let name = build.catalog.database().row().name.clone();
            crate::coerce::constant(build.catalog, build.result, &String::from_utf8_lossy(&name))
        }),
        "pgsql_version" => Implementation::Build(version),
        "text_regclass" => Implementation::Kernel(relations_named),
        "current_schema" => Implementation::Build(current_schema),
        // All sessions see the same: the files.
        "pg_export_snapshot" => Implementation::Build(|build| {
            crate::coerce::constant(build.catalog, build.result, "00000000-00000001-1")
        }),
        "current_schemas" => Implementation::Kernel(current_schemas),
        // No session makes temporary tables here.
        "pg_my_temp_schema" => {
            Implementation::Build(|build| crate::coerce::constant(build.catalog, build.result, "0"))
        }
        "nameconcatoid" => Implementation::Kernel(names_with_numbers),
        "txid_current" | "pg_current_xact_id" => Implementation::Build(next_transaction),
        "txid_current_if_assigned" | "pg_current_xact_id_if_assigned" => {
            Implementation::Build(|build| crate::coerce::null_of(build.catalog, build.result))
        }
        "pg_typeof" => Implementation::Build(type_of),
        // Of "char", which the catalogs are full of.
        "char_text" | "char_bpchar" => Implementation::Kernel(super::text_form::to_text),
        "to_regtype" => Implementation::Kernel(types_named),
        "pg_get_userbyid" => Implementation::Kernel(owners),
        "pg_size_pretty" => Implementation::Kernel(sizes),
        "pg_size_pretty_numeric" => Implementation::Kernel(size_words::of_numerics),
        _ => {
            return acl::find(key)
                .or_else(|| visible::find(key))
                .or_else(|| comments::find(key))
                .or_else(|| file_sizes::find(key))
                .or_else(|| file_places::find(key))
                .or_else(|| catalogs::find(key))
                .or_else(|| privileges::find(key))
                .or_else(|| memberships::find(key))
                .or_else(|| sequences::find(key))
                .or_else(|| size_words::find(key))
                .or_else(|| use_counts::find(key))
                .or_else(|| index_properties::find(key))
                .or_else(|| session_facts::find(key))
                .or_else(|| descriptions::find(key))
                .or_else(|| stored_forms::find(key));
        }
    })
}

/// The major version, in the form that drivers read. Which minor version wrote the files is not in them.
fn version(build: &Build<'_>) -> Result<Typed> {
    let major = build.catalog.database().cluster().version().major();
    // Scripts tell by its end how far tuples are apart.
    let text = format!("PostgreSQL {major} (Pagemill {}), 64-bit", env!("CARGO_PKG_VERSION"));
    crate::coerce::constant(build.catalog, build.result, &text)
}

/// The number that the next transaction would get: none is taken here.
fn next_transaction(build: &Build<'_>) -> Result<Typed> {
    let next = build.catalog.database().cluster().counters().next_xid.0;
    crate::coerce::constant(build.catalog, build.result, &next.to_string())
}

/// A relation by its name.
fn relations_named(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    Ok(Arc::new(relation_numbers(call, &arguments[0])?))
}

/// The OIDs of relations by their names, as `regclass` reads them.
pub(super) fn relation_numbers(call: &KernelCall, names: &ArrayRef) -> Outcome<UInt32Array> {
    let of = PgType::new(oid::REGCLASS);
    let one = |name: Option<&str>| {
        let Some(name) = name else { return Ok(None) };
        match super::text_form::read(&call.catalog, of, &DataType::UInt32, name) {
            Ok(ScalarValue::UInt32(number)) => Ok(number),
            Ok(_) => unreachable!("a regclass is carried as a number"),
            Err(error) => Err(statement_error(error)),
        }
    };
    strings(names).iter().map(one).collect()
}

/// The first schema of the search path that there is, but for the system's own.
fn current_schema(build: &Build<'_>) -> Result<Typed> {
    let first = build.catalog.search_path().iter().find(|oid| **oid != PG_CATALOG);
    let names = build.catalog.database().namespaces()?;
    match first.and_then(|oid| names.get(oid)) {
        Some(name) => {
            let name = String::from_utf8_lossy(name);
            crate::coerce::constant(build.catalog, build.result, &name)
        }
        None => crate::coerce::null_of(build.catalog, build.result),
    }
}

/// The schemas of the search path; with those that nobody named where they are wanted.
fn current_schemas(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let catalog = &call.catalog;
    let damaged = |error: pagemill_cluster::Error| statement_error(error.into());
    let names = catalog.database().namespaces().map_err(damaged)?;
    let is_named = catalog.database().names_pg_catalog().map_err(damaged)?;
    let elements = ElementType::of_array(catalog, call.result)?;
    let payload = |with_implicit: bool| {
        let listed = |oid: &&Oid| with_implicit || is_named || **oid != PG_CATALOG;
        let listed = catalog.search_path().iter().filter(listed).filter_map(|oid| names.get(oid));
        let name = |name: &[u8]| {
            let mut padded = name.to_vec();
            padded.resize(NAME_BYTES, 0);
            Some(padded)
        };
        ArrayParts::of(listed.map(|listed| name(listed)).collect()).payload(&elements)
    };
    let asked = arguments[0].as_boolean();
    let payloads = asked.iter().map(|asked| asked.map(payload).transpose());
    let payloads = payloads.collect::<Outcome<Vec<Option<Vec<u8>>>>>()?;
    Ok(Arc::new(payloads.iter().map(Option::as_deref).collect::<BinaryArray>()))
}

/// `name_number`, of which the name is cut where both are longer than a name may be.
fn names_with_numbers(_: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let one = |(name, number): (Option<&str>, Option<u32>)| {
        let (name, tail) = (name?, format!("_{}", number?));
        let mut end = name.len().min(NAME_BYTES - 1 - tail.len());
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        Some(name[..end].to_owned() + &tail)
    };
    let numbers = arguments[1].as_primitive::<UInt32Type>();
    let names = strings(&arguments[0]);
    Made::column(names.iter().zip(numbers.iter()).map(one).collect::<Vec<Option<String>>>())
}

fn type_of(build: &Build<'_>) -> Result<Typed> {
    let [of] = build.arguments else { return unsupported("pg_typeof") };
    let carrier = carrier_of(build.catalog, build.result);
    let number = ScalarValue::UInt32(Some(of.ty.oid.0));
    Ok(build.done(Expr::Literal(number, None), carrier))
}

pub(super) fn statement_error(error: Error) -> StatementError {
    match error {
        Error::Statement(error) => error,
        other => StatementError::new(SqlState::DATA_CORRUPTED, other.to_string()),
    }
}

/// The names in a catalog by the numbers of its rows.
fn names_of(catalog: &Catalog, table: &str, column: &str) -> Result<HashMap<Oid, String>> {
    let mut names = HashMap::new();
    for_each_row(catalog.values(), table, &["oid", column], |row| {
        names.insert(row.oid(0), row.name(1));
        Ok(())
    })?;
    Ok(names)
}

fn owners(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let names = names_of(&call.catalog, "pg_authid", "rolname").map_err(statement_error)?;
    let name = |number: u32| match names.get(&Oid(number)) {
        Some(name) => name.clone(),
        None => format!("unknown (OID={number})"),
    };
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    Made::column(numbers.iter().map(|number| number.map(name)).collect::<Vec<Option<String>>>())
}

fn types_named(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let names = strings(&arguments[0]);
    let numbers = names.iter().map(|name| match name {
        None => Ok(None),
        Some(name) => Ok(type_of_text(&call.catalog, name)?.map(|found| found.oid.0)),
    });
    let numbers = numbers.collect::<Result<UInt32Array>>();
    Ok(Arc::new(numbers.map_err(statement_error)?))
}

fn sizes(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let has_petabytes = call.catalog.database().cluster().version().major() > 14;
    let sizes = arguments[0].as_primitive::<Int64Type>();
    // 14 shifts bits instead of dividing.
    if !has_petabytes && sizes.iter().flatten().any(|size| size < 0) {
        return Err(StatementError::unsupported("a negative size in PostgreSQL 14"));
    }
    let text = |size: i64| size_text(size, has_petabytes);
    Made::column(sizes.iter().map(|size| size.map(text)).collect::<Vec<Option<String>>>())
}

/// Bytes below 10 kB; else the unit that gives less than 20 of the next, rounded half away from zero.
fn size_text(size: i64, has_petabytes: bool) -> String {
    const MOST: u64 = 20 * 1024 - 1;
    if size.unsigned_abs() < LEAST_WITH_UNIT {
        return format!("{size} bytes");
    }
    let units: &[&str] = match has_petabytes {
        true => &["kB", "MB", "GB", "TB", "PB"],
        false => &["kB", "MB", "GB", "TB"],
    };
    // Twice the number of units, so that half of one is not lost.
    let mut halves = size / 512;
    for (number, unit) in units.iter().enumerate() {
        if halves.unsigned_abs() < MOST || number + 1 == units.len() {
            let rounded = (halves + halves.signum()) / 2;
            return format!("{rounded} {unit}");
        }
        halves /= 1024;
    }
    unreachable!("the last unit takes every size")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_as_the_server_tells_them() {
        let text = |size| size_text(size, true);
        assert_eq!(text(10_239), "10239 bytes");
        assert_eq!(text(-10_240), "-10 kB");
        assert_eq!(text(i64::MAX), "8192 PB");
    }
}
