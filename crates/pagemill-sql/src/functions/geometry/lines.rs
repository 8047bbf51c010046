//! Lines without ends: where two of them meet, and how far things are from them.
//!
//! Source: `line_construct`, `line_interpt_line`, `line_eq`, `line_distance`, `line_closept_point` in
//! `src/backend/utils/adt/geo_ops.c`, PostgreSQL 14 to 18.

use super::super::rows::{Outcome, Plain};
use super::number::{
    add, difference_of_products, divide, hypotenuse, is_equal, is_same, is_zero, multiply, subtract,
};
use super::shapes::{Line, Point};
use super::{alone, both};
use crate::error::{SqlState, StatementError};

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "line_construct_pp" => |a| both(a, through),
        "line_interpt" => |a| both(a, Line::meeting),
        "line_intersect" => |a| both(a, |l: Line, m: Line| Ok(l.meeting(m)?.is_some())),
        "line_parallel" => |a| both(a, |l: Line, m: Line| Ok(l.meeting(m)?.is_none())),
        "line_perp" => |a| both(a, Line::is_upright_on),
        "line_vertical" => |a| alone(a, |l: Line| Ok(is_zero(l.b))),
        "line_horizontal" => |a| alone(a, |l: Line| Ok(is_zero(l.a))),
        "line_eq" => |a| both(a, Line::is_same),
        "line_distance" => |a| both(a, Line::distance),
        "dist_pl" => |a| both(a, |p: Point, l: Line| Ok(l.closest(p)?.0)),
        "dist_lp" => |a| both(a, |l: Line, p: Point| Ok(l.closest(p)?.0)),
        "close_pl" => |a| {
            both(a, |p: Point, l: Line| {
                let (distance, place) = l.closest(p)?;
                Ok((!distance.is_nan()).then_some(place))
            })
        },
        "on_pl" => |a| both(a, |p: Point, l: Line| l.has(p)),
        _ => return None,
    })
}

fn through(p: Point, q: Point) -> Outcome<Line> {
    if p.is_at(q) {
        let message = "invalid line specification: must be two distinct points";
        return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
    }
    Line::at(p, p.slope(q)?)
}

/// Zero without a sign.
fn unsigned(number: f64) -> f64 {
    if number == 0.0 { 0.0 } else { number }
}

impl Line {
    /// Through a point with a slope.
    pub(super) fn at(p: Point, slope: f64) -> Outcome<Self> {
        Ok(match slope {
            _ if slope.is_infinite() => Self { a: -1.0, b: 0.0, c: p.x },
            0.0 => Self { a: 0.0, b: -1.0, c: p.y },
            _ => Self { a: slope, b: -1.0, c: unsigned(subtract(p.y, multiply(slope, p.x)?)?) },
        })
    }

    pub(super) fn slope(self) -> Outcome<f64> {
        match (is_zero(self.a), is_zero(self.b)) {
            (true, _) => Ok(0.0),
            (false, true) => Ok(f64::INFINITY),
            (false, false) => divide(self.a, -self.b),
        }
    }

    /// The slope of what stands upright on it.
    fn slope_across(self) -> Outcome<f64> {
        match (is_zero(self.a), is_zero(self.b)) {
            (true, _) => Ok(f64::INFINITY),
            (false, true) => Ok(0.0),
            (false, false) => divide(self.b, self.a),
        }
    }

    /// The one point that both have.
    pub(super) fn meeting(self, other: Self) -> Outcome<Option<Point>> {
        let (first, second) = match (is_zero(self.b), is_zero(other.b)) {
            (false, _) => (self, other),
            (true, false) => (other, self),
            (true, true) => return Ok(None),
        };
        if is_equal(second.a, multiply(first.a, divide(second.b, first.b)?)?) {
            return Ok(None);
        }
        let under = difference_of_products([first.a, second.b], [second.a, first.b])?;
        let x = difference_of_products([first.b, second.c], [second.b, first.c])?;
        let x = divide(x, under)?;
        let y = divide(-add(multiply(first.a, x)?, first.c)?, first.b)?;
        Ok(Some(Point { x: unsigned(x), y: unsigned(y) }))
    }

