//! Points: where they lie to each other, and their sums and products, which move, turn and scale.
//!
//! Source: `point_eq_point`, `point_dt`, `point_sl`, `point_mul_point` and their kin in `src/backend/utils/adt/geo_ops.c`,
//! PostgreSQL 14 to 18.

use super::super::rows::{Outcome, Plain};
use super::number::{
    add, difference_of_products, divide, hypotenuse, is_equal, is_greater, is_less, is_same,
    subtract, sum_of_products,
};
use super::shapes::Point;
use super::{both, of_numbers};

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "construct_point" => |a| of_numbers(a, |x, y| Point { x, y }),
        "point_eq" => |a| both(a, |p: Point, q: Point| Ok(p.is_at(q))),
        "point_ne" => |a| both(a, |p: Point, q: Point| Ok(!p.is_at(q))),
        "point_left" => |a| both(a, |p: Point, q: Point| Ok(is_less(p.x, q.x))),
        "point_right" => |a| both(a, |p: Point, q: Point| Ok(is_greater(p.x, q.x))),
        "point_below" => |a| both(a, |p: Point, q: Point| Ok(is_less(p.y, q.y))),
        "point_above" => |a| both(a, |p: Point, q: Point| Ok(is_greater(p.y, q.y))),
        "point_vert" => |a| both(a, |p: Point, q: Point| Ok(is_equal(p.x, q.x))),
        "point_horiz" => |a| both(a, |p: Point, q: Point| Ok(is_equal(p.y, q.y))),
        "point_distance" => |a| both(a, Point::distance),
        "point_slope" => |a| both(a, Point::slope),
        "point_add" => |a| both(a, Point::plus),
        "point_sub" => |a| both(a, Point::minus),
        "point_mul" => |a| both(a, Point::times),
        "point_div" => |a| both(a, Point::over),
        _ => return None,
    })
}

impl Point {
    /// True for the same place; NaN is only where NaN is.
    pub(super) fn is_at(self, other: Self) -> bool {
        let is_known = [self.x, self.y, other.x, other.y].iter().all(|number| !number.is_nan());
        match is_known {
            true => is_equal(self.x, other.x) && is_equal(self.y, other.y),
            false => is_same(self.x, other.x) && is_same(self.y, other.y),
        }
    }

    pub(super) fn distance(self, other: Self) -> Outcome<f64> {
        hypotenuse(subtract(self.x, other.x)?, subtract(self.y, other.y)?)
    }

    /// The slope of the line through both, infinite where they are one above the other.
    pub(super) fn slope(self, other: Self) -> Outcome<f64> {
        if is_equal(self.x, other.x) {
            return Ok(f64::INFINITY);
        }
        if is_equal(self.y, other.y) {
            return Ok(0.0);
        }
        divide(subtract(self.y, other.y)?, subtract(self.x, other.x)?)
    }

    /// The slope of what stands upright on that line.
    pub(super) fn slope_across(self, other: Self) -> Outcome<f64> {
        if is_equal(self.x, other.x) {
            return Ok(0.0);
        }
        if is_equal(self.y, other.y) {
            return Ok(f64::INFINITY);
        }
        divide(subtract(self.x, other.x)?, subtract(other.y, self.y)?)
    }

    pub(super) fn plus(self, other: Self) -> Outcome<Self> {
        Ok(Self { x: add(self.x, other.x)?, y: add(self.y, other.y)? })
    }

    pub(super) fn minus(self, other: Self) -> Outcome<Self> {
        Ok(Self { x: subtract(self.x, other.x)?, y: subtract(self.y, other.y)? })
    }

    /// The product as of complex numbers.
    pub(super) fn times(self, other: Self) -> Outcome<Self> {
        let y = sum_of_products([self.x, other.y], [self.y, other.x])?;
        Ok(Self { x: difference_of_products([self.x, other.x], [self.y, other.y])?, y })
    }

    /// The quotient as of complex numbers.
    pub(super) fn over(self, other: Self) -> Outcome<Self> {
        let square = sum_of_products([other.x, other.x], [other.y, other.y])?;
        let y = difference_of_products([self.y, other.x], [self.x, other.y])?;
        let y = divide(y, square)?;
        let x = sum_of_products([self.x, other.x], [self.y, other.y])?;
        Ok(Self { x: divide(x, square)?, y })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_moved_turned_and_scaled() {
        let (p, q) = (Point { x: 1.0, y: 2.0 }, Point { x: 3.0, y: -1.0 });
        assert_eq!(p.plus(q).unwrap(), Point { x: 4.0, y: 1.0 });
        assert_eq!(p.minus(q).unwrap(), Point { x: -2.0, y: 3.0 });
        assert_eq!(p.times(q).unwrap(), Point { x: 5.0, y: 5.0 });
        assert_eq!(p.times(q).unwrap().over(q).unwrap(), p);
        assert!(p.over(Point { x: 0.0, y: 0.0 }).is_err());
    }

    #[test]
    fn a_slope_is_infinite_or_nothing() {
        let (p, q) = (Point { x: 1.0, y: 2.0 }, Point { x: 1.0, y: 5.0 });
        assert_eq!(p.slope(q).unwrap(), f64::INFINITY);
        assert_eq!(p.slope_across(q).unwrap(), 0.0);
        assert_eq!(p.slope(Point { x: 3.0, y: 6.0 }).unwrap(), 2.0);
        assert_eq!(p.slope_across(Point { x: 3.0, y: 6.0 }).unwrap(), -0.5);
    }
}
