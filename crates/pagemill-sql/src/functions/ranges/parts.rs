//! What a range or multirange is made of: `lower`, `upper`, whether it has such bounds, `range_merge` of one multirange.
//!
//! Invariant: an empty one has no bounds, and none of theirs is infinite.
//!
//! Source: `range_lower` and its kin in `src/backend/utils/adt/rangetypes.c`, `multirange_lower` and its kin in
//! `multirangetypes.c`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef};
use datafusion::scalar::ScalarValue;
use pagemill_types::input::range::{Bound, Bounds};

use super::super::arrays::value::unexpected;
use super::super::rows::{Made, Outcome};
use super::super::text_form::scalar_of_payload;
use super::super::{Kernel, KernelCall};
use super::algebra::hull;
use super::kind::{RangeKind, failed};

pub(super) fn find(key: &str) -> Option<Kernel> {
    if matches!(key, "int4range_canonical" | "int8range_canonical" | "daterange_canonical") {
        return Some(canonical);
    }
    let name = key.strip_prefix("multirange_").or_else(|| key.strip_prefix("range_"))?;
    Some(match name {
        "lower" => |call, a| bound_values(call, a, first),
        "upper" => |call, a| bound_values(call, a, last),
        "empty" => |call, a| truths(call, a, <[Bounds]>::is_empty),
        "lower_inc" => |call, a| truths(call, a, |ranges| first(ranges).is_some_and(is_inclusive)),
        "upper_inc" => |call, a| truths(call, a, |ranges| last(ranges).is_some_and(is_inclusive)),
        "lower_inf" => |call, a| truths(call, a, |ranges| first(ranges).is_some_and(is_infinite)),
        "upper_inf" => |call, a| truths(call, a, |ranges| last(ranges).is_some_and(is_infinite)),
        "merge_from_multirange" => merged,
        _ => return None,
    })
}

fn first(ranges: &[Bounds]) -> Option<&Bound> {
    ranges.first().map(|range| &range.lower)
}

fn last(ranges: &[Bounds]) -> Option<&Bound> {
    ranges.last().map(|range| &range.upper)
}

fn is_inclusive(bound: &Bound) -> bool {
    bound.inclusive && bound.value.is_some()
}

fn is_infinite(bound: &Bound) -> bool {
    bound.value.is_none()
}

fn truths(
    call: &KernelCall,
    arguments: &[ArrayRef],
    of: fn(&[Bounds]) -> bool,
) -> Outcome<ArrayRef> {
    let mut kind = RangeKind::new(&call.catalog, call.arguments[0])?;
    let mut one = |row: usize| -> Outcome<Option<bool>> {
        Ok(kind.at(&arguments[0], row)?.map(|ranges| of(&ranges)))
    };
    bool::column((0..arguments[0].len()).map(&mut one).collect::<Outcome<_>>()?)
}

/// The values of a bound, NULL where there is none.
fn bound_values(
    call: &KernelCall,
    arguments: &[ArrayRef],
    of: fn(&[Bounds]) -> Option<&Bound>,
) -> Outcome<ArrayRef> {
    let mut kind = RangeKind::new(&call.catalog, call.arguments[0])?;
    let mut one = |row: usize| -> Outcome<ScalarValue> {
        let ranges = kind.at(&arguments[0], row)?.unwrap_or_default();
        match of(&ranges).and_then(|bound| bound.value.as_deref()) {
            Some(value) => scalar_of_payload(&call.catalog, call.result, &call.carrier, value),
            None => ScalarValue::try_from(&call.carrier).map_err(unexpected),
        }
    };
    let values = (0..arguments[0].len()).map(&mut one).collect::<Outcome<Vec<_>>>()?;
    match values.is_empty() {
        true => Ok(arrow::array::new_empty_array(&call.carrier)),
        false => ScalarValue::iter_to_array(values).map_err(unexpected),
    }
}

/// The payloads of ranges that are made of what there is.
fn remade(
    call: &KernelCall,
    arguments: &[ArrayRef],
    of: impl Fn(&RangeKind<'_>, Vec<Bounds>) -> Outcome<Option<Bounds>>,
) -> Outcome<ArrayRef> {
    let mut kind = RangeKind::new(&call.catalog, call.arguments[0])?;
    let result = RangeKind::new(&call.catalog, call.result)?;
    let mut one = |row: usize| -> Outcome<Option<Vec<u8>>> {
        let Some(ranges) = kind.at(&arguments[0], row)? else { return Ok(None) };
        let made: Vec<Bounds> = of(&kind, ranges)?.into_iter().collect();
        result.payload(&made).map(Some)
    };
    Vec::<u8>::column((0..arguments[0].len()).map(&mut one).collect::<Outcome<_>>()?)
}

fn merged(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    remade(call, arguments, |kind, ranges| hull(kind.range(), &ranges).map_err(failed))
}

fn canonical(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    remade(call, arguments, |kind, ranges| match ranges.into_iter().next() {
        Some(bounds) => bounds.made(kind.range()).map_err(failed),
        None => Ok(None),
    })
}
