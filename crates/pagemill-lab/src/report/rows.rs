//! What a table says of each cell: computed once, told by text, Markdown, CSV and HTML alike.
//!
//! Invariants: rows stand in the order of the cells; user, system and wait times are medians over the turns, as the
//! figure is; a cell is held against the baseline by the pairs of their turns, never by their medians.

use std::collections::{BTreeMap, BTreeSet};

use crate::results::{Cell, Group, Sample};
use crate::statistics::{Comparison, Summary, summary};

use super::units::Scale;

/// One cell, ready to be told.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) cell: &'a Cell,
    /// The figure with its interval; `None` when the cell was not measured.
    pub(super) summary: Option<Summary>,
    pub(super) against: Against,
    /// Seconds of processor time in user mode.
    pub(super) user_s: Option<f64>,
    /// Seconds of processor time in the kernel.
    pub(super) system_s: Option<f64>,
    /// Seconds of waiting, where they were counted.
    pub(super) wait_s: Option<f64>,
    /// Bytes per second that the device moved, where that was seen.
    pub(super) device_rate: Option<f64>,
    /// Seconds of the parts of a turn by name, where it has parts.
    pub(super) parts: BTreeMap<&'a str, f64>,
    /// Calls of a turn by name.
    pub(super) calls: BTreeMap<&'a str, u64>,
}

/// How a cell stands to the baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Against {
    /// It is the baseline.
    Baseline,
    /// It was held against it.
    Compared(Comparison),
    /// There is no baseline, or one of the two has no samples.
    Nothing,
}

/// A row per cell of the group.
pub(super) fn rows(group: &Group) -> Vec<Row<'_>> {
    group.cells.iter().map(|cell| row(group, cell)).collect()
}

/// The unit of a group's figures.
pub(super) fn scale(group: &Group) -> Scale {
    let medians =
        group.cells.iter().filter_map(|cell| group.summary(cell)).map(|found| found.median);
    Scale::fitting(group.figure, medians)
}

/// The names of all calls of the rows, most frequent first.
pub(super) fn call_names<'a>(rows: &[Row<'a>]) -> Vec<&'a str> {
    let mut most: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in rows.iter().flat_map(|row| &row.calls) {
        let seen = most.entry(name).or_default();
        *seen = (*seen).max(*count);
    }
    let mut names: Vec<(&str, u64)> = most.into_iter().collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    names.into_iter().map(|(name, _)| name).collect()
}

/// The names of all parts of turns of the rows.
pub(super) fn part_names<'a>(rows: &[Row<'a>]) -> BTreeSet<&'a str> {
    rows.iter().flat_map(|row| row.parts.keys().copied()).collect()
}

/// The least coverage among the intervals of the rows.
pub(super) fn least_coverage(rows: &[Row<'_>]) -> Option<f64> {
    rows.iter().filter_map(|row| row.summary).map(|found| found.coverage).min_by(f64::total_cmp)
}

fn row<'a>(group: &Group, cell: &'a Cell) -> Row<'a> {
    let rate = |sample: &Sample| Some(sample.device_bytes? as f64 / sample.elapsed_s);
    Row {
        cell,
        summary: group.summary(cell),
        against: against(group, cell),
        user_s: median(cell, |sample| Some(sample.user_s)),
        system_s: median(cell, |sample| Some(sample.system_s)),
        wait_s: median(cell, |sample| sample.wait_s),
        device_rate: median(cell, rate),
        parts: parts(cell),
        calls: calls(cell),
    }
}

fn against(group: &Group, cell: &Cell) -> Against {
    let Some(name) = &group.baseline else { return Against::Nothing };
    if *name == cell.name {
        return Against::Baseline;
    }
    let compared = group.cell(name).and_then(|baseline| group.compare(cell, baseline));
    compared.map_or(Against::Nothing, Against::Compared)
}

fn median(cell: &Cell, value: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = cell.samples.iter().filter_map(value).collect();
    summary(&values).map(|found| found.median)
}

fn parts(cell: &Cell) -> BTreeMap<&str, f64> {
    let names = cell.samples.iter().flat_map(|sample| sample.parts.keys());
    let time = |name: &'_ str| median(cell, |sample| sample.parts.get(name).copied());
    names.filter_map(|name| Some((name.as_str(), time(name)?))).collect()
}

/// The median count of each call; a turn without a call counts as none of it.
fn calls(cell: &Cell) -> BTreeMap<&str, u64> {
    let names = cell.samples.iter().flat_map(|sample| sample.calls.keys());
    let count = |name: &str| {
        median(cell, |sample| Some(sample.calls.get(name).copied().unwrap_or(0) as f64))
    };
    names.map(|name| (name.as_str(), count(name).unwrap_or(0.0).round() as u64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Difference;

    fn cell(name: &str, times: &[f64]) -> Cell {
        let sample = |elapsed_s: &f64| Sample {
            elapsed_s: *elapsed_s,
            user_s: elapsed_s / 2.0,
            device_bytes: Some(100),
            calls: BTreeMap::from([("pread".to_owned(), 7)]),
            ..Sample::default()
        };
        Cell { name: name.into(), samples: times.iter().map(sample).collect(), ..Cell::default() }
    }

    #[test]
    fn a_cell_is_held_against_the_baseline_by_pairs() {
        let cells = vec![cell("old", &[2.0; 6]), cell("new", &[1.0; 6]), cell("none", &[])];
        let group = Group { baseline: Some("old".into()), cells, ..Group::default() };
        let rows = rows(&group);
        assert_eq!(rows[0].against, Against::Baseline);
        let Against::Compared(found) = rows[1].against else { panic!("{:?}", rows[1]) };
        assert_eq!((found.difference, found.ratio.median), (Difference::Faster, 2.0));
        assert_eq!((rows[2].against, rows[2].summary), (Against::Nothing, None));
    }

    #[test]
    fn times_rates_and_calls_are_medians_of_the_turns() {
        let mut measured = cell("a", &[1.0, 2.0, 4.0]);
        measured.samples[0].calls.clear();
        let group = Group { cells: vec![measured], ..Group::default() };
        let row = &rows(&group)[0];
        assert_eq!((row.user_s, row.device_rate, row.wait_s), (Some(1.0), Some(50.0), None));
        assert_eq!(row.calls, BTreeMap::from([("pread", 7)]));
    }
}
