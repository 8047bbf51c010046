//! Texts cut into rows: `regexp_matches`, `regexp_split_to_table`, `string_to_table`.
//!
//! Source: `regexp_matches` and `regexp_split_to_table` in `src/backend/utils/adt/regexp.c`, `split_text` in `varlena.c`,
//! PostgreSQL 14 to 18.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;

use pagemill_types::builtin::oid;

use super::super::keys::{payloads, strings};
use super::super::rows::Outcome;
use super::super::{Build, Implementation, implementation};
use super::{Asked, Series, SetCall, made};
use crate::error::Result;
use crate::types::PgType;

/// `text[]`.
const TEXT_ARRAY: pagemill_format::Oid = pagemill_format::Oid(1009);

/// Searches are made by the functions of values: parts as an array, whose elements are the rows, and all matches one behind
/// the other.
pub(super) fn rewrite(asked: &mut Asked<'_>) -> Result<()> {
    let (key, result, then) = match asked.key {
        key @ ("regexp_split_to_table" | "regexp_split_to_table_no_flags") => {
            (key, TEXT_ARRAY, "array_unnest")
        }
        key @ ("regexp_matches" | "regexp_matches_no_flags") => (key, oid::BYTEA, key),
        _ => return Ok(()),
    };
    let Some(Implementation::Build(build)) = implementation(key) else { return Ok(()) };
    let (catalog, arguments) = (asked.catalog, std::mem::take(&mut asked.arguments));
    let result = PgType::new(result);
    let build = build(&Build { catalog, key, arguments: &arguments, result });
    asked.arguments = vec![build?];
    asked.key = then;
    Ok(())
}

/// Payloads with their lengths in front.
pub(super) fn framed(_: &SetCall, arguments: &[ArrayRef], row: usize) -> Outcome<Box<dyn Series>> {
    let mut rest = payloads(&arguments[0]).value(row);
    let mut rows = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let Some((payload, more)) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)
        else {
            break;
        };
        rows.push(payload.to_vec());
        rest = more;
    }
    Ok(made(rows, |payload: Vec<u8>, out| out[0].bytes(&payload)))
}

/// `string_to_table`: NULL for the delimiter cuts between characters, and a part that is as the third argument is NULL.
pub(super) fn parts(_: &SetCall, arguments: &[ArrayRef], row: usize) -> Outcome<Box<dyn Series>> {
    let text = |number: usize| {
        let column = arguments.get(number).filter(|column| !column.is_null(row))?;
        debug_assert_eq!(column.data_type(), &DataType::Utf8, "texts were settled");
        Some(strings(column).value(row))
    };
    let parts: Vec<String> = match (text(0), text(1)) {
        (None | Some(""), _) => Vec::new(),
        (Some(whole), None) => whole.chars().map(String::from).collect(),
        (Some(whole), Some("")) => vec![whole.to_owned()],
        (Some(whole), Some(delimiter)) => whole.split(delimiter).map(str::to_owned).collect(),
    };
    let null = text(2);
    let rows = parts.into_iter().map(|part| (null != Some(part.as_str())).then_some(part));
    Ok(made(rows.collect(), |part: Option<String>, out| match part {
        Some(part) => out[0].text(&part),
        None => out[0].null(),
    }))
}
