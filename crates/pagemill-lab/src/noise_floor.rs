//! The noise floor: how far a contestant lies from itself, A against A, measured in the run.
//!
//! A run goes through its experiments twice. The two passes of a cell lie minutes apart, do the same work, and would give the
//! same figure on a machine without noise. What they differ by widens the intervals of comparisons:
//!
//! ```text
//! of two cells of one run   three quarters of the group's cells moved by no more than this against the group, since what moves
//!                           all of them is in both sides of each pair
//! of two runs               no cell of the group moved by more, nor nine tenths of the experiment's
//! ```
//!
//! Invariant: a floor is a factor from 1 on. Of results without passes the first half of the turns is held against the second.

use crate::results::{Cell, Experiment, Group};
use crate::statistics::summary;

/// Cells whose movement the floor within a group covers.
const MOST_CELLS: f64 = 0.75;
/// Cells whose movement the floor between runs covers, of those of an experiment.
const NEARLY_ALL_CELLS: f64 = 0.9;
/// Turns that each side of A against A has at least.
const LEAST_TURNS: usize = 2;

impl Group {
    /// The noise floor of comparisons between cells of this group, as a factor.
    pub fn floor_within(&self) -> f64 {
        let moved = self.movements();
        let Some(together) = summary(&moved).map(|found| found.median) else { return 1.0 };
        let apart = moved.iter().map(|moved| (moved - together).abs()).collect();
        quantile(apart, MOST_CELLS).exp()
    }

    /// How many rounds the first pass had; half of the turns where nobody kept it.
    pub(crate) fn first_pass(&self, cell: &Cell) -> usize {
        match self.passes.as_slice() {
            [first, _, ..] => *first as usize,
            _ => cell.samples.len() / 2,
        }
    }

    /// The logarithm of what each cell's second pass is against its first.
    fn movements(&self) -> Vec<f64> {
        let moved = |cell: &Cell| {
            let figures = self.figures(cell);
            let (first, second) = figures.split_at_checked(self.first_pass(cell))?;
            let enough = first.len().min(second.len()) >= LEAST_TURNS;
            let ratio = summary(second)?.median / summary(first)?.median;
            Some(ratio.ln()).filter(|moved| enough && moved.is_finite())
        };
        self.cells.iter().filter_map(moved).collect()
    }
}

impl Experiment {
    /// The noise floor of comparisons between a cell of one of its groups and the same cell of another run, as a factor.
    pub fn floor_between_runs(&self, group: &Group) -> f64 {
        let distances =
            |group: &Group| -> Vec<f64> { group.movements().into_iter().map(f64::abs).collect() };
        let everywhere = self.groups.iter().flat_map(distances).collect();
        let here = quantile(distances(group), 1.0);
        here.max(quantile(everywhere, NEARLY_ALL_CELLS)).exp()
    }
}

/// The value that a share of the values does not exceed; 0 of none.
fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1) as f64;
    values.get((last * share).ceil() as usize).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Sample;
    use crate::statistics::Difference;

    fn cell(name: &str, times: &[f64]) -> Cell {
        let sample = |elapsed_s: &f64| Sample { elapsed_s: *elapsed_s, ..Sample::default() };
        Cell { name: name.into(), samples: times.iter().map(sample).collect(), ..Cell::default() }
    }

    fn group(cells: Vec<Cell>) -> Group {
        Group { cells, passes: vec![3, 3], ..Group::default() }
    }

    #[test]
    fn what_moves_all_cells_alike_is_no_noise_between_them_and_is_noise_between_runs() {
        let slower = |name: &str, time: f64| {
            cell(name, &[time, time, time, time * 1.3, time * 1.3, time * 1.3])
        };
        let group = group(vec![slower("a", 1.0), slower("b", 2.0), slower("c", 3.0)]);
        assert!((group.floor_within() - 1.0).abs() < 1e-9);
        let experiment = Experiment { groups: vec![group], ..Experiment::default() };
        let between = experiment.floor_between_runs(&experiment.groups[0]);
        assert!((between - 1.3).abs() < 1e-9, "{between}");
    }

    /// Two runs of a machine at rest differed in 84 of 297 cells: each run's own rounds lay seconds apart and agreed.
    #[test]
    fn cells_that_differ_from_themselves_are_not_told_apart() {
        let restless = cell("restless", &[1.0, 1.0, 1.0, 1.4, 1.4, 1.4]);
        let other = cell("other", &[1.5, 1.5, 1.5, 1.6, 1.6, 1.6]);
        let found = group(vec![restless, other]);
        let compared = found.compare(&found.cells[0], &found.cells[1]).unwrap();
        assert_eq!(compared.difference, Difference::NotSeen, "{compared:?}");
        let steady = group(vec![cell("a", &[1.0; 6]), cell("b", &[1.15; 6])]);
        let compared = steady.compare(&steady.cells[0], &steady.cells[1]).unwrap();
        assert_eq!(compared.difference, Difference::Faster);
    }

    #[test]
    fn turns_without_passes_are_halved_and_few_say_nothing() {
        let halves = Group { cells: vec![cell("a", &[1.0, 1.0, 2.0, 2.0])], ..Group::default() };
        let experiment = Experiment { groups: vec![halves], ..Experiment::default() };
        assert!((experiment.floor_between_runs(&experiment.groups[0]) - 2.0).abs() < 1e-9);
        let few = Group { cells: vec![cell("a", &[1.0, 2.0])], ..Group::default() };
        assert_eq!((few.floor_within(), quantile(Vec::new(), 0.5)), (1.0, 0.0));
    }
}
