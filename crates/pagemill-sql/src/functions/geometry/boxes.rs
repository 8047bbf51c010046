//! Boxes: how they lie to each other, what is in them, and how far things are from them.
//!
//! Source: `box_ov`, `box_contain_box`, `box_closept_point`, `box_interpt_lseg`, `box_closept_lseg`, `inter_lb` and the functions
//! of `box` in `src/backend/utils/adt/geo_ops.c`, PostgreSQL 14 to 18.

use super::super::rows::{Outcome, Plain};
use super::number::{
    divide, greatest, is_at_least, is_at_most, is_below, is_equal, is_greater, is_less, least,
    middle, multiply, subtract,
};
use super::segments::{known, nearest};
use super::shapes::{Circle, Line, Point, Polygon, Rectangle, Segment};
use super::{alone, both};

pub(super) fn plain(key: &str) -> Option<Plain> {
    position(key).or_else(|| comparison(key)).or_else(|| place(key)).or_else(|| made(key))
}

/// How one lies to the other.
fn position(key: &str) -> Option<Plain> {
    type R = Rectangle;
    Some(match key {
        "box_same" => |a| both(a, |b: R, c: R| Ok(b.high.is_at(c.high) && b.low.is_at(c.low))),
        "box_overlap" => |a| both(a, |b: R, c: R| Ok(b.overlaps(c))),
        "box_contain" => |a| both(a, |b: R, c: R| Ok(b.contains(c))),
        "box_contained" => |a| both(a, |b: R, c: R| Ok(c.contains(b))),
        "box_left" => |a| both(a, |b: R, c: R| Ok(is_less(b.high.x, c.low.x))),
        "box_overleft" => |a| both(a, |b: R, c: R| Ok(is_at_most(b.high.x, c.high.x))),
        "box_right" => |a| both(a, |b: R, c: R| Ok(is_greater(b.low.x, c.high.x))),
        "box_overright" => |a| both(a, |b: R, c: R| Ok(is_at_least(b.low.x, c.low.x))),
        "box_below" => |a| both(a, |b: R, c: R| Ok(is_less(b.high.y, c.low.y))),
        "box_overbelow" => |a| both(a, |b: R, c: R| Ok(is_at_most(b.high.y, c.high.y))),
        "box_above" => |a| both(a, |b: R, c: R| Ok(is_greater(b.low.y, c.high.y))),
        "box_overabove" => |a| both(a, |b: R, c: R| Ok(is_at_least(b.low.y, c.low.y))),
        "box_below_eq" => |a| both(a, |b: R, c: R| Ok(is_at_most(b.high.y, c.low.y))),
        "box_above_eq" => |a| both(a, |b: R, c: R| Ok(is_at_least(b.low.y, c.high.y))),
        _ => return None,
    })
}

/// By their areas.
fn comparison(key: &str) -> Option<Plain> {
    fn areas(b: Rectangle, c: Rectangle, of: fn(f64, f64) -> bool) -> Outcome<bool> {
        let second = c.area()?;
        Ok(of(b.area()?, second))
    }
    Some(match key {
        "box_eq" => |a| both(a, |b, c| areas(b, c, is_equal)),
        "box_lt" => |a| both(a, |b, c| areas(b, c, is_less)),
        "box_le" => |a| both(a, |b, c| areas(b, c, is_at_most)),
        "box_gt" => |a| both(a, |b, c| areas(b, c, is_greater)),
        "box_ge" => |a| both(a, |b, c| areas(b, c, is_at_least)),
        _ => return None,
    })
}

/// Distances, the places next to something, and what is in a box.
fn place(key: &str) -> Option<Plain> {
    type R = Rectangle;
    Some(match key {
        "box_distance" => |a| both(a, |b: R, c: R| b.center()?.distance(c.center()?)),
        "dist_pb" => |a| both(a, |p: Point, b: R| Ok(b.closest(p)?.0)),
        "dist_bp" => |a| both(a, |b: R, p: Point| Ok(b.closest(p)?.0)),
        "dist_sb" => |a| both(a, |s: Segment, b: R| b.distance(s)),
        "dist_bs" => |a| both(a, R::distance),
        "close_pb" => |a| both(a, |p: Point, b: R| Ok(known(b.closest(p)?))),
        "close_sb" => |a| both(a, |s: Segment, b: R| Ok(known(b.closest_to_segment(s)?))),
        "on_pb" => |a| both(a, |p: Point, b: R| Ok(b.has(p))),
        "box_contain_pt" => |a| both(a, |b: R, p: Point| Ok(b.has(p))),
        "on_sb" => |a| both(a, |s: Segment, b: R| Ok(b.has(s.from) && b.has(s.to))),
        "inter_sb" => |a| both(a, |s: Segment, b: R| Ok(b.is_near(s) && b.crosses(s)?)),
        "inter_lb" => |a| both(a, |l: Line, b: R| b.is_crossed_by(l)),
        _ => return None,
    })
}

