//! Bits, bytes, digests, documents and arrays: functions that compute on a value's own bytes.
//!
//! Invariant: a payload that is not as its type lays it out is reported as damage, never read past its end.

pub(super) mod arrays;
mod bits;
mod byte_places;
mod bytes;
mod checksums;
pub(super) mod digest;
mod digest_long;
mod documents;
pub(crate) mod each;
pub(super) mod json_changes;
pub(crate) mod json_constructors;
mod json_made;
mod json_of_arrays;
pub(super) mod json_order;
mod json_paths;
pub(crate) mod json_queries;
mod json_rows;
pub(crate) mod json_scalars;
mod jsonpath;
pub(crate) mod path_searches;
pub(crate) mod records;

pub(super) use documents::unescaped as unescaped_string;
pub(crate) use json_changes::quoted as quoted_json;
pub(crate) use json_made::{JsonShape, JsonWriter, collected_json};
mod members;

use arrow::array::ArrayRef;

use super::rows::{Outcome, Plain, run};
use super::{Implementation, KernelCall};

pub(crate) fn find(key: &str) -> Option<Implementation> {
    plain(key)
        .map(|_| Implementation::Kernel(kernel))
        .or_else(|| members::find(key))
        .or_else(|| json_made::find(key))
        .or_else(|| json_changes::find(key))
        .or_else(|| json_of_arrays::find(key))
        .or_else(|| json_paths::find(key))
        .or_else(|| json_scalars::find(key))
        .or_else(|| path_searches::find(key))
}

/// Functions that depend on their arguments alone.
pub(super) fn plain(key: &str) -> Option<Plain> {
    bits::plain(key)
        .or_else(|| bytes::plain(key))
        .or_else(|| byte_places::plain(key))
        .or_else(|| arrays::plain(key))
}

fn kernel(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    run(plain, call, arguments)
}
