//! Two runs side by side: two machines, or one before and after a change.
//!
//! Turns of different runs were not taken next to each other, so they make no pairs. A word is given only where the
//! intervals of the two medians lie further apart than the noise floor (see `shift`), which is stricter than a test at the
//! same level: where it stands it can be relied on, where it does not there may be a difference all the same. Invariants: what only
//! one run has is listed, never dropped; a ratio of times stands only where both did work of the same size.

mod html;
mod markdown;
mod shift;
mod text;

use crate::results::{Cell, ClaimStatus, Fact, Figure, Group, Results};
use crate::statistics::{NEGLIGIBLE, Summary};

use super::units::{Scale, size_of};
use super::wording;
use shift::{Shift, shift};

pub use html::html;
pub use markdown::markdown;
pub use text::text;

/// A run, and what to call it: the name of its file, or of the machine.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// As people read it.
    pub label: &'a str,
    /// What it found.
    pub results: &'a Results,
}

/// Two runs, brought together by the names of what they hold.
struct Sides<'a> {
    labels: [&'a str; 2],
    facts: Vec<FactPair<'a>>,
    /// Facts that are the same on both sides.
    same_facts: usize,
    groups: Vec<GroupPair<'a>>,
    /// Groups of one run alone: `experiment/group`, and which run.
    lone_groups: Vec<(String, usize)>,
    verdicts: Vec<VerdictPair<'a>>,
}

/// A fact that differs.
struct FactPair<'a> {
    name: &'a str,
    values: [Option<&'a str>; 2],
}

/// A group of both runs.
struct GroupPair<'a> {
    name: String,
    title: &'a str,
    figure: Figure,
    /// What a cell of it may differ by from itself, as a factor: the larger of the two runs'.
    floor: f64,
    /// What keeps the two from being the same work.
    doubt: Option<String>,
    scale: Scale,
    cells: Vec<CellPair<'a>>,
}

/// A cell of one run or of both.
struct CellPair<'a> {
    name: &'a str,
    sides: [Option<&'a Cell>; 2],
    found: [Option<Summary>; 2],
    shift: Option<Shift>,
}

/// A claim with what each run says of it.
struct VerdictPair<'a> {
    claim: &'a str,
    outcomes: [Option<ClaimStatus>; 2],
}

impl<'a> Sides<'a> {
    fn new(first: &Run<'a>, second: &Run<'a>) -> Self {
        let (a, b) = (first.results, second.results);
        let (facts, same_facts) = facts(&a.environment, &b.environment);
        Self {
            labels: [first.label, second.label],
            facts,
            same_facts,
            groups: groups(a, b),
            lone_groups: lone(a, b, 0).chain(lone(b, a, 1)).collect(),
            verdicts: verdicts(a, b),
        }
    }

    /// How many cells came out which way: better, worse, no difference seen.
    fn counts(&self) -> [usize; 3] {
        use crate::statistics::Difference::{Faster, NotSeen, Slower};
        let shifts =
            || self.groups.iter().flat_map(|group| &group.cells).filter_map(|cell| cell.shift);
        [Faster, Slower, NotSeen]
            .map(|word| shifts().filter(|shift| shift.difference == word).count())
    }

    /// The counts in a sentence.
    fn sentence(&self) -> String {
        let [better, worse, open] = self.counts();
        let [first, second] = self.labels;
        format!(
            "Against {first}, {second} is better in {better} cells and worse in {worse}; in {open} no difference was \
             seen, or turns were too few. Intervals are widened by the noise floor, by which the passes of the same cell \
             differed within a run: {}.",
            self.floors()
        )
    }

    /// The noise floors of the groups, from the least to the most.
    fn floors(&self) -> String {
        let percent = |floor: f64| (floor - 1.0) * 100.0;
        let floors = || self.groups.iter().map(|group| percent(group.floor));
        let least = floors().fold(f64::INFINITY, f64::min);
        let most = floors().fold(0.0, f64::max);
        if least.is_finite() { format!("{least:.0} to {most:.0} %") } else { "none".into() }
    }

