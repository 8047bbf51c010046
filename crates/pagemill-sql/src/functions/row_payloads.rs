//! Rows of a type as they are stored, taken apart into what carries their fields.
//!
//! Invariant: a row that is older than the last fields of its type has NULL there, and one that is damaged is an error.
//!
//! Source: `heap_deform_tuple` in `src/backend/access/common/heaptuple.c`, `ExecEvalFieldSelect` in
//! `src/backend/executor/execExprInterp.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, StructArray, new_empty_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::scalar::ScalarValue;
use pagemill_types::composite::composite_fields;
use pagemill_types::output::TypeOutput;

use super::keys::payloads;
use super::row_casts::fields_of_type;
use super::rows::Outcome;
use super::text_form::scalar_of_payload;
use super::{KernelCall, call_kernel};
use crate::catalog::Catalog;
use crate::error::{Error, Result, SqlState, StatementError};
use crate::typed::{RowField, Typed};
use crate::types::PgType;

/// A row as its fields; anything else as it is.
///
/// # Errors
/// Where the catalogs do not tell what the fields are.
pub(crate) fn taken_apart(catalog: &Arc<Catalog>, typed: Typed) -> Result<Typed> {
    if typed.is_row() || typed.carrier != DataType::Binary {
        return Ok(typed);
    }
    let base = catalog.base_type(typed.ty.oid, -1).0;
    let Some(fields) = fields_of_type(catalog, base)?.filter(|fields| !fields.is_empty()) else {
        return Ok(typed);
    };
    let carrier = DataType::Struct(carried(&fields));
    let kernel = ("row apart", apart as super::Kernel);
    let (of_row, row) = (PgType::new(base), std::slice::from_ref(&typed));
    let made = call_kernel(catalog, kernel, row, of_row, carrier);
    Ok(Typed { row: Some(fields.into()), ..made })
}

fn carried(fields: &[RowField]) -> Fields {
    let field =
        |(at, field): (usize, &RowField)| Field::new(format!("f{at}"), field.carrier.clone(), true);
    fields.iter().enumerate().map(field).collect()
}

fn apart(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let catalog = &call.catalog;
    let fields = fields_of_type(catalog, call.result.oid).map_err(as_statement)?;
    let fields = fields.unwrap_or_default();
    let value_type = catalog.values().value_type(call.result.oid).map_err(damaged)?;
    let TypeOutput::Composite(attributes) = &value_type.output else {
        return Err(StatementError::unsupported("a row of a type that is none of rows"));
    };
    let rows = payloads(&arguments[0]);
    let mut columns: Vec<Vec<ScalarValue>> = vec![Vec::with_capacity(rows.len()); fields.len()];
    for payload in rows {
        let found = payload.map(|payload| composite_fields(payload, attributes)).transpose();
        let mut found = found.map_err(damaged)?.unwrap_or_default().into_iter();
        for (field, column) in fields.iter().zip(&mut columns) {
            column.push(match found.next().flatten() {
                Some(payload) => scalar_of_payload(catalog, field.ty, &field.carrier, &payload)?,
                None => ScalarValue::try_from(&field.carrier).map_err(damaged)?,
            });
        }
    }
    let column = |(values, field): (Vec<ScalarValue>, &RowField)| match values.is_empty() {
        true => Ok(new_empty_array(&field.carrier)),
        false => ScalarValue::iter_to_array(values).map_err(damaged),
    };
    let columns = columns.into_iter().zip(&fields).map(column).collect::<Outcome<Vec<_>>>()?;
    let present: NullBuffer =
        (0..rows.len()).map(|row| rows.is_valid(row)).collect::<Vec<_>>().into();
    let made = StructArray::try_new(carried(&fields), columns, Some(present));
    Ok(Arc::new(made.map_err(damaged)?))
}

fn as_statement(error: Error) -> StatementError {
    match error {
        Error::Statement(error) => error,
        other => damaged(other),
    }
}

fn damaged(error: impl std::fmt::Display) -> StatementError {
    StatementError::new(SqlState::DATA_CORRUPTED, error.to_string())
}
