//! Comparisons of two cells, with what a claim says of them.
//!
//! A ratio above 1 speaks for the first cell. What counts as reaching a claimed factor, and as no difference, is set here
//! once for all claims.

use super::finding::{Finding, Grade};
use crate::results::{Absence, CacheState, Cell, Group, Results, Sample};
use crate::statistics::{Comparison, Difference, compare};

/// A claimed factor is reached by this much of it: figures of another machine are not met to the percent.
const NEAR_ENOUGH: f64 = 0.8;
/// A difference that nobody notices, and an interval within which one is excluded.
const UNNOTICED: f64 = 1.10;
/// How the names of groups begin that are not this storage but a model.
const MODELS: &str = "simulated-";
/// Processor time of a turn, in seconds, below which ratios are ratios to next to nothing.
const LEAST_PROCESSOR_S: f64 = 0.005;
/// An interval wider than this says nothing of "no difference".
const ROUGH: f64 = 1.25;

/// What of a cell is compared.
#[derive(Debug, Clone, Copy)]
pub(super) enum Measure {
    /// The figure of its group.
    Figure,
    /// A part of the time.
    Part(&'static str),
    /// Processor time in user mode, of an operation.
    User,
    /// Processor time in the kernel, of an operation.
    System,
    /// Processor time, of an operation.
    Processor,
}

impl Measure {
    fn of(self, group: &Group, sample: &Sample) -> f64 {
        let operations = sample.operations.max(1) as f64;
        match self {
            Self::Figure => group.figure.of(sample, group.bytes),
            Self::Part(name) => sample.parts.get(name).copied().unwrap_or(f64::NAN),
            Self::User => sample.user_s / operations,
            Self::System => sample.system_s / operations,
            Self::Processor => (sample.user_s + sample.system_s) / operations,
        }
    }

    fn more_is_better(self, group: &Group) -> bool {
        matches!(self, Self::Figure) && group.figure.more_is_better()
    }

    fn is_processor_time(self) -> bool {
        matches!(self, Self::User | Self::System | Self::Processor)
    }

    fn words(self) -> String {
        match self {
            Self::Figure => String::new(),
            Self::Part(name) => format!("time of {name}, "),
            Self::User => "processor time in user mode, ".into(),
            Self::System => "processor time in the kernel, ".into(),
            Self::Processor => "processor time, ".into(),
        }
    }
}

/// Looks at the cells of one experiment.
pub(super) struct Judge<'r> {
    pub(super) results: &'r Results,
    pub(super) experiment: &'static str,
}

/// Two cells of a group by name, of which a claim says something.
#[derive(Clone, Copy)]
pub(super) struct NamedPair<'j> {
    /// Looks them up.
    judge: &'j Judge<'j>,
    /// The group of both.
    group: &'j str,
    /// The one that a ratio above 1 speaks for.
    first: &'j str,
    /// The one that it is held against.
    other: &'j str,
}

/// Two cells of a group.
struct Pair<'r> {
    group: &'r Group,
    first: &'r Cell,
    other: &'r Cell,
}

