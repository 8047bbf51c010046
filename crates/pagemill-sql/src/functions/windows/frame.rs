//! Frames of windows: which rows of a partition a window function sees from each of its rows.
//!
//! ```text
//! partition   a a a | b b b | c c c        peers: rows that the order of the window has for equal
//!                 head ─┘  ^row └─ tail    frame: rows from head up to tail, without those that EXCLUDE names
//! ```
//!
//! Invariant: from row to row neither the head nor the tail goes back.
//!
//! Source: `update_frameheadpos`, `update_frametailpos` and `row_is_in_frame` in `src/backend/executor/nodeWindowAgg.c`,
//! PostgreSQL 14 to 18.

use std::ops::Range;

/// What the bounds of a frame count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Units {
    Rows,
    /// Distances of what the rows are sorted by.
    Range,
    /// Groups of peers.
    Groups,
}

/// A bound of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Edge {
    /// The first row at the start of a frame, the last one at its end.
    Unbounded,
    Current,
    /// Before the row, by an offset.
    Preceding,
    /// Behind the row, by an offset.
    Following,
}

impl Edge {
    pub(crate) fn has_offset(self) -> bool {
        matches!(self, Self::Preceding | Self::Following)
    }
}

/// Which rows a frame has not, though they are between its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Exclusion {
    None,
    CurrentRow,
    /// The row and its peers.
    Group,
    /// The row's peers.
    Ties,
}

/// A frame as a statement has it, without its offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    pub(crate) units: Units,
    pub(crate) start: Edge,
    pub(crate) end: Edge,
    pub(crate) exclusion: Exclusion,
}

/// How a distance is held against what rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Side {
    /// True where the distance is taken away from the value of the row, else it is added.
    pub(crate) subtracts: bool,
    /// True where a value up to the outcome is in range, else one from there on.
    pub(crate) is_upper: bool,
}

/// Which rows are peers.
pub(super) struct Peers {
    /// The first row of each group of peers; behind the last one how many rows there are.
    starts: Vec<usize>,
    /// The group of each row.
    groups: Vec<usize>,
}

impl Peers {
    /// Of so many rows, of which `begins` tells whether one is no peer of the row before it.
    pub(super) fn new(rows: usize, begins: impl Fn(usize) -> bool) -> Self {
        let (mut starts, mut groups) = (Vec::new(), Vec::with_capacity(rows));
        for row in 0..rows {
            if row == 0 || begins(row) {
                starts.push(row);
            }
            groups.push(starts.len() - 1);
        }
        starts.push(rows);
        Self { starts, groups }
    }

    pub(super) fn rows(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn number(&self, row: usize) -> usize {
        self.groups[row]
    }

    /// The rows that are peers of one, itself among them.
    pub(super) fn of(&self, row: usize) -> Range<usize> {
        let group = self.groups[row];
        self.starts[group]..self.starts[group + 1]
    }

    /// The first row of a group, or behind the last row.
    fn start(&self, group: usize) -> usize {
        self.starts.get(group).copied().unwrap_or(self.rows())
    }
}

/// What RANGE with an offset asks of the values that rows are sorted by.
pub(super) trait Distances {
    type Error;

    fn is_null(&self, row: usize) -> bool;

    /// Whether the value of one row is in range of another's, at the start of a frame or at its end.
    ///
    /// # Errors
    /// When an offset is below zero, or a value and an offset have no sum.
    fn holds(&self, rows: (usize, usize), is_end: bool, side: Side) -> Result<bool, Self::Error>;
}

/// The order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Direction {
    pub(super) is_descending: bool,
    pub(super) nulls_first: bool,
}

/// The frames of a partition, one row after another.
pub(super) struct Frames<'f, D> {
    frame: Frame,
    peers: &'f Peers,
    /// The offsets of ROWS and GROUPS, zero where there is none.
    counts: [usize; 2],
    /// What RANGE with an offset goes by.
    distances: Option<(D, Direction)>,
    /// The last head and tail of RANGE with an offset.
    head: usize,
    tail: usize,
}

