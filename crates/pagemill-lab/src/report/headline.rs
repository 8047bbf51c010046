//! What a reader in a hurry sees first: six numbers of this storage, the settings that matter most, and how far to trust
//! them.
//!
//! Invariants: a number is one that a group measured, with its interval, and names that group; what was not measured says
//! so. Nothing here is judged by rules of its own: differences come from `statistics::compare`, settings from `advice`.

use std::collections::BTreeSet;

use crate::advice::{self, Advice, Decision, Evidence, Measure, Setting, Version};
use crate::results::{Cell, Figure, Group, Results, WarningKind};
use crate::statistics::{Comparison, Difference, Summary};

use super::units::{NOTHING, Scale, digits};
use super::wording;

/// Settings that are named; the others are left to `advise`.
const MOST_SETTINGS: usize = 3;
const MIB: f64 = 1024.0 * 1024.0;

/// One number of the storage.
#[derive(Debug, PartialEq)]
pub(super) struct Number {
    pub(super) label: &'static str,
    /// The figure with its unit; a dash where it was not measured.
    pub(super) value: String,
    /// Its interval; empty where there is none.
    pub(super) span: String,
    /// What was done, in words.
    pub(super) remark: String,
    /// The group, as `experiment/group`.
    pub(super) group: &'static str,
}

/// A setting that should change.
#[derive(Debug, PartialEq)]
pub(super) struct Change {
    /// As a line of the configuration: `effective_io_concurrency = 64`.
    pub(super) line: String,
    /// What it is otherwise.
    pub(super) default: String,
    /// How many times as good, with its interval; empty where the reason is no factor.
    pub(super) factor: String,
    /// What was held against what, or why.
    pub(super) why: String,
}

/// What the run says about settings.
#[derive(Debug, PartialEq)]
pub(super) struct Changes {
    /// The major version of PostgreSQL.
    pub(super) version: u32,
    /// Those that matter most, largest factor first.
    pub(super) first: Vec<Change>,
    /// What to say where there are no changes, or more than are named.
    pub(super) rest: String,
}

/// A cell's figure with the group it is from.
struct CellFigure<'r> {
    group: &'r Group,
    cell: &'r Cell,
    summary: Summary,
}

/// The six numbers, measured or not.
pub(super) fn numbers(results: &Results) -> [Number; 6] {
    [
        random(results),
        depth(results),
        scan(results),
        sync(results),
        extension(results),
        copy(results),
    ]
}

/// The group, as `experiment/group`.
fn group<'r>(results: &'r Results, place: &str) -> Option<&'r Group> {
    let (experiment, group) = place.split_once('/')?;
    results.group(experiment, group)
}

/// The first of these cells that was measured, else the best one of the group.
fn found<'r>(results: &'r Results, place: &str, names: &[&str]) -> Option<CellFigure<'r>> {
    let group = group(results, place)?;
    let named = names.iter().find_map(|name| {
        let cell = group.cell(name)?;
        Some((cell, group.summary(cell)?))
    });
    let (cell, summary) = named.or_else(|| group.leader())?;
    Some(CellFigure { group, cell, summary })
}

impl Number {
    fn missing(label: &'static str, group: &'static str) -> Self {
        let remark = "not measured in this run".into();
        Self { label, value: NOTHING.into(), span: String::new(), remark, group }
    }
}

fn random(results: &Results) -> Number {
    let (label, place) = ("Random read", "device/random-read");
    let measured = found(results, place, &["pread 8 kB"]);
    let Some(found) = measured.filter(|found| found.group.figure == Figure::Rate) else {
        return Number::missing(label, place);
    };
    let Summary { median, low, high, .. } = found.summary;
    Number {
        label,
        value: format!("{}/s", rounded(median)),
        span: span(low, high),
        remark: format!("8 kB blocks one at a time, {} each", Scale::seconds().show(1.0 / median)),
        group: place,
    }
}