/// Sizes, and boxes made of boxes.
fn made(key: &str) -> Option<Plain> {
    type R = Rectangle;
    Some(match key {
        "box_area" => |a| alone(a, R::area),
        "box_width" => |a| alone(a, R::width),
        "box_height" => |a| alone(a, R::height),
        "box_center" => |a| alone(a, R::center),
        "box_diagonal" => |a| alone(a, |b: R| Ok(Segment::new(b.high, b.low))),
        "box_intersect" => |a| both(a, |b: R, c: R| Ok(b.common(c))),
        "boxes_bound_box" => |a| both(a, |b: R, c: R| Ok(b.with(c))),
        "points_box" => |a| both(a, |p: Point, q: Point| Ok(R::between(p, q))),
        "point_box" => |a| alone(a, |p: Point| Ok(R { high: p, low: p })),
        "box_add" => |a| both(a, |b: R, p: Point| b.moved(p, Point::plus)),
        "box_sub" => |a| both(a, |b: R, p: Point| b.moved(p, Point::minus)),
        "box_mul" => |a| both(a, |b: R, p: Point| b.turned(p, Point::times)),
        "box_div" => |a| both(a, |b: R, p: Point| b.turned(p, Point::over)),
        "box_poly" => |a| alone(a, |b: R| Ok(b.polygon())),
        "box_circle" => |a| {
            alone(a, |b: R| {
                let center = b.center()?;
                Ok(Circle { center, radius: center.distance(b.high)? })
            })
        },
        _ => return None,
    })
}

/// The greater one first.
fn ordered(x: f64, y: f64) -> (f64, f64) {
    if is_below(y, x) { (x, y) } else { (y, x) }
}

impl Rectangle {
    /// With both points for opposite corners.
    pub(super) fn between(p: Point, q: Point) -> Self {
        let ((right, left), (upper, lower)) = (ordered(p.x, q.x), ordered(p.y, q.y));
        Self { high: Point { x: right, y: upper }, low: Point { x: left, y: lower } }
    }

    fn width(self) -> Outcome<f64> {
        subtract(self.high.x, self.low.x)
    }

    fn height(self) -> Outcome<f64> {
        subtract(self.high.y, self.low.y)
    }

    fn area(self) -> Outcome<f64> {
        multiply(self.width()?, self.height()?)
    }

    fn center(self) -> Outcome<Point> {
        Ok(Point { x: middle(self.high.x, self.low.x)?, y: middle(self.high.y, self.low.y)? })
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        is_at_most(self.low.x, other.high.x)
            && is_at_most(other.low.x, self.high.x)
            && is_at_most(self.low.y, other.high.y)
            && is_at_most(other.low.y, self.high.y)
    }

    pub(super) fn contains(self, other: Self) -> bool {
        is_at_least(self.high.x, other.high.x)
            && is_at_most(self.low.x, other.low.x)
            && is_at_least(self.high.y, other.high.y)
            && is_at_most(self.low.y, other.low.y)
    }

    /// True for a point in it or on its border, to the last digit.
    fn has(self, p: Point) -> bool {
        (self.low.x..=self.high.x).contains(&p.x) && (self.low.y..=self.high.y).contains(&p.y)
    }

    /// The other two corners: the upper left and the lower right one.
    fn corners(self) -> [Point; 2] {
        [Point { x: self.low.x, y: self.high.y }, Point { x: self.high.x, y: self.low.y }]
    }

    fn sides(self) -> [Segment; 4] {
        let [left, right] = self.corners();
        [(self.low, left), (self.high, left), (self.low, right), (self.high, right)]
            .map(|(from, to)| Segment::new(from, to))
    }

    /// How far a point is, and the place of the box next to it.
    fn closest(self, p: Point) -> Outcome<(f64, Point)> {
        match self.has(p) {
            true => Ok((0.0, p)),
            false => nearest(self.sides().map(|side| side.closest(p))),
        }
    }

    /// True where the box around a segment is near.
    fn is_near(self, s: Segment) -> bool {
        Self::around(s.from, &[s.to]).overlaps(self)
    }

