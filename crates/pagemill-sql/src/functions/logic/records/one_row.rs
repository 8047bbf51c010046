//! One row of a document as a value, in an expression: a row that is carried as its fields.
//!
//! Invariant: NULL for both the document and the row gives no row, which is not a row of NULLs.
//!
//! Source: `populate_record_worker`, `jsonb_populate_record_valid` in `src/backend/utils/adt/jsonfuncs.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, BooleanArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::Result as QueryResult;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    is_not_null,
};
use pagemill_format::Oid;
use pagemill_types::builtin::oid;

use super::super::super::call::columns_of;
use super::super::super::row_forms::shown_row;
use super::super::super::row_values::{field_at, presence};
use super::super::super::rows::Outcome;
use super::super::super::sets::{SetCall, SetColumn, typed_cells};
use super::VALID;
use crate::catalog::Catalog;
use crate::error::{SqlState, StatementError};
use crate::typed::{RowField, Typed};
use crate::types::PgType;

/// What a row that is given adds to the arguments of a call.
pub(crate) fn arguments_of_row(catalog: &Arc<Catalog>, row: &Typed) -> Vec<Typed> {
    let Some(fields) = &row.row else { return vec![row.clone()] };
    let field = |(at, field): (usize, &RowField)| {
        let found = field_at(row, at, field);
        if found.is_row() { shown_row(catalog, &found) } else { found }
    };
    let mut arguments: Vec<Typed> = fields.iter().enumerate().map(field).collect();
    let present = presence(row).unwrap_or_else(|| is_not_null(row.expr.clone()));
    arguments.push(Typed::new(present, PgType::new(oid::BOOL), DataType::Boolean));
    arguments
}

/// The row that a call makes, as an expression; or whether there would be one.
pub(crate) fn one_row(call: SetCall, arguments: &[Typed], row_type: Oid) -> Typed {
    let field = |column: &SetColumn| {
        let name = column.name.as_deref().unwrap_or_default().to_owned();
        RowField::new(name, column.ty, column.carrier.clone())
    };
    let fields: Arc<[RowField]> = call.columns.iter().map(field).collect();
    let carried =
        |(at, field): (usize, &RowField)| Field::new(format!("f{at}"), field.carrier.clone(), true);
    let carried: Fields = fields.iter().enumerate().map(carried).collect();
    let is_test = &*call.key == VALID;
    let takes = arguments.iter().map(|argument| argument.carrier.clone()).collect();
    let signature = Signature::any(arguments.len(), Volatility::Immutable);
    let function = FillRow { call, carried: carried.clone(), takes, signature };
    let exprs = arguments.iter().map(|argument| argument.expr.clone()).collect();
    let function = Arc::new(ScalarUDF::new_from_impl(function));
    let expr = Expr::ScalarFunction(ScalarFunction::new_udf(function, exprs));
    if is_test {
        return Typed::new(expr, PgType::new(oid::BOOL), DataType::Boolean);
    }
    let typed = Typed::new(expr, PgType::new(row_type), DataType::Struct(carried));
    Typed { row: Some(fields), ..typed }
}

/// Makes rows of documents.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FillRow {
    call: SetCall,
    carried: Fields,
    /// What carries the arguments.
    takes: Vec<DataType>,
    signature: Signature,
}

impl ScalarUDFImpl for FillRow {
    fn name(&self) -> &str {
        &self.call.key
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> QueryResult<DataType> {
        Ok(match &*self.call.key == VALID {
            true => DataType::Boolean,
            false => DataType::Struct(self.carried.clone()),
        })
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> QueryResult<ColumnarValue> {
        let rows = given.number_rows;
        let columns = columns_of(given.args, &self.takes, rows)?;
        let made = match &*self.call.key == VALID {
            true => self.tested(&columns, rows),
            false => self.filled(&columns, rows),
        };
        Ok(ColumnarValue::Array(made.map_err(DataFusionError::from)?))
    }
}

impl FillRow {
    fn filled(&self, arguments: &[ArrayRef], rows: usize) -> Outcome<ArrayRef> {
        let mut cells: Vec<_> = self.call.columns.iter().map(|c| typed_cells(&c.carrier)).collect();
        let mut present = Vec::with_capacity(rows);
        for row in 0..rows {
            let mut series = super::begin(&self.call, arguments, row)?;
            series.next(&mut cells)?;
            present.push(is_row(arguments, row));
        }
        let columns = cells.into_iter().map(|cells| cells.finish());
        let columns = columns.collect::<Outcome<Vec<ArrayRef>>>()?;
        let present = Some(NullBuffer::from(present));
        let made =
            match columns.is_empty() {
                true => StructArray::new_empty_fields(rows, present),
                false => StructArray::try_new(self.carried.clone(), columns, present).map_err(
                    |error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()),
                )?,
            };
        Ok(Arc::new(made))
    }

    fn tested(&self, arguments: &[ArrayRef], rows: usize) -> Outcome<ArrayRef> {
        let mut truths = Vec::with_capacity(rows);
        for row in 0..rows {
            truths.push(match super::begin(&self.call, arguments, row) {
                _ if !is_row(arguments, row) => None,
                Ok(_) => Some(true),
                Err(error) if is_of_values(&error) => Some(false),
                Err(error) => return Err(error),
            });
        }
        Ok(Arc::new(BooleanArray::from(truths)))
    }
}

/// Errors of values, which only mean that there is no row.
fn is_of_values(error: &StatementError) -> bool {
    error.state.0.starts_with("22") || error.state.0.starts_with("23")
}

/// Whether there is anything that a row could be made of.
fn is_row(arguments: &[ArrayRef], row: usize) -> bool {
    let is_given = match arguments {
        [] | [_] => false,
        [_, given] => given.is_valid(row),
        [.., present] => present.as_boolean().is_valid(row) && present.as_boolean().value(row),
    };
    is_given || arguments.first().is_some_and(|document| document.is_valid(row))
}
