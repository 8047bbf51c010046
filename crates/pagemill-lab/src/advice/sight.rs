//! What may be believed of a run's figures: groups and cells by name, held against each other, and doubts.
//!
//! Invariants: nothing is said of a group whose files are in memory, or whose page cache was not in the state that was
//! asked for; a group that was disturbed needs a larger factor before anything is said; an interval that covers too little says nothing.

use crate::advice::{Evidence, Measure};
use crate::environment::MEMORY;
use crate::report::printable;
use crate::results::{Cell, Figure, Group, Results, Warning, WarningKind};
use crate::statistics::{LEAST_COVERAGE, Summary, compare};

/// The factor that the whole interval has to be beyond before a setting is changed for it: a tenth. Less is not worth a
/// change to a server, and not seen again on the next day.
pub(super) const GAIN: f64 = 1.10;
/// The same for a group during which others used the machine, or whose figures drifted.
pub(super) const GAIN_IF_DISTURBED: f64 = 1.25;

/// A run's figures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight<'r> {
    results: &'r Results,
}

/// A group of a run.
#[derive(Debug, Clone)]
pub(super) struct Place<'r> {
    name: String,
    group: &'r Group,
    gain: f64,
}

/// Two cells held against each other.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub(super) evidence: Evidence,
    gain: f64,
}

impl<'r> Sight<'r> {
    pub(super) fn new(results: &'r Results) -> Self {
        Self { results }
    }

    /// What is known of the machine, the first of that name.
    pub(super) fn fact(&self, name: &str) -> Option<&'r str> {
        let fact = self.results.environment.iter().find(|fact| fact.name == name)?;
        Some(&fact.value)
    }

    /// A group, as `experiment/group`, or why nothing can be said of it.
    pub(super) fn group(&self, name: &str) -> Result<Place<'r>, String> {
        if self.fact("file_system").is_some_and(|found| MEMORY.contains(&found)) {
            return Err("the files were in memory, which says nothing of a disk".into());
        }
        let found = name
            .split_once('/')
            .and_then(|(experiment, group)| self.results.group(experiment, group));
        let group = found.ok_or_else(|| format!("{name} was not measured"))?;
        if self.has(name, &[WarningKind::CacheState]) {
            return Err(format!(
                "in {name} the page cache was not in the state that was asked for"
            ));
        }
        let gain = if self.has(name, DISTURBED) { GAIN_IF_DISTURBED } else { GAIN };
        Ok(Place { name: name.into(), group, gain })
    }

    /// All groups of an experiment.
    pub(super) fn groups(&self, experiment: &str) -> &'r [Group] {
        self.results.experiment(experiment).map_or(&[], |found| &found.groups)
    }

    /// Doubts about the groups that evidence is from.
    pub(super) fn doubts(&self, evidence: &[Evidence]) -> Vec<String> {
        let concerns = |warning: &&Warning| {
            let group = |name: &String| evidence.iter().any(|each| each.group == *name);
            DISTURBED.contains(&warning.kind) && warning.group.as_ref().is_some_and(group)
        };
        let doubts = self.results.warnings.iter().filter(concerns);
        doubts
            .map(|warning| {
                let group = warning.group.as_deref().unwrap_or_default();
                printable(&format!("{group} was disturbed: {}", warning.message))
            })
            .collect()
    }

    fn has(&self, name: &str, kinds: &[WarningKind]) -> bool {
        let concerns = |warning: &Warning| {
            warning.group.as_deref() == Some(name) && kinds.contains(&warning.kind)
        };
        self.results.warnings.iter().any(concerns)
    }
}

/// What disturbs a group.
const DISTURBED: &[WarningKind] = &[WarningKind::BusyMachine, WarningKind::Drift];

impl<'r> Place<'r> {
    /// The name, as `experiment/group`.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The cells that were measured.
    pub(super) fn cells(&self) -> impl Iterator<Item = &'r Cell> + use<'r> {
        self.group.cells.iter().filter(|cell| !cell.samples.is_empty())
    }