    /// True for a segment of a near box that begins or ends inside or crosses a side.
    fn crosses(self, s: Segment) -> Outcome<bool> {
        if self.has(s.from) || self.has(s.to) {
            return Ok(true);
        }
        for side in self.sides() {
            if side.crossing(s)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How far a segment is, and the place next to it: if they cross, the one of the segment that is next to the center.
    fn closest_to_segment(self, s: Segment) -> Outcome<(f64, Point)> {
        if self.is_near(s) {
            let (_, place) = s.closest(self.center()?)?;
            if self.crosses(s)? {
                return Ok((0.0, place));
            }
        }
        self.closest_of_sides(s)
    }

    fn closest_of_sides(self, s: Segment) -> Outcome<(f64, Point)> {
        nearest(self.sides().map(|side| side.closest_to_segment(s)))
    }

    /// How far a segment is, whatever is next to it.
    fn distance(self, s: Segment) -> Outcome<f64> {
        match self.is_near(s) && self.crosses(s)? {
            true => Ok(0.0),
            false => Ok(self.closest_of_sides(s)?.0),
        }
    }

    fn is_crossed_by(self, line: Line) -> Outcome<bool> {
        let [lower_left, upper_left, lower_right, upper_right] = self.sides();
        for side in [lower_left, upper_left, upper_right, lower_right] {
            if side.crossing_of_line(line)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn common(self, other: Self) -> Option<Self> {
        let least_of = |p: Point, q: Point| Point { x: least(p.x, q.x), y: least(p.y, q.y) };
        let greatest_of =
            |p: Point, q: Point| Point { x: greatest(p.x, q.x), y: greatest(p.y, q.y) };
        self.overlaps(other).then(|| Self {
            high: least_of(self.high, other.high),
            low: greatest_of(self.low, other.low),
        })
    }

    fn with(self, other: Self) -> Self {
        let (high, low) = (self.high, self.low);
        Self {
            high: Point { x: greatest(high.x, other.high.x), y: greatest(high.y, other.high.y) },
            low: Point { x: least(low.x, other.low.x), y: least(low.y, other.low.y) },
        }
    }

    fn moved(self, by: Point, of: fn(Point, Point) -> Outcome<Point>) -> Outcome<Self> {
        Ok(Self { high: of(self.high, by)?, low: of(self.low, by)? })
    }

    /// Its corners may have changed places.
    fn turned(self, by: Point, of: fn(Point, Point) -> Outcome<Point>) -> Outcome<Self> {
        let moved = self.moved(by, of)?;
        Ok(Self::between(moved.high, moved.low))
    }

    fn polygon(self) -> Polygon {
        let [left, right] = self.corners();
        let bounds = Self::between(self.high, self.low);
        Polygon { bounds, points: vec![self.low, left, self.high, right] }
    }
}

impl Circle {
    /// The box inside, with its corners on the circle.
    pub(super) fn inner_box(self) -> Outcome<Rectangle> {
        let half = divide(self.radius, 2.0_f64.sqrt())?;
        let by = Point { x: half, y: half };
        Ok(Rectangle { high: self.center.plus(by)?, low: self.center.minus(by)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rectangle(x1: f64, y1: f64, x2: f64, y2: f64) -> Rectangle {
        Rectangle::between(Point { x: x1, y: y1 }, Point { x: x2, y: y2 })
    }

    #[test]
    fn corners_are_put_in_order() {
        let b = rectangle(0.0, 3.0, 2.0, 1.0);
        assert_eq!((b.high, b.low), (Point { x: 2.0, y: 3.0 }, Point { x: 0.0, y: 1.0 }));
        assert_eq!(b.area().unwrap(), 4.0);
        assert_eq!(b.common(rectangle(1.0, 0.0, 9.0, 2.0)), Some(rectangle(1.0, 1.0, 2.0, 2.0)));
        assert_eq!(b.common(rectangle(5.0, 0.0, 9.0, 2.0)), None);
    }

    #[test]
    fn what_is_near_is_found() {
        let b = rectangle(0.0, 0.0, 2.0, 2.0);
        assert_eq!(b.closest(Point { x: 5.0, y: 6.0 }).unwrap(), (5.0, Point { x: 2.0, y: 2.0 }));
        let across = Segment::new(Point { x: -1.0, y: 1.0 }, Point { x: 3.0, y: 1.0 });
        assert_eq!(b.closest_to_segment(across).unwrap(), (0.0, Point { x: 1.0, y: 1.0 }));
    }
}
