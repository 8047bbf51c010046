//! intarray: arrays of `integer` as sets and as lists, and `query_int`, what such an array is asked (`query.rs`).
//!
//! Functions that change an array in place (sorting, deleting) keep its bounds and its head; all others build one of one
//! dimension, whatever the shape of their arguments was.
//!
//! Invariant: NULL in an array is refused by every function but `icount`; sums of positions wrap as the server's do.
//! Source: `contrib/intarray/_int_op.c`, `_int_tool.c`, PostgreSQL 14 to 18.

pub mod query;

use std::collections::BTreeSet;

use super::arguments::{integer, payload, text};
use super::arrays::{Array, integers};
use super::call::{Argument, CallError, ExtensionFunction, Value, strict};

/// The functions of the library `_int`. All are strict.
pub const FUNCTIONS: &[ExtensionFunction] = &[
    strict("boolop", |_, a| matches(a, 0, 1)),
    strict("rboolop", |_, a| matches(a, 1, 0)),
    strict("querytree", |_, _| Err(CallError::new("XX000", "querytree is no longer implemented"))),
    strict("_int_contains", |_, a| on_sets(a, |a, b| Value::Bool(a.is_superset(b)))),
    strict("_int_contained", |_, a| on_sets(a, |a, b| Value::Bool(a.is_subset(b)))),
    strict("_int_overlap", |_, a| on_sets(a, |a, b| Value::Bool(!a.is_disjoint(b)))),
    strict("_int_same", |_, a| same(a).map(Value::Bool)),
    strict("_int_different", |_, a| same(a).map(|found| Value::Bool(!found))),
    strict("_int_union", |_, a| on_sets(a, |a, b| set(a.union(b)))),
    strict("_int_inter", |_, a| on_sets(a, |a, b| set(a.intersection(b)))),
    strict("intset_subtract", |_, a| on_sets(a, |a, b| set(a.difference(b)))),
    strict("intset", |_, a| Ok(list(vec![integer(a, 0)?]))),
    strict("icount", |_, a| Ok(Value::Int4(integers(payload(a, 0)?)?.elements.len() as i32))),
    strict("sort", |_, a| sort(a)),
    strict("sort_asc", |_, a| changed(a, |elements| elements.sort_unstable())),
    strict("sort_desc", |_, a| changed(a, |elements| elements.sort_unstable_by(|a, b| b.cmp(a)))),
    strict("uniq", |_, a| changed(a, Vec::dedup)),
    strict("idx", |_, a| index_of(a)),
    strict("subarray", |_, a| subarray(a)),
    strict("intarray_push_elem", |_, a| Ok(list([elements(a, 0)?, vec![integer(a, 1)?]].concat()))),
    strict("intarray_push_array", |_, a| Ok(list([elements(a, 0)?, elements(a, 1)?].concat()))),
    strict("intarray_del_elem", |_, a| {
        let element = integer(a, 1)?;
        changed(a, |elements| elements.retain(|one| *one != element))
    }),
    strict("intset_union_elem", |_, a| {
        let (found, element) = (elements(a, 0)?, integer(a, 1)?);
        Ok(set(&found.into_iter().chain([element]).collect::<BTreeSet<_>>()))
    }),
];

