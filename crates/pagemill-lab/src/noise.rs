//! What makes the figures of a group doubtful, found in the figures themselves and in what others did meanwhile.
//!
//! Outliers are found by the modified z-score of Iglewicz and Hoaglin ("How to detect and handle outliers", 1993): distance
//! from the median in units of the median distance. A drift is a trend by the test of Mann and Kendall over the rounds.
//! Each doubt is told once for a group, with what was seen and what helps.

use std::time::Duration;

use crate::results::{CacheState, Cell, Group, Warning, WarningKind};
use crate::runner::LEAST_ROUNDS;
use crate::statistics::summary;

/// The modified z-score from which on a turn is far from the others (that of hyperfine).
const FAR: f64 = 14.826;
/// Distances from the median below this share of it are nobody's concern.
const NEAR: f64 = 0.10;
/// The change over the rounds from which on a trend matters.
const DRIFTED: f64 = 0.05;
/// Share of one processor that others may use.
const BUSY: f64 = 0.10;
/// Share of the time that the host may take.
const STOLEN: f64 = 0.02;

/// What others did while the turns of a group ran, in sum.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Others {
    /// How long the turns were.
    pub(crate) elapsed: Duration,
    /// Processor time of others here.
    pub(crate) busy: Duration,
    /// Processor time that the host gave away.
    pub(crate) stolen: Duration,
    /// How long our thread was ready and had no processor.
    pub(crate) queued: Duration,
}

/// A turn whose cache state was not as asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CacheMiss {
    pub(crate) cell: String,
    /// Share of the files that was cached.
    pub(crate) share: f64,
}

/// All doubts about a group.
pub(crate) fn warnings(
    experiment: &str,
    group: &Group,
    others: &Others,
    misses: &[CacheMiss],
) -> Vec<Warning> {
    let name = format!("{experiment}/{}", group.name);
    let found = [
        few_samples(group),
        slow_first(group),
        outliers(group),
        drift(group),
        busy(others),
        cache_state(group.cache, misses),
    ];
    let named = |(kind, message, remedy): Doubt| Warning {
        kind,
        group: Some(name.clone()),
        message,
        remedy: remedy.into(),
    };
    found.into_iter().flatten().map(named).collect()
}

