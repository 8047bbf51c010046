//! What is inside of a polygon: points, by how often the ray to the right of one is crossed, and line segments.
//!
//! Invariant: a segment is cut only so many times; what would be cut more often is refused, where the server's stack may end.
//!
//! Source: `point_inside`, `lseg_crossing`, `lseg_inside_poly`, `touched_lseg_inside_poly` in
//! `src/backend/utils/adt/geo_ops.c`, PostgreSQL 14 to 18.

use super::super::rows::Outcome;
use super::number::{is_at_least, is_at_most, is_greater, is_less, is_zero, multiply, subtract};
use super::shapes::{Point, Segment};
use crate::error::StatementError;

/// True for a point inside of or on a polygon.
pub(super) fn is_inside(p: Point, corners: &[Point]) -> Outcome<bool> {
    let Some(first) = corners.first() else { return Ok(false) };
    let first = first.minus(p)?;
    let (mut before, mut crossed) = (first, 0);
    for corner in corners.iter().skip(1) {
        let corner = corner.minus(p)?;
        let Some(count) = crossings(corner, before)? else { return Ok(true) };
        crossed += count;
        before = corner;
    }
    Ok(crossings(first, before)?.is_none_or(|count| crossed + count != 0))
}

/// How often a side crosses the positive part of the x axis, twice over and below 0 when it goes down; nothing for a side on
/// which the origin is. A side that begins or ends on the axis counts once.
fn crossings(p: Point, before: Point) -> Outcome<Option<i32>> {
    match is_zero(p.y) {
        true => Ok(crossings_to_axis(p, before)),
        false => crossings_from_axis(p, before),
    }
}

/// Of a side that ends on the axis.
fn crossings_to_axis(p: Point, before: Point) -> Option<i32> {
    if is_zero(p.x) {
        return None;
    }
    match (is_greater(p.x, 0.0), is_zero(before.y)) {
        (true, true) => is_greater(before.x, 0.0).then_some(0),
        (true, false) => Some(if is_less(before.y, 0.0) { 1 } else { -1 }),
        (false, true) => is_less(before.x, 0.0).then_some(0),
        (false, false) => Some(0),
    }
}

/// Of a side that ends above or below the axis.
fn crossings_from_axis(p: Point, before: Point) -> Outcome<Option<i32>> {
    let is_above = is_greater(p.y, 0.0);
    let sign = if is_above { 1 } else { -1 };
    if is_zero(before.y) {
        return Ok(Some(if is_less(before.x, 0.0) { 0 } else { sign }));
    }
    let is_on_its_side = |y: f64| if is_above { is_greater(y, 0.0) } else { is_less(y, 0.0) };
    if is_on_its_side(before.y) {
        return Ok(Some(0));
    }
    if is_at_least(p.x, 0.0) && is_greater(before.x, 0.0) {
        return Ok(Some(2 * sign));
    }
    if is_less(p.x, 0.0) && is_at_most(before.x, 0.0) {
        return Ok(Some(0));
    }
    let second = multiply(subtract(p.y, before.y)?, p.x)?;
    let first = multiply(subtract(p.x, before.x)?, p.y)?;
    let turn = subtract(first, second)?;
    Ok(match is_zero(turn) {
        true => None,
        false if is_on_its_side(turn) => Some(0),
        false => Some(2 * sign),
    })
}

/// How often a segment may be cut within pieces of pieces.
const MOST_CUTS: usize = 500;

/// A polygon that a segment may be inside of.
pub(super) struct Inside<'p> {
    pub(super) corners: &'p [Point],
}

impl Inside<'_> {
    /// True for a segment inside, as far as the sides from `start` on tell.
    pub(super) fn has(&self, s: Segment, start: usize, cuts: usize) -> Outcome<bool> {
        if cuts > MOST_CUTS {
            let what = "a polygon inside of one with more than 500 corners on its sides";
            return Err(StatementError::unsupported(what));
        }
        let mut is_cut = false;
        for (place, side) in self.sides_from(start) {
            let (has_from, has_to) = (side.has(s.from)?, || side.has(s.to));
            let is_fine = match has_from {
                true if has_to()? => return Ok(true),
                true => self.touching(s, side, (place + 1, cuts))?,
                false if has_to()? => {
                    self.touching(Segment::new(s.to, s.from), side, (place + 1, cuts))?
                }
                false => match s.crossing(side)? {
                    None => true,
                    Some(cut) => {
                        is_cut = true;
                        let piece = |end| self.has(Segment::new(end, cut), place + 1, cuts + 1);
                        piece(s.from)? && piece(s.to)?
                    }
                },
            };
            if !is_fine {
                return Ok(false);
            }
        }
        match is_cut {
            true => Ok(true),
            false => is_inside(s.middle()?, self.corners),
        }
    }

    /// The sides that end in a corner from this one on, and that corner's place.
    fn sides_from(&self, start: usize) -> impl Iterator<Item = (usize, Segment)> {
        let before = match start {
            0 => self.corners.last(),
            _ => self.corners.get(start - 1),
        };
        let ends = self.corners.iter().enumerate().skip(start);
        ends.scan(before, |before, (place, corner)| {
            let from = before.replace(corner)?;
            Some((place, Segment::new(*from, *corner)))
        })
    }

    /// Of a segment that begins on a side and does not end there: whether the part beyond an end of the side is inside.
    fn touching(&self, s: Segment, side: Segment, (start, cuts): (usize, usize)) -> Outcome<bool> {
        let beyond = |end: Point| self.has(Segment::new(s.to, end), start, cuts + 1);
        let is_on = |end: Point| s.has(end);
        if s.from.is_at(side.from) {
            return if is_on(side.to)? { beyond(side.to) } else { Ok(true) };
        }
        if s.from.is_at(side.to) {
            return if is_on(side.from)? { beyond(side.from) } else { Ok(true) };
        }
        for end in [side.from, side.to] {
            if is_on(end)? {
                return beyond(end);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(size: f64) -> Vec<Point> {
        [(0.0, 0.0), (0.0, size), (size, size), (size, 0.0)].map(|(x, y)| Point { x, y }).to_vec()
    }

    #[test]
    fn points_are_inside_on_or_outside() {
        let corners = square(2.0);
        let inside = |x, y| is_inside(Point { x, y }, &corners).unwrap();
        assert!(inside(1.0, 1.0) && inside(0.0, 0.0) && inside(2.0, 1.0) && inside(1.0, 2.0));
        assert!(!inside(3.0, 1.0) && !inside(-1.0, 0.0) && !inside(1.0, 2.1));
    }

    #[test]
    fn segments_are_inside_or_leave() {
        let corners = square(2.0);
        let inside = Inside { corners: &corners };
        let has = |x1, y1, x2, y2| {
            let s = Segment::new(Point { x: x1, y: y1 }, Point { x: x2, y: y2 });
            inside.has(s, 0, 0).unwrap()
        };
        assert!(has(0.5, 0.5, 1.5, 1.5) && has(0.0, 0.0, 2.0, 2.0) && has(0.0, 0.0, 2.0, 0.0));
        assert!(!has(0.5, 0.5, 3.0, 0.5) && !has(-1.0, 1.0, 3.0, 1.0));
    }
}
