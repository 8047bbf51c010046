//! `array_sort` and `array_reverse`: what the first dimension has, in another order.
//!
//! Invariant: where elements are equal and yet not the same, only so few are sorted that the server's algorithm keeps their
//! order; else the call is refused.
//!
//! Source: `array_sort_internal` and `array_reverse_n` in `src/backend/utils/adt/array_userfuncs.c`,
//! `src/include/lib/sort_template.h`, PostgreSQL 18.

use std::cmp::Ordering;

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use pagemill_cluster::collations::Collation;
use pagemill_format::Oid;
use pagemill_types::order::ValueOrder;

use super::super::keys::check_order;
use super::super::rows::Outcome;
use super::super::system::statement_error;
use super::super::{Kernel, KernelCall};
use super::array_at;
use super::changes::arrays;
use super::value::{ArrayParts, ElementType};
use crate::error::StatementError;

pub(super) fn find(key: &str) -> Option<Kernel> {
    Some(match key {
        "array_reverse" => reversed,
        "array_sort" | "array_sort_order" | "array_sort_order_nulls_first" => sorted,
        _ => return None,
    })
}

/// A part of the first dimension: one element, or all elements of a part.
type Item = Vec<Option<Vec<u8>>>;

/// The parts of the first dimension; nothing where there are less than two.
fn items(parts: &ArrayParts) -> Option<Vec<Item>> {
    let count = usize::try_from(parts.bounds.first()?.count).ok().filter(|count| *count > 1)?;
    let length = parts.elements.len() / count;
    Some(parts.elements.chunks(length.max(1)).map(<[_]>::to_vec).collect())
}

fn reversed(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    arrays(call, arguments[0].len(), |elements, row| {
        let Some(parts) = array_at(elements, &arguments[0], row)? else { return Ok(None) };
        let Some(mut items) = items(&parts) else { return Ok(Some(parts)) };
        items.reverse();
        Ok(Some(ArrayParts { bounds: parts.bounds, elements: items.concat() }))
    })
}

/// Which way a sort goes.
#[derive(Clone, Copy)]
struct Way {
    is_down: bool,
    nulls_first: bool,
}

fn sorted(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let own = call.arguments[0].collation;
    arrays(call, arguments[0].len(), |elements, row| {
        if arguments.iter().any(|argument| argument.is_null(row)) {
            return Ok(None);
        }
        let flag =
            |number: usize| arguments.get(number).map(|argument| argument.as_boolean().value(row));
        let is_down = flag(1).unwrap_or(false); // default: upward
        let nulls_first = flag(2).unwrap_or(is_down); // default: NULL is the greatest
        let Some(parts) = array_at(elements, &arguments[0], row)? else { return Ok(None) };
        let Some(items) = items(&parts) else { return Ok(Some(parts)) };
        let order = order(elements, own)?;
        let way = Way { is_down, nulls_first };
        let elements = match parts.bounds.len() {
            1 => in_order(items, |a, b| of_elements(&order, way, (a, b)))?,
            _ => in_order(items, |a, b| of_parts(&order, way.is_down, (a, b)))?,
        };
        Ok(Some(ArrayParts { bounds: parts.bounds, elements }))
    })
}

/// The order of the elements under the collation of the call, or that of their type.
fn order(elements: &ElementType<'_>, own: Oid) -> Outcome<ValueOrder> {
    let refused = || {
        let name = elements.catalog.type_name(elements.ty.oid);
        StatementError::unsupported(format!("an array of type {name} sorted"))
    };
    check_order(elements.catalog, elements.ty.oid).map_err(|_| refused())?;
    let database = elements.catalog.database();
    let collation = if own.is_valid() { own } else { elements.ty.collation };
    let strings = match collation.is_valid() {
        true => database.collation_of(collation).map_err(|error| statement_error(error.into()))?,
        // Of names.
        false => Collation::Bytes,
    };
    database.value_order(elements.ty.oid, Some(&strings)).map_err(|_| refused())
}

