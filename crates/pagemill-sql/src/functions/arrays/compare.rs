//! Arrays within one another: `@>`, `<@`, `&&`. Their order is that of their keys ([`super::each`]).
//!
//! Source: `array_contain_compare` in `src/backend/utils/adt/arrayfuncs.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use arrow::array::ArrayRef;
use pagemill_cluster::collations::Collation;
use pagemill_types::order::ValueOrder;

use super::super::rows::{Made, Outcome};
use super::super::{Kernel, KernelCall};
use super::value::{ArrayParts, ElementType};
use super::{array_at, elements_of};
use crate::error::{SqlState, StatementError};

pub(super) fn find(key: &str) -> Option<Kernel> {
    Some(match key {
        "arraycontains" | "arraycontained" | "arrayoverlap" => contained,
        _ => return None,
    })
}

/// Whether elements are the same: of texts, under every deterministic collation, their bytes.
pub(super) fn equality(elements: &ElementType<'_>) -> Outcome<ValueOrder> {
    let bytes = Some(&Collation::Bytes);
    let order = elements.catalog.database().value_order(elements.ty.oid, bytes);
    order.map_err(|_| {
        let name = elements.catalog.type_name(elements.ty.oid);
        StatementError::unsupported(format!("an array's elements of type {name} compared"))
    })
}

/// NULLs are equal.
pub(super) fn same(order: &ValueOrder, a: Option<&[u8]>, b: Option<&[u8]>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => order.compare(a, b) == Ordering::Equal,
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// What two arrays of each row give.
fn pairs<G>(
    call: &KernelCall,
    arguments: &[ArrayRef],
    order: &ValueOrder,
    of: impl Fn(&ValueOrder, &ArrayParts, &ArrayParts) -> G,
) -> Outcome<Vec<Option<G>>> {
    let elements = elements_of(call, 0)?;
    let one = |row: usize| {
        let (a, b) =
            (array_at(&elements, &arguments[0], row)?, array_at(&elements, &arguments[1], row)?);
        Ok(a.zip(b).map(|(a, b)| of(order, &a, &b)))
    };
    (0..arguments[0].len()).map(one).collect()
}

fn contained(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let order = equality(&elements_of(call, 0)?)?;
    // NULL is in no array, and none is within one with a NULL.
    let has = |order: &ValueOrder, all: &ArrayParts, wanted: &Option<Vec<u8>>| {
        wanted.as_ref().is_some_and(|wanted| {
            all.elements.iter().flatten().any(|one| order.compare(one, wanted) == Ordering::Equal)
        })
    };
    let holds = |order: &ValueOrder, a: &ArrayParts, b: &ArrayParts| match &*call.key {
        "arraycontains" => b.elements.iter().all(|wanted| has(order, a, wanted)),
        "arraycontained" => a.elements.iter().all(|wanted| has(order, b, wanted)),
        _ => a.elements.iter().any(|wanted| has(order, b, wanted)),
    };
    Made::column(pairs(call, arguments, &order, holds)?)
}

/// The server's words where a function wants one dimension.
#[cold]
pub(super) fn multidimensional(what: &str) -> StatementError {
    StatementError::new(SqlState::FEATURE_NOT_SUPPORTED, what)
}
