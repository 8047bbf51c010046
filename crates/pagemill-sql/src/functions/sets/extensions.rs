//! `skeys`, `svals` and `each` of hstore.
//!
//! Keys come in the order in which they are kept: shorter ones first.
//!
//! Source: `hstore_skeys`, `hstore_svals` and `hstore_each` in `contrib/hstore/hstore_op.c`, PostgreSQL 14 to 18.

use arrow::array::ArrayRef;
use pagemill_types::extension::hstore;

use super::super::extensions::require_utf8;
use super::super::keys::payloads;
use super::super::rows::Outcome;
use super::{Cells, Series, SetCall, made};
use crate::error::{SqlState, StatementError};

type Pair = (String, Option<String>);

fn read(call: &SetCall, arguments: &[ArrayRef], row: usize) -> Outcome<Vec<Pair>> {
    require_utf8(&call.catalog, &call.key)?;
    let damaged = |error: pagemill_format::Error| {
        StatementError::new(SqlState::DATA_CORRUPTED, error.to_string())
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pairs = hstore::pairs(payloads(&arguments[0]).value(row)).map_err(damaged)?;
    let of = |pair: Result<hstore::Pair<'_>, _>| {
        pair.map(|(key, value)| (text(key), value.map(text))).map_err(damaged)
    };
    pairs.map(of).collect()
}

/// All keys, or all values.
pub(super) fn texts(call: &SetCall, a: &[ArrayRef], row: usize) -> Outcome<Box<dyn Series>> {
    let pairs = read(call, a, row)?.into_iter();
    let texts = match &*call.key {
        "hstore/hstore_skeys" => pairs.map(|(key, _)| Some(key)).collect(),
        _ => pairs.map(|(_, value)| value).collect(),
    };
    Ok(made(texts, |text: Option<String>, out| put(&mut out[0], text.as_deref())))
}

/// Keys beside their values.
pub(super) fn pairs(call: &SetCall, a: &[ArrayRef], row: usize) -> Outcome<Box<dyn Series>> {
    Ok(made(read(call, a, row)?, |(key, value): Pair, out| {
        put(&mut out[0], Some(&key))?;
        put(&mut out[1], value.as_deref())
    }))
}

fn put(cells: &mut Cells, text: Option<&str>) -> Outcome<()> {
    match text {
        Some(text) => cells.text(text),
        None => cells.null(),
    }
}
