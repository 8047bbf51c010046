//! The answer of each group in a sentence: who was best, by how much, and who cannot be told apart from it.
//!
//! Invariants: a cell is called best alone only where its pairs with every other cell allow the word; else the others
//! are named with it; where it cannot be told from the baseline, or from any other, no cell is called best at all.

use crate::results::{Cell, Experiment, Group, Results};
use crate::statistics::{Comparison, Difference, LEAST_COVERAGE};

use super::rows::scale;
use super::units::{digits, range};
use super::wording;

/// What one group answers.
#[derive(Debug)]
pub(super) struct Best<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) group: &'a Group,
    /// The cell with the best median.
    pub(super) cell: &'a Cell,
    /// Its figure, with unit.
    pub(super) figure: String,
    /// How it stands to the baseline and to its neighbours.
    pub(super) remark: String,
    pub(super) standing: Standing,
}

/// How sure the answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Seen to be better than every other.
    Alone,
    /// Better than the baseline or some other, with equals.
    Shared,
    /// Nothing was seen to be better than the baseline, or than anything.
    Open,
}

impl Best<'_> {
    /// The answer in short: the best cell and its figure, or that there is none.
    pub(super) fn headline(&self) -> (&str, &str) {
        match self.standing {
            Standing::Open => ("no clear best", ""),
            Standing::Alone | Standing::Shared => (&self.cell.name, &self.figure),
        }
    }

    /// The answer in a line of plain text.
    pub(super) fn sentence(&self) -> String {
        match self.headline() {
            (headline, "") => format!("{headline}: {}", self.remark),
            (name, figure) => format!("{name}, {figure}; {}", self.remark),
        }
    }
}

/// The answers of all groups of which anything was measured.
pub(super) fn all(results: &Results) -> Vec<Best<'_>> {
    let groups = results
        .experiments
        .iter()
        .flat_map(|experiment| experiment.groups.iter().map(move |group| (experiment, group)));
    groups.filter_map(|(experiment, group)| of_group(experiment, group)).collect()
}

/// The answer of one group.
pub(super) fn of_group<'a>(experiment: &'a Experiment, group: &'a Group) -> Option<Best<'a>> {
    let (cell, found) = group.leader()?;
    let others: Vec<&Cell> = others(group, cell);
    let equals: Vec<&str> = equals(group, cell, &others);
    let standing = standing(group, cell, &others, &equals);
    let figure = scale(group).show(found.median);
    let told = remark(group, cell, &others, &equals);
    let remark = match standing {
        Standing::Open => format!("{} leads with {figure}; {told}", cell.name),
        Standing::Alone | Standing::Shared => told,
    };
    Some(Best { experiment, group, cell, figure, remark, standing })
}

fn standing(group: &Group, best: &Cell, others: &[&Cell], equals: &[&str]) -> Standing {
    let baseline = group.baseline.as_deref().filter(|name| *name != best.name);
    match equals.len() {
        0 => Standing::Alone,
        all if all == others.len() => Standing::Open,
        _ if baseline.is_some_and(|name| equals.contains(&name)) => Standing::Open,
        _ => Standing::Shared,
    }
}

fn others<'a>(group: &'a Group, best: &Cell) -> Vec<&'a Cell> {
    let rival = |cell: &&Cell| !std::ptr::eq(*cell, best) && !cell.samples.is_empty();
    group.cells.iter().filter(rival).collect()
}

/// Those that the best was not seen to beat.
fn equals<'a>(group: &Group, best: &Cell, others: &[&'a Cell]) -> Vec<&'a str> {
    let beaten = |cell: &Cell| {
        against(group, best, cell).is_some_and(|found| found.difference == Difference::Faster)
    };
    others.iter().filter(|cell| !beaten(cell)).map(|cell| cell.name.as_str()).collect()
}

fn against(group: &Group, cell: &Cell, other: &Cell) -> Option<Comparison> {
    group.compare(cell, other)
}

fn remark(group: &Group, best: &Cell, others: &[&Cell], equals: &[&str]) -> String {
    if others.is_empty() {
        return "the only one measured".to_owned();
    }
    let is_baseline = group.baseline.as_deref() == Some(best.name.as_str());
    let first = if is_baseline { Some("the baseline".to_owned()) } else { lead(group, best) };
    let few = group.summary(best).is_some_and(|found| found.coverage < LEAST_COVERAGE);
    let word = if few { "too few turns to tell it" } else { "no difference seen" };
    let rest = (!equals.is_empty()).then(|| format!("{word} from {}", wording::some_of(equals)));
    let parts: Vec<String> = first.into_iter().chain(rest).collect();
    match parts.as_slice() {
        [] => "better than all others".to_owned(),
        [only] if is_baseline && equals.is_empty() => format!("{only}, better than all others"),
        parts => parts.join("; "),
    }
}

/// By how much the best beats the baseline, where a word for it is allowed.
fn lead(group: &Group, best: &Cell) -> Option<String> {
    let baseline = group.cell(group.baseline.as_deref()?)?;
    let found = against(group, best, baseline)?;
    let word = wording::difference(found.difference, group.figure);
    let span = range(found.ratio.low, found.ratio.high);
    (found.difference != Difference::NotSeen)
        .then(|| format!("{}× {word} than {} ({span})", digits(found.ratio.median), baseline.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Sample;

    fn cell(name: &str, times: &[f64]) -> Cell {
        let sample = |elapsed_s: &f64| Sample { elapsed_s: *elapsed_s, ..Sample::default() };
        Cell { name: name.into(), samples: times.iter().map(sample).collect(), ..Cell::default() }
    }

    fn answer(baseline: &str, cells: Vec<Cell>) -> Option<(String, String, Standing)> {
        let group = Group { baseline: Some(baseline.into()), cells, ..Group::default() };
        let experiment = Experiment::default();
        let best = of_group(&experiment, &group)?;
        Some((best.cell.name.clone(), best.remark.clone(), best.standing))
    }

    #[test]
    fn the_best_is_told_with_its_lead_and_its_equals() {
        let cells = || vec![cell("old", &[2.0; 6]), cell("new", &[1.0; 6])];
        let expected =
            ("new".to_owned(), "2.00× faster than old (1.96–2.04)".to_owned(), Standing::Alone);
        assert_eq!(answer("old", cells()), Some(expected));
        let mut three = cells();
        three.push(cell("near", &[1.01, 0.99, 1.02, 1.0, 1.03, 1.0]));
        let (_, remark, standing) = answer("old", three).unwrap();
        assert!(remark.ends_with("; no difference seen from near"), "{remark}");
        assert_eq!(standing, Standing::Shared);
    }

    #[test]
    fn without_a_difference_from_the_baseline_nobody_is_best() {
        let cells = vec![
            cell("old", &[1.01, 0.99, 1.0, 1.0, 1.0, 1.0]),
            cell("new", &[0.99; 6]),
            cell("far", &[3.0; 6]),
        ];
        let expected = "new leads with 990 ms; no difference seen from old";
        assert_eq!(answer("old", cells), Some(("new".into(), expected.into(), Standing::Open)));
    }

    #[test]
    fn the_baseline_alone_and_nothing_at_all() {
        let cells = vec![cell("old", &[1.0; 6]), cell("new", &[2.0; 6])];
        assert_eq!(answer("old", cells).unwrap().1, "the baseline, better than all others");
        assert_eq!(answer("old", vec![cell("old", &[1.0])]).unwrap().1, "the only one measured");
        assert_eq!(answer("old", vec![cell("old", &[])]), None);
    }
}
