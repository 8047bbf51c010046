//! The words for what the results hold as values: one place, so that all forms of the report say the same.
//!
//! Invariant: an outcome has a mark as well as a word, so that no reader depends on colour.

use crate::results::{
    Absence, CacheState, ClaimStatus, Figure, Group, Verdict, Warning, WarningKind,
};
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

/// The state of the page cache in a word, for lists.
pub(super) fn state(group: &Group) -> Option<&'static str> {
    match group.cache {
        CacheState::Any => None,
        CacheState::Cached => Some("cached"),
        CacheState::Cold => Some("cold"),
        CacheState::Limited => Some("larger than memory"),
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
pub(super) fn outcome(outcome: ClaimStatus) -> (&'static str, &'static str) {
    match outcome {
        ClaimStatus::Holds => ("✓", "holds"),
        ClaimStatus::HoldsInPart => ("◐", "holds in part"),
        ClaimStatus::DoesNotHold => ("✗", "does not hold"),
        ClaimStatus::NotSeen => ("?", "cannot tell"),
        ClaimStatus::NotMeasured => ("–", "not measured"),
    }
}

/// Mark and words of a verdict: where it does not hold as it is, also in which direction.
pub(super) fn verdict(verdict: &Verdict) -> (&'static str, String) {
    let (mark, word) = outcome(verdict.outcome);
    let differs = &verdict.differs;
    (mark, if differs.is_empty() { word.to_owned() } else { format!("{word}: {differs}") })
}

/// What claims do that came out so, in the right number.
fn outcome_of(outcome: ClaimStatus, count: usize) -> &'static str {
    match (outcome, count) {
        (ClaimStatus::Holds, 1) => "holds",
        (ClaimStatus::Holds, _) => "hold",
        (ClaimStatus::HoldsInPart, 1) => "holds in part",
        (ClaimStatus::HoldsInPart, _) => "hold in part",
        (ClaimStatus::DoesNotHold, 1) => "does not hold",
        (ClaimStatus::DoesNotHold, _) => "do not hold",
        (ClaimStatus::NotSeen, _) => "cannot be told",
        (ClaimStatus::NotMeasured, 1) => "was not measured",
        (ClaimStatus::NotMeasured, _) => "were not measured",
    }
}

/// How many of the claims came out which way, in a sentence.
pub(super) fn tally<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> String {
    let outcomes: Vec<ClaimStatus> = verdicts.map(|verdict| verdict.outcome).collect();
    let count = |outcome: ClaimStatus| outcomes.iter().filter(|each| **each == outcome).count();
    let counted = OUTCOMES.iter().map(|outcome| (*outcome, count(*outcome)));
    let parts: Vec<String> = counted
        .filter(|(_, count)| *count > 0)
        .map(|(outcome, count)| format!("{count} {}", outcome_of(outcome, count)))
        .collect();
    format!("Of {}, {}.", number_of(outcomes.len(), "claim"), parts.join(", "))
}

/// What the verdicts are on: this storage, or a model.
pub(super) fn measured_on(model: Option<&str>) -> String {
    model.map_or("On this storage".to_owned(), |model| format!("In a model of {model}"))
}

/// Verdicts on one model, or on this storage, each with its place among all.
pub(super) type OfModel<'a> = (Option<&'a str>, Vec<(usize, &'a Verdict)>);

/// Verdicts by what they are on, this storage first.
pub(super) fn by_model(verdicts: &[Verdict]) -> Vec<OfModel<'_>> {
    let mut parts: Vec<OfModel<'_>> = Vec::new();
    for (at, verdict) in verdicts.iter().enumerate() {
        let model = verdict.model.as_deref();
        match parts.iter_mut().find(|(other, _)| *other == model) {
            Some((_, members)) => members.push((at, verdict)),
            None => parts.push((model, vec![(at, verdict)])),
        }
    }
    parts.sort_by_key(|(model, _)| model.is_some());
    parts
}

/// Where the public archive of PostgreSQL's mailing lists keeps messages.
const ARCHIVE: &str = "https://www.postgresql.org/message-id/";