    /// How many facts differ, in a sentence.
    fn facts_sentence(&self) -> String {
        format!(
            "{} other than in the first run, {} the same.",
            wording::number_of(self.facts.len(), "fact"),
            self.same_facts
        )
    }
}

impl CellPair<'_> {
    /// Figure and interval of one side, or why there is none.
    fn side(&self, at: usize, scale: &Scale) -> String {
        match (self.found.get(at).copied().flatten(), self.sides.get(at).copied().flatten()) {
            (Some(found), _) => format!(
                "{} ({})",
                scale.show(found.median),
                scale.show_range(found.low, found.high)
            ),
            (None, Some(cell)) => {
                let absence = cell.absent.as_ref().map(wording::absence);
                absence.map_or("no figures".to_owned(), |(word, why)| format!("{word}: {why}"))
            }
            (None, None) => "not in this run".to_owned(),
        }
    }
}

fn facts<'a>(first: &'a [Fact], second: &'a [Fact]) -> (Vec<FactPair<'a>>, usize) {
    let value = |facts: &'a [Fact], name: &str| {
        facts.iter().find(|fact| fact.name == name).map(|fact| fact.value.as_str())
    };
    let new = second.iter().filter(|fact| value(first, &fact.name).is_none());
    let names: Vec<&str> = first.iter().chain(new).map(|fact| fact.name.as_str()).collect();
    let pairs = names
        .iter()
        .map(|name| FactPair { name, values: [value(first, name), value(second, name)] });
    let (same, differing): (Vec<_>, Vec<_>) =
        pairs.partition(|pair| pair.values[0] == pair.values[1]);
    (differing, same.len())
}

fn groups<'a>(first: &'a Results, second: &'a Results) -> Vec<GroupPair<'a>> {
    let all = first
        .experiments
        .iter()
        .flat_map(|experiment| experiment.groups.iter().map(move |group| (experiment, group)));
    let both = all.filter_map(|(experiment, group)| {
        let other_experiment = second.experiment(&experiment.name)?;
        let other = second.group(&experiment.name, &group.name)?;
        let name = format!("{}/{}", experiment.name, group.name);
        let floors =
            [experiment.floor_between_runs(group), other_experiment.floor_between_runs(other)];
        let floor = floors.into_iter().fold(NEGLIGIBLE, f64::max);
        Some(pair(name, group, other, floor))
    });
    both.collect()
}

fn lone(of: &Results, other: &Results, side: usize) -> impl Iterator<Item = (String, usize)> {
    let all = of
        .experiments
        .iter()
        .flat_map(|experiment| experiment.groups.iter().map(move |group| (experiment, group)));
    let lone =
        all.filter(|(experiment, group)| other.group(&experiment.name, &group.name).is_none());
    lone.map(move |(experiment, group)| (format!("{}/{}", experiment.name, group.name), side))
}

/// `floor` as in [`GroupPair`].
fn pair<'a>(name: String, first: &'a Group, second: &'a Group, floor: f64) -> GroupPair<'a> {
    let new = second.cells.iter().filter(|cell| first.cell(&cell.name).is_none());
    let names = first.cells.iter().chain(new).map(|cell| cell.name.as_str());
    let cells: Vec<CellPair<'_>> =
        names.map(|name| cell_pair(name, [first, second], floor)).collect();
    let medians = cells.iter().flat_map(|cell| cell.found).flatten().map(|found| found.median);
    let scale = Scale::fitting(first.figure, medians);
    GroupPair {
        name,
        title: &first.title,
        figure: first.figure,
        floor,
        doubt: doubt(first, second),
        scale,
        cells,
    }
}

