//! What is asked of an `hstore` by its keys: values, parts, unions.
//!
//! Keys come as a text or as an array of any dimensions, whose NULLs are passed over.
//!
//! Invariant: pairs of a result keep the order of keys, each key once.
//! Source: `contrib/hstore/hstore_op.c`, PostgreSQL 14 to 18.

use super::layout::{Hstore, Pair, compare_keys, payload_of, unique};
use super::{Argument, CallError, Called, Value, hstore_at, payload_at, text_at, text_value};
use crate::extension::arrays::{self, Array};
use crate::extension::call::Letters;

pub(super) fn fetchval(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    text_value(super::fetch(payload_at(arguments, 0)?, text_at(arguments, 1)?)?)
}

pub(super) fn exists(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    let found = hstore_at(arguments, 0)?.find(text_at(arguments, 1)?)?;
    Ok(Value::Bool(found.is_some()))
}

pub(super) fn defined(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    let found = super::fetch(payload_at(arguments, 0)?, text_at(arguments, 1)?)?;
    Ok(Value::Bool(found.is_some()))
}

pub(super) fn exists_any(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    let hstore = hstore_at(arguments, 0)?;
    for key in array_at(arguments, 1)?.present() {
        if hstore.find(&key)?.is_some() {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

pub(super) fn exists_all(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    let hstore = hstore_at(arguments, 0)?;
    for key in array_at(arguments, 1)?.present() {
        if hstore.find(&key)?.is_none() {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

pub(super) fn delete(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    let key = text_at(arguments, 1)?;
    let mut pairs = hstore_at(arguments, 0)?.pairs()?;
    pairs.retain(|pair| pair.0 != key);
    result(&pairs)
}

pub(super) fn delete_array(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    let keys = sorted_keys(array_at(arguments, 1)?);
    let mut pairs = hstore_at(arguments, 0)?.pairs()?;
    pairs.retain(|pair| keys.binary_search_by(|key| compare_keys(key, pair.0)).is_err());
    result(&pairs)
}

pub(super) fn delete_hstore(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    let deleted = hstore_at(arguments, 1)?;
    let mut kept = Vec::new();
    for pair in hstore_at(arguments, 0)?.pairs()? {
        if !has_pair(&deleted, pair)? {
            kept.push(pair);
        }
    }
    result(&kept)
}

pub(super) fn concat(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    let mut pairs = hstore_at(arguments, 1)?.pairs()?;
    pairs.extend(hstore_at(arguments, 0)?.pairs()?);
    // The sort is stable: of equal keys that of the second hstore comes first.
    pairs.sort_by(|a, b| compare_keys(a.0, b.0));
    pairs.dedup_by(|later, earlier| later.0 == earlier.0);
    result(&pairs)
}

pub(super) fn contains(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    is_part(arguments, 1, 0)
}

pub(super) fn contained(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    is_part(arguments, 0, 1)
}

fn is_part(arguments: &[Argument<'_>], part: usize, whole: usize) -> Called {
    let whole = hstore_at(arguments, whole)?;
    for pair in hstore_at(arguments, part)?.pairs()? {
        if !has_pair(&whole, pair)? {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

/// True where it has the key with the same value, NULL being the same as NULL.
fn has_pair(hstore: &Hstore<'_>, (key, value): Pair<'_>) -> Result<bool, CallError> {
    let Some(number) = hstore.find(key)? else { return Ok(false) };
    Ok(hstore.pair(number)?.1 == value)
}

pub(super) fn slice_to_array(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    let hstore = hstore_at(arguments, 0)?;
    let Array { dimensions, elements } = array_at(arguments, 1)?;
    let value = |key: &Option<Vec<u8>>| {
        let Some(key) = key else { return Ok(None) };
        let Some(number) = hstore.find(key)? else { return Ok(None) };
        Ok(hstore.pair(number)?.1)
    };
    let elements: Result<_, CallError> = elements.iter().map(value).collect();
    Ok(Value::Payload(Array { dimensions, elements: elements? }.texts_payload()))
}

pub(super) fn slice_to_hstore(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    let hstore = hstore_at(arguments, 0)?;
    let mut found = Vec::new();
    for key in array_at(arguments, 1)?.present() {
        if let Some(number) = hstore.find(&key)? {
            found.push(hstore.pair(number)?);
        }
    }
    result(&unique(found))
}

fn sorted_keys(array: Array<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut keys = array.present();
    keys.sort_by(|a, b| compare_keys(a, b));
    keys
}

/// The `text[]` that is the argument of this number.
pub(super) fn array_at(
    arguments: &[Argument<'_>],
    number: usize,
) -> Result<Array<Vec<u8>>, CallError> {
    Ok(arrays::texts(payload_at(arguments, number)?)?)
}

/// The hstore of pairs that are in order, each key once.
pub(super) fn result(pairs: &[Pair<'_>]) -> Called {
    Ok(Value::Payload(payload_of(pairs)?))
}
