//! Stored rows, and arrays of them, as documents: `to_json(t.c)` of a composite column.
//!
//! Invariant: an array of rows has the brackets of its dimensions, and a row each of its fields, NULL or not.
//!
//! Source: `composite_to_json`, `array_dim_to_json` in `src/backend/utils/adt/json.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use pagemill_types::composite::composite_fields;
use pagemill_types::json::write_json_string;
use pagemill_types::output::{TypeOutput, ValueType};

use super::super::arrays::value::{ArrayParts, Bound, ElementType};
use super::super::row_casts::fields_of_type;
use super::super::rows::Outcome;
use super::json_made::{JsonWriter, damaged};
use crate::catalog::Catalog;
use crate::error::Error;
use crate::types::PgType;

/// Writes values that have rows in them.
pub(super) enum RowsWriter<'c> {
    Row { value_type: Arc<ValueType>, fields: Vec<(String, JsonWriter<'c>)> },
    Array { elements: ElementType<'c>, writer: Box<JsonWriter<'c>> },
}

impl<'c> RowsWriter<'c> {
    /// For a type of rows, or of arrays of rows; none for any other.
    pub(super) fn new(
        catalog: &'c Catalog,
        ty: PgType,
        value_type: &Arc<ValueType>,
    ) -> Outcome<Option<Self>> {
        let base = catalog.base_type(ty.oid, ty.modifier).0;
        match &value_type.output {
            TypeOutput::Composite(_) => {
                let fields = fields_of_type(catalog, base).map_err(as_statement)?;
                let Some(fields) = fields else { return Ok(None) };
                let writer = |field: crate::typed::RowField| {
                    Ok((field.name, JsonWriter::new(catalog, field.ty)?))
                };
                let fields = fields.into_iter().map(writer).collect::<Outcome<_>>()?;
                Ok(Some(Self::Row { value_type: value_type.clone(), fields }))
            }
            TypeOutput::Array(element) if matches!(element.output, TypeOutput::Composite(_)) => {
                let elements = ElementType::of_array(catalog, ty)?;
                let writer = Box::new(JsonWriter::new(catalog, elements.ty)?);
                Ok(Some(Self::Array { elements, writer }))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn write(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Outcome<()> {
        match self {
            Self::Row { value_type, fields } => write_row(value_type, fields, payload, out),
            Self::Array { elements, writer } => {
                let ArrayParts { bounds, elements } = ArrayParts::read(elements, payload)?;
                if bounds.is_empty() {
                    out.extend_from_slice(b"[]");
                    return Ok(());
                }
                write_dimension(&bounds, &mut elements.into_iter(), writer, out)
            }
        }
    }
}

fn write_row(
    value_type: &ValueType,
    fields: &mut [(String, JsonWriter<'_>)],
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Outcome<()> {
    let TypeOutput::Composite(attributes) = &value_type.output else {
        return Err(damaged("a row of a type that is none of rows"));
    };
    let mut found = composite_fields(payload, attributes).map_err(damaged)?.into_iter();
    out.push(b'{');
    for (number, (name, writer)) in fields.iter_mut().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        write_json_string(name.as_bytes(), out);
        out.push(b':');
        writer.write_value(found.next().flatten(), out)?;
    }
    out.push(b'}');
    Ok(())
}

/// One dimension with those within it, of which an array has six at most.
fn write_dimension(
    bounds: &[Bound],
    elements: &mut std::vec::IntoIter<Option<Vec<u8>>>,
    writer: &mut JsonWriter<'_>,
    out: &mut Vec<u8>,
) -> Outcome<()> {
    let Some((bound, inner)) = bounds.split_first() else {
        return writer.write_value(elements.next().flatten(), out);
    };
    out.push(b'[');
    for number in 0..bound.count {
        if number > 0 {
            out.push(b',');
        }
        write_dimension(inner, elements, writer, out)?;
    }
    out.push(b']');
    Ok(())
}

fn as_statement(error: Error) -> crate::error::StatementError {
    match error {
        Error::Statement(error) => error,
        other => damaged(other),
    }
}
