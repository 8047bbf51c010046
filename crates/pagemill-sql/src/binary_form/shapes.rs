//! Paths and polygons in binary form: how many points, and these.
//!
//! Invariant: as many points as are said.
//!
//! Source: `path_recv`, `path_send`, `poly_recv`, `poly_send` in `src/backend/utils/adt/geo_ops.c`, `PATH` and `POLYGON` in
//! `src/include/utils/geo_decls.h`, PostgreSQL 18.

use super::{swapped, wrong};
use crate::error::Result;

/// Bytes of a coordinate.
const NUMBER: usize = 8;
/// Points, whether it is closed, and what aligns the first.
const PATH_HEAD: usize = 12;
/// Points, and the corners of a box around them.
const POLYGON_HEAD: usize = 4 + 4 * NUMBER;

fn word(bytes: &[u8]) -> Option<i32> {
    Some(i32::from_le_bytes(*bytes.first_chunk()?))
}

/// Appends the coordinates of so many points.
fn put_points(count: i32, points: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if usize::try_from(count).ok().and_then(|count| count.checked_mul(2 * NUMBER))
        != Some(points.len())
    {
        return wrong();
    }
    out.extend(count.to_be_bytes());
    for number in points.chunks_exact(NUMBER) {
        out.extend(swapped(&[NUMBER], number)?);
    }
    Ok(())
}

/// Appends the binary form of a path's payload.
pub(super) fn put_path(payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let head = payload.split_at_checked(PATH_HEAD);
    let Some((head, points)) = head else { return wrong() };
    let (Some(count), Some(closed)) = (word(head), word(&head[4..])) else { return wrong() };
    out.push(u8::from(closed != 0));
    put_points(count, points, out)
}

/// The same of a polygon.
pub(super) fn put_polygon(payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let head = payload.split_at_checked(POLYGON_HEAD);
    let Some((head, points)) = head else { return wrong() };
    let Some(count) = word(head) else { return wrong() };
    put_points(count, points, out)
}

/// The text of points that come in.
fn points_text(bytes: &[u8]) -> Result<String> {
    let Some((count, rest)) = bytes.split_first_chunk::<4>() else { return wrong() };
    let count = i32::from_be_bytes(*count);
    let numbers = rest.as_chunks::<NUMBER>();
    if count <= 0
        || !numbers.1.is_empty()
        || usize::try_from(count).ok().map(|count| count * 2) != Some(numbers.0.len())
    {
        return wrong();
    }
    let points = numbers.0.chunks_exact(2).map(|point| {
        let [x, y] = [point[0], point[1]].map(f64::from_be_bytes);
        format!("({x},{y})")
    });
    Ok(points.collect::<Vec<_>>().join(","))
}

/// The text of a path that comes in.
pub(super) fn path_text(bytes: &[u8]) -> Result<String> {
    match bytes.split_first() {
        Some((0, rest)) => Ok(format!("[{}]", points_text(rest)?)),
        Some((_, rest)) => Ok(format!("({})", points_text(rest)?)),
        None => wrong(),
    }
}

/// The same of a polygon.
pub(super) fn polygon_text(bytes: &[u8]) -> Result<String> {
    Ok(format!("({})", points_text(bytes)?))
}