/// The least depth that no deeper one was seen to beat.
fn depth(results: &Results) -> Number {
    let (label, place) = ("Depth that pays", "device/random-read");
    let missing = || Number::missing(label, place);
    let group = group(results, place).filter(|group| group.figure == Figure::Rate);
    let Some(group) = group else { return missing() };
    let ladder = ladder(group);
    let beats = |deeper: &Cell, cell: &Cell| {
        against(group, deeper, cell).is_some_and(|found| found.difference == Difference::Faster)
    };
    let is_enough =
        |at: usize, cell: &Cell| !ladder.iter().skip(at + 1).any(|(_, deeper)| beats(deeper, cell));
    let enough = ladder.iter().enumerate().find(|(at, (_, cell))| is_enough(*at, cell));
    let (Some((at, (depth, cell))), Some((1, single))) = (enough, ladder.first()) else {
        return missing();
    };
    let factor = against(group, cell, single).filter(|_| at > 0);
    let gain = factor.map_or("more reads at once gain nothing that was seen".into(), |found| {
        let Summary { median, low, high, .. } = found.ratio;
        format!("reads at once: {} times one at a time ({})", digits(median), span(low, high))
    });
    let end = if at > 0 && at + 1 == ladder.len() { "; the most that was tried" } else { "" };
    Number {
        label,
        value: depth.to_string(),
        span: String::new(),
        remark: gain + end,
        group: place,
    }
}

/// Measured cells of one method by rising depth, of the ring where it was measured at more than one.
fn ladder(group: &Group) -> Vec<(u64, &Cell)> {
    let of = |method: &str| {
        let is_of = |cell: &&Cell| {
            !cell.samples.is_empty() && cell.parameters.get("method").is_some_and(|is| is == method)
        };
        let depth = |cell: &Cell| cell.parameters.get("depth")?.parse::<u64>().ok();
        let mut cells: Vec<_> = (group.cells.iter().filter(is_of))
            .filter_map(|cell| Some((depth(cell)?, cell)))
            .collect();
        cells.sort_by_key(|(depth, _)| *depth);
        cells
    };
    let ring = of("io_uring");
    if ring.len() > 1 { ring } else { of("pread").into_iter().chain(of("worker")).collect() }
}

fn scan(results: &Results) -> Number {
    let (label, place) = ("Scan", "device/sequential-read-cold");
    found(results, place, &["pread 128 kB"]).map_or_else(
        || Number::missing(label, place),
        |found| {
            throughput(label, place, &found, format!("in order, not cached ({})", found.cell.name))
        },
    )
}

fn sync(results: &Results) -> Number {
    let (label, place) = ("Sync", "device/sync-one-write");
    let Some(found) = found(results, place, &["fdatasync"]) else {
        return Number::missing(label, place);
    };
    let Summary { median, low, high, .. } = found.summary;
    let is_rate = found.group.figure.more_is_better();
    let time = |value: f64| if is_rate { 1.0 / value } else { value };
    let scale = Scale::fitting(Figure::Latency, [time(low), time(high)]);
    let (least, most) = (time(low).min(time(high)), time(low).max(time(high)));
    Number {
        label,
        value: scale.show(time(median)),
        span: scale.show_range(least, most).replace('–', " to "),
        remark: format!("to make one 8 kB write durable ({})", found.cell.name),
        group: place,
    }
}

fn extension(results: &Results) -> Number {
    let (label, place) = ("Extension", "extend/extend");
    let Some(found) = found(results, place, &["write_zeros 64", "write_zeros 8"]) else {
        return Number::missing(label, place);
    };
    let other = found.group.cell("posix_fallocate 64");
    let factor = other.and_then(|other| against(found.group, other, found.cell));
    let gain = factor
        .filter(|found| found.difference != Difference::NotSeen)
        .map(|found| format!("; posix_fallocate is {} times as fast", digits(found.ratio.median)));
    let remark =
        format!("zeros written and synced ({}){}", found.cell.name, gain.unwrap_or_default());
    throughput(label, place, &found, remark)
}

fn copy(results: &Results) -> Number {
    let label = "Copy";
    let cold = found(results, "copy/files-cold", &[]).map(|found| ("copy/files-cold", found));
    let any =
        cold.or_else(|| Some(("copy/files-cached", found(results, "copy/files-cached", &[])?)));
    let Some((place, found)) = any else { return Number::missing(label, "copy/files-cached") };
    let state = wording::state(found.group).map_or(String::new(), |state| format!(", {state}"));
    let remark = format!("a database's files{state}, copied and synced ({})", found.cell.name);
    throughput(label, place, &found, remark)
}

