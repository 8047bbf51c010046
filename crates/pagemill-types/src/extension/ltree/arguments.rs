//! The arguments of the extension's functions, each as what the function takes.
//!
//! Invariant: an argument of another kind than the extension declares is an error, and so are bytes that are no value of its type.
//!
//! Sources: `contrib/ltree/ltree.h`, `array_iterator` in `contrib/ltree/_ltree_op.c`, PostgreSQL 14 to 18.

use pagemill_format::tuple::AttributeLayout;

use crate::array::element_payloads;
use crate::extension::arguments::{integer, payload};
use crate::extension::call::{Argument, CallError};

use super::path::Path;

/// How values of the extension's types lie in arrays.
const LAYOUT: AttributeLayout = AttributeLayout { len: -1, align: 4 };

/// An `ltree`.
pub(super) fn path<'a>(arguments: &[Argument<'a>], number: usize) -> Result<Path<'a>, CallError> {
    Ok(Path::parse(payload(arguments, number)?)?)
}

/// An `integer`, or nothing where there is no such argument.
pub(super) fn optional_int4(
    arguments: &[Argument<'_>],
    number: usize,
) -> Result<Option<i32>, CallError> {
    (number < arguments.len()).then(|| integer(arguments, number)).transpose()
}

/// A `bigint`.
pub(super) fn int8(arguments: &[Argument<'_>], number: usize) -> Result<i64, CallError> {
    match arguments.get(number) {
        Some(Argument::Int8(found)) => Ok(*found),
        _ => Err(CallError::other_arguments()),
    }
}

/// The payloads of the elements of an array of the extension's types.
pub(super) fn elements(
    arguments: &[Argument<'_>],
    number: usize,
) -> Result<Vec<Vec<u8>>, CallError> {
    let array = payload(arguments, number)?;
    let elements = element_payloads(array, LAYOUT)?;
    let dimensions = array.first_chunk().map(|count| i32::from_le_bytes(*count));
    if dimensions.is_some_and(|count| count > 1) {
        return Err(CallError::new("2202E", "array must be one-dimensional"));
    }
    let without_null: Option<Vec<_>> = elements.into_iter().collect();
    without_null.ok_or_else(|| CallError::new("22004", "array must not contain nulls"))
}
