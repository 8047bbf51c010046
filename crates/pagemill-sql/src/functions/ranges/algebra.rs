//! Sets of values put together and taken apart: unions, intersections and differences of ranges and multiranges.
//!
//! A range is `Some` bounds, or `None` for the empty one; a multirange its ranges in order.
//!
//! Invariant: what comes out is in the canonical form of its type, and of bounds that are equal the one is kept that the server
//! keeps, as they need not look the same.
//!
//! Source: `range_minus_internal`, `range_union_internal`, `range_intersect_internal` in
//! `src/backend/utils/adt/rangetypes.c`, `multirange_minus_internal`, `multirange_intersect_internal` and
//! `multirange_canonicalize` in `multirangetypes.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use pagemill_types::input::InputError;
use pagemill_types::input::range::{Bound, Bounds};
use pagemill_types::input::tree::RangeInput;
use pagemill_types::order::ValueOrder;

use super::relations;

/// A range, `None` for the empty one.
pub(super) type Made = Result<Option<Bounds>, InputError>;
/// A multirange.
pub(super) type ManyMade = Result<Vec<Bounds>, InputError>;

/// `range + range`.
///
/// # Errors
/// When there is a gap between them.
pub(super) fn union(range: &RangeInput, a: Option<&Bounds>, b: Option<&Bounds>) -> Made {
    if let (Some(a), Some(b)) = (a, b)
        && !relations::meet(&range.order, a, b)
        && !relations::adjacent(&range.order, std::slice::from_ref(a), std::slice::from_ref(b))
    {
        return Err(InputError::new("result of range union would not be contiguous"));
    }
    merge(range, a, b)
}

/// The smallest range with both in it.
pub(super) fn merge(range: &RangeInput, a: Option<&Bounds>, b: Option<&Bounds>) -> Made {
    let (Some(a), Some(b)) = (a, b) else { return Ok(a.or(b).cloned()) };
    let lower = match a.lower.compare(&b.lower, &range.order) {
        Ordering::Less => &a.lower,
        _ => &b.lower,
    };
    let upper = match a.upper.compare(&b.upper, &range.order) {
        Ordering::Greater => &a.upper,
        _ => &b.upper,
    };
    made(range, lower, upper)
}

/// `range * range`.
pub(super) fn intersection(range: &RangeInput, a: Option<&Bounds>, b: Option<&Bounds>) -> Made {
    let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
    if !relations::meet(&range.order, a, b) {
        return Ok(None);
    }
    let lower = match a.lower.compare(&b.lower, &range.order) {
        Ordering::Less => &b.lower,
        _ => &a.lower,
    };
    let upper = match a.upper.compare(&b.upper, &range.order) {
        Ordering::Greater => &b.upper,
        _ => &a.upper,
    };
    made(range, lower, upper)
}

/// `range - range`.
///
/// # Errors
/// When the second one lies in the middle of the first.
pub(super) fn difference(range: &RangeInput, a: Option<&Bounds>, b: Option<&Bounds>) -> Made {
    let (Some(a), Some(b)) = (a, b) else { return Ok(a.cloned()) };
    if lies_inside(&range.order, b, a) {
        return Err(InputError::new("result of range difference would not be contiguous"));
    }
    if !relations::meet(&range.order, a, b) {
        return Ok(Some(a.clone()));
    }
    let begins_before = a.lower.compare(&b.lower, &range.order).is_lt();
    let ends_behind = a.upper.compare(&b.upper, &range.order).is_gt();
    match (begins_before, ends_behind) {
        (true, _) => made(range, &a.lower, &turned(&b.lower)),
        (false, true) => made(range, &turned(&b.upper), &a.upper),
        (false, false) => Ok(None),
    }
}

fn made(range: &RangeInput, lower: &Bound, upper: &Bound) -> Made {
    Bounds { lower: lower.clone(), upper: upper.clone() }.made(range)
}

/// Where what a bound shuts out ends, or begins.
fn turned(bound: &Bound) -> Bound {
    let Bound { value, inclusive, is_lower } = bound.clone();
    Bound { value, inclusive: !inclusive, is_lower: !is_lower }
}

