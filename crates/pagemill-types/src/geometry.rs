//! `point`, `line`, `lseg`, `box`, `path`, `polygon` and `circle`: `float8` numbers in brackets.
//!
//! ```text
//! point x y | lseg and box: two points | circle: a point, the radius | line: A B C
//! path    npts i32 | closed i32 | padding 4 | npts points
//! polygon npts i32 | bounding box 32 | npts points
//! ```
//!
//! Sources: `path_encode` and the output functions in `src/backend/utils/adt/geo_ops.c`,
//! `src/include/utils/geo_decls.h`, PostgreSQL 14 to 18.

use pagemill_format::error::Result;
use pagemill_format::reader::Reader;

use super::float::push_float8;

/// A geometric type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Point,
    Line,
    Lseg,
    Box,
    Path,
    Polygon,
    Circle,
}

/// `point`: `(x,y)`.
///
/// # Errors
/// When the value is not 16 bytes.
pub fn write_point(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    write_shape(Shape::Point, &push_float8, value, out)
}

/// `line`: `{A,B,C}`, standing for Ax + By + C = 0.
///
/// # Errors
/// When the value is not 24 bytes.
pub fn write_line(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    write_shape(Shape::Line, &push_float8, value, out)
}

/// `lseg`: `[(x1,y1),(x2,y2)]`.
///
/// # Errors
/// When the value is not 32 bytes.
pub fn write_lseg(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    write_shape(Shape::Lseg, &push_float8, value, out)
}

/// `box`: `(x1,y1),(x2,y2)`, the upper right corner first.
///
/// # Errors
/// When the value is not 32 bytes.
pub fn write_box(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    write_shape(Shape::Box, &push_float8, value, out)
}

/// `path`: its points in round brackets when closed, in square ones when open.
///
/// # Errors
/// When the points are fewer than the path's count.
pub fn write_path(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    write_shape(Shape::Path, &push_float8, value, out)
}

/// `polygon`: its points in round brackets.
///
/// # Errors
/// When the points are fewer than the polygon's count.
pub fn write_polygon(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    write_shape(Shape::Polygon, &push_float8, value, out)
}

/// `circle`: `<(x,y),r>`.
///
/// # Errors
/// When the value is not 24 bytes.
pub fn write_circle(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    write_shape(Shape::Circle, &push_float8, value, out)
}

/// A shape, each number of it as `push` appends one.
#[inline]
pub(super) fn write_shape<F: Fn(f64, &mut Vec<u8>)>(
    shape: Shape,
    push: &F,
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let r = &mut Reader::new("shape", value);
    let brackets: &[u8; 2] = match shape {
        Shape::Point | Shape::Box => return bare(shape, push, r, out),
        Shape::Line => b"{}",
        Shape::Lseg => b"[]",
        Shape::Circle => b"<>",
        Shape::Polygon => b"()",
        Shape::Path => return path(push, r, out),
    };
    out.push(brackets[0]);
    match shape {
        Shape::Line => {
            push_number(push, r, out)?;
            out.push(b',');
            push_pair(push, r, out)?;
        }
        Shape::Circle => {
            push_point(push, r, out)?;
            out.push(b',');
            push_number(push, r, out)?;
        }
        Shape::Polygon => {
            let (npts, _bounding_box) = (r.i32()?, r.bytes(32)?);
            push_points(push, r, npts, out)?;
            out.push(brackets[1]);
            return Ok(());
        }
        _ => push_points(push, r, 2, out)?,
    }
    out.push(brackets[1]);
    end(r)
}

fn bare<F: Fn(f64, &mut Vec<u8>)>(
    shape: Shape,
    push: &F,
    r: &mut Reader<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    push_points(push, r, if shape == Shape::Box { 2 } else { 1 }, out)?;
    end(r)
}

fn path<F: Fn(f64, &mut Vec<u8>)>(push: &F, r: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<()> {
    let (npts, closed, _padding) = (r.i32()?, r.i32()? != 0, r.u32()?);
    out.push(if closed { b'(' } else { b'[' });
    push_points(push, r, npts, out)?;
    out.push(if closed { b')' } else { b']' });
    Ok(())
}

fn push_points<F: Fn(f64, &mut Vec<u8>)>(
    push: &F,
    r: &mut Reader<'_>,
    npts: i32,
    out: &mut Vec<u8>,
) -> Result<()> {
    for i in 0..npts {
        if i > 0 {
            out.push(b',');
        }
        push_point(push, r, out)?;
    }
    Ok(())
}

fn push_point<F: Fn(f64, &mut Vec<u8>)>(
    push: &F,
    r: &mut Reader<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(b'(');
    push_pair(push, r, out)?;
    out.push(b')');
    Ok(())
}

fn push_pair<F: Fn(f64, &mut Vec<u8>)>(
    push: &F,
    r: &mut Reader<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    push_number(push, r, out)?;
    out.push(b',');
    push_number(push, r, out)
}

fn push_number<F: Fn(f64, &mut Vec<u8>)>(
    push: &F,
    r: &mut Reader<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    push(r.f64()?, out);
    Ok(())
}

/// Nothing may be left of a fixed-length value.
fn end(r: &Reader<'_>) -> Result<()> {
    match r.remaining() {
        0 => Ok(()),
        left => Err(r.corrupt(format!("{left} bytes too many"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    fn floats(numbers: &[f64]) -> Vec<u8> {
        numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
    }

    #[test]
    fn each_shape_has_its_brackets() {
        let four = floats(&[1.0, 2.5, -3.0, 1e20]);
        assert_eq!(printed(write_point, &four[..16]), "(1,2.5)");
        assert_eq!(printed(write_lseg, &four), "[(1,2.5),(-3,1e+20)]");
        assert_eq!(printed(write_box, &four), "(1,2.5),(-3,1e+20)");
        assert_eq!(printed(write_line, &four[..24]), "{1,2.5,-3}");
        assert_eq!(printed(write_circle, &four[..24]), "<(1,2.5),-3>");
        assert!(write_point(&four, &mut Vec::new()).is_err());
    }

    #[test]
    fn a_path_is_open_or_closed() {
        let path = |closed: i32| {
            let header = [2i32, closed, 0].map(i32::to_le_bytes).concat();
            printed(write_path, &[header, floats(&[0.0, 0.0, 1.0, 2.0])].concat())
        };
        assert_eq!(path(1), "((0,0),(1,2))");
        assert_eq!(path(0), "[(0,0),(1,2)]");
    }

    #[test]
    fn a_polygon_that_claims_more_points_than_it_has_is_corrupt() {
        let mut polygon = [1i32.to_le_bytes().to_vec(), vec![0; 32]].concat();
        polygon.extend(floats(&[7.0, 8.0]));
        assert_eq!(printed(write_polygon, &polygon), "((7,8))");
        polygon[0] = 2;
        assert!(write_polygon(&polygon, &mut Vec::new()).is_err());
    }
}
