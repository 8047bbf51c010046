//! Levenshtein's distance between two texts: what the cheapest way from one to the other costs, character by character.
//!
//! Costs may be any numbers; a distance that is no `integer` is an error, as it is in the newest minor releases (15.20; in 15.18 it
//! wrapped). With a bound, only those cells of the table are computed from which the end can still be reached within it. Which
//! ones the server leaves out shows in results for odd costs, so they are the same.
//!
//! Invariant: no more than 255 characters are compared, so a call needs two rows of 256 cells. Source:
//! `src/backend/utils/adt/levenshtein.c`, PostgreSQL 14 to 18.

use std::mem::replace;
use std::ops::Range;

use super::super::call::CallError;

const MAX_CHARACTERS: usize = 255;

/// What each change costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Costs {
    pub(super) insertion: i64,
    pub(super) deletion: i64,
    pub(super) substitution: i64,
}

impl Costs {
    /// Of making a text longer by so many characters, or shorter where that is less than nothing.
    fn of_growth(self, characters: i64) -> i64 {
        match characters {
            1.. => characters * self.insertion,
            _ => -characters * self.deletion,
        }
    }

    /// Of an insertion and a deletion.
    fn of_both(self) -> i64 {
        self.insertion + self.deletion
    }

    /// A cell of the table, given those above it, to its left, and between them.
    fn cell(self, [above, left, between]: [i64; 3], is_same: bool) -> i64 {
        let substituted = between + if is_same { 0 } else { self.substitution };
        let inserted = above + self.insertion;
        inserted.min(left + self.deletion).min(substituted)
    }
}

/// The distance.
///
/// # Errors
/// When a text is too long and neither is empty, or the distance is no `integer`.
pub(super) fn distance(source: &str, target: &str, costs: Costs) -> Result<i32, CallError> {
    let (source, target) = (characters(source), characters(target));
    if source.is_empty() || target.is_empty() {
        return in_range(costs.of_growth(growth(&source, &target)));
    }
    refuse_long(&source, &target)?;
    in_range(whole_table(&source, &target, costs))
}

/// The distance where it is no more than `bound`, and otherwise `bound` + 1. A bound below 0 is none.
///
/// # Errors
/// As [`distance`].
pub(super) fn distance_up_to(
    bound: i32,
    source: &str,
    target: &str,
    costs: Costs,
) -> Result<i32, CallError> {
    let (source, target) = (characters(source), characters(target));
    if source.is_empty() || target.is_empty() {
        return in_range(costs.of_growth(growth(&source, &target)));
    }
    refuse_long(&source, &target)?;
    in_range(match bound {
        0.. => bounded(bound.into(), &source, &target, costs),
        _ => whole_table(&source, &target, costs),
    })
}

fn bounded(bound: i64, source: &[char], target: &[char], mut costs: Costs) -> i64 {
    let growth = growth(source, target);
    let least = costs.of_growth(growth);
    if least > bound {
        return bound + 1;
    }
    costs.substitution = costs.substitution.min(costs.of_both());
    let shorter = source.len().min(target.len()) as i64;
    if bound >= least + costs.substitution * shorter {
        return whole_table(source, target, costs);
    }
    let mut stop = source.len() as i64 + 1;
    if costs.of_both() > 0 {
        stop = stop.min((-growth).max(0) + (bound - least) / costs.of_both() + 1);
    }
    let columns = 0..stop.max(0) as usize;
    Band { costs, bound, columns, above: Vec::new() }.distance(source, target)
}

/// By how many characters the target is longer.
fn growth(source: &[char], target: &[char]) -> i64 {
    target.len() as i64 - source.len() as i64
}

fn in_range(distance: i64) -> Result<i32, CallError> {
    let error = |_| CallError::new("22003", "levenshtein distance out of range");
    i32::try_from(distance).map_err(error)
}

fn characters(text: &str) -> Vec<char> {
    text.chars().collect()
}

fn refuse_long(source: &[char], target: &[char]) -> Result<(), CallError> {
    if source.len() <= MAX_CHARACTERS && target.len() <= MAX_CHARACTERS {
        return Ok(());
    }
    let message =
        format!("levenshtein argument exceeds maximum length of {MAX_CHARACTERS} characters");
    Err(CallError::new("22023", message))
}

fn first_row(costs: Costs) -> impl Iterator<Item = i64> {
    (0i64..).map(move |column| column * costs.deletion)
}

fn whole_table(source: &[char], target: &[char], costs: Costs) -> i64 {
    let mut above: Vec<i64> = first_row(costs).skip(1).take(source.len()).collect();
    for (row, wanted) in (1i64..).zip(target) {
        let mut left = row * costs.insertion;
        let mut between = (row - 1) * costs.insertion;
        for (cell, found) in above.iter_mut().zip(source) {
            left = costs.cell([*cell, left, between], found == wanted);
            between = replace(cell, left);
        }
    }
    above.last().copied().unwrap_or_default()
}

/// The part of a row that may lead to a distance within the bound.
struct Band {
    costs: Costs,
    bound: i64,
    columns: Range<usize>,
    above: Vec<i64>,
}

impl Band {
    fn distance(mut self, source: &[char], target: &[char]) -> i64 {
        let cells = source.len() + 1;
        let beyond = self.bound + 1;
        self.above = vec![beyond; cells];
        let known = self.above.iter_mut().take(self.columns.end);
        known.zip(first_row(self.costs)).for_each(|(cell, cost)| *cell = cost);
        for (row, wanted) in (1i64..).zip(target) {
            if self.columns.end < cells {
                // No row but the one above has said what stands there.
                self.above[self.columns.end] = beyond;
                self.columns.end += 1;
            }
            self.above = self.next_row(row, source, *wanted);
            self.narrow(row - (target.len() as i64 - source.len() as i64));
            if self.columns.is_empty() {
                return beyond;
            }
        }
        self.above.last().copied().unwrap_or(beyond)
    }

    fn next_row(&self, row: i64, source: &[char], wanted: char) -> Vec<i64> {
        let mut cells = vec![self.bound + 1; self.above.len()];
        if self.columns.start == 0 {
            cells[0] = row * self.costs.insertion;
        }
        for column in self.columns.start.max(1)..self.columns.end {
            let around = [self.above[column], cells[column - 1], self.above[column - 1]];
            cells[column] = self.costs.cell(around, source[column - 1] == wanted);
        }
        cells
    }

    /// Leaves out columns at both ends from which the bound would be passed. `middle` is the one from which both texts have as
    /// many characters left.
    fn narrow(&mut self, middle: i64) {
        let within = |column: usize| {
            let rest = self.costs.of_growth(column as i64 - middle);
            self.above[column] + rest <= self.bound
        };
        let Range { start, end } = self.columns;
        let end = (0..end).rev().find(|column| within(*column)).map_or(0, |last| last + 1);
        let first = (start..end).find(|column| within(*column)).unwrap_or(end.max(start));
        self.columns = first..end;
        self.above.iter_mut().take(first).skip(start).for_each(|cell| *cell = self.bound + 1);
    }
}
