//! Arguments of searches: values that PASSING gives, and those of DEFAULT, as their payloads.
//!
//! Invariant: numbers are passed as numerics and documents as jsonb; whoever binds a call sees to it.
//!
//! Source: `JsonItemFromDatum` in `src/backend/utils/adt/jsonpath_exec.c`, PostgreSQL 17 and 18.

use arrow::array::{Array as _, ArrayRef};
use pagemill_types::builtin::oid;

use super::super::super::rows::Outcome;
use super::super::super::text_form::payload_of;
use super::super::jsonpath::{Passed, PassedValue};
use super::Value;
use crate::catalog::Catalog;
use crate::error::{SqlState, StatementError};
use crate::types::PgType;

/// The values of one row; each name goes with a column and its type.
pub(super) fn passed(
    catalog: &Catalog,
    names: &[String],
    columns: (&[ArrayRef], &[PgType]),
    row: usize,
) -> Outcome<Vec<PassedValue>> {
    let one = |(name, (column, ty)): (&String, (&ArrayRef, &PgType))| {
        let value = one_passed(catalog, *ty, column, row)?;
        Ok(PassedValue { name: name.clone(), value })
    };
    names.iter().zip(columns.0.iter().zip(columns.1)).map(one).collect()
}

fn one_passed(catalog: &Catalog, ty: PgType, column: &ArrayRef, row: usize) -> Outcome<Passed> {
    let Some(payload) = value(catalog, ty, column, row)? else { return Ok(Passed::Null) };
    Ok(match ty.oid {
        oid::BOOL => Passed::Bool(payload.first() == Some(&1)),
        oid::NUMERIC => Passed::Number(payload),
        oid::TEXT | oid::VARCHAR => Passed::Text(payload),
        oid::JSONB => Passed::Document(payload),
        oid::DATE => Passed::Date(i32::from_le_bytes(bytes(&payload)?)),
        oid::TIME => Passed::Time(i64::from_le_bytes(bytes(&payload)?)),
        oid::TIMESTAMP => Passed::Timestamp(i64::from_le_bytes(bytes(&payload)?)),
        oid::TIMESTAMPTZ => Passed::TimestampTz(i64::from_le_bytes(bytes(&payload)?)),
        oid::TIMETZ => match payload.split_first_chunk::<8>() {
            Some((clock, west)) => {
                Passed::TimeTz(i64::from_le_bytes(*clock), i32::from_le_bytes(bytes(west)?))
            }
            None => return Err(damaged()),
        },
        other => Passed::Unfit(catalog.type_name(other)),
    })
}

fn bytes<const N: usize>(payload: &[u8]) -> Outcome<[u8; N]> {
    payload.try_into().map_err(|_| damaged())
}

#[cold]
fn damaged() -> StatementError {
    StatementError::new(SqlState::DATA_CORRUPTED, "a value of another length than its type's")
}

/// A value as its payload; nothing for NULL.
pub(super) fn value(
    catalog: &Catalog,
    ty: PgType,
    column: &ArrayRef,
    row: usize,
) -> Outcome<Value> {
    match column.is_null(row) {
        true => Ok(None),
        false => payload_of(catalog, ty, column, row).map(Some),
    }
}
