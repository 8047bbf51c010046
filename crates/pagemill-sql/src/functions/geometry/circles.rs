//! Circles: how they lie to each other, and circles as other shapes and back.
//!
//! Source: `circle_ar`, `circle_poly`, `poly_to_circle` and the functions of `circle` in `src/backend/utils/adt/geo_ops.c`,
//! PostgreSQL 14 to 18.

use std::f64::consts::PI;

use arrow::array::ArrayRef;

use super::super::rows::{Outcome, Plain, two};
use super::number::{
    add, divide, hypotenuse, is_at_least, is_at_most, is_equal, is_greater, is_less, is_unequal,
    is_zero, multiply, subtract,
};
use super::shapes::{Circle, Point, Polygon, read};
use super::{alone, both};
use crate::error::{SqlState, StatementError};

pub(super) fn plain(key: &str) -> Option<Plain> {
    position(key).or_else(|| comparison(key)).or_else(|| distance(key)).or_else(|| made(key))
}

/// How one lies to the other.
fn position(key: &str) -> Option<Plain> {
    type C = Circle;
    Some(match key {
        "circle_same" => |a| both(a, |c: C, d: C| Ok(c.is_same(d))),
        "circle_overlap" => |a| {
            both(a, |c: C, d: C| {
                Ok(is_at_most(c.center.distance(d.center)?, add(c.radius, d.radius)?))
            })
        },
        "circle_contain" => |a| both(a, |c: C, d: C| c.contains(d)),
        "circle_contained" => |a| both(a, |c: C, d: C| d.contains(c)),
        "circle_left" => |a| both(a, |c: C, d: C| Ok(is_less(c.right()?, d.left()?))),
        "circle_overleft" => |a| both(a, |c: C, d: C| Ok(is_at_most(c.right()?, d.right()?))),
        "circle_right" => |a| both(a, |c: C, d: C| Ok(is_greater(c.left()?, d.right()?))),
        "circle_overright" => |a| both(a, |c: C, d: C| Ok(is_at_least(c.left()?, d.left()?))),
        "circle_below" => |a| both(a, |c: C, d: C| Ok(is_less(c.top()?, d.bottom()?))),
        "circle_overbelow" => |a| both(a, |c: C, d: C| Ok(is_at_most(c.top()?, d.top()?))),
        "circle_above" => |a| both(a, |c: C, d: C| Ok(is_greater(c.bottom()?, d.top()?))),
        "circle_overabove" => |a| both(a, |c: C, d: C| Ok(is_at_least(c.bottom()?, d.bottom()?))),
        _ => return None,
    })
}

/// By their areas.
fn comparison(key: &str) -> Option<Plain> {
    fn areas(c: Circle, d: Circle, of: fn(f64, f64) -> bool) -> Outcome<bool> {
        let second = d.area()?;
        Ok(of(c.area()?, second))
    }
    Some(match key {
        "circle_eq" => |a| both(a, |c, d| areas(c, d, is_equal)),
        "circle_ne" => |a| both(a, |c, d| areas(c, d, is_unequal)),
        "circle_lt" => |a| both(a, |c, d| areas(c, d, is_less)),
        "circle_le" => |a| both(a, |c, d| areas(c, d, is_at_most)),
        "circle_gt" => |a| both(a, |c, d| areas(c, d, is_greater)),
        "circle_ge" => |a| both(a, |c, d| areas(c, d, is_at_least)),
        _ => return None,
    })
}

/// Distances, and whether a point is inside.
fn distance(key: &str) -> Option<Plain> {
    type C = Circle;
    Some(match key {
        "circle_distance" => |a| {
            both(a, |c: C, d: C| {
                let between = c.center.distance(d.center)?;
                beyond(between, add(c.radius, d.radius)?)
            })
        },
        "dist_pc" => |a| both(a, |p: Point, c: C| beyond(p.distance(c.center)?, c.radius)),
        "dist_cpoint" => |a| both(a, |c: C, p: Point| beyond(p.distance(c.center)?, c.radius)),
        "dist_cpoly" => |a| both(a, |c: C, p: Polygon| beyond(p.distance(c.center)?, c.radius)),
        "dist_polyc" => |a| both(a, |p: Polygon, c: C| beyond(p.distance(c.center)?, c.radius)),
        "circle_contain_pt" => |a| both(a, |c: C, p: Point| c.has(p)),
        "pt_contained_circle" => |a| both(a, |p: Point, c: C| c.has(p)),
        _ => return None,
    })
}

/// Sizes, and circles made of circles.
fn made(key: &str) -> Option<Plain> {
    type C = Circle;
    Some(match key {
        "cr_circle" => {
            |a| two(a, |center: &[u8], radius: f64| Ok(Circle { center: read(center)?, radius }))
        }
        "circle_center" => |a| alone(a, |c: C| Ok(c.center)),
        "circle_radius" => |a| alone(a, |c: C| Ok(c.radius)),
        "circle_diameter" => |a| alone(a, |c: C| multiply(c.radius, 2.0)),
        "circle_area" => |a| alone(a, C::area),
        "circle_box" => |a| alone(a, C::inner_box),
        "circle_poly" => polygons,
        "circle_add_pt" => {
            |a| both(a, |c: C, p: Point| Ok(Circle { center: c.center.plus(p)?, ..c }))
        }
        "circle_sub_pt" => {
            |a| both(a, |c: C, p: Point| Ok(Circle { center: c.center.minus(p)?, ..c }))
        }
        "circle_mul_pt" => |a| {
            both(a, |c: C, p: Point| {
                let center = c.center.times(p)?;
                Ok(Circle { center, radius: multiply(c.radius, hypotenuse(p.x, p.y)?)? })
            })
        },
        "circle_div_pt" => |a| {
            both(a, |c: C, p: Point| {
                let center = c.center.over(p)?;
                Ok(Circle { center, radius: divide(c.radius, hypotenuse(p.x, p.y)?)? })
            })
        },
        "poly_circle" => |a| alone(a, |p: Polygon| p.circle()),
        "poly_center" => |a| alone(a, |p: Polygon| Ok(p.circle()?.center)),
        _ => return None,
    })
}