impl<'r> Judge<'r> {
    /// Two cells of a group, measured or not, to hold claims against.
    pub(super) fn pair<'j>(
        &'j self,
        group: &'j str,
        first: &'j str,
        other: &'j str,
    ) -> NamedPair<'j> {
        NamedPair { judge: self, group, first, other }
    }

    fn named(&self, group: &str) -> String {
        format!("{}/{group}", self.experiment)
    }

    /// The cell, or why it has no samples.
    fn cell(&self, group: &str, name: &str) -> Result<(&'r Group, &'r Cell), String> {
        let missing = |why: &str| format!("{name} in {}: {why}", self.named(group));
        let found = self.results.group(self.experiment, group);
        let Some(group_found) = found else { return Err(missing(&self.why_no_group(group))) };
        let cell = group_found.cell(name).ok_or_else(|| missing("no such cell in this run"))?;
        match &cell.absent {
            Some(Absence::Refused(why) | Absence::Skipped(why) | Absence::Failed(why)) => {
                Err(missing(why))
            }
            None if cell.samples.is_empty() => Err(missing("the run ended before it")),
            None => Ok((group_found, cell)),
        }
    }

    /// The reasons that name the group, or else all there are.
    fn why_no_group(&self, group: &str) -> String {
        let skipped = self.results.experiment(self.experiment).map(|found| &found.skipped);
        let parts: Vec<_> = skipped.into_iter().flatten().collect();
        let named = parts.iter().filter(|part| part.what.contains(group)).copied();
        let named: Vec<_> = named.collect();
        let told = if named.is_empty() { parts } else { named };
        let reasons: Vec<_> =
            told.iter().map(|part| format!("{}: {}", part.what, part.why)).collect();
        match reasons.is_empty() {
            true => "not part of this run".into(),
            false => format!("not run ({})", reasons.join("; ")),
        }
    }

    fn finding(&self, group: &str, grade: Grade, text: String) -> Finding {
        let is_of_model = group.starts_with(MODELS);
        Finding { grade, text, group: self.named(group), differs: String::new(), is_of_model }
    }

    fn missing(&self, group: &str, text: String) -> Finding {
        self.finding(group, Grade::Missing, text)
    }

    /// The claim: the first counts something, and the others nothing.
    pub(super) fn alone_counts(&self, group: &str, first: &str, others: &[&str]) -> Finding {
        let median = |name: &str| {
            let (found, cell) = self.cell(group, name)?;
            Ok(found.summary(cell).map_or(0.0, |summary| summary.median))
        };
        let all: Result<Vec<f64>, String> =
            [first].iter().chain(others).map(|name| median(name)).collect();
        let all = match all {
            Ok(all) => all,
            Err(text) => return self.missing(group, text),
        };
        let alone = all.first().is_some_and(|first| *first > 0.0)
            && all.iter().skip(1).all(|other| *other == 0.0);
        let names = [first].into_iter().chain(others.iter().copied());
        let texts: Vec<_> =
            names.zip(&all).map(|(name, count)| format!("{name} {count:.0}")).collect();
        let grade = if alone { Grade::Holds } else { Grade::Fails };
        self.finding(group, grade, texts.join(", "))
    }
}

impl<'j> NamedPair<'j> {
    /// The cells, or the finding that one has no samples.
    fn cells(&self) -> Result<Pair<'j>, Finding> {
        let missing = |text| self.judge.missing(self.group, text);
        let (group, first) = self.judge.cell(self.group, self.first).map_err(missing)?;
        let (_, other) = self.judge.cell(self.group, self.other).map_err(missing)?;
        Ok(Pair { group, first, other })
    }

    /// Compares, and has the ratio graded; `claimed` is the factor that was claimed, 1 for no difference.
    fn graded(
        &self,
        measure: Measure,
        claimed: f64,
        grade: impl Fn(&Comparison) -> Grade,
    ) -> Finding {
        let Self { judge, group, first, other } = *self;
        let pair = match self.cells() {
            Ok(pair) => pair,
            Err(missing) => return missing,
        };
        match pair.compare(measure) {
            Some(comparison) => {
                let grade = grade(&comparison);
                let text = pair.text(measure, &comparison);
                let differs = pair.differs(grade, &comparison, claimed);
                Finding { differs, ..judge.finding(group, grade, text) }
            }
            None => {
                let text =
                    format!("{first} and {other} in {}: nothing to compare", judge.named(group));
                judge.missing(group, text)
            }
        }
    }

    /// The claim: the first is so many times as good, at least about.
    pub(super) fn better(&self, measure: Measure, factor: f64) -> Finding {
        self.graded(measure, factor, |found| better(found, factor))
    }

    /// The claim: nobody notices a difference.
    pub(super) fn same(&self, measure: Measure) -> Finding {
        self.graded(measure, 1.0, same)
    }

    /// The claim: whatever the first gains, it is less than this.
    pub(super) fn gains_less(&self, measure: Measure, factor: f64) -> Finding {
        self.graded(measure, factor, |found| match found.ratio {
            ratio if ratio.high < factor => Grade::Holds,
            ratio if ratio.low > factor => Grade::Fails,
            _ => Grade::Unclear,
        })
    }

    /// The claim: the first makes at most one in so many of the calls of these names that the other makes.
    pub(super) fn fewer_calls(&self, names: &[&str], factor: f64) -> Finding {
        let Self { judge, group, first, other } = *self;
        let pair = match self.cells() {
            Ok(pair) => pair,
            Err(missing) => return missing,
        };
        let (few, many) = (calls(pair.first, names), calls(pair.other, names));
        let ratio = many / few.max(1.0);
        let grade = match ratio {
            ratio if ratio >= factor * NEAR_ENOUGH => Grade::Holds,
            ratio if ratio > 1.0 => Grade::Partly,
            _ => Grade::Fails,
        };
        let text = format!(
            "{first} makes {few:.0} calls ({}) and {other} {many:.0}, {ratio:.1} times as many",
            names.join(", ")
        );
        let differs = match grade {
            Grade::Partly | Grade::Fails => format!("{first} saves fewer calls than claimed"),
            _ => String::new(),
        };
        Finding { differs, ..judge.finding(group, grade, text) }
    }
}