fn cell_pair<'a>(name: &'a str, [first, second]: [&'a Group; 2], floor: f64) -> CellPair<'a> {
    let sides = [first.cell(name), second.cell(name)];
    let same_figure = first.figure == second.figure;
    let found = [
        sides[0].and_then(|cell| first.summary(cell)),
        sides[1].and_then(|cell| second.summary(cell)).filter(|_| same_figure),
    ];
    let comparable = first.bytes == second.bytes
        || matches!(first.figure, Figure::Throughput | Figure::Rate | Figure::Latency);
    let shift = match found {
        [Some(a), Some(b)] if comparable => shift(&a, &b, first.figure.more_is_better(), floor),
        _ => None,
    };
    CellPair { name, sides, found, shift }
}

/// In what the work of the two differs.
fn doubt(first: &Group, second: &Group) -> Option<String> {
    if first.figure != second.figure {
        return Some(format!(
            "not comparable: {} in the one, {} in the other",
            wording::figure(first.figure),
            wording::figure(second.figure)
        ));
    }
    let sizes = (first.bytes != second.bytes)
        .then(|| format!("{} and {} of work", size_of(first.bytes), size_of(second.bytes)));
    let state = |group: &Group| wording::cache(group.cache).unwrap_or("any state of the cache");
    let caches =
        (first.cache != second.cache).then(|| format!("{} and {}", state(first), state(second)));
    let parts: Vec<String> = sizes.into_iter().chain(caches).collect();
    (!parts.is_empty()).then(|| format!("not the same work: {}", parts.join("; ")))
}

fn verdicts<'a>(first: &'a Results, second: &'a Results) -> Vec<VerdictPair<'a>> {
    let outcome = |of: &Results, id: &str| {
        of.verdicts.iter().find(|verdict| verdict.id == id).map(|verdict| verdict.outcome)
    };
    let new = second.verdicts.iter().filter(|verdict| outcome(first, &verdict.id).is_none());
    let pair = |verdict: &'a crate::results::Verdict| VerdictPair {
        claim: &verdict.claim,
        outcomes: [outcome(first, &verdict.id), outcome(second, &verdict.id)],
    };
    first.verdicts.iter().chain(new).map(pair).collect()
}

/// The outcome of one run in words.
fn outcome(outcome: Option<ClaimStatus>) -> String {
    outcome
        .map(wording::outcome)
        .map_or("not in this run".to_owned(), |(mark, word)| format!("{mark} {word}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::random::Random;
    use crate::results::{Experiment, Sample};

    /// About -1 to 1, more often near 0.
    fn noise(random: &mut Random) -> f64 {
        let mut share = || (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
        share() + share() - 1.0
    }

    /// A run of a machine at rest: every group drifts a little from pass to pass, every cell too, and turns scatter.
    fn run(seed: u64) -> Results {
        let mut random = Random::new(seed);
        let mut cell = |name: usize, drifts: [f64; 2]| {
            let own = [noise(&mut random), noise(&mut random)];
            let times = (0..6).map(|turn| {
                let pass = usize::from(turn >= 3);
                let log = 0.08 * drifts[pass] + 0.04 * own[pass] + 0.02 * noise(&mut random);
                (1.0 + name as f64) * log.exp()
            });
            let samples = times.map(|elapsed_s| Sample { elapsed_s, ..Sample::default() });
            Cell { name: name.to_string(), samples: samples.collect(), ..Cell::default() }
        };
        let mut drift = Random::new(seed ^ 1);
        let mut group = |name: usize| {
            let drifts = [noise(&mut drift), noise(&mut drift)];
            let cells = (0..6).map(|at| cell(at, drifts)).collect();
            Group { name: name.to_string(), cells, passes: vec![3, 3], ..Group::default() }
        };
        let groups = (0..50).map(&mut group).collect();
        let experiment = Experiment { name: "e".into(), groups, ..Experiment::default() };
        Results { experiments: vec![experiment], ..Results::default() }
    }

    /// Two runs in a row on one machine were better in 64 and worse in 20 of 297 cells.
    #[test]
    fn two_runs_of_one_machine_differ_in_one_cell_of_twenty_at_most() {
        for seed in 0..10 {
            let (one, other) = (run(2 * seed + 100), run(2 * seed + 101));
            let one = Run { label: "one", results: &one };
            let other = Run { label: "other", results: &other };
            let [better, worse, open] = Sides::new(&one, &other).counts();
            assert_eq!(better + worse + open, 300);
            assert!(better + worse <= 15, "{better} better, {worse} worse");
        }
    }
}
