//! Ranges and multiranges: made of bounds, taken apart, held against each other, put together.
//!
//! ```text
//! payload ─► kind ─► bounds ─► relations, algebra ─► kind ─► payload
//! ```
//!
//! A value is carried as its payload. [`kind`] knows the type, [`relations`] and [`algebra`] nothing but bounds and their order.
//!
//! Invariant: where it shows which of two ranges is taken that are equal and look different, as `1.0` and `1.00` do, and the
//! server's choice is not known here, there is no answer.
//!
//! Source: `src/backend/utils/adt/rangetypes.c`, `multirangetypes.c`, PostgreSQL 14 to 18.

mod algebra;
mod collected;
mod constructed;
pub(crate) mod keys;
pub(super) mod kind;
mod parts;
mod relations;
pub(crate) mod sets;

#[cfg(test)]
mod tests;

use arrow::array::{Array as _, ArrayRef};
use pagemill_types::builtin::oid;
use pagemill_types::input::range::Bounds;
use pagemill_types::input::tree::RangeInput;

use super::rows::{Made, Outcome, two};
use super::{Implementation, Kernel, KernelCall};
use crate::error::StatementError;
use algebra::ManyMade;
pub(crate) use collected::collected;
use kind::{RangeKind, failed};
use relations::relation;

/// As many ranges as the server sorts in the order in which equal ones come.
const SORTED_IN_PLACE: usize = 6;

pub(crate) fn find(key: &str) -> Option<Implementation> {
    let kernel = parts::find(key).or_else(|| constructed::kernel(key)).or_else(|| own(key));
    kernel.map(Implementation::Kernel).or_else(|| constructed::find(key))
}

fn own(key: &str) -> Option<Kernel> {
    Some(match key {
        "range_contains_elem" | "multirange_contains_elem" => |call, a| has_value(call, a, (0, 1)),
        "elem_contained_by_range" | "elem_contained_by_multirange" => {
            |call, a| has_value(call, a, (1, 0))
        }
        "range_cmp" | "multirange_cmp" => compared,
        "int4range_subdiff" | "daterange_subdiff" => {
            |_, a| two(a, |x: i32, y: i32| Ok(f64::from(x) - f64::from(y)))
        }
        "int8range_subdiff" => |_, a| two(a, |x: i64, y: i64| Ok(x as f64 - y as f64)),
        "tsrange_subdiff" | "tstzrange_subdiff" => {
            |_, a| two(a, |x: i64, y: i64| Ok((x as f64 - y as f64) / 1_000_000.0))
        }
        _ if operation(key).is_some() => operated,
        _ if relation(key).is_some() => related,
        _ => return None,
    })
}

/// What two sets are together.
type Operation = fn(&RangeInput, &[Bounds], &[Bounds]) -> ManyMade;

fn operation(key: &str) -> Option<Operation> {
    Some(match key {
        "range_union" => |range, a, b| one(algebra::union(range, a.first(), b.first())),
        "range_merge" => |range, a, b| one(algebra::merge(range, a.first(), b.first())),
        "range_intersect" => |range, a, b| one(algebra::intersection(range, a.first(), b.first())),
        "range_minus" => |range, a, b| one(algebra::difference(range, a.first(), b.first())),
        "multirange_union" => algebra::unions,
        "multirange_intersect" => algebra::intersections,
        "multirange_minus" => algebra::differences,
        _ => return None,
    })
}

fn one(made: algebra::Made) -> ManyMade {
    made.map(|bounds| bounds.into_iter().collect())
}

/// What two values of each row give, if neither is NULL.
fn pairs<T: Made>(
    call: &KernelCall,
    arguments: &[ArrayRef],
    of: impl Fn(&RangeKind<'_>, &[Bounds], &[Bounds]) -> Outcome<T>,
) -> Outcome<ArrayRef> {
    let mut a = RangeKind::new(&call.catalog, call.arguments[0])?;
    let mut b = RangeKind::new(&call.catalog, call.arguments[1])?;
    let mut one = |row: usize| -> Outcome<Option<T>> {
        let found = a.at(&arguments[0], row)?.zip(b.at(&arguments[1], row)?);
        found.map(|(x, y)| of(&a, &x, &y)).transpose()
    };
    T::column((0..arguments[0].len()).map(&mut one).collect::<Outcome<_>>()?)
}

fn related(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let holds = relation(&call.key).expect("a kernel is found by its name"); // infallible: it was when the call was made
    pairs(call, arguments, |kind, a, b| Ok(holds(&kind.range().order, a, b)))
}

fn operated(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let made = operation(&call.key).expect("a kernel is found by its name"); // infallible: it was when the call was made
    pairs(call, arguments, |kind, a, b| {
        if &*call.key == "multirange_union" && !a.is_empty() && !b.is_empty() {
            check_sort(kind, &[a, b].concat(), a.len() + b.len())?;
        }
        kind.payload(&made(kind.range(), a, b).map_err(failed)?)
    })
}

/// Refuses so many ranges to be sorted, some of them empty, where it shows how the server does it.
fn check_sort(kind: &RangeKind<'_>, ranges: &[Bounds], count: usize) -> Outcome<()> {
    match count > SORTED_IN_PLACE && algebra::is_loose(&kind.range().order, ranges) {
        true => Err(loose()),
        false => Ok(()),
    }
}

#[cold]
fn loose() -> StatementError {
    StatementError::unsupported("a set of ranges that are equal and look different")
}

/// Whether a set has a value; where the set and the value are among the arguments.
fn has_value(
    call: &KernelCall,
    arguments: &[ArrayRef],
    (set, value): (usize, usize),
) -> Outcome<ArrayRef> {
    let mut kind = RangeKind::new(&call.catalog, call.arguments[set])?;
    let mut one = |row: usize| -> Outcome<Option<bool>> {
        let found = kind.at(&arguments[set], row)?.zip(kind.element(&arguments[value], row)?);
        let order = &kind.range().order;
        Ok(found
            .map(|(ranges, value)| relations::contains(order, &ranges, &[relations::point(value)])))
    };
    bool::column((0..arguments[0].len()).map(&mut one).collect::<Outcome<_>>()?)
}

/// The order as a number. Of some types the server tells more than which way it goes.
fn compared(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    const PLAIN: [pagemill_format::Oid; 6] =
        [oid::INT4, oid::INT8, oid::NUMERIC, oid::DATE, oid::TIMESTAMP, oid::TIMESTAMPTZ];
    pairs(call, arguments, |kind, a, b| match PLAIN.contains(&kind.row.subtype) {
        true => Ok(relations::compare(&kind.range().order, a, b) as i32),
        false => Err(StatementError::unsupported(format!("{} of this type", call.key))),
    })
}