/// Bytes per second out of a throughput, or of a time for the group's bytes.
fn throughput(
    label: &'static str,
    group: &'static str,
    found: &CellFigure<'_>,
    remark: String,
) -> Number {
    let Summary { median, low, high, .. } = found.summary;
    let is_time = !found.group.figure.more_is_better();
    let bytes = found.group.bytes as f64;
    let rate = |value: f64| (if is_time { bytes / value } else { value }) / MIB;
    let (least, most) = (rate(low).min(rate(high)), rate(low).max(rate(high)));
    Number {
        label,
        value: format!("{} MiB/s", rounded(rate(median))),
        span: span(least, most),
        remark,
        group,
    }
}

fn against(group: &Group, cell: &Cell, other: &Cell) -> Option<Comparison> {
    group.compare(cell, other)
}

fn span(low: f64, high: f64) -> String {
    format!("{} to {}", rounded(low), rounded(high))
}

/// Three digits that count.
fn rounded(value: f64) -> String {
    if !value.is_finite() || value.abs() < 1000.0 {
        return digits(value);
    }
    let unit = 10.0_f64.powf(value.abs().log10().floor() - 2.0);
    digits((value / unit).round() * unit)
}

/// What the run says about the settings of the PostgreSQL that took part, or of the newest.
pub(super) fn changes(results: &Results) -> Changes {
    let version = version(results);
    let advice = advice::advise(results, version);
    let mut changes = merged(&advice);
    changes.sort_by(|(a, _), (b, _)| factor_of(b).total_cmp(&factor_of(a)));
    let more = changes.len().saturating_sub(MOST_SETTINGS);
    let first = changes.into_iter().take(MOST_SETTINGS);
    let first: Vec<Change> = first.map(|(setting, names)| change(setting, &names)).collect();
    let was_measured = advice.settings.iter().any(|setting| !setting.evidence.is_empty());
    let rest = match (first.is_empty(), was_measured) {
        (true, true) => "Nothing that was measured speaks against the defaults.".into(),
        (true, false) => "No setting was measured in this run.".into(),
        (false, _) if more > 0 => format!("And {}.", wording::number_of(more, "other change")),
        (false, _) => String::new(),
    };
    Changes { version: version.major(), first, rest }
}

fn version(results: &Results) -> Version {
    let fact = results.environment.iter().find(|fact| fact.name == "postgresql");
    let major = fact.and_then(|fact| fact.value.split(['.', ' ']).next());
    major.and_then(|major| major.parse().ok()).unwrap_or_else(Version::newest)
}

