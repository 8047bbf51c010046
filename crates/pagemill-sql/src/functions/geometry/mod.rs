//! `point`, `line`, `lseg`, `box`, `path`, `polygon` and `circle`: their operators and functions.
//!
//! Most comparisons let coordinates differ by a millionth, so that `=` is no equality by which rows could be grouped; sizes
//! are compared by `<` and its kin. Results are those of servers whose compiler rounds each product before it is added, as on
//! x86-64.
//!
//! Invariant: a payload that is not as its type lays it out is reported as damage.
//!
//! Source: `src/backend/utils/adt/geo_ops.c`, PostgreSQL 14 to 18.

mod boxes;
mod circles;
mod inside;
mod lines;
mod number;
mod paths;
mod points;
mod polygons;
mod segments;
mod shapes;

use arrow::array::ArrayRef;

use super::rows::{Given, Outcome, Plain, one, run, two};
use super::{Implementation, KernelCall};
use crate::error::{SqlState, StatementError};
use shapes::{Point, Shape, read};

pub(crate) fn find(key: &str) -> Option<Implementation> {
    match key {
        "poly_distance" => Some(Implementation::Kernel(distance_of_polygons)),
        _ => plain(key).map(|_| Implementation::Kernel(kernel)),
    }
}

/// Functions that depend on their arguments alone.
pub(super) fn plain(key: &str) -> Option<Plain> {
    points::plain(key)
        .or_else(|| lines::plain(key))
        .or_else(|| segments::plain(key))
        .or_else(|| boxes::plain(key))
        .or_else(|| circles::plain(key))
        .or_else(|| paths::plain(key))
        .or_else(|| polygons::plain(key))
}

fn kernel(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    run(plain, call, arguments)
}

/// Until 14 the server has the function, and it does nothing but fail.
fn distance_of_polygons(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    match call.catalog.database().cluster().version().major() {
        ..15 => two(arguments, |_: &[u8], _: &[u8]| Err::<f64, _>(not_implemented())),
        _ => kernel(call, arguments),
    }
}

#[cold]
fn not_implemented() -> StatementError {
    let message = "function \"poly_distance\" not implemented";
    StatementError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

/// A function of one value.
fn alone<A: Shape, G: Given>(
    arguments: &[ArrayRef],
    of: impl Fn(A) -> Outcome<G>,
) -> Outcome<ArrayRef> {
    one(arguments, |a: &[u8]| of(read(a)?))
}

/// A function of two values.
fn both<A: Shape, B: Shape, G: Given>(
    arguments: &[ArrayRef],
    of: impl Fn(A, B) -> Outcome<G>,
) -> Outcome<ArrayRef> {
    two(arguments, |a: &[u8], b: &[u8]| of(read(a)?, read(b)?))
}

/// A point of two numbers.
fn of_numbers(arguments: &[ArrayRef], of: impl Fn(f64, f64) -> Point) -> Outcome<ArrayRef> {
    two(arguments, |x: f64, y: f64| Ok(of(x, y)))
}
