//! Paths: open ones and closed ones, whose last point is joined to the first.
//!
//! They are compared by how many points they have.
//!
//! Source: `path_inter`, `path_distance`, `dist_ppath_internal`, `on_ppath` and the functions of `path` in
//! `src/backend/utils/adt/geo_ops.c`, PostgreSQL 14 to 18.

use super::super::rows::{Outcome, Plain};
use super::inside::is_inside;
use super::number::{add, divide, is_below, is_equal, multiply, subtract};
use super::shapes::{Path, Point, Polygon, Rectangle, Segment};
use super::{alone, both};
use crate::error::{SqlState, StatementError};

pub(super) fn plain(key: &str) -> Option<Plain> {
    count(key).or_else(|| place(key)).or_else(|| made(key))
}

/// By their points, and how many these are.
fn count(key: &str) -> Option<Plain> {
    fn counts(p: &Path, q: &Path, of: fn(&usize, &usize) -> bool) -> Outcome<bool> {
        Ok(of(&p.points.len(), &q.points.len()))
    }
    Some(match key {
        "path_n_eq" => |a| both(a, |p: Path, q: Path| counts(&p, &q, usize::eq)),
        "path_n_lt" => |a| both(a, |p: Path, q: Path| counts(&p, &q, usize::lt)),
        "path_n_le" => |a| both(a, |p: Path, q: Path| counts(&p, &q, usize::le)),
        "path_n_gt" => |a| both(a, |p: Path, q: Path| counts(&p, &q, usize::gt)),
        "path_n_ge" => |a| both(a, |p: Path, q: Path| counts(&p, &q, usize::ge)),
        "path_npoints" => |a| alone(a, |p: Path| Ok(p.points.len() as i32)),
        "path_isclosed" => |a| alone(a, |p: Path| Ok(p.is_closed)),
        "path_isopen" => |a| alone(a, |p: Path| Ok(!p.is_closed)),
        _ => return None,
    })
}

/// Lengths, areas, distances and what is on a path.
fn place(key: &str) -> Option<Plain> {
    Some(match key {
        "path_length" => |a| alone(a, |p: Path| p.length()),
        "path_area" => |a| alone(a, |p: Path| p.area()),
        "path_inter" => |a| both(a, |p: Path, q: Path| p.crosses(&q)),
        "path_distance" => |a| both(a, |p: Path, q: Path| least_distance(&p.sides(), &q.sides())),
        "dist_ppath" => |a| both(a, |p: Point, path: Path| path.distance(p)),
        "dist_pathp" => |a| both(a, |path: Path, p: Point| path.distance(p)),
        "on_ppath" => |a| both(a, |p: Point, path: Path| path.has(p)),
        _ => return None,
    })
}

/// Paths made of paths.
fn made(key: &str) -> Option<Plain> {
    Some(match key {
        "path_close" => |a| alone(a, |p: Path| Ok(Path { is_closed: true, ..p })),
        "path_open" => |a| alone(a, |p: Path| Ok(Path { is_closed: false, ..p })),
        "path_add" => |a| both(a, joined),
        "path_add_pt" => |a| both(a, |path: Path, p: Point| path.moved(p, Point::plus)),
        "path_sub_pt" => |a| both(a, |path: Path, p: Point| path.moved(p, Point::minus)),
        "path_mul_pt" => |a| both(a, |path: Path, p: Point| path.moved(p, Point::times)),
        "path_div_pt" => |a| both(a, |path: Path, p: Point| path.moved(p, Point::over)),
        "path_poly" => |a| alone(a, Path::polygon),
        _ => return None,
    })
}

/// Both paths as one, which closed ones cannot be.
fn joined(mut p: Path, q: Path) -> Outcome<Option<Path>> {
    if p.is_closed || q.is_closed {
        return Ok(None);
    }
    p.points.extend(q.points);
    Ok(Some(p))
}

/// The least distance of two of some sides.
pub(super) fn least_distance(some: &[Segment], others: &[Segment]) -> Outcome<Option<f64>> {
    let mut least: Option<f64> = None;
    for one in some {
        for other in others {
            let (distance, _) = one.closest_to_segment(*other)?;
            if least.is_none_or(|least| is_below(distance, least)) {
                least = Some(distance);
            }
        }
    }
    Ok(least)
}