/// Calls of these names in a turn of the cell, at the median.
fn calls(cell: &Cell, names: &[&str]) -> f64 {
    let of = |sample: &Sample| {
        names.iter().filter_map(|name| sample.calls.get(*name)).sum::<u64>() as f64
    };
    let counts: Vec<f64> = cell.samples.iter().map(of).collect();
    crate::statistics::summary(&counts).map_or(0.0, |summary| summary.median)
}

fn better(found: &Comparison, factor: f64) -> Grade {
    let wanted = (factor * NEAR_ENOUGH).max(1.0);
    match found.difference {
        Difference::Faster if found.ratio.median >= wanted => Grade::Holds,
        Difference::Faster => Grade::Partly,
        Difference::Slower => Grade::Fails,
        Difference::NotSeen if found.ratio.high < wanted.max(UNNOTICED) => Grade::Fails,
        Difference::NotSeen => Grade::Unclear,
    }
}

fn same(found: &Comparison) -> Grade {
    let within = |limit: f64| found.ratio.high < limit && found.ratio.low > 1.0 / limit;
    match found.difference {
        _ if within(UNNOTICED) => Grade::Holds,
        Difference::NotSeen if within(ROUGH) => Grade::Holds,
        Difference::NotSeen => Grade::Unclear,
        Difference::Faster | Difference::Slower => Grade::Fails,
    }
}

impl Pair<'_> {
    fn compare(&self, measure: Measure) -> Option<Comparison> {
        let figures = |cell: &Cell| -> Vec<f64> {
            cell.samples.iter().map(|sample| measure.of(self.group, sample)).collect()
        };
        let more = measure.more_is_better(self.group);
        if measure.is_processor_time() && self.has_hardly_any(measure) {
            return None;
        }
        compare(&figures(self.first), &figures(self.other), more, self.group.floor_within())
    }

    /// True when one of the two used so little that its ratio to anything is chance.
    fn has_hardly_any(&self, measure: Measure) -> bool {
        let of_turn =
            |sample: &Sample| measure.of(self.group, sample) * sample.operations.max(1) as f64;
        [self.first, self.other].into_iter().any(|cell| {
            let times: Vec<f64> = cell.samples.iter().map(of_turn).collect();
            crate::statistics::summary(&times).is_some_and(|time| time.median < LEAST_PROCESSOR_S)
        })
    }

    /// In which direction the ratio is not the one that was claimed.
    fn differs(&self, grade: Grade, found: &Comparison, claimed: f64) -> String {
        if !matches!(grade, Grade::Partly | Grade::Fails) {
            return String::new();
        }
        let (first, other) = (&self.first.name, &self.other.name);
        match found.difference {
            Difference::Slower => format!("{first} is worse than {other}"),
            _ if found.ratio.median > claimed => {
                format!("{first} gains more over {other} than claimed")
            }
            _ => format!("{first} gains less over {other} than claimed"),
        }
    }

    fn text(&self, measure: Measure, comparison: &Comparison) -> String {
        let Comparison { ratio, difference } = comparison;
        let word = match difference {
            Difference::Faster => "",
            Difference::Slower => ", which is worse",
            Difference::NotSeen => ", no difference seen",
        };
        format!(
            "{} against {} in {}: {}{} times as good{word} ({} to {}, {:.0} % confidence{})",
            self.first.name,
            self.other.name,
            self.group.name,
            measure.words(),
            number(ratio.median),
            number(ratio.low),
            number(ratio.high),
            ratio.coverage * 100.0,
            cache(self.group.cache)
        )
    }
}

fn number(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }
}

fn cache(state: CacheState) -> &'static str {
    match state {
        CacheState::Any => "",
        CacheState::Cached => ", cached",
        CacheState::Cold => ", cold",
        CacheState::Limited => ", larger than memory",
    }
}
