//! `array_fill`: an array of one element over and over.
//!
//! Source: `array_fill`, `array_fill_with_lower_bounds`, `array_fill_internal` in `src/backend/utils/adt/arrayfuncs.c`,
//! `ArrayGetNItems`, `ArrayCheckBounds` in `arrayutils.c`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef};

use super::super::rows::Outcome;
use super::super::{Kernel, KernelCall};
use super::changes::arrays;
use super::value::{ArrayParts, Bound, ElementType, too_many};
use super::{array_at, elements_of};
use crate::error::{SqlState, StatementError};

/// `MAXDIM` in `src/include/utils/array.h`.
const MOST_DIMENSIONS: usize = 6;
/// Elements of which an array is made here, so that a statement of a few words does not take all memory.
const MOST_FILLED: i64 = 10_000_000;
/// `MaxAllocSize` in `src/include/utils/memutils.h`.
const MOST_BYTES: i64 = 0x3FFF_FFFF;

pub(super) fn find(key: &str) -> Option<Kernel> {
    matches!(key, "array_fill" | "array_fill_with_lower_bounds").then_some(filled as Kernel)
}

fn filled(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let integers = elements_of(call, 1)?;
    arrays(call, arguments[0].len(), |elements, row| {
        if arguments[1..].iter().any(|argument| argument.is_null(row)) {
            return Err(null("dimension array or low bound array cannot be null"));
        }
        let counts = numbers(&integers, &arguments[1], row)?;
        if counts.len() > MOST_DIMENSIONS {
            let message = format!(
                "number of array dimensions ({}) exceeds the maximum allowed ({MOST_DIMENSIONS})",
                counts.len()
            );
            return Err(StatementError::new(SqlState("54000"), message));
        }
        let lowers = match arguments.get(2) {
            Some(lowers) => numbers(&integers, lowers, row)?,
            None => vec![1; counts.len()],
        };
        if counts.len() != lowers.len() {
            return Err(subscripts());
        }
        let bounds = counts.into_iter().zip(lowers).map(|(count, lower)| Bound { count, lower });
        of_bounds(bounds.collect(), elements.element(&arguments[0], row)?).map(Some)
    })
}

#[cold]
fn null(message: &str) -> StatementError {
    StatementError::new(SqlState("22004"), message)
}

#[cold]
fn subscripts() -> StatementError {
    StatementError::new(SqlState("2202E"), "wrong number of array subscripts")
}

/// The numbers of an array of one dimension, or of none.
fn numbers(integers: &ElementType<'_>, column: &ArrayRef, row: usize) -> Outcome<Vec<i32>> {
    let parts = array_at(integers, column, row)?.unwrap_or_else(|| ArrayParts::of(Vec::new())); // default: NULLs were refused
    if parts.bounds.len() > 1 {
        return Err(subscripts());
    }
    let number = |element: &Option<Vec<u8>>| {
        let bytes = element.as_deref().and_then(|element| element.first_chunk::<4>());
        bytes.map(|bytes| i32::from_le_bytes(*bytes))
    };
    let numbers = parts.elements.iter().map(number).collect::<Option<Vec<i32>>>();
    numbers.ok_or_else(|| null("dimension values cannot be null"))
}

fn of_bounds(bounds: Vec<Bound>, element: Option<Vec<u8>>) -> Outcome<ArrayParts> {
    let total = elements_within(&bounds)?;
    for bound in &bounds {
        if bound.count.checked_add(bound.lower).is_none() {
            let message = format!("array lower bound is too large: {}", bound.lower);
            return Err(StatementError::new(SqlState("54000"), message));
        }
    }
    if total == 0 {
        return Ok(ArrayParts::of(Vec::new()));
    }
    let length = element.as_ref().map_or(0, Vec::len) as i64;
    if total.saturating_mul(length) > MOST_BYTES {
        let message = format!("array size exceeds the maximum allowed ({MOST_BYTES})");
        return Err(StatementError::new(SqlState("54000"), message));
    }
    if total > MOST_FILLED || total.saturating_mul(length) > MOST_BYTES / 4 {
        return Err(StatementError::unsupported("array_fill of so many elements"));
    }
    Ok(ArrayParts { bounds, elements: vec![element; total as usize] })
}

/// How many elements bounds are of; none without bounds.
fn elements_within(bounds: &[Bound]) -> Outcome<i64> {
    let mut total = i64::from(!bounds.is_empty());
    for bound in bounds {
        total *= i64::from(bound.count);
        if bound.count < 0 || i32::try_from(total).is_err() {
            return Err(too_many());
        }
    }
    if total > MOST_ELEMENTS { Err(too_many()) } else { Ok(total) }
}

/// `MaxArraySize` in `src/include/utils/array.h`.
const MOST_ELEMENTS: i64 = 134_217_727;
