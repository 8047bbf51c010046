//! Columns of numbers, whatever carries them, read as numerics; and columns of payloads.
//!
//! Invariant: a decimal is read with as many places as its type has, whether they are zeros or not.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BinaryBuilder, Decimal128Array, Int16Array, Int32Array,
    Int64Array,
};
use arrow::datatypes::{DataType, Decimal128Type, Int16Type, Int32Type, Int64Type};

use super::super::integers::numbers;
use super::super::keys::payloads;
use super::value::{Number, Value};
use crate::error::StatementError;

/// Numbers exact to the last digit.
pub(crate) enum Numbers<'a> {
    Short(&'a Int16Array),
    Integer(&'a Int32Array),
    Long(&'a Int64Array),
    Decimal(&'a Decimal128Array, u32),
    Payload(&'a BinaryArray),
}

impl<'a> Numbers<'a> {
    pub(crate) fn of(array: &'a ArrayRef) -> Self {
        match array.data_type() {
            DataType::Int16 => Self::Short(numbers::<Int16Type>(array)),
            DataType::Int32 => Self::Integer(numbers::<Int32Type>(array)),
            DataType::Int64 => Self::Long(numbers::<Int64Type>(array)),
            DataType::Decimal128(_, scale) => {
                Self::Decimal(numbers::<Decimal128Type>(array), scale.unsigned_abs().into())
            }
            _ => Self::Payload(payloads(array)),
        }
    }

    /// The value of a row; none of NULL.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Result<Option<Value>, StatementError> {
        let number = match self {
            Self::Payload(array) if array.is_null(row) => return Ok(None),
            Self::Payload(array) => return Value::parse(array.value(row)).map(Some),
            Self::Short(array) if !array.is_null(row) => (i128::from(array.value(row)), 0),
            Self::Integer(array) if !array.is_null(row) => (i128::from(array.value(row)), 0),
            Self::Long(array) if !array.is_null(row) => (i128::from(array.value(row)), 0),
            Self::Decimal(array, scale) if !array.is_null(row) => (array.value(row), *scale),
            _ => return Ok(None),
        };
        Ok(Some(Number::new(number.0, number.1).into()))
    }
}

/// Of one column, a payload for each value.
pub(crate) fn map(
    array: &ArrayRef,
    of: impl Fn(&Value) -> Result<Value, StatementError>,
) -> Result<ArrayRef, StatementError> {
    let column = Numbers::of(array);
    build(array.len(), |row| column.get(row)?.map(|value| of(&value)).transpose())
}

/// Of two columns, a payload for each two values.
pub(crate) fn zip(
    a: &ArrayRef,
    b: &ArrayRef,
    of: impl Fn(&Value, &Value) -> Result<Value, StatementError>,
) -> Result<ArrayRef, StatementError> {
    let (left, right) = (Numbers::of(a), Numbers::of(b));
    build(a.len(), |row| match (left.get(row)?, right.get(row)?) {
        (Some(left), Some(right)) => of(&left, &right).map(Some),
        _ => Ok(None),
    })
}

/// A column of payloads, row by row.
pub(crate) fn build(
    rows: usize,
    mut of: impl FnMut(usize) -> Result<Option<Value>, StatementError>,
) -> Result<ArrayRef, StatementError> {
    let mut column = BinaryBuilder::with_capacity(rows, rows * 12);
    let mut payload = Vec::new();
    for row in 0..rows {
        match of(row)? {
            None => column.append_null(),
            Some(value) => {
                payload.clear();
                value.pack(&mut payload)?;
                column.append_value(&payload);
            }
        }
    }
    Ok(Arc::new(column.finish()))
}