/// The sides between points, in front of them the one from the last to the first.
pub(super) fn closed_sides(points: &[Point]) -> Vec<Segment> {
    let last = points.iter().rev().take(1);
    let starts = last.chain(points);
    starts.zip(points).map(|(from, to)| Segment::new(*from, *to)).collect()
}

impl Path {
    fn sides(&self) -> Vec<Segment> {
        let mut sides = closed_sides(&self.points);
        if !self.is_closed {
            sides.remove(0);
        }
        sides
    }

    fn bounds(&self) -> Rectangle {
        let first = self.points.first().copied();
        let first = first.unwrap_or(Point { x: 0.0, y: 0.0 }); // default: there is always one
        Rectangle::around(first, &self.points)
    }

    fn length(&self) -> Outcome<f64> {
        self.sides().iter().try_fold(0.0, |sum, side| add(sum, side.length()?))
    }

    /// Of what a closed path encloses.
    fn area(&self) -> Outcome<Option<f64>> {
        if !self.is_closed {
            return Ok(None);
        }
        let next = self.points.iter().skip(1).chain(self.points.first());
        let area = self.points.iter().zip(next).try_fold(0.0, |area, (p, q)| {
            let area = add(area, multiply(p.x, q.y)?)?;
            subtract(area, multiply(p.y, q.x)?)
        });
        Ok(Some(divide(area?.abs(), 2.0)?))
    }

    fn crosses(&self, other: &Self) -> Outcome<bool> {
        if !self.bounds().overlaps(other.bounds()) {
            return Ok(false);
        }
        let others = other.sides();
        for side in self.sides() {
            for other in &others {
                if side.crossing(*other)?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Of a point; a path of one point alone is nowhere.
    fn distance(&self, p: Point) -> Outcome<f64> {
        let mut least = None;
        for side in self.sides() {
            let (distance, _) = side.closest(p)?;
            if least.is_none_or(|least| is_below(distance, least)) {
                least = Some(distance);
            }
        }
        Ok(least.unwrap_or(0.0)) // default: the server's where an open path has no side
    }

    /// True for a point on an open path, or inside of a closed one.
    fn has(&self, p: Point) -> Outcome<bool> {
        if self.is_closed {
            return is_inside(p, &self.points);
        }
        let Some((first, rest)) = self.points.split_first() else { return Ok(false) };
        let (mut before, mut way) = (first, p.distance(*first)?);
        for point in rest {
            let next = p.distance(*point)?;
            let length = before.distance(*point)?;
            if is_equal(add(way, next)?, length) {
                return Ok(true);
            }
            (before, way) = (point, next);
        }
        Ok(false)
    }

    fn moved(mut self, by: Point, of: fn(Point, Point) -> Outcome<Point>) -> Outcome<Self> {
        for point in &mut self.points {
            *point = of(*point, by)?;
        }
        Ok(self)
    }

    fn polygon(self) -> Outcome<Polygon> {
        match self.is_closed {
            true => Ok(Polygon::of(self.points)),
            false => {
                let message = "open path cannot be converted to polygon";
                Err(StatementError::new(SqlState::INVALID_PARAMETER, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(is_closed: bool, points: &[(f64, f64)]) -> Path {
        let points = points.iter().map(|(x, y)| Point { x: *x, y: *y }).collect();
        Path { is_closed, points }
    }

    #[test]
    fn a_closed_path_goes_back_to_its_beginning() {
        let corners = [(0.0, 0.0), (3.0, 0.0), (3.0, 4.0)];
        assert_eq!(path(false, &corners).length().unwrap(), 7.0);
        assert_eq!(path(true, &corners).length().unwrap(), 12.0);
        assert_eq!(path(true, &corners).area().unwrap(), Some(6.0));
        assert_eq!(path(false, &corners).area().unwrap(), None);
    }

    #[test]
    fn open_paths_are_joined() {
        let (p, q) = (path(false, &[(1.0, 2.0)]), path(false, &[(3.0, 4.0)]));
        assert_eq!(joined(p.clone(), q).unwrap(), Some(path(false, &[(1.0, 2.0), (3.0, 4.0)])));
        assert_eq!(joined(p.clone(), path(true, &[(1.0, 2.0)])).unwrap(), None);
        assert_eq!(p.distance(Point { x: 9.0, y: 9.0 }).unwrap(), 0.0);
    }
}
