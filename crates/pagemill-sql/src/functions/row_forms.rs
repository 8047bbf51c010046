//! Rows as what else they can be: texts, documents, and values of their types.
//!
//! ```text
//! fields of a row ──► (1,"a b",)      {"a":1,"b":"a b","c":null}      the payload of a tuple
//! ```
//!
//! Source: `record_out` in `src/backend/utils/adt/rowtypes.c`, `composite_to_json` in `json.c`, `heap_form_tuple` in
//! `src/backend/access/common/heaptuple.c`, PostgreSQL 14 to 18.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, BinaryBuilder, StringBuilder, new_null_array,
};
use arrow::datatypes::DataType;
use datafusion::common::Result as QueryResult;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    is_not_null,
};
use pagemill_types::builtin::oid;
use pagemill_types::composite::{composite_payload, quote_field};
use pagemill_types::json::write_json_string;
use pagemill_types::output::{TypeOutput, ValueType};

use super::logic::JsonWriter;
use super::row_values::{field_at, masked, presence};
use super::rows::Outcome;
use super::text_form::{Printer, payload_of, printer_of};
use crate::catalog::Catalog;
use crate::error::{SqlState, StatementError};
use crate::typed::{RowField, Typed};
use crate::types::{PgType, RECORD};

/// What a row is made into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Form {
    Text,
    /// With each field on a line of its own, or not.
    Json {
        has_lines: bool,
    },
    Payload,
}

/// `(a,b)`.
pub(crate) fn text_of_row(catalog: &Arc<Catalog>, row: &Typed) -> Typed {
    formed(catalog, row, Form::Text, PgType::new(oid::TEXT))
}

/// An object of the fields.
pub(crate) fn json_of_row(catalog: &Arc<Catalog>, row: &Typed, has_lines: bool) -> Typed {
    formed(catalog, row, Form::Json { has_lines }, PgType::new(oid::JSON))
}

/// A row as it is shown: one of a type as its value, and a record, which has no type of its own, as its text.
pub(crate) fn shown_row(catalog: &Arc<Catalog>, row: &Typed) -> Typed {
    let ty = row.ty;
    match ty.oid {
        RECORD => Typed { ty, ..text_of_row(catalog, row) },
        _ => formed(catalog, row, Form::Payload, ty),
    }
}

fn formed(catalog: &Arc<Catalog>, row: &Typed, form: Form, ty: PgType) -> Typed {
    let fields: Arc<[RowField]> = row.row.clone().unwrap_or_default();
    let field = |(at, field)| field_at(row, at, field).expr;
    let mut exprs: Vec<Expr> = fields.iter().enumerate().map(field).collect();
    exprs.push(presence(row).unwrap_or_else(|| is_not_null(row.expr.clone())));
    let signature = Signature::any(exprs.len(), Volatility::Immutable);
    let carrier = if form == Form::Payload { DataType::Binary } else { DataType::Utf8 };
    let made = FormRow { catalog: catalog.clone(), fields, form, ty, signature };
    let call = ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(made)), exprs);
    Typed::new(Expr::ScalarFunction(call), ty, carrier)
}

/// Makes the forms of rows, of their fields and whether there is a row.
struct FormRow {
    catalog: Arc<Catalog>,
    fields: Arc<[RowField]>,
    form: Form,
    /// Of a payload.
    ty: PgType,
    signature: Signature,
}

impl fmt::Debug for FormRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row as {:?}", self.form)
    }
}

impl PartialEq for FormRow {
    fn eq(&self, other: &Self) -> bool {
        self.form == other.form && self.ty == other.ty && self.fields == other.fields
    }
}

impl Eq for FormRow {}

impl Hash for FormRow {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.form, self.ty, self.fields.len()).hash(state);
    }
}

