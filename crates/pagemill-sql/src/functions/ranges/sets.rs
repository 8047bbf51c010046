//! `unnest` of a multirange: its ranges in order, a row each.
//!
//! Invariant: an empty multirange gives no row.
//!
//! Source: `multirange_unnest` in `src/backend/utils/adt/multirangetypes.c`, PostgreSQL 14 to 18.

use arrow::array::ArrayRef;

use super::super::keys::payloads;
use super::super::rows::Outcome;
use super::super::sets::{Series, SetCall, made};
use super::kind::RangeKind;
use crate::error::StatementError;

/// The ranges of a multirange.
///
/// # Errors
/// When it is damaged.
pub(crate) fn unnest(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let Some((column, ty)) = call.columns.first().zip(call.arguments.first()) else {
        return Err(StatementError::unsupported("unnest without a multirange"));
    };
    let range = RangeKind::new(&call.catalog, column.ty)?;
    let found = RangeKind::new(&call.catalog, *ty)?.read(payloads(&arguments[0]).value(row))?;
    let one = |bounds| range.payload(&[bounds]);
    let rows = found.into_iter().map(one).collect::<Outcome<Vec<Vec<u8>>>>()?;
    Ok(made(rows, |payload: Vec<u8>, out| out[0].bytes(&payload)))
}