impl<'f, D: Distances> Frames<'f, D> {
    pub(super) fn new(
        frame: Frame,
        peers: &'f Peers,
        counts: [usize; 2],
        distances: Option<(D, Direction)>,
    ) -> Self {
        Self { frame, peers, counts, distances, head: 0, tail: 0 }
    }

    /// The rows between the bounds of a row's frame; rows are asked for in their order.
    ///
    /// # Errors
    /// As [`Distances::holds`].
    pub(super) fn bounds(&mut self, row: usize) -> Result<Range<usize>, D::Error> {
        Ok(self.head(row)?..self.tail(row)?)
    }

    fn head(&mut self, row: usize) -> Result<usize, D::Error> {
        let Frame { units, start, .. } = self.frame;
        let (peers, by) = (self.peers, self.counts[0]);
        let group = peers.number(row);
        Ok(match (units, start) {
            (_, Edge::Unbounded) => 0,
            (Units::Rows, Edge::Current) => row,
            (_, Edge::Current) => peers.of(row).start,
            (Units::Rows, Edge::Preceding) => row.saturating_sub(by),
            (Units::Rows, Edge::Following) => row.saturating_add(by).min(peers.rows()),
            (Units::Groups, Edge::Preceding) => peers.start(group.saturating_sub(by)),
            (Units::Groups, Edge::Following) => peers.start(group.saturating_add(by)),
            (Units::Range, _) => self.head_by_distance(row)?,
        })
    }

    /// Behind the last row of the frame.
    fn tail(&mut self, row: usize) -> Result<usize, D::Error> {
        let Frame { units, end, .. } = self.frame;
        let (peers, by) = (self.peers, self.counts[1]);
        let next = peers.number(row).saturating_add(1);
        Ok(match (units, end) {
            (_, Edge::Unbounded) => peers.rows(),
            (Units::Rows, Edge::Current) => row + 1,
            (_, Edge::Current) => peers.of(row).end,
            (Units::Rows, Edge::Preceding) => (row + 1).saturating_sub(by),
            (Units::Rows, Edge::Following) => (row + 1).saturating_add(by).min(peers.rows()),
            (Units::Groups, Edge::Preceding) => peers.start(next.saturating_sub(by)),
            (Units::Groups, Edge::Following) => peers.start(next.saturating_add(by)),
            (Units::Range, _) => self.tail_by_distance(row)?,
        })
    }

    fn head_by_distance(&mut self, row: usize) -> Result<usize, D::Error> {
        let Some((distances, direction)) = &self.distances else { return Ok(self.head) };
        let subtracts = (self.frame.start == Edge::Preceding) != direction.is_descending;
        let side = Side { subtracts, is_upper: direction.is_descending };
        while self.head < self.peers.rows() {
            let is_head = match (distances.is_null(self.head), distances.is_null(row)) {
                (false, false) => distances.holds((self.head, row), false, side)?,
                (is_null, of_row) if direction.nulls_first => !is_null || of_row,
                (is_null, of_row) => is_null || !of_row,
            };
            if is_head {
                break;
            }
            self.head += 1;
        }
        Ok(self.head)
    }

    fn tail_by_distance(&mut self, row: usize) -> Result<usize, D::Error> {
        let Some((distances, direction)) = &self.distances else { return Ok(self.tail) };
        let subtracts = (self.frame.end == Edge::Preceding) != direction.is_descending;
        let side = Side { subtracts, is_upper: !direction.is_descending };
        while self.tail < self.peers.rows() {
            let is_tail = match (distances.is_null(self.tail), distances.is_null(row)) {
                (false, false) => !distances.holds((self.tail, row), true, side)?,
                (is_null, _) if direction.nulls_first => !is_null,
                (_, of_row) => !of_row,
            };
            if is_tail {
                break;
            }
            self.tail += 1;
        }
        Ok(self.tail)
    }

