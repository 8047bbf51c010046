//! The btree order of `hstore`, its hash, and what layout a value is in.
//!
//! An empty value comes first. Others are compared by all their texts in one, then by how many pairs they have, then by where each text
//! ends and whether it is NULL, which comes last.
//!
//! Invariant: two keys of [`order_key`] compare as [`compare`] compares the values. Values of PostgreSQL 9.0 and later are equal exactly
//! if their payloads are the same bytes; of values that an older version wrote only the key tells.
//! Source: `hstore_cmp` and `hstore_hash` in `contrib/hstore/hstore_op.c`, `hstore_version_diag` in `contrib/hstore/hstore_compat.c`,
//! PostgreSQL 14 to 18.

use std::cmp::Ordering;

use pagemill_format::error::Result;

use super::layout::{Hstore, is_flagged, new_fit, old_fit, payload_of};
use super::{Argument, CallError, Called, Value, payload_at};
use crate::extension::call::Letters;
use crate::jenkins_hash::hash_bytes;

/// The order of two values, as `hstore_cmp` has it.
///
/// # Errors
/// When a payload is damaged.
pub fn compare(a: &[u8], b: &[u8]) -> Result<Ordering> {
    let (a, b) = (Hstore::open(a)?, Hstore::open(b)?);
    if a.len() == 0 || b.len() == 0 {
        return Ok(a.len().cmp(&b.len()));
    }
    let texts = a.texts()?.cmp(b.texts()?);
    Ok(texts.then_with(|| a.len().cmp(&b.len())).then_with(|| a.ends().cmp(b.ends())))
}

/// Bytes that compare as `hstore_cmp` compares the values, and are the same for equal values only.
///
/// # Errors
/// When the payload is damaged.
pub fn order_key(payload: &[u8]) -> Result<Vec<u8>> {
    let hstore = Hstore::open(payload)?;
    let mut key = Vec::new();
    if hstore.len() == 0 {
        return Ok(key);
    }
    // A zero byte of a text has a one behind it, and the end of all texts a zero: it is less than whatever follows in a longer one.
    for &byte in hstore.texts()? {
        key.push(byte);
        if byte == 0 {
            key.push(1);
        }
    }
    key.extend_from_slice(&[0, 0]);
    key.extend_from_slice(&(hstore.len() as u32).to_be_bytes());
    let words = hstore.ends().map(|(end, is_null)| end << 1 | u32::from(is_null));
    key.extend(words.flat_map(u32::to_be_bytes));
    Ok(key)
}

fn compared(arguments: &[Argument<'_>]) -> std::result::Result<Ordering, CallError> {
    Ok(compare(payload_at(arguments, 0)?, payload_at(arguments, 1)?)?)
}

pub(super) fn cmp(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    Ok(Value::Int4(compared(arguments)? as i32))
}

pub(super) fn eq(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    Ok(Value::Bool(compared(arguments)?.is_eq()))
}

pub(super) fn ne(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    Ok(Value::Bool(compared(arguments)?.is_ne()))
}

pub(super) fn gt(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    Ok(Value::Bool(compared(arguments)?.is_gt()))
}

pub(super) fn ge(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    Ok(Value::Bool(compared(arguments)?.is_ge()))
}

pub(super) fn lt(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    Ok(Value::Bool(compared(arguments)?.is_lt()))
}

pub(super) fn le(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    Ok(Value::Bool(compared(arguments)?.is_le()))
}

pub(super) fn hash(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    Ok(Value::Int4(hashed(arguments, 0)? as i32))
}

pub(super) fn hash_extended(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    match arguments.get(1) {
        Some(Argument::Int8(seed)) => Ok(Value::Int8(hashed(arguments, *seed as u64)? as i64)),
        _ => Err(CallError::other_arguments()),
    }
}

/// The hash of a payload as it is, or as it would be written today.
fn hashed(arguments: &[Argument<'_>], seed: u64) -> std::result::Result<u64, CallError> {
    let payload = payload_at(arguments, 0)?;
    let hstore = Hstore::open(payload)?;
    Ok(match is_flagged(payload) {
        true => hash_bytes(payload, seed),
        false => hash_bytes(&payload_of(&hstore.pairs()?)?, seed),
    })
}

/// Tens: how well the payload fits the old layout. Units: how well it fits the new one.
pub(super) fn version_diag(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    let payload = payload_at(arguments, 0)?;
    let old = if is_flagged(payload) { 0 } else { old_fit(payload) };
    Ok(Value::Int4(i32::from(10 * old + new_fit(payload))))
}