/// Settings to change; those of one value that rest on the same figures are one.
fn merged(advice: &Advice) -> Vec<(&Setting, Vec<&'static str>)> {
    let mut merged: Vec<(&Setting, Vec<&'static str>)> = Vec::new();
    for setting in advice.settings.iter().filter(|each| each.decision == Decision::Change) {
        let same = |(other, _): &&mut (&Setting, Vec<&str>)| {
            other.value == setting.value && other.evidence == setting.evidence
        };
        match merged.iter_mut().find(same) {
            Some((_, names)) => names.push(setting.name),
            None => merged.push((setting, vec![setting.name])),
        }
    }
    merged
}

/// The first factor that a setting rests on: the one that decided.
fn deciding(setting: &Setting) -> Option<&Evidence> {
    setting.evidence.iter().find(|each| each.measure == Measure::Factor && each.against.is_some())
}

fn factor_of(setting: &Setting) -> f64 {
    deciding(setting).map_or(0.0, |each| each.figure.median)
}

fn change(setting: &Setting, names: &[&str]) -> Change {
    let value = setting.value.as_deref().unwrap_or(NOTHING);
    let decided = deciding(setting);
    let factor = decided.map_or(String::new(), |each| {
        let Summary { median, low, high, .. } = each.figure;
        format!("{}× ({})", digits(median), span(low, high))
    });
    let why =
        decided.and_then(|each| Some(format!("{} against {}", each.cell, each.against.as_ref()?)));
    Change {
        line: format!("{} = {value}", names.join(", ")),
        default: setting.default.clone(),
        factor,
        why: why.unwrap_or_else(|| setting.why.clone()),
    }
}

/// Warnings after which the figures of a group are doubtful.
const DISTURBING: [WarningKind; 6] = [
    WarningKind::BusyMachine,
    WarningKind::Drift,
    WarningKind::Outliers,
    WarningKind::Warmup,
    WarningKind::CacheState,
    WarningKind::FewSamples,
];

/// How far to trust the figures, in a line.
pub(super) fn trust(results: &Results) -> String {
    let groups = results.experiments.iter().map(|each| each.groups.len()).sum::<usize>();
    let disturbing = results.warnings.iter().filter(|each| DISTURBING.contains(&each.kind));
    let disturbed: BTreeSet<&str> =
        disturbing.filter_map(|warning| warning.group.as_deref()).collect();
    let run = if results.quick { "A quick run on small files: rough figures. " } else { "" };
    let seen = match disturbed.len() {
        0 => "Nothing was seen to disturb the figures.".to_owned(),
        count => format!(
            "In {count} of {} something disturbed the figures.",
            wording::number_of(groups, "group")
        ),
    };
    let advice = match disturbed.len() * 2 > groups {
        true => " Run it again on a quiet machine before you act on it.",
        false => "",
    };
    format!("{run}{seen}{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Experiment, Sample};

    fn cell(name: &str, depth: u64, rate: f64) -> Cell {
        let sample = |step: u64| Sample {
            elapsed_s: 1.0,
            operations: (rate * (1.0 + step as f64 / 1000.0)) as u64,
            ..Sample::default()
        };
        let parameters = [("method", "io_uring".to_owned()), ("depth", depth.to_string())];
        Cell {
            name: name.into(),
            parameters: parameters.map(|(name, value)| (name.to_owned(), value)).into(),
            samples: (0..6).map(sample).collect(),
            ..Cell::default()
        }
    }

    fn random_reads(rates: &[(u64, f64)]) -> Results {
        let cells =
            rates.iter().map(|(depth, rate)| cell(&format!("depth {depth}"), *depth, *rate));
        let group = Group {
            name: "random-read".into(),
            figure: Figure::Rate,
            cells: cells.collect(),
            ..Group::default()
        };
        let device =
            Experiment { name: "device".into(), groups: vec![group], ..Experiment::default() };
        Results { experiments: vec![device], ..Results::default() }
    }

    #[test]
    fn the_depth_that_pays_is_the_least_that_no_deeper_one_beats() {
        let of = |rates: &[(u64, f64)]| depth(&random_reads(rates));
        let flat = of(&[(1, 1e4), (4, 3e4), (16, 6e4), (64, 6e4)]);
        assert_eq!(
            (flat.value.as_str(), flat.remark.contains("most that was tried")),
            ("16", false)
        );
        assert!(flat.remark.contains("6.00 times one at a time (5.88 to 6.12)"), "{}", flat.remark);
        let rising = of(&[(1, 1e4), (16, 6e4), (64, 9e4)]);
        assert_eq!(rising.value, "64");
        assert!(rising.remark.ends_with("the most that was tried"), "{}", rising.remark);
        assert_eq!(of(&[(1, 1e4), (4, 9e3)]).value, "1");
        assert_eq!(of(&[]).value, NOTHING);
    }

    #[test]
    fn what_was_not_measured_says_so_and_six_numbers_are_always_there() {
        let none = numbers(&Results::default());
        assert!(none.iter().all(|number| number.remark == "not measured in this run"));
        let some = numbers(&random_reads(&[(1, 11_234.0)]));
        assert_eq!(some[0].value, "11,300/s");
        assert_eq!(changes(&Results::default()).rest, "No setting was measured in this run.");
    }

    #[test]
    fn trust_counts_each_disturbed_group_once() {
        let mut results = random_reads(&[(1, 1e4)]);
        assert_eq!(trust(&results), "Nothing was seen to disturb the figures.");
        for kind in [WarningKind::Drift, WarningKind::Outliers] {
            results.warnings.push(crate::results::Warning {
                kind,
                group: Some("device/random-read".into()),
                message: String::new(),
                remedy: String::new(),
            });
        }
        assert!(trust(&results).starts_with("In 1 of 1 group something"));
    }
}