/// The elements of an array, of which none may be NULL.
fn elements(arguments: &[Argument<'_>], at: usize) -> Result<Vec<i32>, CallError> {
    Ok(array(arguments, at)?.present())
}

fn array(arguments: &[Argument<'_>], at: usize) -> Result<Array<i32>, CallError> {
    let found = integers(payload(arguments, at)?)?;
    match found.has_nulls() {
        true => Err(CallError::new("22004", "array must not contain nulls")),
        false => Ok(found),
    }
}

/// An array of one dimension.
fn list(elements: Vec<i32>) -> Value {
    let elements = elements.into_iter().map(Some).collect();
    Value::Payload(Array::of_one_dimension(elements).integers_payload())
}

fn set<'a>(elements: impl IntoIterator<Item = &'a i32>) -> Value {
    list(elements.into_iter().copied().collect())
}

fn on_sets(
    arguments: &[Argument<'_>],
    call: impl Fn(&BTreeSet<i32>, &BTreeSet<i32>) -> Value,
) -> Result<Value, CallError> {
    let (left, right) = (elements(arguments, 0)?, elements(arguments, 1)?);
    Ok(call(&left.into_iter().collect(), &right.into_iter().collect()))
}

/// The first argument with its elements changed. With fewer of them the first dimension has all, and every other one.
fn changed(
    arguments: &[Argument<'_>],
    change: impl FnOnce(&mut Vec<i32>),
) -> Result<Value, CallError> {
    let Array { mut dimensions, elements } = array(arguments, 0)?;
    let mut numbers: Vec<i32> = elements.into_iter().flatten().collect();
    let count = numbers.len();
    change(&mut numbers);
    if numbers.len() != count {
        let lengths = std::iter::once(numbers.len()).chain(std::iter::repeat(1));
        dimensions.iter_mut().zip(lengths).for_each(|(one, length)| one.len = length);
    }
    let elements = numbers.into_iter().map(Some).collect();
    Ok(Value::Payload(Array { dimensions, elements }.integers_payload()))
}

fn matches(arguments: &[Argument<'_>], array: usize, query: usize) -> Result<Value, CallError> {
    let mut found = elements(arguments, array)?;
    found.sort_unstable();
    let holds = |number: i32| found.binary_search(&number).is_ok();
    Ok(Value::Bool(query::holds(payload(arguments, query)?, holds)?))
}

/// True when both have the same elements, each as often.
fn same(arguments: &[Argument<'_>]) -> Result<bool, CallError> {
    let (mut left, mut right) = (elements(arguments, 0)?, elements(arguments, 1)?);
    left.sort_unstable();
    right.sort_unstable();
    Ok(left == right)
}

/// Sorts upwards, or as the second argument says, which is not looked at for fewer than two elements.
fn sort(arguments: &[Argument<'_>]) -> Result<Value, CallError> {
    let direction = if arguments.len() > 1 { text(arguments, 1)? } else { "asc" };
    if elements(arguments, 0)?.len() < 2 {
        return changed(arguments, |_| ());
    }
    if direction.eq_ignore_ascii_case("asc") {
        changed(arguments, |elements| elements.sort_unstable())
    } else if direction.eq_ignore_ascii_case("desc") {
        changed(arguments, |elements| elements.sort_unstable_by(|a, b| b.cmp(a)))
    } else {
        Err(CallError::new("22023", "second parameter must be \"ASC\" or \"DESC\""))
    }
}

/// The place of the first such element, from 1; 0 for none.
fn index_of(arguments: &[Argument<'_>]) -> Result<Value, CallError> {
    let (found, wanted) = (elements(arguments, 0)?, integer(arguments, 1)?);
    let at = found.iter().position(|one| *one == wanted);
    Ok(Value::Int4(at.map_or(0, |at| at as i32 + 1)))
}

/// The elements from a place on: to the end, so many, or all but so many at the end.
fn subarray(arguments: &[Argument<'_>]) -> Result<Value, CallError> {
    let (found, first) = (elements(arguments, 0)?, integer(arguments, 1)?);
    let length = if arguments.len() > 2 { integer(arguments, 2)? } else { 0 };
    let count = found.len() as i32;
    let start = match first {
        1.. => first - 1,
        0 => 0,
        _ => count.wrapping_add(first),
    };
    let end = match length {
        0 => count,
        1.. => start.wrapping_add(length),
        _ => count.wrapping_add(length),
    };
    let place = |at: i32| at.clamp(0, count) as usize;
    let part = found.get(place(start)..place(end)).unwrap_or_default();
    Ok(list(part.to_vec()))
}

#[cfg(test)]
mod tests;
