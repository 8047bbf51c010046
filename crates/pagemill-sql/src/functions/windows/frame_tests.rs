//! Frames over rows whose numbers are what they are sorted by, each held against what its definition says.
//!
//! Source: the frames of window functions as PostgreSQL's documentation has them (`sql-expressions.html`), PostgreSQL 18.

use super::*;

struct Numbers(Vec<Option<i64>>, i64);

impl Distances for Numbers {
    type Error = ();

    fn is_null(&self, row: usize) -> bool {
        self.0[row].is_none()
    }

    fn holds(&self, (row, of): (usize, usize), _: bool, side: Side) -> Result<bool, ()> {
        let (Some(value), Some(base)) = (self.0[row], self.0[of]) else { return Err(()) };
        let sum = if side.subtracts { base - self.1 } else { base + self.1 };
        Ok(if side.is_upper { value <= sum } else { value >= sum })
    }
}

/// The rows of each frame over numbers in order, the offsets being all the same.
fn frames(frame: Frame, numbers: &[Option<i64>], by: i64) -> Vec<Vec<usize>> {
    let peers = Peers::new(numbers.len(), |row| numbers[row] != numbers[row - 1]);
    let direction = Direction { is_descending: false, nulls_first: false };
    let distances = Some((Numbers(numbers.to_vec(), by), direction));
    let mut frames = Frames::new(frame, &peers, [by as usize; 2], distances);
    let mut of = |row| {
        let bounds = frames.bounds(row).unwrap();
        frames.parts(row, &bounds).into_iter().flatten().collect()
    };
    (0..numbers.len()).map(&mut of).collect()
}

#[test]
fn rows_of_frames_are_those_of_their_definitions() {
    let numbers = [Some(1), Some(1), Some(2), Some(4), Some(4), Some(5), None, None];
    let edges = [(Edge::Preceding, Edge::Following), (Edge::Preceding, Edge::Current)];
    let exclusions = [Exclusion::None, Exclusion::CurrentRow, Exclusion::Group, Exclusion::Ties];
    for units in [Units::Rows, Units::Range, Units::Groups] {
        for ((start, end), exclusion) in edges.into_iter().flat_map(|e| exclusions.map(|x| (e, x)))
        {
            let found = frames(Frame { units, start, end, exclusion }, &numbers, 1);
            let group = |row: usize| {
                numbers[..=row].windows(2).filter(|pair| pair[0] != pair[1]).count() as i64
            };
            for row in 0..numbers.len() {
                let distance = |other: usize| match units {
                    Units::Rows => Some(other as i64 - row as i64),
                    Units::Groups => Some(group(other) - group(row)),
                    Units::Range => match (numbers[other], numbers[row]) {
                        (None, None) => Some(0),
                        (other, row) => other.zip(row).map(|(other, row)| other - row),
                    },
                };
                let last = if end == Edge::Current { 0 } else { 1 };
                let is_peer = |other: usize| numbers[other] == numbers[row];
                let is_in = |other: &usize| {
                    distance(*other).is_some_and(|d| (-1..=last).contains(&d))
                        && match exclusion {
                            Exclusion::None => true,
                            Exclusion::CurrentRow => *other != row,
                            Exclusion::Group => !is_peer(*other),
                            Exclusion::Ties => *other == row || !is_peer(*other),
                        }
                };
                let expected: Vec<usize> = (0..numbers.len()).filter(is_in).collect();
                assert_eq!(found[row], expected, "{units:?} {end:?} {exclusion:?} of row {row}");
            }
        }
    }
}

#[test]
fn a_row_outside_of_its_frame_is_no_tie() {
    let peers = Peers::new(3, |row| row == 1);
    let frame = Frame {
        units: Units::Rows,
        start: Edge::Following,
        end: Edge::Unbounded,
        exclusion: Exclusion::Ties,
    };
    let mut frames = Frames::<Numbers>::new(frame, &peers, [1, 0], None);
    let mut seeker = Seeker::new(true);
    let mut found = Vec::new();
    for row in 0..3 {
        let bounds = frames.bounds(row).unwrap();
        found.push(seeker.find(&frames, (row, &bounds), Some(0)));
    }
    assert_eq!(found, [Ok(Some(1)), Ok(None), Ok(None)]);
}

#[test]
fn offsets_beyond_all_rows_are_no_rows() {
    let frame = Frame {
        units: Units::Groups,
        start: Edge::Following,
        end: Edge::Unbounded,
        exclusion: Exclusion::None,
    };
    assert_eq!(frames(frame, &[Some(1), Some(2)], i64::MAX), [Vec::<usize>::new(), Vec::new()]);
}
