//! Keys that sort as numerics do, and are equal where those are: 1.0 and 1.00 have the same.
//!
//! ```text
//! 0 -Infinity  1 negative  2 zero  3 positive  4 Infinity  5 NaN
//! weight + 2^23, 3 bytes, highest first
//! each base-10000 digit plus 1, 2 bytes, highest first, without zeros at the end; then 0
//! ```
//!
//! Of a negative number all bytes behind the first are inverted.
//!
//! Source: `cmp_numerics` in `src/backend/utils/adt/numeric.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryBuilder};
use arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, cast};
use pagemill_types::numeric::Numeric;

use super::super::keys::payloads;
use super::super::{KernelCall, call_kernel};
use super::{as_payload, decimal};
use crate::catalog::Catalog;
use crate::error::{SqlState, StatementError};
use crate::typed::Typed;

/// The key of a numeric: a decimal is its own.
pub(crate) fn key(catalog: &Arc<Catalog>, typed: &Typed) -> Expr {
    match typed.carrier {
        DataType::Binary => {
            let arguments = std::slice::from_ref(typed);
            call_kernel(catalog, ("numeric_key", key_column), arguments, typed.ty, DataType::Binary)
                .expr
        }
        _ => typed.expr.clone(),
    }
}

/// Keys of two numerics that can be held against each other.
pub(crate) fn comparable(catalog: &Arc<Catalog>, a: &Typed, b: &Typed) -> (Expr, Expr) {
    let (a, b) = (decimal::narrowed(a), decimal::narrowed(b));
    let common = decimal::shape(&a.carrier)
        .zip(decimal::shape(&b.carrier))
        .and_then(|(a, b)| decimal::carrier_of(decimal::common_shape(a, b)));
    match common {
        Some(common) => {
            let brought = |typed: &Typed| match typed.carrier == common {
                true => typed.expr.clone(),
                false => cast(typed.expr.clone(), common.clone()),
            };
            (brought(&a), brought(&b))
        }
        None => (key(catalog, &as_payload(catalog, &a)), key(catalog, &as_payload(catalog, &b))),
    }
}

fn key_column(_: &KernelCall, arguments: &[ArrayRef]) -> Result<ArrayRef, StatementError> {
    let values = payloads(&arguments[0]);
    let mut keys = BinaryBuilder::with_capacity(values.len(), values.len() * 12);
    let mut key = Vec::new();
    for value in values {
        match value {
            None => keys.append_null(),
            Some(payload) => {
                key.clear();
                put_key(payload, &mut key)?;
                keys.append_value(&key);
            }
        }
    }
    Ok(Arc::new(keys.finish()))
}

/// Appends the key of a payload.
pub(crate) fn put_key(payload: &[u8], key: &mut Vec<u8>) -> Result<(), StatementError> {
    let found = Numeric::parse(payload)
        .map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()))?;
    match found {
        Numeric::NegativeInfinity => key.push(0),
        Numeric::Infinity => key.push(4),
        Numeric::NaN => key.push(5),
        Numeric::Finite { negative, weight, digits, .. } => {
            put_number(negative, weight, digits, key)
        }
    }
    Ok(())
}

fn put_number(negative: bool, weight: i32, digits: &[[u8; 2]], key: &mut Vec<u8>) {
    let is_digit = |digit: &[u8; 2]| *digit != [0, 0];
    let Some(first) = digits.iter().position(is_digit) else { return key.push(2) };
    let end = digits.iter().rposition(is_digit).map_or(first, |last| last + 1);
    key.push(if negative { 1 } else { 3 });
    let start = key.len();
    let weight = (weight - first as i32 + (1 << 23)) as u32;
    key.extend_from_slice(&weight.to_be_bytes()[1..]);
    for digit in &digits[first..end] {
        key.extend((u16::from_le_bytes(*digit) + 1).to_be_bytes());
    }
    key.extend([0, 0]);
    if negative {
        key[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}
