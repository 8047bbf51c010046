//! `range_agg` and `range_intersect_agg`: all ranges of a group as one set.
//!
//! Invariant: the order of the rows does not show, nor repetitions; where it would, there is no answer. NULLs are left out, and
//! a group without anything else gives NULL.
//!
//! Source: `range_agg_transfn`, `range_agg_finalfn`, `multirange_agg_transfn` and `multirange_intersect_agg_transfn` in
//! `src/backend/utils/adt/multirangetypes.c`, `range_intersect_agg_transfn` in `rangetypes.c`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef};
use pagemill_types::input::range::Bounds;

use super::super::KernelCall;
use super::super::rows::Outcome;
use super::algebra;
use super::kind::{RangeKind, failed};
use super::loose;

/// The payload of what all ranges of a column have in common, or of all of them together.
///
/// # Errors
/// When a value is damaged, or it shows in which order they come.
pub(crate) fn collected(
    call: &KernelCall,
    column: &ArrayRef,
    is_common: bool,
) -> Outcome<Option<Vec<u8>>> {
    let mut kind = RangeKind::new(&call.catalog, call.arguments[0])?;
    let mut values: Vec<Vec<Bounds>> = Vec::new();
    for row in 0..column.len() {
        values.extend(kind.at(column, row)?);
    }
    let result = RangeKind::new(&call.catalog, call.result)?;
    let Some((first, rest)) = values.split_first() else { return Ok(None) };
    match is_common {
        true => result.payload(&common(&kind, first, rest)?).map(Some),
        false => result.payload(&together(&kind, values.concat())?).map(Some),
    }
}

fn together(kind: &RangeKind<'_>, all: Vec<Bounds>) -> Outcome<Vec<Bounds>> {
    match algebra::is_loose(&kind.range().order, &all) {
        true => Err(loose()),
        false => kind.range().merged(all).map_err(failed),
    }
}

fn common(kind: &RangeKind<'_>, first: &[Bounds], rest: &[Vec<Bounds>]) -> Outcome<Vec<Bounds>> {
    let all = [first, &rest.concat()].concat();
    if !rest.is_empty() && algebra::is_loose_at_bounds(&kind.range().order, &all) {
        return Err(loose());
    }
    let mut found = first.to_vec();
    for one in rest {
        found = algebra::intersections(kind.range(), &found, one).map_err(failed)?;
    }
    Ok(found)
}
