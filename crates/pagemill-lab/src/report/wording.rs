//! The words for what the results hold as values: one place, so that all forms of the report say the same.
//!
//! Invariant: an outcome has a mark as well as a word, so that no reader depends on colour.

use crate::results::{Absence, CacheState, Figure, Group, Outcome, WarningKind};
use crate::statistics::{Comparison, Difference, LEAST_COVERAGE};

use super::units::size_of;

/// What is seen of a difference, in the words that suit the figure.
pub(super) fn difference(difference: Difference, figure: Figure) -> &'static str {
    match (difference, figure) {
        (Difference::Faster, Figure::Count) => "fewer",
        (Difference::Slower, Figure::Count) => "more",
        (Difference::Faster, _) => "faster",
        (Difference::Slower, _) => "slower",
        (Difference::NotSeen, _) => "no difference seen",
    }
}

/// The word for a comparison; where there are too few turns for any, it says that.
pub(super) fn comparison(found: &Comparison, figure: Figure) -> &'static str {
    match found.difference {
        Difference::NotSeen if found.ratio.coverage < LEAST_COVERAGE => TOO_FEW,
        word => difference(word, figure),
    }
}

/// Stands where turns are lacking, and not a difference.
pub(super) const TOO_FEW: &str = "too few turns";

/// What a cell's figure is.
pub(super) fn figure(figure: Figure) -> &'static str {
    match figure {
        Figure::Elapsed => "time",
        Figure::Throughput => "throughput",
        Figure::Rate => "operations",
        Figure::Latency => "time per operation",
        Figure::Count => "count",
    }
}

/// Which way is better.
pub(super) fn direction(figure: Figure) -> &'static str {
    if figure.more_is_better() { "more is better" } else { "less is better" }
}

/// The state of the page cache, where it plays a part.
pub(super) fn cache(state: CacheState) -> Option<&'static str> {
    match state {
        CacheState::Any => None,
        CacheState::Cached => Some("all of it in the page cache"),
        CacheState::Cold => Some("none of it in the page cache"),
        CacheState::Limited => Some("memory smaller than the files"),
    }
}

/// What work a group does: its size and the state of the cache.
pub(super) fn work(group: &Group) -> String {
    let size = (group.bytes > 0).then(|| size_of(group.bytes));
    let parts: Vec<String> =
        size.into_iter().chain(cache(group.cache).map(str::to_owned)).collect();
    parts.join(", ")
}

/// Why a cell was not measured, as word and reason.
pub(super) fn absence(absence: &Absence) -> (&'static str, &str) {
    match absence {
        Absence::Refused(why) => ("refused", why),
        Absence::Skipped(why) => ("skipped", why),
        Absence::Failed(why) => ("failed", why),
    }
}

/// Mark and word of an outcome.
pub(super) fn outcome(outcome: Outcome) -> (&'static str, &'static str) {
    match outcome {
        Outcome::Holds => ("✓", "holds"),
        Outcome::HoldsInPart => ("◐", "holds in part"),
        Outcome::DoesNotHold => ("✗", "does not hold"),
        Outcome::NotSeen => ("?", "cannot tell"),
        Outcome::NotMeasured => ("–", "not measured"),
    }
}

/// All outcomes, in the order in which they are counted.
pub(super) const OUTCOMES: [Outcome; 5] = [
    Outcome::Holds,
    Outcome::HoldsInPart,
    Outcome::DoesNotHold,
    Outcome::NotSeen,
    Outcome::NotMeasured,
];

/// What kind of doubt a warning raises.
pub(super) fn warning(kind: WarningKind) -> &'static str {
    match kind {
        WarningKind::Warmup => "warm-up",
        WarningKind::Outliers => "outliers",
        WarningKind::Drift => "drift",
        WarningKind::BusyMachine => "busy machine",
        WarningKind::CacheState => "page cache",
        WarningKind::ProcessorSpeed => "processor speed",
        WarningKind::FileSystem => "file system",
        WarningKind::Limited => "limit of the device",
        WarningKind::Privileges => "privileges",
        WarningKind::FewSamples => "few turns",
    }
}

/// The name of a fact or a parameter as people read it: `read_ahead_kb` is "read ahead kb".
pub(super) fn name(name: &str) -> String {
    name.replace('_', " ")
}

/// Names in a row: the first three, and how many more.
pub(super) fn some_of(names: &[&str]) -> String {
    match names {
        [a, b, c, rest @ ..] if rest.len() > 1 => {
            format!("{a}, {b}, {c} and {} others", rest.len())
        }
        _ => names.join(", "),
    }
}

/// How many, with the noun in the right number.
pub(super) fn number_of(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
