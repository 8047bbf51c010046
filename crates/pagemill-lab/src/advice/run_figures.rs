//! What may be believed of a run's figures: groups and cells by name, held against each other, and doubts.
//!
//! A factor counts only where both passes of the run, which lie minutes apart, show it by themselves.
//!
//! Invariants: nothing is said of a group whose files are in memory, or whose page cache was not in the state that was
//! asked for; a group that was disturbed needs a larger factor before anything is said; an interval that covers too little says nothing.

use crate::advice::{Evidence, Measure};
use crate::environment::MEMORY;
use crate::limits::Limit;
use crate::report::printable;
use crate::results::{Cell, Figure, Group, Results, Warning, WarningKind};
use crate::statistics::{LEAST_COVERAGE, Summary, compare};

/// The factor that the whole interval has to be beyond before a setting is changed for it: a tenth. Less is not worth a
/// change to a server, and not seen again on the next day.
pub(super) const GAIN: f64 = 1.10;
/// The same for a group during which others used the machine, or whose figures drifted.
pub(super) const GAIN_IF_ROUGH: f64 = 1.25;
/// The same for all of a quick run. Five of them in a row on one quiet machine ended their intervals at 1.31 to 1.53 for one
/// setting, at 1.03 to 1.54 for another and at 0.99 to 1.57 for a third, so that a threshold of a half told each run
/// something else. Twice is what a few minutes can tell for certain; a full run tells less.
pub(super) const GAIN_IF_QUICK: f64 = 2.0;

/// A run's figures.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunFigures<'r> {
    results: &'r Results,
}

/// A group of a run.
#[derive(Debug, Clone)]
pub(super) struct GroupFigures<'r> {
    name: String,
    group: &'r Group,
    gain: f64,
    tolerated: f64,
}

/// Two cells held against each other.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub(super) evidence: Evidence,
    /// The medians of the two passes.
    passes: [f64; 2],
    /// What has to be gained for a change.
    gain: f64,
    /// What may be lost, or not be seen: no more in a quick run than in another one that is rough.
    tolerated: f64,
}

impl<'r> RunFigures<'r> {
    pub(super) fn new(results: &'r Results) -> Self {
        Self { results }
    }

    /// What is known of the machine, the first of that name.
    pub(super) fn fact(&self, name: &str) -> Option<&'r str> {
        let fact = self.results.environment.iter().find(|fact| fact.name == name)?;
        Some(&fact.value)
    }

    /// A group, as `experiment/group`, or why nothing can be said of it.
    pub(super) fn group(&self, name: &str) -> Result<GroupFigures<'r>, String> {
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
        let (gain, tolerated) = match (self.results.quick, self.has(name, DISTURBED)) {
            (true, _) => (GAIN_IF_QUICK, GAIN_IF_ROUGH),
            (false, true) => (GAIN_IF_ROUGH, GAIN_IF_ROUGH),
            (false, false) => (GAIN, GAIN),
        };
        Ok(GroupFigures { name: name.into(), group, gain, tolerated })
    }

    /// The limit of the device that a group of `device` shows.
    pub(super) fn limit(&self, group: &str) -> Option<Limit> {
        Limit::of(self.results, group)
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

impl<'r> GroupFigures<'r> {
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
        let more_is_better = self.group.figure.more_is_better();
        self.compared(first, other, more_is_better, |cell| self.group.figures(cell))
    }

    /// A factor as evidence, where its interval says something; of a cell, `figures` are what its turns are compared by.
    fn compared(
        &self,
        first: &Cell,
        other: &Cell,
        more_is_better: bool,
        figures: impl Fn(&Cell) -> Vec<f64>,
    ) -> Option<Pair> {
        let (of_first, of_other) = (figures(first), figures(other));
        let floor = self.group.floor_within();
        let ratio = compare(&of_first, &of_other, more_is_better, floor)?.ratio;
        let pass = |first: &[f64], other: &[f64]| {
            compare(first, other, more_is_better, 1.0).map(|found| found.ratio.median)
        };
        let at = self.group.first_pass(first);
        let (first_pass, later) = of_first.split_at_checked(at)?;
        let (other_pass, other_later) = of_other.split_at_checked(at)?;
        let passes = [pass(first_pass, other_pass)?, pass(later, other_later)?];
        let evidence = Evidence {
            group: self.name.clone(),
            cell: first.name.clone(),
            against: Some(other.name.clone()),
            measure: Measure::Factor,
            figure: ratio,
        };
        let Self { gain, tolerated, .. } = *self;
        (ratio.coverage >= LEAST_COVERAGE).then_some(Pair { evidence, passes, gain, tolerated })
    }

    /// How many times as quickly the turns of the first were over, whatever the figure of the group is.
    pub(super) fn elapsed_pair(&self, first: &Cell, other: &Cell) -> Option<Pair> {
        self.compared(first, other, false, |cell| {
            cell.samples.iter().map(|each| each.elapsed_s).collect()
        })
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
    /// The first is better by more than the threshold, and was so in each pass.
    pub(super) fn is_faster(&self) -> bool {
        self.ratio().low > self.gain && self.passes.iter().all(|ratio| *ratio > self.gain)
    }

    /// The median of the first is better by more than the threshold, whatever its interval.
    pub(super) fn is_likely_faster(&self) -> bool {
        self.ratio().median > self.gain
    }

    /// The first is worse by more than the threshold, and was so in each pass.
    pub(super) fn is_slower(&self) -> bool {
        let limit = 1.0 / self.tolerated;
        self.ratio().high < limit && self.passes.iter().all(|ratio| *ratio < limit)
    }

    /// The first may be better, by however little: the interval lies above 1.
    pub(super) fn is_above(&self) -> bool {
        self.ratio().low > 1.0
    }

    /// The first was seen not to be better by the threshold; not the same as being in the dark.
    pub(super) fn is_no_faster(&self) -> bool {
        self.ratio().high < self.tolerated
    }

    /// The first was seen not to be worse by the threshold.
    pub(super) fn is_no_slower(&self) -> bool {
        self.ratio().low > 1.0 / self.tolerated
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
