//! What is told of cubes: coordinates, size, distances, and whether one contains or meets another.
//!
//! Where one of two cubes has fewer dimensions, the others of it are zero.
//!
//! Invariant: sums run over dimensions in their order, those of the cube with more dimensions; not-a-number goes through the same
//! comparisons as the server's. `cube_size` of a side from -0 to 0 is 0, as since PostgreSQL 16 (before, it may be -0).
//! Source: `rt_cube_size`, `cube_contains_v0`, `cube_overlap_v0`, `cube_distance`, `distance_1D`, `cube_coord` and `cube_coord_llur` in
//! `contrib/cube/cube.c`, PostgreSQL 14 to 18.

use super::shapes::element_error;
use super::{Cube, high, larger, low, smaller};
use crate::extension::call::CallError;

impl Cube {
    /// `cube_size`.
    pub(super) fn size(&self) -> f64 {
        if self.is_point || self.sides.is_empty() {
            return 0.0;
        }
        self.sides.iter().fold(1.0, |size, side| size * (side.1 - side.0).abs())
    }

    /// `cube_contains`.
    pub(super) fn contains(&self, other: &Self) -> bool {
        let is_zero = |side: &(f64, f64)| side.0 == 0.0 && side.1 == 0.0;
        let is_outside = |(mine, other): (&(f64, f64), &(f64, f64))| {
            low(*mine) > low(*other) || high(*mine) < high(*other)
        };
        other.sides.iter().skip(self.dimensions()).all(is_zero)
            && !self.sides.iter().zip(&other.sides).any(is_outside)
    }

    /// `cube_overlap`.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let apart = |(mine, other): ((f64, f64), (f64, f64))| {
            low(mine) > high(other) || high(mine) < low(other)
        };
        !self.sides_beside(other).any(apart)
    }

    /// `cube_distance`, the straight way.
    pub(super) fn euclidean(&self, other: &Self) -> f64 {
        self.distances(other).fold(0.0, |sum, one| sum + one * one).sqrt()
    }

    /// `distance_taxicab`.
    pub(super) fn taxicab(&self, other: &Self) -> f64 {
        self.distances(other).fold(0.0, |sum, one| sum + one.abs())
    }

    /// `distance_chebyshev`, along the dimension where it is greatest.
    pub(super) fn chebyshev(&self, other: &Self) -> f64 {
        self.distances(other).fold(0.0, |most, one| larger(one.abs(), most))
    }

    fn distances<'c>(&'c self, other: &'c Self) -> impl Iterator<Item = f64> + 'c {
        self.sides_beside(other).map(|(mine, other)| distance(mine, other))
    }

    /// The sides of the cube with more dimensions, each with the other's or zero.
    fn sides_beside<'c>(
        &'c self,
        other: &'c Self,
    ) -> impl Iterator<Item = ((f64, f64), (f64, f64))> + 'c {
        let (longer, shorter) = self.longer_first(other);
        let others = shorter.sides.iter().copied().chain(std::iter::repeat((0.0, 0.0)));
        longer.sides.iter().copied().zip(others)
    }

    /// The end of a dimension counted from 1, zero of one that is not there.
    fn end(&self, dimension: i32, of: fn((f64, f64)) -> f64) -> f64 {
        let at = usize::try_from(dimension).ok().and_then(|number| number.checked_sub(1));
        at.and_then(|at| self.sides.get(at)).map_or(0.0, |side| of(*side))
    }

    /// `cube_ll_coord`.
    pub(super) fn low_end(&self, dimension: i32) -> f64 {
        self.end(dimension, low)
    }

    /// `cube_ur_coord`.
    pub(super) fn high_end(&self, dimension: i32) -> f64 {
        self.end(dimension, high)
    }

    /// `cube_coord`, `->`: those of the first corner, then those of the second.
    pub(super) fn coordinate(&self, number: i32) -> Result<f64, CallError> {
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let found = at.and_then(|at| match self.sides.get(at) {
            Some(side) => Some(side.0),
            None => self.sides.get(at.checked_sub(self.dimensions())?).map(|side| side.1),
        });
        found.ok_or_else(|| element_error(format!("cube index {number} is out of bounds")))
    }

    /// `cube_coord_llur`, `~>`: lower and upper end of each dimension in turn, negated for a negative number.
    pub(super) fn ordered_coordinate(&self, number: i32) -> Result<f64, CallError> {
        let Some(at) = number.unsigned_abs().checked_sub(1) else {
            return Err(element_error("zero cube index is not defined"));
        };
        let side = self.sides.get((at / 2) as usize);
        let found = match side {
            Some(side) if self.is_point => side.0,
            Some(side) if at % 2 == 1 => high(*side),
            Some(side) => low(*side),
            None => 0.0,
        };
        Ok(if number < 0 { -found } else { found })
    }
}

/// How far two sides are apart, 0 where they meet.
fn distance((a1, a2): (f64, f64), (b1, b2): (f64, f64)) -> f64 {
    if a1 <= b1 && a2 <= b1 && a1 <= b2 && a2 <= b2 {
        return smaller(b1, b2) - larger(a1, a2);
    }
    if a1 > b1 && a2 > b1 && a1 > b2 && a2 > b2 {
        return smaller(a1, a2) - larger(b1, b2);
    }
    0.0
}
