//! Line segments: where they cross lines and each other, and which of their places is next to something.
//!
//! Source: `lseg_interpt_line`, `lseg_closept_point`, `lseg_closept_line`, `lseg_closept_lseg`, `lseg_contain_point` in
//! `src/backend/utils/adt/geo_ops.c`, PostgreSQL 14 to 18.

use super::super::rows::{Outcome, Plain};
use super::number::{is_at_least, is_at_most, is_below, is_equal, is_greater, is_less, middle};
use super::shapes::{Line, Point, Segment};
use super::{alone, both};

pub(super) fn plain(key: &str) -> Option<Plain> {
    comparison(key).or_else(|| place(key)).or_else(|| {
        Some(match key {
            "lseg_construct" => |a| both(a, |from: Point, to: Point| Ok(Segment { from, to })),
            "lseg_length" => |a| alone(a, Segment::length),
            "lseg_center" => |a| alone(a, Segment::middle),
            "lseg_vertical" => |a| alone(a, |s: Segment| Ok(is_equal(s.from.x, s.to.x))),
            "lseg_horizontal" => |a| alone(a, |s: Segment| Ok(is_equal(s.from.y, s.to.y))),
            "lseg_parallel" => |a| {
                both(a, |s: Segment, t: Segment| {
                    let second = t.slope()?;
                    Ok(is_equal(s.slope()?, second))
                })
            },
            "lseg_perp" => |a| {
                both(a, |s: Segment, t: Segment| {
                    let second = t.slope_across()?;
                    Ok(is_equal(s.slope()?, second))
                })
            },
            _ => return None,
        })
    })
}

/// The ends decide whether two are equal, the length which one is less.
fn comparison(key: &str) -> Option<Plain> {
    fn lengths(s: Segment, t: Segment, of: fn(f64, f64) -> bool) -> Outcome<bool> {
        Ok(of(s.length()?, t.length()?))
    }
    Some(match key {
        "lseg_eq" => |a| both(a, |s: Segment, t: Segment| Ok(s.has_ends_of(t))),
        "lseg_ne" => |a| both(a, |s: Segment, t: Segment| Ok(!s.has_ends_of(t))),
        "lseg_lt" => |a| both(a, |s, t| lengths(s, t, is_less)),
        "lseg_le" => |a| both(a, |s, t| lengths(s, t, is_at_most)),
        "lseg_gt" => |a| both(a, |s, t| lengths(s, t, is_greater)),
        "lseg_ge" => |a| both(a, |s, t| lengths(s, t, is_at_least)),
        _ => return None,
    })
}

/// Crossings, distances and the places next to something.
fn place(key: &str) -> Option<Plain> {
    Some(match key {
        "lseg_intersect" => |a| both(a, |s: Segment, t: Segment| Ok(s.crossing(t)?.is_some())),
        "lseg_interpt" => |a| both(a, Segment::crossing),
        "inter_sl" => |a| both(a, |s: Segment, l: Line| Ok(s.crossing_of_line(l)?.is_some())),
        "lseg_distance" => |a| both(a, |s: Segment, t: Segment| Ok(s.closest_to_segment(t)?.0)),
        "dist_ps" => |a| both(a, |p: Point, s: Segment| Ok(s.closest(p)?.0)),
        "dist_sp" => |a| both(a, |s: Segment, p: Point| Ok(s.closest(p)?.0)),
        "dist_sl" => |a| both(a, |s: Segment, l: Line| Ok(s.closest_to_line(l)?.0)),
        "dist_ls" => |a| both(a, |l: Line, s: Segment| Ok(s.closest_to_line(l)?.0)),
        "close_ps" => |a| both(a, |p: Point, s: Segment| Ok(known(s.closest(p)?))),
        "close_ls" => |a| {
            both(a, |l: Line, s: Segment| match s.slope()? == l.slope()? {
                true => Ok(None),
                false => Ok(known(s.closest_to_line(l)?)),
            })
        },
        "close_lseg" => |a| {
            both(a, |s: Segment, t: Segment| match s.slope()? == t.slope()? {
                true => Ok(None),
                false => Ok(known(t.closest_to_segment(s)?)),
            })
        },
        "on_ps" => |a| both(a, |p: Point, s: Segment| s.has(p)),
        "on_sl" => |a| both(a, |s: Segment, l: Line| Ok(l.has(s.from)? && l.has(s.to)?)),
        _ => return None,
    })
}

/// The place, unless its distance is not known.
pub(super) fn known((distance, place): (f64, Point)) -> Option<Point> {
    (!distance.is_nan()).then_some(place)
}