/// True where a range leaves something of another one on both sides.
fn lies_inside(order: &ValueOrder, inner: &Bounds, outer: &Bounds) -> bool {
    outer.lower.compare(&inner.lower, order).is_lt()
        && outer.upper.compare(&inner.upper, order).is_gt()
}

/// `multirange + multirange`.
pub(super) fn unions(range: &RangeInput, a: &[Bounds], b: &[Bounds]) -> ManyMade {
    match (a, b) {
        ([], other) | (other, []) => Ok(other.to_vec()),
        _ => range.merged(a.iter().chain(b).cloned().collect()),
    }
}

/// `multirange * multirange`.
pub(super) fn intersections(range: &RangeInput, a: &[Bounds], b: &[Bounds]) -> ManyMade {
    let (mut found, mut at) = (Vec::new(), 0);
    for one in a {
        at += count_before(&range.order, b.get(at..).unwrap_or_default(), one);
        while let Some(other) = b.get(at).filter(|b| relations::meet(&range.order, one, b)) {
            found.extend(intersection(range, Some(one), Some(other))?);
            // It may reach into the next one.
            if other.upper.compare(&one.upper, &range.order).is_gt() {
                break;
            }
            at += 1;
        }
    }
    range.merged(found)
}

/// How many of the ranges end before one begins.
fn count_before(order: &ValueOrder, ranges: &[Bounds], one: &Bounds) -> usize {
    ranges.iter().take_while(|range| range.upper.compare(&one.lower, order).is_lt()).count()
}

/// `multirange - multirange`.
pub(super) fn differences(range: &RangeInput, a: &[Bounds], b: &[Bounds]) -> ManyMade {
    if b.is_empty() {
        return Ok(a.to_vec());
    }
    let (mut left, mut at) = (Vec::new(), 0);
    for one in a {
        at += count_before(&range.order, b.get(at..).unwrap_or_default(), one);
        let mut rest = Some(one.clone());
        while let Some(cut) = b.get(at) {
            let Some(part) = rest.take() else { break };
            if lies_inside(&range.order, cut, &part) {
                left.extend(made(range, &part.lower, &turned(&cut.lower))?);
                rest = made(range, &turned(&cut.upper), &part.upper)?;
                at += 1;
                continue;
            }
            if !relations::meet(&range.order, &part, cut) {
                rest = Some(part);
                break;
            }
            rest = difference(range, Some(&part), Some(cut))?;
            // What is cut off may go on behind this one.
            let is_cut_at_end =
                |rest: &Bounds| rest.upper.compare(&cut.lower, &range.order).is_lt();
            if rest.as_ref().is_none_or(is_cut_at_end) {
                break;
            }
            at += 1;
        }
        left.extend(rest);
    }
    range.merged(left)
}

/// The range from where the first of some begins to where the last ends.
pub(super) fn hull(range: &RangeInput, ranges: &[Bounds]) -> Made {
    match ranges {
        [] => Ok(None),
        [only] => Ok(Some(only.clone())),
        [first, .., last] => made(range, &first.lower, &last.upper),
    }
}

/// True where two ranges are equal and look different, so that it shows which of them comes last where they are sorted.
pub(super) fn is_loose(order: &ValueOrder, ranges: &[Bounds]) -> bool {
    let mut sorted: Vec<&Bounds> = ranges.iter().collect();
    sorted.sort_by(|a, b| relations::compare_two(order, a, b));
    sorted.windows(2).any(|pair| {
        relations::compare_two(order, pair[0], pair[1]).is_eq() && differ(pair[0], pair[1])
    })
}

fn differ(a: &Bounds, b: &Bounds) -> bool {
    a.lower.value != b.lower.value || a.upper.value != b.upper.value
}

/// The same of bounds alone, of which an intersection takes the one or the other.
pub(super) fn is_loose_at_bounds(order: &ValueOrder, ranges: &[Bounds]) -> bool {
    let is_loose = |mut bounds: Vec<&Bound>| {
        bounds.sort_by(|a, b| a.compare(b, order));
        bounds
            .windows(2)
            .any(|pair| pair[0].compare(pair[1], order).is_eq() && pair[0].value != pair[1].value)
    };
    is_loose(ranges.iter().map(|range| &range.lower).collect())
        || is_loose(ranges.iter().map(|range| &range.upper).collect())
}
