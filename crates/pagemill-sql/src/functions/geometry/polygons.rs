//! Polygons: how they and the boxes around them lie to each other, and how far things are from them.
//!
//! Source: `poly_overlap_internal`, `poly_contain_poly`, `plist_same`, `dist_ppoly_internal` and the functions of `polygon` in
//! `src/backend/utils/adt/geo_ops.c`, PostgreSQL 14 to 18.

use super::super::rows::{Outcome, Plain};
use super::inside::{Inside, is_inside};
use super::paths::{closed_sides, least_distance};
use super::segments::nearest;
use super::shapes::{Path, Point, Polygon, Segment};
use super::{alone, both};

pub(super) fn plain(key: &str) -> Option<Plain> {
    position(key).or_else(|| {
        type P = Polygon;
        Some(match key {
            "poly_npoints" => |a| alone(a, |p: P| Ok(p.points.len() as i32)),
            "poly_box" => |a| alone(a, |p: P| Ok(p.bounds)),
            "poly_path" => |a| alone(a, |p: P| Ok(Path { is_closed: true, points: p.points })),
            "poly_same" => |a| both(a, |p: P, q: P| Ok(is_same(&p.points, &q.points))),
            "poly_overlap" => |a| both(a, |p: P, q: P| p.overlaps(&q)),
            "poly_contain" => |a| both(a, |p: P, q: P| p.contains(&q)),
            "poly_contained" => |a| both(a, |p: P, q: P| q.contains(&p)),
            "poly_contain_pt" => |a| both(a, |p: P, point: Point| is_inside(point, &p.points)),
            "pt_contained_poly" => |a| both(a, |point: Point, p: P| is_inside(point, &p.points)),
            "dist_ppoly" => |a| both(a, |point: Point, p: P| p.distance(point)),
            "dist_polyp" => |a| both(a, |p: P, point: Point| p.distance(point)),
            "poly_distance" => |a| {
                both(a, |p: P, q: P| match p.overlaps(&q)? {
                    true => Ok(Some(0.0)),
                    false => least_distance(&closed_sides(&p.points), &closed_sides(&q.points)),
                })
            },
            _ => return None,
        })
    })
}

/// How the box around one lies to the other's, to the last digit.
fn position(key: &str) -> Option<Plain> {
    type P = Polygon;
    Some(match key {
        "poly_left" => |a| both(a, |p: P, q: P| Ok(p.bounds.high.x < q.bounds.low.x)),
        "poly_overleft" => |a| both(a, |p: P, q: P| Ok(p.bounds.high.x <= q.bounds.high.x)),
        "poly_right" => |a| both(a, |p: P, q: P| Ok(p.bounds.low.x > q.bounds.high.x)),
        "poly_overright" => |a| both(a, |p: P, q: P| Ok(p.bounds.low.x >= q.bounds.low.x)),
        "poly_below" => |a| both(a, |p: P, q: P| Ok(p.bounds.high.y < q.bounds.low.y)),
        "poly_overbelow" => |a| both(a, |p: P, q: P| Ok(p.bounds.high.y <= q.bounds.high.y)),
        "poly_above" => |a| both(a, |p: P, q: P| Ok(p.bounds.low.y > q.bounds.high.y)),
        "poly_overabove" => |a| both(a, |p: P, q: P| Ok(p.bounds.low.y >= q.bounds.low.y)),
        _ => return None,
    })
}

/// True where both go around the same points, in whatever direction and from whichever on.
fn is_same(some: &[Point], others: &[Point]) -> bool {
    let count = some.len();
    let goes_around = |begin: usize, step: usize| {
        (0..count).all(|at| some[at].is_at(others[(begin + at * step) % count]))
    };
    count == others.len()
        && (0..count).any(|begin| goes_around(begin, 1) || goes_around(begin, count - 1))
}

impl Polygon {
    pub(super) fn overlaps(&self, other: &Self) -> Outcome<bool> {
        if !self.bounds.overlaps(other.bounds) {
            return Ok(false);
        }
        let others = closed_sides(&other.points);
        for side in closed_sides(&self.points) {
            for other in &others {
                if side.crossing(*other)?.is_some() {
                    return Ok(true);
                }
            }
        }
        // No sides cross: one is inside of the other, or they are apart.
        let begins_in = |one: &Self, other: &Self| match one.points.first() {
            Some(first) => is_inside(*first, &other.points),
            None => Ok(false),
        };
        Ok(begins_in(self, other)? || begins_in(other, self)?)
    }

    fn contains(&self, other: &Self) -> Outcome<bool> {
        if !self.bounds.contains(other.bounds) {
            return Ok(false);
        }
        let inside = Inside { corners: &self.points };
        for side in closed_sides(&other.points) {
            if !inside.has(side, 0, 0)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Of a point: nothing for one inside.
    pub(super) fn distance(&self, p: Point) -> Outcome<f64> {
        if is_inside(p, &self.points)? {
            return Ok(0.0);
        }
        let mut sides = closed_sides(&self.points);
        // The side that closes it begins with the first point here.
        if let Some(Segment { from, to }) = sides.first_mut() {
            std::mem::swap(from, to);
        }
        Ok(nearest(sides.iter().map(|side| side.closest(p)))?.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polygon(points: &[(f64, f64)]) -> Polygon {
        Polygon::of(points.iter().map(|(x, y)| Point { x: *x, y: *y }).collect())
    }

    #[test]
    fn polygons_are_the_same_from_any_point_in_any_direction() {
        let points = polygon(&[(0.0, 0.0), (1.0, 0.0), (1.0, 2.0)]).points;
        for other in [[(1.0, 0.0), (1.0, 2.0), (0.0, 0.0)], [(0.0, 0.0), (1.0, 2.0), (1.0, 0.0)]] {
            assert!(is_same(&points, &polygon(&other).points));
        }
        assert!(!is_same(&points, &polygon(&[(0.0, 0.0), (1.0, 0.0), (2.0, 2.0)]).points));
        assert!(!is_same(&points, &points[..2]));
    }

    #[test]
    fn polygons_overlap_contain_and_are_apart() {
        let outer = polygon(&[(0.0, 0.0), (0.0, 4.0), (4.0, 4.0), (4.0, 0.0)]);
        let inner = polygon(&[(1.0, 1.0), (1.0, 2.0), (2.0, 2.0)]);
        let far = polygon(&[(7.0, 8.0), (9.0, 9.0), (8.0, 8.0)]);
        assert!(outer.contains(&inner).unwrap() && !inner.contains(&outer).unwrap());
        assert!(outer.overlaps(&inner).unwrap() && !outer.overlaps(&far).unwrap());
        assert_eq!(outer.distance(Point { x: 7.0, y: 8.0 }).unwrap(), 5.0);
        assert_eq!(outer.distance(Point { x: 1.0, y: 1.0 }).unwrap(), 0.0);
    }
}
