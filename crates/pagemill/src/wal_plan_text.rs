//! The report of `wal plan` for people: a label and what it is on each line.
//!
//! What comes from files is printed without control characters.

use pagemill_cluster::recovery::plan::Stop;

use crate::text_table::{fields, printable};
use crate::wal_plan::PlanReport;

type Line = (&'static str, String);

/// The whole report.
pub(crate) fn report(report: &PlanReport<'_>) -> String {
    let mut lines = beginning(report);
    lines.extend(ending(report));
    lines.extend(notes(report));
    fields(&lines)
}

fn shown(path: &std::path::Path) -> String {
    printable(path.as_os_str().as_encoded_bytes())
}

fn beginning(report: &PlanReport<'_>) -> Vec<Line> {
    let PlanReport { state, plan, .. } = report;
    let control = state.control();
    let mut what = plan.case.to_string();
    if let Some(label) = plan.case.label() {
        let name =
            label.label.as_deref().map(|name| format!(" \"{}\"", printable(name.as_bytes())));
        let time = label.start_time.as_deref().map(|time| format!(", begun {time}"));
        what += &format!("{}{}", name.unwrap_or_default(), time.unwrap_or_default());
    }
    let mut places: Vec<String> = report.archives.iter().map(|path| shown(path)).collect();
    places.push(shown(&plan.source.directory().path));
    let timelines: Vec<String> = plan
        .timelines()
        .iter()
        .map(|part| match part.end {
            Some(end) => format!("{} to {end}", part.timeline),
            None => part.timeline.to_string(),
        })
        .collect();
    vec![
        ("Data directory", shown(state.path())),
        (
            "Cluster",
            format!("PostgreSQL {}, system {}", control.version, control.system_identifier),
        ),
        ("State", control.state.to_string()),
        ("What it is", what),
        ("WAL from", places.join(", ")),
        ("Timelines", timelines.join(", then ")),
        (
            "Replay from",
            format!("{}, by the checkpoint at {}", plan.start, plan.checkpoint_location),
        ),
    ]
}

fn ending(report: &PlanReport<'_>) -> Vec<Line> {
    let PlanReport { plan, survey, .. } = report;
    let consistent = match survey.consistent_at {
        Some(lsn) => format!("from {lsn} on ({})", plan.consistent),
        None => format!("never: {}", plan.consistent),
    };
    let end = match &survey.end {
        Some(end) => format!("at {} on timeline {}: {}", end.lsn, survey.timeline, end.reason),
        None => "nothing is replayed".into(),
    };
    let reach = match (survey.consistent_at, survey.commit_times) {
        (Some(from), Some((first, last))) => {
            format!("{from} to {}, commits from {first} to {last}", survey.last_lsn)
        }
        (Some(from), None) => format!("{from} to {}, without commits", survey.last_lsn),
        (None, _) => "nothing".into(),
    };
    let mut lines = vec![
        ("Consistent", consistent),
        ("WAL ends", end),
        ("Records", survey.records.to_string()),
        ("In reach", reach),
    ];
    for point in &survey.restore_points {
        let name = printable(point.name.as_bytes());
        let early = if point.is_in_reach { "" } else { ", too early" };
        lines.push(("Restore point", format!("{name} at {}, {}{early}", point.lsn, point.time)));
    }
    if let Some(target) = &plan.target {
        let told = survey.stop.map_or_else(|| "not met".into(), |stop| met(&stop));
        lines.push((
            "Target",
            format!("{}: {told}", printable(target.place.to_string().as_bytes())),
        ));
    }
    lines
}

fn met(stop: &Stop) -> String {
    let side = if stop.is_before { "before" } else { "after" };
    format!("stops {side} the record at {}, replayed to {}", stop.record, stop.lsn)
}

fn notes(report: &PlanReport<'_>) -> Vec<Line> {
    let PlanReport { plan, survey, .. } = report;
    let mut lines = Vec::new();
    let end = survey.end.as_ref();
    for place in report.state.tablespaces() {
        let (named, read) = (shown(&place.named), shown(&place.directory));
        let told = if named == read { String::new() } else { format!(", read in {read}") };
        lines.push(("Tablespace", format!("{} in {named}{told}", place.oid)));
    }
    for segment in end.map_or(&[][..], |end| &end.missing) {
        lines.push(("Missing", segment.to_string()));
    }
    if let Some(fetch) = &report.fetch {
        lines.push(("Fetch by", printable(fetch.as_bytes())));
    }
    if let Some(behind) = end.and_then(|end| end.page_behind) {
        lines.push(("Behind the end", format!("the page at {behind} is of this WAL")));
    }
    if let Some(behind) = end.and_then(|end| end.segment_behind) {
        lines.push(("Behind the end", format!("segment {behind} is of this WAL")));
    }
    for path in &survey.partial_files {
        lines.push(("Note", format!("{} is read, which a server would not", shown(path))));
    }
    if let Some(lsn) = survey.full_page_writes_off {
        let what = "full_page_writes is off, so torn pages cannot be told without checksums";
        lines.push(("Note", format!("from {lsn} on {what}")));
    }
    if let (Some(backup), true) = (survey.earlier_backup, survey.problems.is_empty()) {
        let what = format!(
            "a backup that began at {} ended at {}: if this is that backup, put its backup_label back",
            backup.start, backup.end
        );
        lines.push(("Note", what));
    }
    lines.extend(plan.warnings.iter().map(|warning| ("Note", warning.clone())));
    lines
}
