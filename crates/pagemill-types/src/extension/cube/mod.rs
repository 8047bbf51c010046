//! `cube`: a point, or a box between two corners, of up to 100 dimensions.
//!
//! ```text
//! dimensions | flag 1<<31 (a point), u32 | first corner, f64 each | second corner, unless a point
//! ```
//!
//! The corners are kept as they were given: which coordinate is the lower one is told anew by every function. `cube/text.rs`: from and to
//! text. `cube/order.rs`: its order. `cube/shapes.rs`: boxes made of others. `cube/functions.rs`: the functions that SQL calls.
//!
//! Invariant: a value without the flag has two corners, however equal these are; what a function makes carries the flag wherever the
//! server's sets it.
//! Source: `contrib/cube/cubedata.h` and `contrib/cube/cube.c`, PostgreSQL 14 to 18.

mod functions;
mod measure;
mod order;
mod shapes;
mod text;

use pagemill_format::error::Result;
use pagemill_format::reader::Reader;

pub use functions::FUNCTIONS;
pub use order::{compare, order_key};
pub use text::{parse, read_cube, write_cube};

const CUBE: &str = "cube";
const IS_POINT: u32 = 1 << 31;

/// `CUBE_MAX_DIM`.
const MAX_DIMENSIONS: usize = 100;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub struct Cube {
    /// True where the payload has one corner only.
    is_point: bool,
    /// The coordinates of both corners, by dimension.
    sides: Vec<(f64, f64)>,
}

impl Cube {
    /// The value of a payload.
    ///
    /// # Errors
    /// When the payload is cut off.
    pub fn of_payload(payload: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(CUBE, payload);
        let header = reader.u32()?;
        let is_point = header & IS_POINT != 0;
        let bytes = ((header & !IS_POINT) as usize).saturating_mul(8);
        let first = coordinates(reader.bytes(bytes)?);
        let sides = match is_point {
            true => first.map(|one| (one, one)).collect(),
            false => first.zip(coordinates(reader.bytes(bytes)?)).collect(),
        };
        Ok(Self { is_point, sides })
    }

    /// Its payload.
    pub fn payload(&self) -> Vec<u8> {
        let flag = if self.is_point { IS_POINT } else { 0 };
        let mut payload = (self.sides.len() as u32 | flag).to_le_bytes().to_vec();
        payload.extend(self.sides.iter().flat_map(|side| side.0.to_le_bytes()));
        if !self.is_point {
            payload.extend(self.sides.iter().flat_map(|side| side.1.to_le_bytes()));
        }
        payload
    }

    /// A point.
    fn point(coordinates: impl IntoIterator<Item = f64>) -> Self {
        Self { is_point: true, sides: coordinates.into_iter().map(|one| (one, one)).collect() }
    }

    /// A box, or the point that it is.
    fn between(sides: Vec<(f64, f64)>) -> Self {
        Self { is_point: are_equal(&sides), sides }
    }

    /// True where both corners are the same, flag or not.
    fn has_one_corner(&self) -> bool {
        self.is_point || are_equal(&self.sides)
    }

    fn dimensions(&self) -> usize {
        self.sides.len()
    }

    /// The lower coordinate of each dimension.
    fn lows(&self) -> impl Iterator<Item = f64> + '_ {
        self.sides.iter().map(|side| low(*side))
    }

    /// The upper coordinate of each dimension.
    fn highs(&self) -> impl Iterator<Item = f64> + '_ {
        self.sides.iter().map(|side| high(*side))
    }

    /// The one with more dimensions first; of as many, in this order.
    fn longer_first<'c>(&'c self, other: &'c Self) -> (&'c Self, &'c Self) {
        if self.dimensions() < other.dimensions() { (other, self) } else { (self, other) }
    }
}

/// Not-a-number is not equal to itself, so that a box of it is no point.
fn are_equal(sides: &[(f64, f64)]) -> bool {
    sides.iter().all(|side| side.0 == side.1)
}

fn coordinates(bytes: &[u8]) -> impl Iterator<Item = f64> + '_ {
    bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes))
}

/// The server's `Min`: the second unless the first is less.
fn smaller(first: f64, second: f64) -> f64 {
    if first < second { first } else { second }
}

/// The server's `Max`: the second unless the first is greater.
fn larger(first: f64, second: f64) -> f64 {
    if first > second { first } else { second }
}

fn low(side: (f64, f64)) -> f64 {
    smaller(side.0, side.1)
}

fn high(side: (f64, f64)) -> f64 {
    larger(side.0, side.1)
}
