//! Keys of arrays: bytes that sort as arrays do.
//!
//! Element by element, NULL above all, then the shorter first, then by dimensions, their lengths and lower bounds.
//!
//! Source: `array_cmp` in `src/backend/utils/adt/arrayfuncs.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    UInt32Type, UInt64Type,
};
use datafusion::logical_expr::Expr;

use super::super::keys::{payloads, strings};
use super::super::rows::{Made, Outcome};
use super::each::{ELEMENT, Each, Fold};
use super::value::{ArrayParts, ElementType};
use crate::catalog::Catalog;
use crate::error::{Result, StatementError};
use crate::typed::Typed;

/// What stands before an element, and behind the last.
const END: u8 = 0;
const VALUE: u8 = 1;
const NULL: u8 = 2;

/// The key of an array whose elements have this one.
pub(crate) fn array_key(
    catalog: &Arc<Catalog>,
    typed: &Typed,
    key: fn(&Arc<Catalog>, &Typed) -> Result<Expr>,
) -> Result<Expr> {
    let elements = ElementType::of_array(catalog, typed.ty)?;
    let column = datafusion::common::Column::new_unqualified(ELEMENT);
    let element = Typed::new(Expr::Column(column), elements.ty, elements.carrier.clone());
    let of_one = element.with_expr(key(catalog, &element)?);
    Each { of_one, fold: Fold::Key, array: typed.clone(), subject: None }.call(catalog)
}

/// The keys of arrays, from those of all their elements.
pub(super) fn keyed(arrays: &[Option<ArrayParts>], found: &ArrayRef) -> Outcome<ArrayRef> {
    let mut at = 0;
    let mut one = |parts: &Option<ArrayParts>| -> Outcome<Option<Vec<u8>>> {
        let Some(parts) = parts else { return Ok(None) };
        let mut key = Vec::new();
        for row in at..at + parts.elements.len() {
            match found.is_null(row) {
                true => key.push(NULL),
                false => {
                    key.push(VALUE);
                    push(found, row, &mut key)?;
                }
            }
        }
        at += parts.elements.len();
        key.push(END);
        key.push(parts.bounds.len() as u8);
        let counts = parts.bounds.iter().map(|bound| bound.count);
        let lowers = parts.bounds.iter().map(|bound| bound.lower);
        counts.chain(lowers).for_each(|number| key.extend(signed(number)));
        Ok(Some(key))
    };
    Made::column(arrays.iter().map(&mut one).collect::<Outcome<Vec<Option<Vec<u8>>>>>()?)
}

fn signed(number: i32) -> [u8; 4] {
    (number as u32 ^ 1 << 31).to_be_bytes()
}

/// Negative floats have all bits turned, others the sign.
fn float(bits: u64) -> [u8; 8] {
    let turned = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    turned.to_be_bytes()
}

/// Appends bytes that sort as the values do, none a part of another's beginning.
///
/// # Errors
/// When no key is carried so.
pub(crate) fn push(column: &ArrayRef, row: usize, key: &mut Vec<u8>) -> Outcome<()> {
    match column.data_type() {
        DataType::Boolean => key.push(u8::from(column.as_boolean().value(row))),
        DataType::Int16 => key.extend(signed(column.as_primitive::<Int16Type>().value(row).into())),
        DataType::Int32 => key.extend(signed(column.as_primitive::<Int32Type>().value(row))),
        DataType::Int64 => {
            let number = column.as_primitive::<Int64Type>().value(row);
            key.extend((number as u64 ^ 1 << 63).to_be_bytes());
        }
        DataType::UInt32 => {
            key.extend(column.as_primitive::<UInt32Type>().value(row).to_be_bytes())
        }
        DataType::UInt64 => {
            key.extend(column.as_primitive::<UInt64Type>().value(row).to_be_bytes())
        }
        DataType::Float32 => {
            let wide = f64::from(column.as_primitive::<Float32Type>().value(row));
            key.extend(float(wide.to_bits()));
        }
        DataType::Float64 => {
            key.extend(float(column.as_primitive::<Float64Type>().value(row).to_bits()));
        }
        DataType::Decimal128(..) => {
            let number = column.as_primitive::<Decimal128Type>().value(row);
            key.extend((number as u128 ^ 1 << 127).to_be_bytes());
        }
        DataType::Utf8 => push_bytes(strings(column).value(row).as_bytes(), key),
        DataType::Binary => push_bytes(payloads(column).value(row), key),
        other => return Err(StatementError::unsupported(format!("an array's key of {other}"))),
    }
    Ok(())
}

/// A zero is followed by 255, the end is two zeros.
fn push_bytes(bytes: &[u8], key: &mut Vec<u8>) {
    for byte in bytes {
        key.push(*byte);
        if *byte == 0 {
            key.push(0xFF);
        }
    }
    key.extend([0, 0]);
}
