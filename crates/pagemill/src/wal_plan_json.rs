//! The report of `wal plan` as JSON.
//!
//! Invariant: names are in snake_case and stay; LSNs and times are texts, as PostgreSQL prints them; what is not
//! known is null, and never left out.

use pagemill_cluster::recovery::plan::{RecoveryCase, TransactionEnd, WalSurvey};
use serde_json::{Value, json};

use crate::wal_plan::PlanReport;

/// The whole report.
pub(crate) fn report(report: &PlanReport<'_>) -> Value {
    let PlanReport { state, plan, survey, .. } = report;
    let control = state.control();
    let label = plan.case.label();
    let timelines: Vec<Value> = plan
        .timelines()
        .iter()
        .map(|part| {
            json!({
                "timeline": part.timeline,
                "begin": part.begin.to_string(),
                "end": part.end.map(|end| end.to_string()),
            })
        })
        .collect();
    json!({
        "directory": state.path().to_string_lossy(),
        "version": control.version.major(),
        "system_identifier": control.system_identifier.to_string(),
        "state": control.state.to_string(),
        "case": case(&plan.case),
        "label": label.and_then(|label| label.label.clone()),
        "backup_begun": label.and_then(|label| label.start_time.clone()),
        "wal_directories": plan.source.places().map(|place| place.to_string_lossy()).collect::<Vec<_>>(),
        "tablespaces": tablespaces(report),
        "timelines": timelines,
        "checkpoint": plan.checkpoint_location.to_string(),
        "start": plan.start.to_string(),
        "consistent_rule": plan.consistent.to_string(),
        "consistent_at": survey.consistent_at.map(|lsn| lsn.to_string()),
        "records": survey.records,
        "last_record": survey.last_record.map(|lsn| lsn.to_string()),
        "end": end(survey),
        "commits": survey.commits,
        "first_commit": survey.commit_times.map(|(first, _)| first.to_string()),
        "last_commit": survey.commit_times.map(|(_, last)| last.to_string()),
        "restore_points": restore_points(survey),
        "target": target(report),
        "fetch_command": report.fetch,
        "full_page_writes_off": survey.full_page_writes_off.map(|lsn| lsn.to_string()),
        "earlier_backup": survey.earlier_backup.map(|backup| {
            json!({ "start": backup.start.to_string(), "end": backup.end.to_string() })
        }),
        "partial_files": survey.partial_files.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        "warnings": plan.warnings,
        "problems": survey.problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn tablespaces(report: &PlanReport<'_>) -> Vec<Value> {
    let places = report.state.tablespaces().iter();
    places
        .map(|place| {
            json!({
                "oid": place.oid.0,
                "location": place.named.to_string_lossy(),
                "directory": place.directory.to_string_lossy(),
            })
        })
        .collect()
}

fn case(case: &RecoveryCase) -> &'static str {
    match case {
        RecoveryCase::ShutDown => "shut_down",
        RecoveryCase::Crash => "crash",
        RecoveryCase::Snapshot => "snapshot",
        RecoveryCase::Backup(label) if label.from_standby => "standby_backup",
        RecoveryCase::Backup(_) => "backup",
        RecoveryCase::Rewound(_) => "rewound",
        RecoveryCase::Exclusive(..) => "exclusive_backup",
        RecoveryCase::LostLabel(..) => "lost_label",
        RecoveryCase::RestartedBackup => "restarted_backup",
        RecoveryCase::Standby => "standby",
    }
}

fn end(survey: &WalSurvey) -> Value {
    let Some(end) = &survey.end else { return Value::Null };
    json!({
        "lsn": end.lsn.to_string(),
        "timeline": survey.timeline,
        "reason": end.reason.to_string(),
        "page_behind": end.page_behind.map(|lsn| lsn.to_string()),
        "segment_behind": end.segment_behind.map(|segment| segment.to_string()),
        "missing_segments": end.missing.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn restore_points(survey: &WalSurvey) -> Vec<Value> {
    let points = survey.restore_points.iter();
    points
        .map(|point| {
            json!({
                "name": point.name,
                "lsn": point.lsn.to_string(),
                "time": point.time.to_string(),
                "in_reach": point.is_in_reach,
            })
        })
        .collect()
}

fn target(report: &PlanReport<'_>) -> Value {
    let Some(target) = &report.plan.target else { return Value::Null };
    let stop = report.survey.stop;
    let xid = stop.and_then(|stop| stop.transaction).map(|end| match end {
        TransactionEnd::Commit(xid, _) | TransactionEnd::Abort(xid, _) => xid.0,
    });
    json!({
        "target": target.place.to_string(),
        "inclusive": target.inclusive,
        "record": stop.map(|stop| stop.record.to_string()),
        "replayed_to": stop.map(|stop| stop.lsn.to_string()),
        "before": stop.map(|stop| stop.is_before),
        "transaction": xid,
    })
}