/// The nearest of some places, the first one of those that are equally near.
pub(super) fn nearest<I>(places: I) -> Outcome<(f64, Point)>
where
    I: IntoIterator<Item = Outcome<(f64, Point)>>,
{
    let mut best: Option<(f64, Point)> = None;
    for place in places {
        let (distance, place) = place?;
        if best.is_none_or(|(least, _)| is_below(distance, least)) {
            best = Some((distance, place));
        }
    }
    Ok(best.unwrap_or((f64::NAN, Point { x: 0.0, y: 0.0 }))) // default: there is a place to choose from
}

impl Segment {
    pub(super) fn new(from: Point, to: Point) -> Self {
        Self { from, to }
    }

    pub(super) fn length(self) -> Outcome<f64> {
        self.from.distance(self.to)
    }

    /// The point between both ends.
    pub(super) fn middle(self) -> Outcome<Point> {
        Ok(Point { x: middle(self.from.x, self.to.x)?, y: middle(self.from.y, self.to.y)? })
    }

    fn slope(self) -> Outcome<f64> {
        self.from.slope(self.to)
    }

    fn slope_across(self) -> Outcome<f64> {
        self.from.slope_across(self.to)
    }

    fn has_ends_of(self, other: Self) -> bool {
        self.from.is_at(other.from) && self.to.is_at(other.to)
    }

    /// The line that it is a part of.
    fn line(self) -> Outcome<Line> {
        Line::at(self.from, self.slope()?)
    }

    /// True for a point on it: the ways to both ends are together as long as it is.
    pub(super) fn has(self, p: Point) -> Outcome<bool> {
        Ok(is_equal(p.distance(self.from)? + p.distance(self.to)?, self.length()?))
    }

    /// Where a line crosses it: one of its ends, if it is there.
    pub(super) fn crossing_of_line(self, line: Line) -> Outcome<Option<Point>> {
        let Some(place) = self.line()?.meeting(line)? else { return Ok(None) };
        if !self.has(place)? {
            return Ok(None);
        }
        let end = [self.from, self.to].into_iter().find(|end| end.is_at(place));
        Ok(Some(end.unwrap_or(place)))
    }

    /// Where another one crosses it.
    pub(super) fn crossing(self, other: Self) -> Outcome<Option<Point>> {
        match self.crossing_of_line(other.line()?)? {
            Some(place) if other.has(place)? => Ok(Some(place)),
            _ => Ok(None),
        }
    }

    /// How far a line is, and the place next to it: the second end where both are as near.
    fn closest_to_line(self, line: Line) -> Outcome<(f64, Point)> {
        if let Some(place) = self.crossing_of_line(line)? {
            return Ok((0.0, place));
        }
        let (from, to) = (line.closest(self.from)?.0, line.closest(self.to)?.0);
        Ok(if from < to { (from, self.from) } else { (to, self.to) })
    }

    /// How far a point is, and the place next to it.
    pub(super) fn closest(self, p: Point) -> Outcome<(f64, Point)> {
        let (_, place) = self.closest_to_line(Line::at(p, self.slope_across()?)?)?;
        Ok((place.distance(p)?, place))
    }

    /// How far another one is, and the place next to it.
    pub(super) fn closest_to_segment(self, other: Self) -> Outcome<(f64, Point)> {
        if let Some(place) = self.crossing(other)? {
            return Ok((0.0, place));
        }
        let of_end = |end: Point| Ok((other.closest(end)?.0, end));
        nearest([
            self.closest(other.from),
            self.closest(other.to),
            of_end(self.from),
            of_end(self.to),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(x1: f64, y1: f64, x2: f64, y2: f64) -> Segment {
        Segment::new(Point { x: x1, y: y1 }, Point { x: x2, y: y2 })
    }

    #[test]
    fn segments_cross_or_are_apart() {
        let s = segment(0.0, 0.0, 2.0, 2.0);
        assert_eq!(
            s.crossing(segment(0.0, 2.0, 2.0, 0.0)).unwrap(),
            Some(Point { x: 1.0, y: 1.0 })
        );
        assert_eq!(s.crossing(segment(3.0, 0.0, 3.0, 9.0)).unwrap(), None);
        let (distance, place) = s.closest_to_segment(segment(3.0, 0.0, 3.0, 9.0)).unwrap();
        assert_eq!((distance, place), (1.0, Point { x: 2.0, y: 2.0 }));
    }

    #[test]
    fn the_place_next_to_a_point_is_on_the_segment() {
        let s = segment(0.0, 0.0, 4.0, 0.0);
        assert_eq!(s.closest(Point { x: 1.0, y: 3.0 }).unwrap(), (3.0, Point { x: 1.0, y: 0.0 }));
        assert_eq!(s.closest(Point { x: 7.0, y: 4.0 }).unwrap(), (5.0, Point { x: 4.0, y: 0.0 }));
    }
}