/// What is left of a distance to the center, at least nothing.
fn beyond(distance: f64, radius: f64) -> Outcome<f64> {
    let left = subtract(distance, radius)?;
    Ok(if left < 0.0 { 0.0 } else { left })
}

fn polygons(arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    two(arguments, |count: i32, circle: &[u8]| read::<Circle>(circle)?.polygon(count))
}

/// The bytes of a polygon of so many points, which are to be numbered by four bytes.
fn room_for(count: i32) -> Outcome<()> {
    match 40 + i64::from(count) * 16 {
        ..=MOST_BYTES => Ok(()),
        bytes if bytes > i32::MAX.into() => {
            Err(StatementError::new(SqlState("54000"), "too many points requested"))
        }
        bytes => {
            let message = format!("invalid memory alloc request size {bytes}");
            Err(StatementError::new(SqlState("XX000"), message))
        }
    }
}

/// Source: `MaxAllocSize` in `src/include/utils/memutils.h`, PostgreSQL 14 to 18.
const MOST_BYTES: i64 = 0x3FFF_FFFF;

impl Circle {
    /// True for the same place and radius; NaN is the same as NaN.
    fn is_same(self, other: Self) -> bool {
        let is_radius =
            (self.radius.is_nan() && other.radius.is_nan()) || is_equal(self.radius, other.radius);
        is_radius && self.center.is_at(other.center)
    }

    fn contains(self, other: Self) -> Outcome<bool> {
        let room = subtract(self.radius, other.radius)?;
        // The centers as the first operand has them: the sign of their difference does not matter.
        Ok(is_at_most(self.center.distance(other.center)?, room))
    }

    fn left(self) -> Outcome<f64> {
        subtract(self.center.x, self.radius)
    }

    fn right(self) -> Outcome<f64> {
        add(self.center.x, self.radius)
    }

    fn bottom(self) -> Outcome<f64> {
        subtract(self.center.y, self.radius)
    }

    fn top(self) -> Outcome<f64> {
        add(self.center.y, self.radius)
    }

    fn area(self) -> Outcome<f64> {
        multiply(multiply(self.radius, self.radius)?, PI)
    }

    /// True for a point in it or on it, to the last digit.
    fn has(self, p: Point) -> Outcome<bool> {
        Ok(self.center.distance(p)? <= self.radius)
    }

    /// So many points on it, from the left one on clockwise.
    fn polygon(self, count: i32) -> Outcome<Polygon> {
        if is_zero(self.radius) {
            let message = "cannot convert circle with radius zero to polygon";
            return Err(StatementError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        if count < 2 {
            let message = "must request at least 2 points";
            return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
        }
        room_for(count)?;
        let step = divide(2.0 * PI, count.into())?;
        let point = |place: i32| {
            let angle = multiply(step, place.into())?;
            let x = subtract(self.center.x, multiply(self.radius, angle.cos())?)?;
            Ok(Point { x, y: add(self.center.y, multiply(self.radius, angle.sin())?)? })
        };
        Ok(Polygon::of((0..count).map(point).collect::<Outcome<Vec<Point>>>()?))
    }
}

impl Polygon {
    /// Around the mean of its points, with the mean of their distances from there.
    fn circle(&self) -> Outcome<Circle> {
        let count = self.points.len() as f64;
        let sum = self.points.iter().try_fold(Point { x: 0.0, y: 0.0 }, |sum, p| sum.plus(*p))?;
        let center = Point { x: divide(sum.x, count)?, y: divide(sum.y, count)? };
        let radius = self.points.iter().try_fold(0.0, |sum, p| add(sum, p.distance(center)?))?;
        Ok(Circle { center, radius: divide(radius, count)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle(x: f64, y: f64, radius: f64) -> Circle {
        Circle { center: Point { x, y }, radius }
    }

    #[test]
    fn circles_contain_each_other_and_points() {
        assert!(circle(0.0, 0.0, 5.0).contains(circle(1.0, 1.0, 2.0)).unwrap());
        assert!(!circle(0.0, 0.0, 2.0).contains(circle(1.0, 1.0, 2.0)).unwrap());
        assert!(circle(0.0, 0.0, 5.0).has(Point { x: 3.0, y: 4.0 }).unwrap());
        assert_eq!(beyond(3.0, 5.0).unwrap(), 0.0);
    }

    #[test]
    fn a_circle_is_a_polygon_of_as_many_points_as_are_asked_for() {
        let polygon = circle(0.0, 0.0, 2.0).polygon(4).unwrap();
        assert_eq!(polygon.points.len(), 4);
        assert_eq!(polygon.points[0], Point { x: -2.0, y: 0.0 });
        assert!(circle(0.0, 0.0, 2.0).polygon(1).is_err());
        assert!(circle(0.0, 0.0, 0.0).polygon(4).is_err());
        assert!(circle(0.0, 0.0, 1.0).polygon(i32::MAX).is_err());
    }
}
