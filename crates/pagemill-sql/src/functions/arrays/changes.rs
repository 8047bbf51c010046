//! Arrays longer, shorter and with other elements; where an element is; their bounds as text.
//!
//! Source: `src/backend/utils/adt/array_userfuncs.c`, `array_replace_internal`, `array_dims` and `trim_array` in `arrayfuncs.c`,
//! PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef};
use arrow::datatypes::Int32Type;

use super::super::integers::numbers;
use super::super::keys::payloads;
use super::super::logic::arrays::{bounds, dimensions};
use super::super::rows::{Made, Outcome, one};
use super::super::{Kernel, KernelCall};
use super::compare::{equality, multidimensional, same};
use super::value::{ArrayParts, ElementType, too_many};
use super::{array_at, elements_of};
use crate::error::{SqlState, StatementError};

pub(super) fn find(key: &str) -> Option<Kernel> {
    Some(match key {
        "array_append" => |call, a| joined(call, a, 0),
        "array_prepend" => |call, a| joined(call, a, 1),
        "array_cat" => concatenated,
        "array_remove" | "array_replace" => replaced,
        "array_position" | "array_position_start" => position,
        "array_positions" => positions,
        "array_dims" => dims,
        "trim_array" => trimmed,
        _ => return None,
    })
}

/// A column of arrays, a row at a time.
pub(in crate::functions) fn arrays(
    call: &KernelCall,
    rows: usize,
    mut of: impl FnMut(&ElementType<'_>, usize) -> Outcome<Option<ArrayParts>>,
) -> Outcome<ArrayRef> {
    let elements = ElementType::of_array(&call.catalog, call.result)?;
    let mut one = |row| of(&elements, row)?.map(|parts| parts.payload(&elements)).transpose();
    Made::column((0..rows).map(&mut one).collect::<Outcome<Vec<Option<Vec<u8>>>>>()?)
}

/// An element behind an array, or before it; the array's place among the arguments tells.
fn joined(call: &KernelCall, arguments: &[ArrayRef], place: usize) -> Outcome<ArrayRef> {
    arrays(call, arguments[0].len(), |elements, row| {
        let parts = array_at(elements, &arguments[place], row)?;
        let element = elements.element(&arguments[1 - place], row)?;
        let Some(mut parts) = parts.filter(|parts| !parts.bounds.is_empty()) else {
            return Ok(Some(ArrayParts::of(vec![element])));
        };
        let [bound] = &mut parts.bounds[..] else {
            let message = "argument must be empty or one-dimensional array";
            return Err(StatementError::new(SqlState("22000"), message));
        };
        let full = || StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, "integer out of range");
        match place {
            0 => {
                bound.upper().checked_add(1).ok_or_else(full)?;
                parts.elements.push(element);
            }
            // What comes before has the number below, and the first keeps its own.
            _ => parts.elements.insert(0, element),
        }
        bound.count = bound.count.checked_add(1).ok_or_else(too_many)?;
        Ok(Some(parts))
    })
}

fn concatenated(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    arrays(call, arguments[0].len(), |elements, row| {
        let a = array_at(elements, &arguments[0], row)?;
        let b = array_at(elements, &arguments[1], row)?;
        match (a, b) {
            (Some(a), Some(b)) => concatenation(a, b).map(Some),
            (a, b) => Ok(a.or(b)),
        }
    })
}

fn concatenation(mut a: ArrayParts, mut b: ArrayParts) -> Outcome<ArrayParts> {
    if a.bounds.is_empty() || b.bounds.is_empty() {
        return Ok(if a.bounds.is_empty() { b } else { a });
    }
    let (own, other) = (a.bounds.len(), b.bounds.len());
    let detail = match own.abs_diff(other) {
        0 if a.bounds[1..] == b.bounds[1..] => None,
        1 if own > other && a.bounds[1..] == b.bounds[..] => None,
        1 if own < other && b.bounds[1..] == a.bounds[..] => None,
        _ => Some(()),
    };
    if detail.is_some() {
        return Err(StatementError::new(
            SqlState("2202E"),
            "cannot concatenate incompatible arrays",
        ));
    }
    if own < other {
        a.elements.append(&mut b.elements);
        b.bounds[0].count += 1;
        return Ok(ArrayParts { bounds: b.bounds, elements: a.elements });
    }
    a.elements.append(&mut b.elements);
    a.bounds[0].count += if own == other { b.bounds[0].count } else { 1 };
    Ok(a)
}

