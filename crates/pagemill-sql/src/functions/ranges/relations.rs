//! How sets of values lie to each other: ranges in one another, before and behind, over and beside each other.
//!
//! A range is a multirange of one range, and the empty one of none, so that what holds for two multiranges holds for all pairs.
//!
//! Invariant: the ranges of a multirange are in order, with gaps between them. The empty set is in every other, and has no place.
//!
//! Source: `range_cmp_bounds`, `bounds_adjacent`, `range_contains_internal` and their kin in
//! `src/backend/utils/adt/rangetypes.c`, `multirange_contains_multirange_internal` and its kin in `multirangetypes.c`,
//! PostgreSQL 14 to 18.

use std::cmp::Ordering;

use pagemill_types::input::range::{Bound, Bounds};
use pagemill_types::order::ValueOrder;

/// A relation of two sets.
pub(super) type Relation = fn(&ValueOrder, &[Bounds], &[Bounds]) -> bool;

/// The relation that a function of the server tells, by its name.
pub(super) fn relation(key: &str) -> Option<Relation> {
    let word = key.strip_prefix("multirange_").or_else(|| key.strip_prefix("range_"))?;
    let word = word.strip_suffix("_multirange").or_else(|| word.strip_suffix("_range"));
    let whole = key.strip_prefix("range_");
    Some(match word.or(whole)? {
        "contains" => contains,
        "contained_by" => |order, a, b| contains(order, b, a),
        "overlaps" => overlap,
        "before" => before,
        "after" => |order, a, b| before(order, b, a),
        "overleft" => ends_within,
        "overright" => begins_within,
        "adjacent" => adjacent,
        _ => return None,
    })
}

/// The set of one value.
pub(super) fn point(value: Vec<u8>) -> Bounds {
    let bound = |is_lower| Bound { value: Some(value.clone()), inclusive: true, is_lower };
    Bounds { lower: bound(true), upper: bound(false) }
}

/// The order of two sets: range by range, what has no more of them first.
pub(super) fn compare(order: &ValueOrder, a: &[Bounds], b: &[Bounds]) -> Ordering {
    let different = a.iter().zip(b).map(|(a, b)| compare_two(order, a, b));
    let found = different.into_iter().find(|found| found.is_ne());
    found.unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// The order of two ranges that are not empty.
pub(super) fn compare_two(order: &ValueOrder, a: &Bounds, b: &Bounds) -> Ordering {
    a.lower.compare(&b.lower, order).then_with(|| a.upper.compare(&b.upper, order))
}

/// True where two ranges have a value in common, or a bound.
pub(super) fn meet(order: &ValueOrder, a: &Bounds, b: &Bounds) -> bool {
    a.lower.compare(&b.upper, order).is_le() && b.lower.compare(&a.upper, order).is_le()
}

/// `@>`: each range of the second lies in one of the first.
pub(super) fn contains(order: &ValueOrder, a: &[Bounds], b: &[Bounds]) -> bool {
    let mut rest = a;
    b.iter().all(|inner| {
        while let [first, behind @ ..] = rest
            && first.upper.compare(&inner.lower, order).is_lt()
        {
            rest = behind;
        }
        rest.first().is_some_and(|outer| {
            outer.lower.compare(&inner.lower, order).is_le()
                && outer.upper.compare(&inner.upper, order).is_ge()
        })
    })
}

/// `&&`.
fn overlap(order: &ValueOrder, mut a: &[Bounds], mut b: &[Bounds]) -> bool {
    while let ([x, behind_x @ ..], [y, behind_y @ ..]) = (a, b) {
        match () {
            () if x.upper.compare(&y.lower, order).is_lt() => a = behind_x,
            () if y.upper.compare(&x.lower, order).is_lt() => b = behind_y,
            () => return true,
        }
    }
    false
}

/// `<<`.
fn before(order: &ValueOrder, a: &[Bounds], b: &[Bounds]) -> bool {
    let (Some(last), Some(first)) = (a.last(), b.first()) else { return false };
    last.upper.compare(&first.lower, order).is_lt()
}

/// `&<`.
fn ends_within(order: &ValueOrder, a: &[Bounds], b: &[Bounds]) -> bool {
    let (Some(a), Some(b)) = (a.last(), b.last()) else { return false };
    a.upper.compare(&b.upper, order).is_le()
}

/// `&>`.
fn begins_within(order: &ValueOrder, a: &[Bounds], b: &[Bounds]) -> bool {
    let (Some(a), Some(b)) = (a.first(), b.first()) else { return false };
    a.lower.compare(&b.lower, order).is_ge()
}

/// `-|-`: one ends where the other begins. Between values in their canonical form that differ there are always others.
pub(super) fn adjacent(order: &ValueOrder, a: &[Bounds], b: &[Bounds]) -> bool {
    let ([first_a, ..], [first_b, ..]) = (a, b) else { return false };
    let (last_a, last_b) = (a.last().unwrap_or(first_a), b.last().unwrap_or(first_b)); // default: there is one
    last_a.upper.meets(&first_b.lower, order) || last_b.upper.meets(&first_a.lower, order)
}
