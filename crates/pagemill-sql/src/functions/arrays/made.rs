//! `ARRAY[…]`.
//!
//! Source: `ExecEvalArrayExpr` in `src/backend/executor/execExprInterp.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef};

use super::super::rows::{Made, Outcome};
use super::super::{KernelCall, call_kernel};
use super::array_at;
use super::value::{ArrayParts, Bound, ElementType};
use crate::catalog::Catalog;
use crate::coerce::carrier_of;
use crate::error::{SqlState, StatementError};
use crate::typed::Typed;
use crate::types::PgType;

/// `MAXDIM` in `src/include/c.h`.
const MOST_DIMENSIONS: usize = 6;

/// An array of these, each an element, or each an array of the result's own type.
pub(crate) fn array(
    catalog: &Arc<Catalog>,
    parts: &[Typed],
    result: PgType,
    nested: bool,
) -> Typed {
    let carrier = carrier_of(catalog, result);
    let (key, kernel): (_, super::super::Kernel) = match nested {
        true => ("array of arrays", of_arrays),
        false => ("array", of_elements),
    };
    call_kernel(catalog, (key, kernel), parts, result, carrier)
}

fn of_elements(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let elements = ElementType::of_array(&call.catalog, call.result)?;
    let rows = arguments.first().map_or(1, |column| column.len());
    let one = |row: usize| {
        let found = arguments.iter().map(|column| elements.element(column, row));
        ArrayParts::of(found.collect::<Outcome<_>>()?).payload(&elements).map(Some)
    };
    Made::column((0..rows).map(one).collect::<Outcome<Vec<Option<Vec<u8>>>>>()?)
}

fn of_arrays(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let elements = ElementType::of_array(&call.catalog, call.result)?;
    let one = |row: usize| {
        let inner = arguments.iter().map(|column| array_at(&elements, column, row));
        let inner = inner.collect::<Outcome<Vec<Option<ArrayParts>>>>()?;
        stacked(inner)?.payload(&elements).map(Some)
    };
    Made::column((0..arguments[0].len()).map(one).collect::<Outcome<Vec<Option<Vec<u8>>>>>()?)
}

/// Arrays of the same bounds as one of a dimension more. NULL and empty ones count only beside others.
fn stacked(inner: Vec<Option<ArrayParts>>) -> Outcome<ArrayParts> {
    let count = inner.len() as i32;
    let (mut bounds, mut all, mut has_empty): (Option<Vec<Bound>>, _, _) =
        (None, Vec::new(), false);
    for parts in inner {
        let Some(mut parts) = parts.filter(|parts| !parts.bounds.is_empty()) else {
            has_empty = true;
            continue;
        };
        if parts.bounds.len() >= MOST_DIMENSIONS {
            let message = format!(
                "number of array dimensions ({}) exceeds the maximum allowed ({MOST_DIMENSIONS})",
                parts.bounds.len() + 1
            );
            return Err(StatementError::new(SqlState("54000"), message));
        }
        if bounds.as_ref().is_some_and(|known| *known != parts.bounds) {
            return Err(unequal());
        }
        bounds = Some(parts.bounds);
        all.append(&mut parts.elements);
    }
    match bounds {
        None => Ok(ArrayParts::of(Vec::new())),
        Some(_) if has_empty => Err(unequal()),
        Some(mut inner) => {
            inner.insert(0, Bound { count, lower: 1 });
            Ok(ArrayParts { bounds: inner, elements: all })
        }
    }
}

#[cold]
fn unequal() -> StatementError {
    let message = "multidimensional arrays must have array expressions with matching dimensions";
    StatementError::new(SqlState("2202E"), message)
}