fn of_elements(order: &ValueOrder, way: Way, (a, b): (&Item, &Item)) -> Ordering {
    let of_nulls = if way.nulls_first { Ordering::Less } else { Ordering::Greater };
    match (a.first().and_then(Option::as_ref), b.first().and_then(Option::as_ref)) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => of_nulls,
        (Some(_), None) => of_nulls.reverse(),
        (Some(a), Some(b)) => directed(order.compare(a, b), way.is_down),
    }
}

/// Parts compare as arrays: by their first elements that differ, NULL above all.
fn of_parts(order: &ValueOrder, is_down: bool, (a, b): (&Item, &Item)) -> Ordering {
    let pairs = a.iter().zip(b);
    let mut compared = pairs.map(|pair| match pair {
        (Some(a), Some(b)) => order.compare(a, b),
        (a, b) => a.is_none().cmp(&b.is_none()),
    });
    let first = compared.find(|found| found.is_ne());
    directed(first.unwrap_or(Ordering::Equal), is_down) // default: no elements differ
}

fn directed(order: Ordering, is_down: bool) -> Ordering {
    if is_down { order.reverse() } else { order }
}

/// The elements of the items in their order.
fn in_order(
    mut items: Vec<Item>,
    compare: impl Fn(&Item, &Item) -> Ordering,
) -> Outcome<Vec<Option<Vec<u8>>>> {
    /// As many are inserted one after the other, which keeps the order of equal ones.
    const FEW: usize = 7;
    let was_sorted = items.is_sorted_by(|a, b| compare(a, b).is_le());
    items.sort_by(&compare);
    let is_known = |pair: &[Item]| pair[0] == pair[1] || compare(&pair[0], &pair[1]).is_ne();
    if items.len() >= FEW && !was_sorted && !items.windows(2).all(is_known) {
        return Err(StatementError::unsupported(
            "array_sort of elements that are equal and not the same",
        ));
    }
    Ok(items.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str) -> Item {
        vec![Some(text.as_bytes().to_vec())]
    }

    /// By the first letters alone.
    fn sorted_of(texts: &[&str]) -> Outcome<Vec<String>> {
        let items = texts.iter().map(|text| item(text)).collect();
        let letter = |item: &Item| item[0].as_ref().map(|bytes| bytes[0]);
        let found = in_order(items, |a, b| letter(a).cmp(&letter(b)))?;
        let text = |one: Option<Vec<u8>>| String::from_utf8_lossy(&one.unwrap()).into_owned();
        Ok(found.into_iter().map(text).collect())
    }

    #[test]
    fn equal_elements_keep_their_order_or_are_refused() {
        assert_eq!(sorted_of(&["b1", "a2", "a1"]).unwrap(), ["a2", "a1", "b1"]);
        let many = ["b1", "a2", "a1", "c", "d", "e", "f"];
        assert!(sorted_of(&many).is_err());
        let in_order = ["a2", "a1", "b1", "c", "d", "e", "f"];
        assert_eq!(sorted_of(&in_order).unwrap(), in_order);
        let same = ["b", "a", "a", "c", "d", "e", "f"];
        assert_eq!(sorted_of(&same).unwrap(), ["a", "a", "b", "c", "d", "e", "f"]);
    }

    #[test]
    fn the_first_dimension_is_taken_apart() {
        use super::super::value::Bound;
        let bound = |count| Bound { count, lower: 5 };
        let elements = (0..6u8).map(|number| Some(vec![number])).collect();
        let parts = ArrayParts { bounds: vec![bound(3), bound(2)], elements };
        let items = items(&parts).unwrap();
        assert_eq!(items.len(), 3);
        assert_eq!(items[1], vec![Some(vec![2]), Some(vec![3])]);
        assert!(super::items(&ArrayParts::of(vec![None])).is_none());
        assert!(super::items(&ArrayParts::of(Vec::new())).is_none());
    }
}
