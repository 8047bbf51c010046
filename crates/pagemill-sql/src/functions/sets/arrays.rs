//! `unnest` of arrays and `generate_subscripts`.
//!
//! Source: `array_unnest` and `generate_subscripts` in `src/backend/utils/adt/arrayfuncs.c`, PostgreSQL 14 to 18.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::Int32Type;
use pagemill_types::array::element_payloads;
use pagemill_types::composite::composite_fields;
use pagemill_types::output::{TypeOutput, ValueType};

use super::super::arrays::value::{ArrayParts, ElementType};
use super::super::keys::payloads;
use super::super::logic::arrays::bounds;
use super::super::rows::Outcome;
use super::super::text_form::scalar_of_payload;
use super::{Cells, Series, SetCall, SetColumn};
use crate::catalog::Catalog;
use crate::error::{SqlState, StatementError};

/// The elements of an array, in the order in which they are stored.
struct Elements {
    catalog: std::sync::Arc<Catalog>,
    column: SetColumn,
    left: std::vec::IntoIter<Option<Vec<u8>>>,
}

impl Series for Elements {
    fn next(&mut self, out: &mut [Cells]) -> Outcome<bool> {
        match self.left.next() {
            None => return Ok(false),
            Some(None) => out[0].null()?,
            Some(Some(payload)) => {
                let SetColumn { ty, carrier, .. } = &self.column;
                out[0].scalar(scalar_of_payload(&self.catalog, *ty, carrier, &payload)?)?;
            }
        }
        Ok(true)
    }
}

pub(super) fn unnest(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let damaged = |message: String| StatementError::new(SqlState::DATA_CORRUPTED, message);
    let column = call.columns[0].clone();
    let found = call.catalog.values().value_type(column.ty.oid);
    let layout = found.map_err(|error| damaged(error.to_string()))?.layout;
    let elements = element_payloads(payloads(&arguments[0]).value(row), layout);
    let left = elements.map_err(|error| damaged(error.to_string()))?.into_iter();
    Ok(Box::new(Elements { catalog: call.catalog.clone(), column, left }))
}

/// The fields of the rows of an array.
struct Rows {
    catalog: std::sync::Arc<Catalog>,
    columns: std::sync::Arc<[SetColumn]>,
    value_type: std::sync::Arc<ValueType>,
    left: std::vec::IntoIter<Option<Vec<u8>>>,
}

impl Series for Rows {
    fn next(&mut self, out: &mut [Cells]) -> Outcome<bool> {
        let Some(next) = self.left.next() else { return Ok(false) };
        let TypeOutput::Composite(attributes) = &self.value_type.output else {
            return Err(damaged("a row of a type that is none of rows"));
        };
        let fields = next.map(|payload| composite_fields(&payload, attributes)).transpose();
        let mut fields = fields.map_err(damaged)?.unwrap_or_default().into_iter();
        for (SetColumn { ty, carrier, .. }, cells) in self.columns.iter().zip(out) {
            match fields.next().flatten() {
                None => cells.null()?,
                Some(payload) => {
                    cells.scalar(scalar_of_payload(&self.catalog, *ty, carrier, &payload)?)?;
                }
            }
        }
        Ok(true)
    }
}

pub(super) fn unnest_rows(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let elements = ElementType::of_array(&call.catalog, call.arguments[0])?;
    let value_type = call.catalog.values().value_type(elements.ty.oid).map_err(damaged)?;
    let array = ArrayParts::read(&elements, payloads(&arguments[0]).value(row))?;
    let (catalog, columns) = (call.catalog.clone(), call.columns.clone());
    Ok(Box::new(Rows { catalog, columns, value_type, left: array.elements.into_iter() }))
}

#[cold]
fn damaged(error: impl std::fmt::Display) -> StatementError {
    StatementError::new(SqlState::DATA_CORRUPTED, error.to_string())
}

struct Subscripts {
    left: std::ops::RangeInclusive<i32>,
    is_reverse: bool,
}

impl Series for Subscripts {
    fn next(&mut self, out: &mut [Cells]) -> Outcome<bool> {
        let next = if self.is_reverse { self.left.next_back() } else { self.left.next() };
        next.into_iter().for_each(|subscript| out[0].int4(subscript));
        Ok(next.is_some())
    }
}

pub(super) fn subscripts(
    _: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let dimension = arguments[1].as_primitive::<Int32Type>().value(row);
    let found = bounds(payloads(&arguments[0]).value(row), dimension);
    let is_reverse = arguments.get(2).is_some_and(|reverse| reverse.as_boolean().value(row));
    // A dimension that the array has not gives nothing.
    let (lower, upper) = found.unwrap_or((1, 0));
    Ok(Box::new(Subscripts { left: lower..=upper, is_reverse }))
}
