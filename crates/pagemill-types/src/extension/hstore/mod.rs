//! `hstore`: keys with texts or NULL.
//!
//! A value's pairs lie by the lengths of their keys, then by the keys' bytes, each key once (see `layout.rs`). Set-returning functions are
//! what [`pairs`] gives: `each` all of it, `skeys` the keys, `svals` the values with NULL where there is none.
//!
//! Invariant: results are the bytes that the extension's own code makes; damaged payloads are an error, never a panic.
//! Source: `contrib/hstore/hstore_io.c`, `hstore_op.c`, `hstore_compat.c`, `hstore_subs.c`, PostgreSQL 14 to 18.

mod convert;
mod functions;
mod input;
mod json;
mod layout;
mod order;

#[cfg(test)]
mod tests;

use pagemill_format::error::Result;

use super::call::{Argument, Call, CallError, ExtensionFunction, Value, strict};
use layout::Hstore;

pub use input::{read_hstore, read_hstore_16};
pub use json::{JsonValues, write_json};
pub use layout::{Pair, payload_of};
pub use order::{compare, order_key};

/// The pairs of a payload, in the order they are kept in.
///
/// # Errors
/// When the payload is cut off, or in no layout of hstore; a pair, when its text ends out of bounds.
pub fn pairs(payload: &[u8]) -> Result<impl Iterator<Item = Result<Pair<'_>>>> {
    let hstore = Hstore::open(payload)?;
    Ok((0..hstore.len()).map(move |number| hstore.pair(number)))
}

/// The value of a key, as `h -> key` and the subscript `h[key]` find it: `None` where there is no such key, or its value is NULL.
///
/// # Errors
/// As [`pairs`].
pub fn fetch<'v>(payload: &'v [u8], key: &[u8]) -> Result<Option<&'v [u8]>> {
    let hstore = Hstore::open(payload)?;
    let Some(number) = hstore.find(key)? else { return Ok(None) };
    Ok(hstore.pair(number)?.1)
}

/// `hstore`: `"key"=>"value", "other"=>NULL`.
///
/// # Errors
/// As [`pairs`].
pub fn write_hstore(payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    for (number, pair) in pairs(payload)?.enumerate() {
        let (key, value) = pair?;
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        write_quoted(key, out);
        out.extend_from_slice(b"=>");
        match value {
            Some(value) => write_quoted(value, out),
            None => out.extend_from_slice(b"NULL"),
        }
    }
    Ok(())
}

fn write_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
        if byte == b'"' || byte == b'\\' {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

type Called = std::result::Result<Value, CallError>;
const fn not_strict(symbol: &'static str, call: Call) -> ExtensionFunction {
    ExtensionFunction { symbol, is_strict: false, call }
}

/// The functions, by the names of hstore 1.4 and later; behind them those that dumps of before PostgreSQL 9.0 name.
pub const FUNCTIONS: &[ExtensionFunction] = &[
    strict("hstore_version_diag", order::version_diag),
    strict("hstore_fetchval", functions::fetchval),
    strict("hstore_slice_to_array", functions::slice_to_array),
    strict("hstore_slice_to_hstore", functions::slice_to_hstore),
    strict("hstore_exists", functions::exists),
    strict("hstore_exists_any", functions::exists_any),
    strict("hstore_exists_all", functions::exists_all),
    strict("hstore_defined", functions::defined),
    strict("hstore_delete", functions::delete),
    strict("hstore_delete_array", functions::delete_array),
    strict("hstore_delete_hstore", functions::delete_hstore),
    strict("hstore_concat", functions::concat),
    strict("hstore_contains", functions::contains),
    strict("hstore_contained", functions::contained),
    not_strict("hstore_from_text", convert::from_text),
    not_strict("hstore_from_arrays", convert::from_arrays),
    strict("hstore_from_array", convert::from_array),
    strict("hstore_to_json", json::to_json),
    strict("hstore_to_json_loose", json::to_json_loose),
    strict("hstore_to_jsonb", json::to_jsonb),
    strict("hstore_to_jsonb_loose", json::to_jsonb_loose),
    strict("hstore_to_array", convert::to_array),
    strict("hstore_to_matrix", convert::to_matrix),
    strict("hstore_akeys", convert::akeys),
    strict("hstore_avals", convert::avals),
    strict("hstore_eq", order::eq),
    strict("hstore_ne", order::ne),
    strict("hstore_gt", order::gt),
    strict("hstore_ge", order::ge),
    strict("hstore_lt", order::lt),
    strict("hstore_le", order::le),
    strict("hstore_cmp", order::cmp),
    strict("hstore_hash", order::hash),
    strict("hstore_hash_extended", order::hash_extended),
    strict("fetchval", functions::fetchval),
    strict("exists", functions::exists),
    strict("defined", functions::defined),
    strict("delete", functions::delete),
    strict("hs_concat", functions::concat),
    strict("hs_contains", functions::contains),
    strict("hs_contained", functions::contained),
    not_strict("tconvert", convert::from_text),
    strict("akeys", convert::akeys),
    strict("avals", convert::avals),
];

/// The hstore that is the argument of this number.
fn hstore_at<'a>(
    arguments: &[Argument<'a>],
    number: usize,
) -> std::result::Result<Hstore<'a>, CallError> {
    Ok(Hstore::open(payload_at(arguments, number)?)?)
}

fn payload_at<'a>(
    arguments: &[Argument<'a>],
    number: usize,
) -> std::result::Result<&'a [u8], CallError> {
    match arguments.get(number) {
        Some(Argument::Payload(payload)) => Ok(payload),
        _ => Err(CallError::other_arguments()),
    }
}

fn text_at<'a>(
    arguments: &[Argument<'a>],
    number: usize,
) -> std::result::Result<&'a [u8], CallError> {
    match arguments.get(number) {
        Some(Argument::Text(text)) => Ok(text.as_bytes()),
        _ => Err(CallError::other_arguments()),
    }
}

/// A text of a value, or NULL.
fn text_value(text: Option<&[u8]>) -> Called {
    let Some(text) = text else { return Ok(Value::Null) };
    let text = str::from_utf8(text);
    let text = text.map_err(|_| CallError::new("XX001", "a text of an hstore is not in UTF-8"))?;
    Ok(Value::Text(text.to_owned()))
}
