//! Cubes made of numbers, of arrays and of other cubes.
//!
//! Where one of two cubes has fewer dimensions, the others of it are zero.
//!
//! Invariant: minimum and maximum are the server's, which tell zeros of either sign and not-a-number apart by their place. One thing is not
//! done: the union of a value with itself gives that value as it is where the server sees one and the same place in memory.
//! Source: `cube_a_f8_f8`, `cube_a_f8`, `cube_subset`, `cube_union_v0`, `cube_inter`, `cube_enlarge`, `cube_c_f8` and `cube_c_f8_f8` in
//! `contrib/cube/cube.c`, PostgreSQL 14 to 18.

use super::{Cube, MAX_DIMENSIONS, high, larger, low, smaller};
use crate::extension::call::CallError;

/// `ERRCODE_ARRAY_ELEMENT_ERROR`.
const ARRAY_ELEMENT: &str = "2202E";

#[cold]
pub(super) fn element_error(message: impl Into<String>) -> CallError {
    CallError::new(ARRAY_ELEMENT, message)
}

/// The elements of an array, none of them NULL.
pub(super) fn all_present<T>(elements: Vec<Option<T>>) -> Result<Vec<T>, CallError> {
    let present: Option<Vec<T>> = elements.into_iter().collect();
    present.ok_or_else(|| element_error("cannot work with arrays containing NULLs"))
}

fn check_dimensions(dimensions: usize, message: &str) -> Result<(), CallError> {
    if dimensions > MAX_DIMENSIONS {
        let detail = format!("A cube cannot have more than {MAX_DIMENSIONS} dimensions.");
        return Err(CallError { detail: Some(detail), ..CallError::new("54000", message) });
    }
    Ok(())
}

impl Cube {
    /// `cube(float8, float8)`.
    pub(super) fn of_numbers(first: f64, second: f64) -> Self {
        Self::between(vec![(first, second)])
    }

    /// `cube(float8[])`.
    pub(super) fn of_array(coordinates: Vec<f64>) -> Result<Self, CallError> {
        check_dimensions(coordinates.len(), "array is too long")?;
        Ok(Self::point(coordinates))
    }

    /// `cube(float8[], float8[])`.
    pub(super) fn of_arrays(first: Vec<f64>, second: Vec<f64>) -> Result<Self, CallError> {
        check_dimensions(first.len(), "can't extend cube")?;
        if first.len() != second.len() {
            return Err(element_error("UR and LL arrays must be of same length"));
        }
        Ok(Self::between(first.into_iter().zip(second).collect()))
    }

    /// `cube(cube, float8)` and `cube(cube, float8, float8)`: one dimension more.
    pub(super) fn with_dimension(&self, side: (f64, f64), is_one: bool) -> Result<Self, CallError> {
        check_dimensions(self.dimensions() + 1, "can't extend cube")?;
        let mut sides = self.sides.clone();
        sides.push(side);
        Ok(Self { is_point: self.is_point && is_one, sides })
    }

    /// `cube_subset`: these dimensions, counted from 1.
    pub(super) fn subset(&self, dimensions: &[i32]) -> Result<Self, CallError> {
        check_dimensions(dimensions.len(), "array is too long")?;
        let side = |number: &i32| {
            let at = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
            at.and_then(|at| self.sides.get(at).copied())
        };
        let sides: Option<Vec<_>> = dimensions.iter().map(side).collect();
        let sides = sides.ok_or_else(|| element_error("Index out of bounds"))?;
        Ok(Self { is_point: self.is_point, sides })
    }

    /// `cube_union`.
    pub(super) fn union(&self, other: &Self) -> Self {
        let (longer, shorter) = self.longer_first(other);
        let side = |(at, side): (usize, &(f64, f64))| match shorter.sides.get(at) {
            Some(other) => (smaller(low(*side), low(*other)), larger(high(*side), high(*other))),
            None => (smaller(0.0, low(*side)), larger(0.0, high(*side))),
        };
        Self::between(longer.sides.iter().enumerate().map(side).collect())
    }

    /// `cube_inter`: upside down where there is none.
    pub(super) fn intersection(&self, other: &Self) -> Self {
        let (longer, shorter) = self.longer_first(other);
        let side = |(at, side): (usize, &(f64, f64))| match shorter.sides.get(at) {
            Some(other) => (larger(low(*side), low(*other)), smaller(high(*side), high(*other))),
            None => (larger(0.0, low(*side)), smaller(0.0, high(*side))),
        };
        Self::between(longer.sides.iter().enumerate().map(side).collect())
    }

    /// `cube_enlarge`: by a radius, in so many dimensions at least.
    pub(super) fn enlarged(&self, radius: f64, dimensions: i32) -> Self {
        let least = usize::try_from(dimensions).unwrap_or(0).min(MAX_DIMENSIONS);
        let least = if radius > 0.0 { least } else { 0 };
        let added = least.saturating_sub(self.dimensions());
        let grown = self.sides.iter().map(|side| grown(*side, radius));
        Self::between(grown.chain(std::iter::repeat_n((-radius, radius), added)).collect())
    }
}

/// A side that has grown by a radius on both ends; what is then upside down shrinks to its middle.
fn grown((first, second): (f64, f64), radius: f64) -> (f64, f64) {
    let (low, high) = if first >= second { (second, first) } else { (first, second) };
    let (low, high) = (low - radius, high + radius);
    if low > high {
        let middle = (low + high) / 2.0;
        return (middle, middle);
    }
    (low, high)
}
