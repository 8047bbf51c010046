//! Scalars of jsonb as values of SQL: `j::int`, `j::numeric`, `j::bool`, and `j['a'][0]`.
//!
//! A number becomes a numeric first, which the functions of numerics make what else is wanted.
//!
//! Source: `jsonb_bool`, `jsonb_numeric`, `jsonb_int4` and their kin in `src/backend/utils/adt/jsonb.c`,
//! `jsonb_subscript_fetch` in `jsonbsubs.c`, `jsonb_get_element` in `jsonfuncs.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef};
use arrow::datatypes::{DataType, Int32Type};
use pagemill_types::builtin::oid;

use super::super::integers::numbers;
use super::super::keys::strings;
use super::super::rows::{Made, Outcome};
use super::super::text_form::payload_of_text;
use super::super::{Build, Implementation, KernelCall, call_kernel, implementation};
use super::documents::{Kind, trimmed};
use super::members::{at_path, document, jsonb_payload};
use crate::catalog::Catalog;
use crate::coerce::carrier_of;
use crate::error::{Result, SqlState, StatementError, unsupported};
use crate::typed::Typed;
use crate::types::PgType;

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(match key {
        "jsonb_bool" => Implementation::Kernel(boolean),
        "jsonb_numeric" => Implementation::Kernel(number),
        "jsonb_int2" | "jsonb_int4" | "jsonb_int8" | "jsonb_float4" | "jsonb_float8" => {
            Implementation::Build(by_way_of_numeric)
        }
        _ => return None,
    })
}

/// What messages call the result.
fn shown(key: &str) -> &'static str {
    match key {
        "jsonb_bool" => "boolean",
        "jsonb_int2" => "smallint",
        "jsonb_int4" => "integer",
        "jsonb_int8" => "bigint",
        "jsonb_float4" => "real",
        "jsonb_float8" => "double precision",
        _ => "numeric",
    }
}

fn by_way_of_numeric(build: &Build<'_>) -> Result<Typed> {
    let numeric = PgType::new(oid::NUMERIC);
    let carrier = carrier_of(build.catalog, numeric);
    let kernel = (build.key, number as super::super::Kernel);
    let found = call_kernel(build.catalog, kernel, build.arguments, numeric, carrier);
    let key = format!("numeric_{}", build.key.trim_start_matches("jsonb_"));
    let carrier = carrier_of(build.catalog, build.result);
    match implementation(&key) {
        Some(Implementation::Kernel(kernel)) => {
            Ok(call_kernel(build.catalog, (&key, kernel), &[found], build.result, carrier))
        }
        _ => unsupported(format!("function {}", build.key)),
    }
}

fn boolean(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    Made::column(each(call, arguments, Kind::Boolean, |text| Ok(text == "true"))?)
}

fn number(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let payload = |text: &str| payload_of_text(&call.catalog, PgType::new(oid::NUMERIC), text);
    Made::column(each(call, arguments, Kind::Number, payload)?)
}

fn each<T>(
    call: &KernelCall,
    arguments: &[ArrayRef],
    wanted: Kind,
    of: impl Fn(&str) -> Outcome<T>,
) -> Outcome<Vec<Option<T>>> {
    // From 18 on a null is NULL.
    let takes_null = call.catalog.database().cluster().version().major() >= 18;
    let one = |row: usize| {
        if arguments[0].is_null(row) {
            return Ok(None);
        }
        let text = document(&arguments[0], row)?.0;
        match Kind::of(&text) {
            Kind::Null if takes_null => Ok(None),
            kind if kind == wanted => of(trimmed(&text)).map(Some),
            kind => Err(cannot_cast(kind, &call.key)),
        }
    };
    (0..arguments[0].len()).map(one).collect()
}

#[cold]
fn cannot_cast(kind: Kind, key: &str) -> StatementError {
    let kind = match kind {
        Kind::Number => "numeric",
        other => other.name(),
    };
    let message = format!("cannot cast jsonb {kind} to type {}", shown(key));
    StatementError::new(SqlState::INVALID_PARAMETER, message)
}

/// The part of a jsonb at these subscripts, each a number or a text.
pub(crate) fn subscripted(catalog: &Arc<Catalog>, arguments: &[Typed]) -> Typed {
    let result = PgType::new(oid::JSONB);
    let carrier = carrier_of(catalog, result);
    call_kernel(catalog, ("jsonb subscript", part_at), arguments, result, carrier)
}

fn part_at(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let step = |column: &ArrayRef, row: usize| match column.data_type() {
        DataType::Int32 => numbers::<Int32Type>(column).value(row).to_string(),
        _ => strings(column).value(row).to_owned(),
    };
    let one = |row: usize| -> Outcome<Option<Vec<u8>>> {
        if arguments.iter().any(|argument| argument.is_null(row)) {
            return Ok(None);
        }
        let text = document(&arguments[0], row)?.0;
        let steps: Vec<String> = arguments[1..].iter().map(|column| step(column, row)).collect();
        at_path(&text, &steps)?.map(|found| jsonb_payload(call, found)).transpose()
    };
    Made::column((0..arguments[0].len()).map(one).collect::<Outcome<Vec<_>>>()?)
}