/// The address of a claim's message, where it is one of the archive: results may come from anybody.
pub(super) fn link(verdict: &Verdict) -> Option<&str> {
    let is_plain = |ch: char| {
        ch.is_ascii_alphanumeric() || matches!(ch, '.' | '-' | '_' | '@' | '%' | '+' | '=')
    };
    let link = verdict.link.as_deref()?;
    link.strip_prefix(ARCHIVE)?.chars().all(is_plain).then_some(link)
}

/// Warnings of one kind.
pub(super) struct Doubts<'a> {
    pub(super) kind: WarningKind,
    pub(super) warnings: Vec<&'a Warning>,
}

impl Doubts<'_> {
    /// The kind, and in how many groups.
    pub(super) fn title(&self) -> String {
        let groups = self.warnings.iter().filter(|warning| warning.group.is_some()).count();
        match groups {
            0 => warning(self.kind).to_owned(),
            count => format!("{} in {}", warning(self.kind), number_of(count, "group")),
        }
    }

    /// The remedies, each once.
    pub(super) fn remedies(&self) -> Vec<&str> {
        let mut once: Vec<&str> = Vec::new();
        for remedy in self.warnings.iter().map(|warning| warning.remedy.as_str()) {
            if !once.contains(&remedy) {
                once.push(remedy);
            }
        }
        once
    }
}

/// Warnings by kind, the most frequent kind first.
pub(super) fn doubts(warnings: &[Warning]) -> Vec<Doubts<'_>> {
    let mut doubts: Vec<Doubts<'_>> = Vec::new();
    for warning in warnings {
        match doubts.iter_mut().find(|doubt| doubt.kind == warning.kind) {
            Some(doubt) => doubt.warnings.push(warning),
            None => doubts.push(Doubts { kind: warning.kind, warnings: vec![warning] }),
        }
    }
    doubts.sort_by_key(|doubt| std::cmp::Reverse(doubt.warnings.len()));
    doubts
}

/// All outcomes, in the order in which they are counted.
pub(super) const OUTCOMES: [ClaimStatus; 5] = [
    ClaimStatus::Holds,
    ClaimStatus::HoldsInPart,
    ClaimStatus::DoesNotHold,
    ClaimStatus::NotSeen,
    ClaimStatus::NotMeasured,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(outcome: ClaimStatus, model: Option<&str>) -> Verdict {
        Verdict { outcome, model: model.map(str::to_owned), ..Verdict::default() }
    }

    #[test]
    fn one_claim_holds_and_ten_hold() {
        let one = [verdict(ClaimStatus::Holds, None)];
        assert_eq!(tally(one.iter()), "Of 1 claim, 1 holds.");
        let mut many = vec![verdict(ClaimStatus::Holds, None); 10];
        many.extend([
            verdict(ClaimStatus::DoesNotHold, None),
            verdict(ClaimStatus::NotMeasured, None),
        ]);
        let expected = "Of 12 claims, 10 hold, 1 does not hold, 1 was not measured.";
        assert_eq!(tally(many.iter()), expected);
    }

    /// What a model of disks of 2009 showed was counted among what holds of the storage under test.
    #[test]
    fn what_holds_in_a_model_is_not_counted_for_this_storage() {
        let verdicts = [
            verdict(ClaimStatus::Holds, Some("two disks of 2009")),
            verdict(ClaimStatus::DoesNotHold, None),
        ];
        let parts = by_model(&verdicts);
        let told: Vec<_> = parts
            .iter()
            .map(|(model, part)| {
                format!("{}: {}", measured_on(*model), tally(part.iter().map(|(_, each)| *each)))
            })
            .collect();
        let expected = [
            "On this storage: Of 1 claim, 1 does not hold.",
            "In a model of two disks of 2009: Of 1 claim, 1 holds.",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn only_messages_of_the_archive_are_linked() {
        let with = |link: &str| Verdict { link: Some(link.into()), ..Verdict::default() };
        let message = format!("{ARCHIVE}20051008154852.GC30988@svana.org");
        assert_eq!(link(&with(&message)), Some(message.as_str()));
        for other in [
            "javascript:alert(1)",
            "https://example.org/",
            "https://www.postgresql.org/message-id/a\"b",
        ] {
            assert_eq!(link(&with(other)), None);
        }
    }
}