impl ScalarUDFImpl for FormRow {
    fn name(&self) -> &str {
        match self.form {
            Form::Text => "row as text",
            Form::Json { .. } => "row as json",
            Form::Payload => "row as value",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> QueryResult<DataType> {
        Ok(if self.form == Form::Payload { DataType::Binary } else { DataType::Utf8 })
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> QueryResult<ColumnarValue> {
        let rows = given.number_rows;
        let carriers = self.fields.iter().map(|field| &field.carrier).chain([&DataType::Boolean]);
        let column = |(value, carrier): (ColumnarValue, &DataType)| match value.data_type() {
            DataType::Null => Ok(new_null_array(carrier, rows)),
            _ => value.into_array(rows),
        };
        let columns = given.args.into_iter().zip(carriers).map(column);
        let mut columns = columns.collect::<QueryResult<Vec<ArrayRef>>>()?;
        let present = columns.pop().expect("whether there is a row comes last"); // infallible: by formed
        let made = self.made(&columns, &present).map_err(DataFusionError::from)?;
        Ok(ColumnarValue::Array(made))
    }
}

impl FormRow {
    fn made(&self, columns: &[ArrayRef], present: &ArrayRef) -> Outcome<ArrayRef> {
        let present = present.as_boolean();
        let is_there = |row: &usize| present.is_valid(*row) && present.value(*row);
        let rows = present.len();
        if self.form == Form::Payload {
            let value_type = value_type(&self.catalog, self.ty)?;
            let mut payloads = BinaryBuilder::new();
            for row in 0..rows {
                let payload = || {
                    let catalog = &self.catalog;
                    row_payload(catalog, (&value_type, &self.fields), columns, row)
                };
                let payload = is_there(&row).then(payload).transpose()?;
                payloads.append_option(payload);
            }
            return Ok(Arc::new(payloads.finish()));
        }
        let mut writer = RowWriter::new(&self.catalog, &self.fields, columns, self.form)?;
        let mut texts = StringBuilder::new();
        let mut text = Vec::new();
        for row in 0..rows {
            text.clear();
            match is_there(&row) {
                false => texts.append_null(),
                true => {
                    writer.write(row, &mut text)?;
                    texts.append_value(String::from_utf8_lossy(&text));
                }
            }
        }
        Ok(Arc::new(texts.finish()))
    }
}

/// Writes rows as texts or documents.
struct RowWriter<'w> {
    form: Form,
    fields: Vec<(&'w str, ArrayRef, FieldWriter<'w>)>,
}

/// Writes a field of rows.
enum FieldWriter<'w> {
    Text(Printer),
    Json(JsonWriter<'w>),
    Row(RowWriter<'w>),
}

impl<'w> RowWriter<'w> {
    fn new(
        catalog: &'w Arc<Catalog>,
        fields: &'w [RowField],
        columns: &[ArrayRef],
        form: Form,
    ) -> Outcome<Self> {
        let field = |(field, column): (&'w RowField, &ArrayRef)| {
            let writer = match (&field.row, form) {
                (Some(inner), _) => {
                    let rows = column.as_struct();
                    let columns = (0..inner.len()).map(|at| masked(rows, at));
                    let columns = columns.collect::<QueryResult<Vec<_>>>().map_err(damaged)?;
                    let form =
                        if form == Form::Text { form } else { Form::Json { has_lines: false } };
                    FieldWriter::Row(Self::new(catalog, inner, &columns, form)?)
                }
                (None, Form::Json { .. }) => FieldWriter::Json(JsonWriter::new(catalog, field.ty)?),
                (None, _) => FieldWriter::Text(printer_of(catalog, field.ty)?),
            };
            Ok((&*field.name, column.clone(), writer))
        };
        let fields = fields.iter().zip(columns).map(field).collect::<Outcome<_>>()?;
        Ok(Self { form, fields })
    }

    fn write(&mut self, row: usize, out: &mut Vec<u8>) -> Outcome<()> {
        match self.form {
            Form::Json { has_lines } => self.write_json(row, has_lines, out),
            Form::Text | Form::Payload => self.write_text(row, out),
        }
    }

    fn write_text(&mut self, row: usize, out: &mut Vec<u8>) -> Outcome<()> {
        out.push(b'(');
        for (number, (_, column, writer)) in self.fields.iter_mut().enumerate() {
            if number > 0 {
                out.push(b',');
            }
            if column.is_null(row) {
                continue;
            }
            let start = out.len();
            match writer {
                FieldWriter::Text(printer) => printer.print(column, row, out)?,
                FieldWriter::Json(writer) => writer.write(column, row, out)?,
                FieldWriter::Row(writer) => writer.write(row, out)?,
            }
            quote_field(out, start);
        }
        out.push(b')');
        Ok(())
    }

    fn write_json(&mut self, row: usize, has_lines: bool, out: &mut Vec<u8>) -> Outcome<()> {
        let separator: &[u8] = if has_lines { b",\n " } else { b"," };
        out.push(b'{');
        for (number, (name, column, writer)) in self.fields.iter_mut().enumerate() {
            if number > 0 {
                out.extend_from_slice(separator);
            }
            write_json_string(name.as_bytes(), out);
            out.push(b':');
            match writer {
                _ if column.is_null(row) => out.extend_from_slice(b"null"),
                FieldWriter::Text(printer) => printer.print(column, row, out)?,
                FieldWriter::Json(writer) => writer.write(column, row, out)?,
                FieldWriter::Row(writer) => writer.write(row, out)?,
            }
        }
        out.push(b'}');
        Ok(())
    }
}

fn damaged(error: impl fmt::Display) -> StatementError {
    StatementError::new(SqlState::DATA_CORRUPTED, error.to_string())
}

fn value_type(catalog: &Catalog, ty: PgType) -> Outcome<Arc<ValueType>> {
    catalog.values().value_type(ty.oid).map_err(damaged)
}

/// The payload of a row of a type.
fn row_payload(
    catalog: &Catalog,
    (value_type, fields): (&ValueType, &[RowField]),
    columns: &[ArrayRef],
    row: usize,
) -> Outcome<Vec<u8>> {
    let TypeOutput::Composite(attributes) = &value_type.output else {
        return Err(StatementError::unsupported("a row of a type that is none of rows"));
    };
    let mut payloads = Vec::with_capacity(fields.len());
    for (field, column) in fields.iter().zip(columns) {
        payloads.push(match (column.is_null(row), &field.row) {
            (true, _) => None,
            (false, None) => Some(payload_of(catalog, field.ty, column, row)?),
            (false, Some(inner)) => {
                let rows = column.as_struct();
                let columns = (0..inner.len()).map(|at| masked(rows, at));
                let columns = columns.collect::<QueryResult<Vec<_>>>().map_err(damaged)?;
                let value_type = self::value_type(catalog, field.ty)?;
                Some(row_payload(catalog, (&value_type, inner), &columns, row)?)
            }
        });
    }
    let made = composite_payload(value_type.oid, attributes, payloads.into_iter());
    made.map_err(|error| StatementError::new(SqlState("54000"), error.message))
}