type Doubt = (WarningKind, String, &'static str);

fn few_samples(group: &Group) -> Option<Doubt> {
    let measured = group.cells.iter().map(|cell| cell.samples.len()).filter(|count| *count > 0);
    let least = measured.min()?;
    (least < LEAST_ROUNDS as usize).then(|| {
        let message = format!("{least} rounds only: too few for an interval that says anything");
        (WarningKind::FewSamples, message, "let it run to its end")
    })
}

/// Elapsed times of a cell's turns, each relative to their median.
fn relative_times(group: &Group, cell: &Cell) -> Option<Vec<f64>> {
    let figures = group.figures(cell);
    let median = summary(&figures)?.median;
    // For rates the inverse, so that more is slower everywhere.
    let relative =
        |figure: f64| if group.figure.more_is_better() { median / figure } else { figure / median };
    let relative: Vec<f64> = figures.into_iter().map(relative).collect();
    relative.iter().all(|value| value.is_finite()).then_some(relative)
}

/// Numbers of the turns that are far from the others, with their relative times.
fn far_turns(relative: &[f64]) -> Vec<(usize, f64)> {
    let distances: Vec<f64> = relative.iter().map(|value| (value - 1.0).abs()).collect();
    let Some(spread) = summary(&distances).map(|summary| summary.median) else { return Vec::new() };
    // 0.6745 is the 0.75 quantile of the normal distribution: the score is then in its standard deviations.
    let is_far =
        |value: f64| (value - 1.0).abs() > NEAR && 0.6745 * (value - 1.0).abs() > FAR * spread;
    (0..).zip(relative.iter().copied()).filter(|(_, value)| is_far(*value)).collect()
}

fn slow_first(group: &Group) -> Option<Doubt> {
    let first_is_far = |cell: &&Cell| {
        let relative = relative_times(group, cell).unwrap_or_default();
        far_turns(&relative).first().is_some_and(|(turn, _)| *turn == 0)
    };
    let names: Vec<&str> =
        group.cells.iter().filter(first_is_far).map(|cell| &*cell.name).collect();
    (!names.is_empty()).then(|| {
        let message = format!("the first turn was far from the later ones: {}", listed(&names));
        (WarningKind::Warmup, message, "take the first turn for a warm-up, or run it again")
    })
}

fn outliers(group: &Group) -> Option<Doubt> {
    let is_disturbed = |cell: &&Cell| {
        let relative = relative_times(group, cell).unwrap_or_default();
        far_turns(&relative).iter().any(|(turn, _)| *turn > 0)
    };
    let names: Vec<&str> =
        group.cells.iter().filter(is_disturbed).map(|cell| &*cell.name).collect();
    (!names.is_empty()).then(|| {
        let message = format!("single turns were far from the others: {}", listed(&names));
        (WarningKind::Outliers, message, "run it on a quiet machine; medians bear a few of them")
    })
}

fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 4;
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn drift(group: &Group) -> Option<Doubt> {
    let cells: Vec<Vec<f64>> =
        group.cells.iter().filter_map(|cell| relative_times(group, cell)).collect();
    let rounds = cells.iter().map(Vec::len).min()?;
    let of_round = |round: usize| {
        let values: Vec<f64> = cells.iter().filter_map(|cell| cell.get(round).copied()).collect();
        summary(&values).map(|summary| summary.median)
    };
    let course: Vec<f64> = (0..rounds).filter_map(of_round).collect();
    let (first, last) = (course.first()?, course.last()?);
    let change = last / first - 1.0;
    (has_trend(&course) && change.abs() > DRIFTED).then(|| {
        let direction = if change > 0.0 { "slower" } else { "faster" };
        let message = format!(
            "from the first round to the last it became {:.0} % {direction}",
            change.abs() * 100.0
        );
        let remedy = "wait until the device and the processors have come to rest, and run it again";
        (WarningKind::Drift, message, remedy)
    })
}

/// True when the values rise or fall more often than chance would have it (Mann and Kendall, 5 %).
fn has_trend(values: &[f64]) -> bool {
    let mut rises = 0.0;
    for (place, value) in values.iter().enumerate() {
        for later in values.iter().skip(place + 1) {
            rises += later.total_cmp(value) as i8 as f64;
        }
    }
    let count = values.len() as f64;
    let deviation = (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
    count >= 5.0 && rises.abs() - 1.0 > 1.96 * deviation
}

fn busy(others: &Others) -> Option<Doubt> {
    let share = |time: Duration| time.as_secs_f64() / others.elapsed.as_secs_f64();
    let (busy, stolen, queued) = (share(others.busy), share(others.stolen), share(others.queued));
    (busy > BUSY || stolen > STOLEN || queued > STOLEN).then(|| {
        let message = format!(
            "others used {:.0} % of a processor, the host took {:.0} %, and the measured thread waited {:.0} % of the \
             time for a processor",
            busy * 100.0,
            stolen * 100.0,
            queued * 100.0
        );
        (WarningKind::BusyMachine, message, "stop what else runs here, or run it at a quieter time")
    })
}

fn cache_state(wanted: CacheState, misses: &[CacheMiss]) -> Option<Doubt> {
    let worst = misses.iter().max_by(|one, other| one.share.total_cmp(&other.share))?;
    let cells: std::collections::BTreeSet<&str> = misses.iter().map(|miss| &*miss.cell).collect();
    let names: Vec<&str> = cells.into_iter().collect();
    let state = if wanted == CacheState::Cached { "in" } else { "out of" };
    let message = format!(
        "files that should have been {state} the page cache were {:.0} % cached before a turn of {}",
        worst.share * 100.0,
        listed(&names)
    );
    let remedy = match wanted {
        CacheState::Cached => "have more memory free than the files take",
        _ => {
            "see who else reads, maps or indexes files in that directory; some file systems keep all files in memory"
        }
    };
    Some((WarningKind::CacheState, message, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Figure, Sample};

    fn group(figure: Figure, turns: &[&[f64]]) -> Group {
        let cell = |(number, elapsed): (usize, &&[f64])| Cell {
            name: format!("cell {number}"),
            samples: elapsed
                .iter()
                .map(|s| Sample { elapsed_s: *s, operations: 1, ..Sample::default() })
                .collect(),
            ..Cell::default()
        };
        Group { figure, cells: turns.iter().enumerate().map(cell).collect(), ..Group::default() }
    }

    fn kinds(group: &Group, others: &Others) -> Vec<WarningKind> {
        warnings("e", group, others, &[]).into_iter().map(|warning| warning.kind).collect()
    }

    const QUIET: Others = Others {
        elapsed: Duration::from_secs(10),
        busy: Duration::ZERO,
        stolen: Duration::ZERO,
        queued: Duration::ZERO,
    };

    #[test]
    fn steady_figures_raise_no_doubt() {
        let steady = [1.0, 1.01, 0.99, 1.0, 1.02, 1.0];
        assert_eq!(kinds(&group(Figure::Elapsed, &[&steady, &steady]), &QUIET), []);
    }

    #[test]
    fn a_first_turn_and_a_later_one_that_are_far_off_are_told_apart() {
        let slow_first = [3.0, 1.0, 1.01, 0.99, 1.0, 1.0];
        let slow_third = [1.0, 1.01, 3.0, 0.99, 1.0, 1.0];
        let kinds_of = |turns| kinds(&group(Figure::Rate, &[turns]), &QUIET);
        assert_eq!(kinds_of(&slow_first), [WarningKind::Warmup]);
        assert_eq!(kinds_of(&slow_third), [WarningKind::Outliers]);
    }

    #[test]
    fn a_course_that_only_rises_is_a_drift_and_three_rounds_are_few() {
        let rising = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5];
        assert_eq!(
            kinds(&group(Figure::Elapsed, &[&rising, &rising]), &QUIET),
            [WarningKind::Drift]
        );
        assert_eq!(
            kinds(&group(Figure::Elapsed, &[&rising[..3]]), &QUIET),
            [WarningKind::FewSamples]
        );
    }

    #[test]
    fn others_at_work_are_told_with_their_share() {
        let others = Others { busy: Duration::from_secs(5), ..QUIET };
        let found = warnings("e", &group(Figure::Elapsed, &[&[1.0; 6]]), &others, &[]);
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("50 %"), "{found:?}");
        assert!(!found[0].remedy.is_empty());
    }

    #[test]
    fn a_cache_that_was_not_cold_is_told_with_its_cell() {
        let mut cold = group(Figure::Elapsed, &[&[1.0; 6]]);
        cold.cache = CacheState::Cold;
        let miss = CacheMiss { cell: "pread".into(), share: 0.5 };
        let found = warnings("e", &cold, &QUIET, &[miss]);
        assert_eq!(found[0].kind, WarningKind::CacheState);
        assert!(found[0].message.contains("50 % cached before a turn of pread"), "{found:?}");
    }
}