    /// A measured cell by name.
    pub(super) fn named(&self, name: &str) -> Option<&'r Cell> {
        self.cells().find(|cell| cell.name == name)
    }

    /// A measured cell by method, block size in bytes and depth.
    pub(super) fn cell(&self, method: &str, block: u64, depth: u64) -> Option<&'r Cell> {
        self.cells().find(|cell| {
            is_of(cell, method)
                && number(cell, "block_size") == Some(block)
                && number(cell, "depth") == Some(depth)
        })
    }

    /// How many times as good the first is, where that can be said at all.
    pub(super) fn pair(&self, first: &Cell, other: &Cell) -> Option<Pair> {
        let figures = |cell| self.group.figures(cell);
        let more_is_better = self.group.figure.more_is_better();
        let ratio = compare(&figures(first), &figures(other), more_is_better)?.ratio;
        self.told(first, other, ratio)
    }

    /// A factor as evidence, where its interval says something.
    fn told(&self, first: &Cell, other: &Cell, ratio: Summary) -> Option<Pair> {
        let evidence = Evidence {
            group: self.name.clone(),
            cell: first.name.clone(),
            against: Some(other.name.clone()),
            measure: Measure::Factor,
            figure: ratio,
        };
        (ratio.coverage >= LEAST_COVERAGE).then_some(Pair { evidence, gain: self.gain })
    }

    /// How many times as quickly the turns of the first were over, whatever the figure of the group is.
    pub(super) fn elapsed_pair(&self, first: &Cell, other: &Cell) -> Option<Pair> {
        let times =
            |cell: &Cell| cell.samples.iter().map(|each| each.elapsed_s).collect::<Vec<_>>();
        let ratio = compare(&times(first), &times(other), false)?.ratio;
        self.told(first, other, ratio)
    }

    /// A pair of cells by name.
    pub(super) fn pair_named(&self, first: &str, other: &str) -> Option<Pair> {
        self.pair(self.named(first)?, self.named(other)?)
    }

    /// A cell's own figure, with an interval that says something.
    pub(super) fn figure(&self, cell: &Cell) -> Option<Evidence> {
        let figure = self.group.summary(cell)?;
        let measure = match self.group.figure {
            Figure::Rate => Measure::PerSecond,
            Figure::Throughput => Measure::BytesPerSecond,
            Figure::Elapsed | Figure::Latency | Figure::Count => return None,
        };
        let is_usable = |value: f64| value.is_finite() && value > 0.0;
        let usable =
            is_usable(figure.low) && is_usable(figure.high) && figure.coverage >= LEAST_COVERAGE;
        let evidence = Evidence {
            group: self.name.clone(),
            cell: cell.name.clone(),
            against: None,
            measure,
            figure,
        };
        usable.then_some(evidence)
    }
}

impl Pair {
    /// The first is better, by more than the threshold.
    pub(super) fn is_faster(&self) -> bool {
        self.ratio().low > self.gain
    }

    /// The first is worse, by more than the threshold.
    pub(super) fn is_slower(&self) -> bool {
        self.ratio().high < 1.0 / self.gain
    }

    /// The first was seen not to be better by the threshold; not the same as being in the dark.
    pub(super) fn is_no_faster(&self) -> bool {
        self.ratio().high < self.gain
    }

    /// The first was seen not to be worse by the threshold.
    pub(super) fn is_no_slower(&self) -> bool {
        self.ratio().low > 1.0 / self.gain
    }

    pub(super) fn ratio(&self) -> Summary {
        self.evidence.figure
    }
}

/// True for cells of that method.
pub(super) fn is_of(cell: &Cell, method: &str) -> bool {
    cell.parameters.get("method").is_some_and(|found| found == method)
}

/// A parameter that is a whole number.
pub(super) fn number(cell: &Cell, parameter: &str) -> Option<u64> {
    cell.parameters.get(parameter)?.parse().ok()
}