/// `array_remove` and `array_replace`.
fn replaced(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let order = equality(&ElementType::of_array(&call.catalog, call.result)?)?;
    arrays(call, arguments[0].len(), |elements, row| {
        let Some(mut parts) = array_at(elements, &arguments[0], row)? else { return Ok(None) };
        let wanted = elements.element(&arguments[1], row)?;
        let is_it = |one: &Option<Vec<u8>>| same(&order, one.as_deref(), wanted.as_deref());
        if let Some(replacement) = arguments.get(2) {
            let replacement = elements.element(replacement, row)?;
            let found = parts.elements.iter_mut().filter(|one| is_it(one));
            found.for_each(|one| *one = replacement.clone());
            return Ok(Some(parts));
        }
        if parts.bounds.len() > 1 {
            let what = "removing elements from multidimensional arrays is not supported";
            return Err(multidimensional(what));
        }
        parts.elements.retain(|one| !is_it(one));
        parts.bounds.iter_mut().for_each(|bound| bound.count = parts.elements.len() as i32);
        Ok(Some(if parts.elements.is_empty() { ArrayParts::of(Vec::new()) } else { parts }))
    })
}

/// The subscripts at which an element is; `None` without an array.
fn found(call: &KernelCall, arguments: &[ArrayRef], row: usize) -> Outcome<Option<Vec<i32>>> {
    let elements = elements_of(call, 0)?;
    let Some(parts) = array_at(&elements, &arguments[0], row)? else { return Ok(None) };
    let Some(bound) = parts.bounds.first() else { return Ok(Some(Vec::new())) };
    if parts.bounds.len() > 1 {
        let what = "searching for elements in multidimensional arrays is not supported";
        return Err(multidimensional(what));
    }
    let (order, wanted) = (equality(&elements)?, elements.element(&arguments[1], row)?);
    let is_it = |one: &Option<Vec<u8>>| same(&order, one.as_deref(), wanted.as_deref());
    let places = parts.elements.iter().zip(bound.lower..).filter(|(one, _)| is_it(one));
    Ok(Some(places.map(|(_, place)| place).collect()))
}

fn position(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let one = |row: usize| -> Outcome<Option<i32>> {
        let Some(places) = found(call, arguments, row)? else { return Ok(None) };
        let Some(start) = arguments.get(2) else { return Ok(places.first().copied()) };
        if start.is_null(row) {
            let is_empty = payloads(&arguments[0]).value(row).starts_with(&[0; 4]);
            if places.is_empty() && (is_empty || arguments[1].is_null(row)) {
                return Ok(None);
            }
            return Err(StatementError::new(
                SqlState("22004"),
                "initial position must not be null",
            ));
        }
        let start = numbers::<Int32Type>(start).value(row);
        Ok(places.into_iter().find(|place| *place >= start))
    };
    Made::column((0..arguments[0].len()).map(one).collect::<Outcome<Vec<Option<i32>>>>()?)
}

fn positions(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    arrays(call, arguments[0].len(), |_, row| {
        let places = found(call, arguments, row)?;
        let payload = |place: i32| Some(place.to_le_bytes().to_vec());
        Ok(places.map(|places| ArrayParts::of(places.into_iter().map(payload).collect())))
    })
}

/// Bounds as they are stored: an empty vector of numbers has some.
fn dims(_: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    one(arguments, |payload: &[u8]| {
        let count = dimensions(payload);
        let all = (1..=count).filter_map(|of| bounds(payload, of));
        let text = all.map(|(lower, upper)| format!("[{lower}:{upper}]")).collect::<String>();
        Ok((count > 0).then_some(text))
    })
}

fn trimmed(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    arrays(call, arguments[0].len(), |elements, row| {
        let Some(mut parts) = array_at(elements, &arguments[0], row)? else { return Ok(None) };
        if arguments[1].is_null(row) {
            return Ok(None);
        }
        let count = numbers::<Int32Type>(&arguments[1]).value(row);
        let length = parts.bounds.first().map_or(0, |bound| bound.count);
        if !(0..=length).contains(&count) {
            let message = format!("number of elements to trim must be between 0 and {length}");
            return Err(StatementError::new(SqlState("2202E"), message));
        }
        let Some(bound) = parts.bounds.first_mut() else { return Ok(Some(parts)) };
        bound.count -= count;
        let left = parts.elements.len() / length as usize * bound.count as usize;
        parts.elements.truncate(left);
        // What is left is a slice, and slices begin at 1.
        parts.bounds.iter_mut().for_each(|bound| bound.lower = 1);
        Ok(Some(if left == 0 { ArrayParts::of(Vec::new()) } else { parts }))
    })
}