    /// The rows of a frame in their order, as ranges of which some may be empty.
    pub(super) fn parts(&self, row: usize, bounds: &Range<usize>) -> [Range<usize>; 3] {
        let out = match self.frame.exclusion {
            Exclusion::None => return [bounds.clone(), 0..0, 0..0],
            Exclusion::CurrentRow => row..row + 1,
            Exclusion::Group | Exclusion::Ties => self.peers.of(row),
        };
        let is_kept = self.frame.exclusion == Exclusion::Ties && bounds.contains(&row);
        let own = if is_kept { row..row + 1 } else { 0..0 };
        [bounds.start..bounds.end.min(out.start), own, bounds.start.max(out.end)..bounds.end]
    }
}

/// Looks for a row of each frame, as `first_value` and its kin do.
///
/// Where a row is not in its own frame, the server takes a place that EXCLUDE TIES leaves to it for one outside; and what it
/// has once gone past it does not look at again.
#[derive(Debug)]
pub(super) struct Seeker {
    /// True where rows before one that was found are forgotten.
    forgets: bool,
    /// The first row that is still known.
    mark: usize,
}

/// A row is looked for that is forgotten.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Forgotten;

impl Seeker {
    pub(super) fn new(forgets: bool) -> Self {
        Self { forgets, mark: 0 }
    }

    /// The row at a place from the first row of a frame, or the last one.
    ///
    /// # Errors
    /// When that is forgotten.
    pub(super) fn find<D: Distances>(
        &mut self,
        frames: &Frames<'_, D>,
        (row, bounds): (usize, &Range<usize>),
        place: Option<usize>,
    ) -> Result<Option<usize>, Forgotten> {
        let (found, mark) = match place {
            Some(place) => (frames.nth(row, bounds, place), bounds.start.saturating_add(place)),
            None => {
                let found = frames.last(row, bounds);
                let is_plain = frames.frame.exclusion == Exclusion::None;
                (found, if is_plain { found.unwrap_or(0) } else { bounds.start })
            }
        };
        let Some(found) = found.filter(|found| *found < frames.peers.rows()) else {
            return Ok(None);
        };
        if self.forgets && found < self.mark {
            return Err(Forgotten);
        }
        if !frames.parts(row, bounds).iter().any(|part| part.contains(&found)) {
            return Ok(None);
        }
        self.mark = self.mark.max(mark);
        Ok(Some(found))
    }
}

impl<D> Frames<'_, D> {
    /// Where a place is, counted from the head, if there are as many rows.
    fn nth(&self, row: usize, bounds: &Range<usize>, place: usize) -> Option<usize> {
        let at = bounds.start.checked_add(place)?;
        let group = self.peers.of(row);
        let overlap = bounds.start.max(group.start);
        let is_behind = at >= group.start && group.end > bounds.start;
        Some(match self.frame.exclusion {
            Exclusion::CurrentRow if at >= row && row >= bounds.start => at.checked_add(1)?,
            Exclusion::Group if is_behind => at.checked_add(group.end - overlap)?,
            Exclusion::Ties if is_behind && at == overlap => row,
            Exclusion::Ties if is_behind => at.checked_add(group.end - overlap - 1)?,
            _ => at,
        })
    }

    /// Where the last row is.
    fn last(&self, row: usize, bounds: &Range<usize>) -> Option<usize> {
        let at = bounds.end.checked_sub(1)?;
        let group = self.peers.of(row);
        let overlap = bounds.end.min(group.end);
        let is_before = at < group.end && group.start < bounds.end;
        let found = match self.frame.exclusion {
            Exclusion::None => return Some(at),
            Exclusion::CurrentRow if at <= row && row < bounds.end => at.checked_sub(1)?,
            Exclusion::Group if is_before => at.checked_sub(overlap - group.start)?,
            Exclusion::Ties if is_before && at + 1 == overlap => row,
            Exclusion::Ties if is_before => at.checked_sub(overlap - 1 - group.start)?,
            _ => at,
        };
        (found >= bounds.start).then_some(found)
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
