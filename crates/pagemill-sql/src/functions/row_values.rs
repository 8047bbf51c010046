//! Rows as values: made of their fields, and taken apart again.
//!
//! A row is carried as a struct of what carries its fields. It goes through queries within a statement, so that their columns can be
//! named (`(x).n`), and to functions in SQL; whatever else would look at it refuses it by its type.
//!
//! Invariant: a field of a row that is not there is NULL.
//!
//! Source: `ExecEvalFieldSelect` in `src/backend/executor/execExprInterp.c`, PostgreSQL 18.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray, BooleanArray, StructArray, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::Result as QueryResult;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    is_not_null, lit, when,
};
use pagemill_format::Oid;
use pagemill_types::builtin::oid;

use super::call_kernel;
use super::rows::{Made, Outcome};
use crate::catalog::Catalog;
use crate::error::{Result, unsupported};
use crate::typed::{RowField, Typed};
use crate::types::{PgType, RECORD};

/// What the engine calls a row that is made.
const ROW: &str = "row of fields";

/// A row of a type, of expressions that are its fields.
pub(crate) fn row(ty: Oid, fields: Vec<(RowField, Expr)>) -> Typed {
    row_where(ty, fields, None)
}

/// The same; there is a row only where the expression is not NULL.
pub(crate) fn row_where(ty: Oid, fields: Vec<(RowField, Expr)>, present: Option<Expr>) -> Typed {
    let (fields, mut exprs): (Vec<RowField>, Vec<Expr>) = fields.into_iter().unzip();
    let field =
        |(at, field): (usize, &RowField)| Field::new(format!("f{at}"), field.carrier.clone(), true);
    let carried: Fields = fields.iter().enumerate().map(field).collect();
    let carrier = DataType::Struct(carried.clone());
    exprs.extend(present.map(is_not_null));
    let signature = match exprs.is_empty() {
        true => Signature::nullary(Volatility::Immutable),
        false => Signature::any(exprs.len(), Volatility::Immutable),
    };
    let function = ScalarUDF::new_from_impl(MakeRow { carried, signature });
    let call = ScalarFunction::new_udf(Arc::new(function), exprs);
    let typed = Typed::new(Expr::ScalarFunction(call), PgType::new(ty), carrier);
    Typed { row: Some(fields.into()), ..typed }
}

/// A field of a row, by its name; `None` where it has none of that name.
///
/// # Errors
/// Where two fields are called so.
pub(crate) fn field(row: &Typed, name: &str) -> Result<Option<Typed>> {
    let fields = row.row.as_deref().unwrap_or_default();
    let mut found = (0..fields.len()).filter(|at| fields[*at].name == name);
    let Some(at) = found.next() else { return Ok(None) };
    if fields[at].is_nameless {
        return unsupported("a field of a record that is chosen or found");
    }
    if found.next().is_some() {
        return unsupported(format!("a row with two fields \"{name}\""));
    }
    Ok(Some(field_at(row, at, &fields[at])))
}

/// A value whose fields, if it is a record, the server does not find by their names.
pub(crate) fn without_names(typed: Typed) -> Typed {
    let Some(fields) = typed.row.clone().filter(|_| typed.ty.oid == RECORD) else { return typed };
    let nameless = |field: &RowField| RowField { is_nameless: true, ..field.clone() };
    Typed { row: Some(fields.iter().map(nameless).collect()), ..typed }
}

/// Whether there is a row, of one that is made in the same place.
pub(super) fn presence(row: &Typed) -> Option<Expr> {
    match &row.expr {
        Expr::ScalarFunction(call) if call.name() == ROW => {
            let fields = row.row.as_deref().unwrap_or_default().len();
            Some(call.args.get(fields).cloned().unwrap_or_else(|| lit(true)))
        }
        _ => None,
    }
}

/// True for a row that is made in the same place.
pub(crate) fn is_made_row(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.name() == ROW)
}

pub(crate) fn field_at(row: &Typed, at: usize, field: &RowField) -> Typed {
    // Of a row that is made in the same place it is what the row was made of.
    if let Expr::ScalarFunction(call) = &row.expr
        && call.name() == ROW
        && let Some(expr) = call.args.get(at)
    {
        let typed = Typed::new(expr.clone(), field.ty, field.carrier.clone());
        return Typed { row: field.row.clone(), ..typed };
    }
    let signature = Signature::any(1, Volatility::Immutable);
    let name = format!("field {at}");
    let function = FieldOf { name, at, carrier: field.carrier.clone(), signature };
    let function = Arc::new(ScalarUDF::new_from_impl(function));
    let call = ScalarFunction::new_udf(function, vec![row.expr.clone()]);
    let typed = Typed::new(Expr::ScalarFunction(call), field.ty, field.carrier.clone());
    Typed { row: field.row.clone(), ..typed }
}