    fn is_upright_on(self, other: Self) -> Outcome<bool> {
        if is_zero(self.a) {
            return Ok(is_zero(other.b));
        }
        if is_zero(other.a) {
            return Ok(is_zero(self.b));
        }
        if is_zero(self.b) {
            return Ok(is_zero(other.a));
        }
        if is_zero(other.b) {
            return Ok(is_zero(self.a));
        }
        let under = multiply(self.b, other.b)?;
        Ok(is_equal(divide(multiply(self.a, other.a)?, under)?, -1.0))
    }

    fn is_same(self, other: Self) -> Outcome<bool> {
        let own = [self.a, self.b, self.c];
        let others = [other.a, other.b, other.c];
        if own.iter().chain(&others).any(|number| number.is_nan()) {
            return Ok(own.iter().zip(&others).all(|(x, y)| is_same(*x, *y)));
        }
        // What is proportional is the same line.
        let pair = own.iter().zip(&others).find(|(_, other)| !is_zero(**other));
        let ratio = pair.map_or(Ok(1.0), |(x, y)| divide(*x, *y))?;
        for (x, y) in own.iter().zip(&others) {
            if !is_equal(*x, multiply(ratio, *y)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn distance(self, other: Self) -> Outcome<f64> {
        if self.meeting(other)?.is_some() {
            return Ok(0.0);
        }
        let is_usable = |number: f64| !is_zero(number) && !number.is_nan();
        let ratio = match (self, other) {
            (l, m) if is_usable(l.a) && is_usable(m.a) => divide(l.a, m.a)?,
            (l, m) if is_usable(l.b) && is_usable(m.b) => divide(l.b, m.b)?,
            _ => 1.0,
        };
        let length = hypotenuse(self.a, self.b)?;
        divide(subtract(self.c, multiply(ratio, other.c)?)?.abs(), length)
    }

    /// How far a point is, NaN where there is no telling, and the place of the line next to it.
    pub(super) fn closest(self, p: Point) -> Outcome<(f64, Point)> {
        match Self::at(p, self.slope_across()?)?.meeting(self)? {
            Some(place) => Ok((place.distance(p)?, place)),
            None => Ok((f64::NAN, p)),
        }
    }

    /// True for a point on it.
    pub(super) fn has(self, p: Point) -> Outcome<bool> {
        let second = multiply(self.b, p.y)?;
        Ok(is_zero(add(add(multiply(self.a, p.x)?, second)?, self.c)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_meet_or_are_parallel() {
        let line = |slope, y| Line::at(Point { x: 0.0, y }, slope).unwrap();
        assert_eq!(
            line(1.0, 0.0).meeting(line(-1.0, 2.0)).unwrap(),
            Some(Point { x: 1.0, y: 1.0 })
        );
        assert_eq!(line(1.0, 0.0).meeting(line(1.0, 2.0)).unwrap(), None);
        assert_eq!(line(0.0, 1.0).distance(line(0.0, 4.0)).unwrap(), 3.0);
        assert!(line(2.0, 1.0).is_upright_on(line(-0.5, 7.0)).unwrap());
    }

    #[test]
    fn proportional_lines_are_the_same() {
        let line = Line { a: 1.0, b: 2.0, c: 3.0 };
        assert!(line.is_same(Line { a: -2.0, b: -4.0, c: -6.0 }).unwrap());
        assert!(!line.is_same(Line { a: -2.0, b: -4.0, c: 6.0 }).unwrap());
        assert_eq!(
            line.closest(Point { x: f64::NAN, y: 1.0 }).unwrap().0.to_bits() >> 52 & 0x7FF,
            0x7FF
        );
    }
}
