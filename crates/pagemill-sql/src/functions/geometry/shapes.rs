//! Geometric values: what their payloads are made of.
//!
//! ```text
//! point x y | lseg: two points | box: the upper right and the lower left corner | circle: a point, the radius | line A B C
//! path    points i32 | closed i32 | padding 4 | the points
//! polygon points i32 | the box around them | the points
//! ```
//!
//! Invariant: a path and a polygon have at least one point; a payload of another length is damaged.
//!
//! Source: `src/include/utils/geo_decls.h`, PostgreSQL 14 to 18.

use super::super::rows::{Given, Made, Outcome};
use super::number::{greatest, least};
use crate::error::{SqlState, StatementError};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// The points for which a·x + b·y + c is 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    pub(super) a: f64,
    pub(super) b: f64,
    pub(super) c: f64,
}

/// `lseg`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Segment {
    pub(super) from: Point,
    pub(super) to: Point,
}

/// `box`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rectangle {
    pub(super) high: Point,
    pub(super) low: Point,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Circle {
    pub(super) center: Point,
    pub(super) radius: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Path {
    pub(super) is_closed: bool,
    pub(super) points: Vec<Point>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Polygon {
    pub(super) bounds: Rectangle,
    pub(super) points: Vec<Point>,
}

/// A value with a payload.
pub(super) trait Shape: Sized {
    /// Its type.
    const NAME: &'static str;
    /// The value, or nothing where the payload is damaged.
    fn parse(payload: &[u8]) -> Option<Self>;
    /// Appends the payload.
    fn put(&self, out: &mut Vec<u8>);
}

/// The value of a payload.
pub(super) fn read<S: Shape>(payload: &[u8]) -> Outcome<S> {
    S::parse(payload).ok_or_else(|| damaged(S::NAME, payload.len()))
}

#[cold]
fn damaged(name: &str, length: usize) -> StatementError {
    let message = format!("a {name} of {length} bytes is damaged");
    StatementError::new(SqlState::DATA_CORRUPTED, message)
}

/// Bytes of a number, and of a point.
const NUMBER: usize = 8;
const POINT: usize = 2 * NUMBER;
/// What stands before the points of a path, and of a polygon.
const PATH_HEAD: usize = 12;
const POLYGON_HEAD: usize = 4 + 2 * POINT;

/// So many numbers, and nothing behind them.
fn numbers<const N: usize>(payload: &[u8]) -> Option<[f64; N]> {
    let (numbers, []) = payload.as_chunks::<NUMBER>() else { return None };
    let numbers: &[[u8; NUMBER]; N] = numbers.try_into().ok()?;
    Some(numbers.map(f64::from_le_bytes))
}

fn put_numbers(numbers: &[f64], out: &mut Vec<u8>) {
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

/// So many points, and nothing behind them.
fn points(count: i32, payload: &[u8]) -> Option<Vec<Point>> {
    let (points, []) = payload.as_chunks::<POINT>() else { return None };
    let is_as_said = count > 0 && usize::try_from(count).ok() == Some(points.len());
    is_as_said.then(|| points.iter().filter_map(|point| Point::parse(point)).collect())
}

fn put_count(points: &[Point], out: &mut Vec<u8>) {
    // No value has room for 2^31 points.
    out.extend((points.len() as i32).to_le_bytes());
}

fn word(bytes: &[u8]) -> Option<i32> {
    Some(i32::from_le_bytes(*bytes.first_chunk()?))
}

impl Shape for Point {
    const NAME: &'static str = "point";

    fn parse(payload: &[u8]) -> Option<Self> {
        let [x, y] = numbers(payload)?;
        Some(Self { x, y })
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_numbers(&[self.x, self.y], out);
    }
}

impl Shape for Line {
    const NAME: &'static str = "line";

    fn parse(payload: &[u8]) -> Option<Self> {
        let [a, b, c] = numbers(payload)?;
        Some(Self { a, b, c })
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_numbers(&[self.a, self.b, self.c], out);
    }
}

impl Shape for Segment {
    const NAME: &'static str = "lseg";

    fn parse(payload: &[u8]) -> Option<Self> {
        let (from, to) = payload.split_at_checked(POINT)?;
        Some(Self { from: Point::parse(from)?, to: Point::parse(to)? })
    }

    fn put(&self, out: &mut Vec<u8>) {
        self.from.put(out);
        self.to.put(out);
    }
}

impl Shape for Rectangle {
    const NAME: &'static str = "box";

    fn parse(payload: &[u8]) -> Option<Self> {
        let (high, low) = payload.split_at_checked(POINT)?;
        Some(Self { high: Point::parse(high)?, low: Point::parse(low)? })
    }

    fn put(&self, out: &mut Vec<u8>) {
        self.high.put(out);
        self.low.put(out);
    }
}

impl Shape for Circle {
    const NAME: &'static str = "circle";

    fn parse(payload: &[u8]) -> Option<Self> {
        let [x, y, radius] = numbers(payload)?;
        Some(Self { center: Point { x, y }, radius })
    }

    fn put(&self, out: &mut Vec<u8>) {
        self.center.put(out);
        put_numbers(&[self.radius], out);
    }
}

impl Shape for Path {
    const NAME: &'static str = "path";

    fn parse(payload: &[u8]) -> Option<Self> {
        let (head, rest) = payload.split_at_checked(PATH_HEAD)?;
        let is_closed = word(head.get(4..)?)? != 0;
        Some(Self { is_closed, points: points(word(head)?, rest)? })
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_count(&self.points, out);
        out.extend(i32::from(self.is_closed).to_le_bytes());
        out.extend([0; 4]);
        self.points.iter().for_each(|point| point.put(out));
    }
}

impl Shape for Polygon {
    const NAME: &'static str = "polygon";

    fn parse(payload: &[u8]) -> Option<Self> {
        let (head, rest) = payload.split_at_checked(POLYGON_HEAD)?;
        let bounds = Rectangle::parse(head.get(4..)?)?;
        Some(Self { bounds, points: points(word(head)?, rest)? })
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_count(&self.points, out);
        self.bounds.put(out);
        self.points.iter().for_each(|point| point.put(out));
    }
}

impl Polygon {
    /// With the smallest box around its points.
    pub(super) fn of(points: Vec<Point>) -> Self {
        let first = points.first().copied().unwrap_or(Point { x: 0.0, y: 0.0 }); // default: there is always one
        Self { bounds: Rectangle::around(first, &points), points }
    }
}

impl Rectangle {
    /// The smallest one around points, of which there is one at least.
    pub(super) fn around(first: Point, others: &[Point]) -> Self {
        let (mut high, mut low) = (first, first);
        for point in others {
            high = Point { x: greatest(point.x, high.x), y: greatest(point.y, high.y) };
            low = Point { x: least(point.x, low.x), y: least(point.y, low.y) };
        }
        Self { high, low }
    }
}

macro_rules! made {
    ($($shape:ty),*) => {$(
        impl Made for $shape {
            fn column(values: Vec<Option<Self>>) -> Outcome<arrow::array::ArrayRef> {
                let payload = |shape: Self| {
                    let mut out = Vec::new();
                    shape.put(&mut out);
                    out
                };
                let payloads = values.into_iter().map(|value| value.map(payload));
                Made::column(payloads.collect::<Vec<Option<Vec<u8>>>>())
            }
        }

        impl Given for $shape {
            type Value = Self;

            fn given(self) -> Option<Self> {
                Some(self)
            }
        }
    )*};
}
made!(Point, Line, Segment, Rectangle, Circle, Path, Polygon);

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(shape: &impl Shape) -> Vec<u8> {
        let mut out = Vec::new();
        shape.put(&mut out);
        out
    }

    #[test]
    fn shapes_come_back_from_their_payloads() {
        let points = vec![Point { x: 1.0, y: -2.5 }, Point { x: 0.0, y: 7.0 }];
        let path = Path { is_closed: true, points: points.clone() };
        assert_eq!(read::<Path>(&payload(&path)).unwrap(), path);
        let polygon = Polygon::of(points);
        assert_eq!(read::<Polygon>(&payload(&polygon)).unwrap(), polygon);
        assert_eq!(polygon.bounds.high, Point { x: 1.0, y: 7.0 });
        let circle = Circle { center: Point { x: 1.0, y: 2.0 }, radius: 3.0 };
        assert_eq!(read::<Circle>(&payload(&circle)).unwrap(), circle);
    }

    #[test]
    fn a_damaged_payload_is_an_error() {
        let path = payload(&Path { is_closed: false, points: vec![Point { x: 1.0, y: 2.0 }] });
        for length in 0..path.len() {
            assert!(read::<Path>(&path[..length]).is_err());
            assert!(read::<Point>(&path[..length]).is_err() || length == 16);
        }
        assert!(read::<Polygon>(&[0; 36]).is_err());
        assert!(read::<Segment>(&[0; 40]).is_err());
        assert!(read::<Rectangle>(&[0; 31]).is_err());
    }
}