/// Whether one of the arguments is NULL. All of them are computed, as the server computes them before it looks.
///
/// # Errors
/// For a row that may not be there, where the engine cannot ask for that.
pub(crate) fn any_null(catalog: &Arc<Catalog>, arguments: &[Typed]) -> Result<Option<Typed>> {
    let mut tested = Vec::new();
    for argument in arguments {
        match (&argument.row, &argument.expr) {
            (None, Expr::Literal(value, _)) if !value.is_null() => {}
            (None, _) => tested.push(argument.clone()),
            (Some(fields), _) => {
                let witness = fields.iter().position(|field| field.is_never_null);
                match (witness, presence(argument)) {
                    (Some(at), _) => tested.push(field_at(argument, at, &fields[at])),
                    (None, Some(present)) if present == lit(true) => {}
                    (None, Some(present)) => {
                        let there = when(present, lit(true)).end()?;
                        tested.push(Typed::new(there, PgType::new(oid::BOOL), DataType::Boolean));
                    }
                    (None, None) => tested.push(Typed { row: None, ..argument.clone() }),
                }
            }
        }
    }
    if tested.is_empty() {
        return Ok(None);
    }
    let truth = PgType::new(oid::BOOL);
    let kernel = ("null among", has_null as super::Kernel);
    Ok(Some(call_kernel(catalog, kernel, &tested, truth, DataType::Boolean)))
}

fn has_null(_: &super::KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let rows = arguments.first().map_or(0, |first| first.len());
    let one = |row: usize| Some(arguments.iter().any(|argument| argument.is_null(row)));
    Made::column((0..rows).map(one).collect::<Vec<Option<bool>>>())
}

/// Makes rows.
#[derive(Debug, PartialEq, Eq, Hash)]
struct MakeRow {
    carried: Fields,
    signature: Signature,
}

impl ScalarUDFImpl for MakeRow {
    fn name(&self) -> &str {
        ROW
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> QueryResult<DataType> {
        Ok(DataType::Struct(self.carried.clone()))
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> QueryResult<ColumnarValue> {
        let rows = given.number_rows;
        let column = |(value, field): (ColumnarValue, &Arc<Field>)| match value.data_type() {
            DataType::Null => Ok(new_null_array(field.data_type(), rows)),
            _ => value.into_array(rows),
        };
        let mut arguments = given.args.into_iter();
        let columns = arguments.by_ref().take(self.carried.len()).zip(&self.carried).map(column);
        let columns = columns.collect::<QueryResult<Vec<ArrayRef>>>()?;
        let present = match arguments.next() {
            None => None,
            Some(present) => {
                let present = present.into_array(rows)?;
                Some(NullBuffer::new(present.as_boolean().values().clone()))
            }
        };
        let made = match columns.is_empty() {
            true => StructArray::new_empty_fields(rows, present),
            false => StructArray::try_new(self.carried.clone(), columns, present)?,
        };
        Ok(ColumnarValue::Array(Arc::new(made)))
    }
}

/// Takes a field out of rows.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FieldOf {
    name: String,
    at: usize,
    carrier: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for FieldOf {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> QueryResult<DataType> {
        Ok(self.carrier.clone())
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> QueryResult<ColumnarValue> {
        let rows = given.number_rows;
        let mut columns = given.args.into_iter().map(|value| value.into_array(rows));
        let array = match columns.next() {
            Some(array) => array?,
            None => new_null_array(&DataType::Null, rows),
        };
        let Some(found) = array.as_struct_opt() else {
            return Ok(ColumnarValue::Array(new_null_array(&self.carrier, rows)));
        };
        Ok(ColumnarValue::Array(masked(found, self.at)?))
    }
}

/// The values of a field, NULL where the row is.
pub(super) fn masked(rows: &StructArray, at: usize) -> QueryResult<ArrayRef> {
    let column = rows.column(at);
    let Some(present) = rows.nulls() else { return Ok(column.clone()) };
    let is_missing = BooleanArray::new(!present.inner(), None);
    Ok(arrow::compute::nullif(column, &is_missing)?)
}

#[cfg(test)]
mod tests {
    use arrow::array::Int32Array;

    use super::*;

    #[test]
    fn a_field_of_a_row_that_is_not_there_is_null() {
        let fields = Fields::from(vec![Field::new("f0", DataType::Int32, true)]);
        let column: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
        let there = NullBuffer::from(vec![true, false, true]);
        let rows = StructArray::new(fields, vec![column], Some(there));
        let found = masked(&rows, 0).unwrap();
        let found: Vec<Option<i32>> =
            found.as_primitive::<arrow::datatypes::Int32Type>().iter().collect();
        assert_eq!(found, [Some(1), None, Some(3)]);
    }
}
