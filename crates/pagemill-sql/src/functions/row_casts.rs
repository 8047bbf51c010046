//! Rows without a type as rows of one, field by field: `ROW(1, 'x')::t`.
//!
//! Invariant: as many fields as the type has, each brought to the type of its place.
//!
//! Source: `coerce_record_to_complex` in `src/backend/parser/parse_coerce.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use datafusion::logical_expr::{Expr, lit, when};
use datafusion::scalar::ScalarValue;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use pagemill_types::output::TypeOutput;

use super::row_values::{field_at, presence, row_where};
use crate::catalog::{CastContext, Catalog};
use crate::coerce::{carrier_of, coerce};
use crate::error::{Result, SqlState, StatementError, fail, unsupported};
use crate::resolve::pathway;
use crate::typed::{RowField, Typed};
use crate::types::PgType;

/// The fields of rows of a type, in their order; `None` for a type that is none of rows.
pub(crate) fn fields_of_type(catalog: &Catalog, ty: Oid) -> Result<Option<Vec<RowField>>> {
    if catalog.type_row(ty).is_none_or(|row| row.kind != b'c') {
        return Ok(None);
    }
    let value_type = catalog.values().value_type(ty)?;
    let TypeOutput::Composite(attributes) = &value_type.output else { return Ok(None) };
    let Some(columns) = catalog.dictionary()?.row_columns(ty) else { return Ok(None) };
    let kept = attributes.iter().filter(|attribute| attribute.value_type.is_some());
    let modifiers: Vec<i32> = kept.map(|attribute| attribute.type_modifier).collect();
    if modifiers.len() != columns.len() {
        return Ok(None);
    }
    let field = |(column, modifier): (crate::definitions::ColumnRow, i32)| {
        let ty = PgType { oid: column.type_oid, modifier, collation: column.collation };
        let carrier = carrier_of(catalog, ty);
        RowField::new(column.name, ty, carrier)
    };
    Ok(Some(columns.into_iter().zip(modifiers).map(field).collect()))
}

/// A record as a row of a type.
///
/// # Errors
/// Where it has more or fewer fields, or one that is none of its place.
pub(crate) fn row_of_type(
    catalog: &Arc<Catalog>,
    record: &Typed,
    target: PgType,
    context: CastContext,
) -> Result<Typed> {
    // Of rows that are not made right there the server does not know the fields.
    let (Some(own), Some(present)) = (record.row.clone(), presence(record)) else {
        return unsupported("a cast of a row");
    };
    let Some(fields) = fields_of_type(catalog, target.oid)? else {
        return unsupported("a cast of a row");
    };
    let refused = || {
        let message = format!("cannot cast type record to {}", catalog.type_name(target.oid));
        StatementError::new(SqlState::CANNOT_COERCE, message)
    };
    if own.len() != fields.len() {
        return Err(refused().into());
    }
    let mut made = Vec::with_capacity(fields.len());
    for (at, field) in fields.into_iter().enumerate() {
        let value = as_written(field_at(record, at, &own[at]));
        let is_known = value.literal.is_some()
            || value.ty.oid == field.ty.oid
            || pathway(catalog, value.ty.oid, field.ty.oid, context).is_some();
        if !is_known {
            return Err(refused().into());
        }
        let value = coerce(catalog, value, field.ty, context)?;
        made.push((RowField::of(field.name, &value), value.expr));
    }
    // What is NULL where there is no row.
    let present = match present == lit(true) {
        true => None,
        false => Some(when(present, lit(true)).end()?),
    };
    Ok(row_where(target.oid, made, present))
}

/// A text that stands there as it was written, whose type follows from its place.
fn as_written(value: Typed) -> Typed {
    match (&value.expr, value.ty.oid) {
        (Expr::Literal(ScalarValue::Utf8(text), _), oid::TEXT) => Typed::unknown(text.clone()),
        _ => value,
    }
}

/// The fields of a list of column definitions.
///
/// # Errors
/// Where two are called the same.
pub(crate) fn check_names(fields: &[RowField]) -> Result<()> {
    for (at, field) in fields.iter().enumerate() {
        if fields[..at].iter().any(|other| other.name == field.name) {
            let message = format!("column name \"{}\" specified more than once", field.name);
            return fail(SqlState("42701"), message);
        }
    }
    Ok(())
}
