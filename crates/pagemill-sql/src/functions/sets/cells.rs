//! Columns that rows are appended to.
//!
//! Invariant: all columns of a builder have as many values as rows were appended.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, Int32Builder, Int64Builder, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::scalar::ScalarValue;

use super::super::rows::Outcome;
use super::{Series, SetCall};
use crate::error::{SqlState, StatementError};

/// A column that grows.
pub(crate) enum Cells {
    Int32(Int32Builder),
    Int64(Int64Builder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    /// Of any other carrier.
    Others(DataType, Vec<ScalarValue>),
}

/// An empty column of a carrier.
pub(crate) fn typed_cells(carrier: &DataType) -> Cells {
    match carrier {
        DataType::Int32 => Cells::Int32(Int32Builder::new()),
        DataType::Int64 => Cells::Int64(Int64Builder::new()),
        DataType::Utf8 => Cells::Text(StringBuilder::new()),
        DataType::Binary => Cells::Bytes(BinaryBuilder::new()),
        other => Cells::Others(other.clone(), Vec::new()),
    }
}

impl Cells {
    pub(crate) fn null(&mut self) -> Outcome<()> {
        match self {
            Self::Int32(column) => column.append_null(),
            Self::Int64(column) => column.append_null(),
            Self::Text(column) => column.append_null(),
            Self::Bytes(column) => column.append_null(),
            Self::Others(carrier, values) => {
                let null = ScalarValue::try_from(&*carrier);
                values.push(null.map_err(|error| no_column(error.to_string()))?);
            }
        }
        Ok(())
    }

    pub(crate) fn int4(&mut self, value: i32) {
        let Self::Int32(column) = self else { unreachable!("a column of integers") };
        column.append_value(value);
    }

    pub(crate) fn int8(&mut self, value: i64) {
        let Self::Int64(column) = self else { unreachable!("a column of integers") };
        column.append_value(value);
    }

    pub(crate) fn text(&mut self, value: &str) -> Outcome<()> {
        let Self::Text(column) = self else { unreachable!("a column of texts") };
        require_room(column.values_slice().len(), value.len())?;
        column.append_value(value);
        Ok(())
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) -> Outcome<()> {
        let Self::Bytes(column) = self else { unreachable!("a column of payloads") };
        require_room(column.values_slice().len(), value.len())?;
        column.append_value(value);
        Ok(())
    }

    /// A value of the column's carrier.
    pub(crate) fn scalar(&mut self, value: ScalarValue) -> Outcome<()> {
        match (&mut *self, value) {
            (Self::Int32(column), ScalarValue::Int32(value)) => column.append_option(value),
            (Self::Int64(column), ScalarValue::Int64(value)) => column.append_option(value),
            (Self::Text(_), ScalarValue::Utf8(Some(value))) => self.text(&value)?,
            (Self::Bytes(_), ScalarValue::Binary(Some(value))) => self.bytes(&value)?,
            (Self::Others(_, values), value) => values.push(value),
            _ => self.null()?,
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Outcome<ArrayRef> {
        Ok(match self {
            Self::Int32(mut column) => Arc::new(column.finish()),
            Self::Int64(mut column) => Arc::new(column.finish()),
            Self::Text(mut column) => Arc::new(column.finish()),
            Self::Bytes(mut column) => Arc::new(column.finish()),
            Self::Others(carrier, values) if values.is_empty() => {
                arrow::array::new_empty_array(&carrier)
            }
            Self::Others(_, values) => {
                ScalarValue::iter_to_array(values).map_err(|error| no_column(error.to_string()))?
            }
        })
    }
}

/// Offsets of a column count bytes in 31 bits.
fn require_room(used: usize, more: usize) -> Outcome<()> {
    match i32::try_from(used + more) {
        Ok(_) => Ok(()),
        Err(_) => Err(StatementError::unsupported("a batch of more than 2 GB of texts")),
    }
}

#[cold]
fn no_column(message: String) -> StatementError {
    StatementError::new(SqlState::DATA_CORRUPTED, message)
}

/// The value of an argument as one row.
struct OneRow(Option<ScalarValue>);

impl Series for OneRow {
    fn next(&mut self, out: &mut [Cells]) -> Outcome<bool> {
        match self.0.take() {
            None => Ok(false),
            Some(value) => out[0].scalar(value).map(|()| true),
        }
    }
}

pub(super) fn one_row(_: &SetCall, arguments: &[ArrayRef], row: usize) -> Outcome<Box<dyn Series>> {
    let value = ScalarValue::try_from_array(&arguments[0], row);
    Ok(Box::new(OneRow(Some(value.map_err(|error| no_column(error.to_string()))?))))
}
