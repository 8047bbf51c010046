//! Cells that differ in one number, such as the depth, from small to large; and how far up from the default it pays to go.
//!
//! The climb begins at the default, so that noise leaves the default as it is: a step up is taken only where it is faster than
//! the step stood on by more than the threshold, in an interval and in each pass of the run.
//!
//! Invariant: what is reached from a step is that step or a larger one.

use crate::advice::Evidence;
use crate::advice::run_figures::{GroupFigures, Pair, is_of, number};
use crate::results::Cell;

/// The most that `effective_io_concurrency` may be (14 to 18).
const MOST_IN_FLIGHT: u64 = 1000;
const BLOCK: u64 = 8192;

/// Steps of one number.
#[derive(Debug, Clone)]
pub(super) struct Ladder<'r> {
    place: GroupFigures<'r>,
    steps: Vec<Step<'r>>,
    /// What the steps are of, where that is worth a caution.
    pub(super) caution: Option<String>,
}

/// One step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'r> {
    pub(super) value: u64,
    pub(super) cell: &'r Cell,
}

impl<'r> Ladder<'r> {
    /// Reads of one block size by how many of them are in flight: by the ring where there is one, else by workers, of
    /// which each has one in flight.
    pub(super) fn by_depth(place: GroupFigures<'r>, block: u64) -> Self {
        let of_size = |cell: &&Cell| number(cell, "block_size") == Some(block);
        let depth = |cell: &Cell| number(cell, "depth").filter(|depth| *depth <= MOST_IN_FLIGHT);
        let step = |cell: &'r Cell| Some(Step { value: depth(cell)?, cell });
        let by = |method: &'static str| {
            let cells = place.cells().filter(of_size).filter(move |cell| is_of(cell, method));
            cells.filter_map(step).collect::<Vec<_>>()
        };
        let ring = by("io_uring");
        let has_ring = ring.iter().any(|step| step.value > 1);
        let limit = pagemill_io::WORKERS as u64;
        let of_worker = |step: Step<'r>| Step { value: step.value.min(limit), ..step };
        let mut steps =
            if has_ring { ring } else { by("worker").into_iter().map(of_worker).collect() };
        // The plain call is the first step, unless the queue itself was tried with one.
        let plain = by("pread").into_iter().filter(|step| step.value == 1);
        if !steps.iter().any(|step| step.value == 1) {
            steps.extend(plain);
        }
        let caution = (!has_ring).then(|| {
            format!("io_uring was not measured here; with the lab's workers no more than {limit} reads could be in flight")
        });
        Self { caution, ..Self::of(place, steps) }
    }

    /// Random reads by so many workers, each with one in flight.
    pub(super) fn by_workers(place: GroupFigures<'r>) -> Self {
        let step = |cell: &'r Cell| Some(Step { value: number(cell, "workers")?, cell });
        let steps = place.cells().filter_map(step).collect();
        Self::of(place, steps)
    }

    /// Reads by one `pread` after the other, by their size in bytes, up to a limit: whole blocks of 8 kB.
    pub(super) fn by_size(place: GroupFigures<'r>, limit: u64) -> Self {
        let step = |cell: &'r Cell| {
            let is_taken = |size: &u64| *size <= limit && size.is_multiple_of(BLOCK);
            let size = number(cell, "block_size").filter(is_taken)?;
            (is_of(cell, "pread") && number(cell, "depth") == Some(1))
                .then_some(Step { value: size, cell })
        };
        let steps = place.cells().filter_map(step).collect();
        Self::of(place, steps)
    }

    /// Reads in order of one block size by a queue, by the kB that it has in flight.
    pub(super) fn by_bytes_in_flight(place: GroupFigures<'r>, block: u64) -> Self {
        let step = |cell: &'r Cell| {
            let depth =
                number(cell, "depth").filter(|_| number(cell, "block_size") == Some(block))?;
            let in_flight = if is_of(cell, "io_uring") {
                depth
            } else if is_of(cell, "worker") {
                depth.min(pagemill_io::WORKERS as u64)
            } else {
                return None;
            };
            let value = block.saturating_mul(in_flight) / 1024;
            (in_flight > 1).then_some(Step { value, cell })
        };
        let steps = place.cells().filter_map(step).collect();
        Self::of(place, steps)
    }

    fn of(place: GroupFigures<'r>, mut steps: Vec<Step<'r>>) -> Self {
        steps.sort_by_key(|step| step.value);
        steps.dedup_by_key(|step| step.value);
        Self { place, steps, caution: None }
    }

    /// How far up it pays to go from a step; `None` when there is nothing to choose from.
    pub(super) fn climb(&self, from: Step<'r>) -> Option<Step<'r>> {
        let comparable = |pair: &[Step<'r>]| match pair {
            [one, next] => self.pair(next, one).is_some(),
            _ => false,
        };
        let usable = self.steps.len() > 1 && self.steps.windows(2).all(comparable);
        let further = |stand: Step<'r>, next: &Step<'r>| {
            let pays = self.pair(next, &stand).is_some_and(|pair| pair.is_faster());
            if pays { *next } else { stand }
        };
        usable.then(|| self.above(from.value).fold(from, further))
    }

    /// The steps above a value.
    pub(super) fn above(&self, value: u64) -> impl Iterator<Item = &Step<'r>> {
        self.steps.iter().filter(move |step| step.value > value)
    }

    /// The step that is the fewest times as large or as small as a value.
    pub(super) fn nearest(&self, value: u64) -> Option<Step<'r>> {
        let distance =
            |step: &Step<'_>| (step.value.max(1) as f64 / value.max(1) as f64).ln().abs();
        let nearer = |one: &&Step<'r>, other: &&Step<'r>| distance(one).total_cmp(&distance(other));
        self.steps.iter().min_by(nearer).copied()
    }

    /// True where no step above one is better, neither by the threshold nor with its interval above 1.
    pub(super) fn is_flat_above(&self, step: &Step<'r>) -> bool {
        self.above(step.value).all(|above| {
            self.pair(above, step).is_some_and(|pair| pair.is_no_faster() && !pair.is_above())
        })
    }

    /// The largest step up to a value.
    pub(super) fn up_to(&self, value: u64) -> Option<Step<'r>> {
        self.steps.iter().rev().find(|step| step.value <= value).copied()
    }

    /// The smallest step from a value on, or the largest there is.
    pub(super) fn from(&self, value: u64) -> Option<Step<'r>> {
        self.steps.iter().find(|step| step.value >= value).or(self.steps.last()).copied()
    }

    /// True for the last step.
    pub(super) fn is_last(&self, value: u64) -> bool {
        self.steps.last().is_some_and(|step| step.value == value)
    }

    /// How many times as good the first step is.
    pub(super) fn pair(&self, first: &Step<'_>, other: &Step<'_>) -> Option<Pair> {
        self.place.pair(first.cell, other.cell)
    }

    /// What a step is worth against another, as evidence, unless they are the same.
    pub(super) fn evidence(&self, first: &Step<'_>, other: &Step<'_>) -> Option<Evidence> {
        (first.value != other.value).then(|| self.pair(first, other).map(|pair| pair.evidence))?
    }

    /// Where the steps are from.
    pub(super) fn place(&self) -> &GroupFigures<'r> {
        &self.place
    }
}
