//! Arrays as values: made of elements, taken apart, compared, searched and changed.
//!
//! Invariant: elements are compared by the default order of their type alone, as the server does.
//!
//! Source: `src/backend/utils/adt/arrayfuncs.c`, `array_userfuncs.c`, `arraysubs.c`, `array_to_text` and `split_text` in
//! `varlena.c`, PostgreSQL 14 to 18.

pub(in crate::functions) mod changes;
mod compare;
pub(crate) mod each;
mod filled;
pub(crate) mod keys;
pub(crate) mod made;
mod sorted;
pub(crate) mod subscripts;
mod texts;
pub(crate) mod value;

use arrow::array::{Array as _, ArrayRef};

use super::keys::payloads;
use super::rows::Outcome;
use super::{Implementation, Kernel, KernelCall};
use value::{ArrayParts, ElementType};

pub(crate) fn find(key: &str) -> Option<Implementation> {
    let kernel: Option<Kernel> = changes::find(key)
        .or_else(|| compare::find(key))
        .or_else(|| filled::find(key))
        .or_else(|| sorted::find(key))
        .or_else(|| texts::find(key));
    kernel.map(Implementation::Kernel)
}

/// The elements of the call's argument at this place.
fn elements_of(call: &KernelCall, argument: usize) -> Outcome<ElementType<'_>> {
    ElementType::of_array(&call.catalog, call.arguments[argument])
}

/// The array of a row; `None` for NULL.
pub(crate) fn array_at(
    elements: &ElementType<'_>,
    column: &ArrayRef,
    row: usize,
) -> Outcome<Option<ArrayParts>> {
    match column.is_null(row) {
        true => Ok(None),
        false => ArrayParts::read(elements, payloads(column).value(row)).map(Some),
    }
}
