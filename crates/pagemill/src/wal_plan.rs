//! `pagemill wal plan`: how a data directory would be recovered, from where to where, and whether its WAL suffices.
//!
//! The report comes first, whatever it has to tell; what hinders a recovery is said behind it, and gives status 1.

use std::path::{Path, PathBuf};

use anyhow::Result;
use pagemill_cluster::DirectoryState;
use pagemill_cluster::recovery::plan::{RecoveryPlan, RecoveryProblem, WalSurvey};
use pagemill_format::wal::SegmentName;

use crate::failure::{Completion, complain};
use crate::session::Session;
use crate::session::stats::Work;
use crate::wal_arguments::PlanArguments;
use crate::{wal_plan_json, wal_plan_text};

/// All that is told of a directory.
pub(crate) struct PlanReport<'a> {
    pub(crate) state: &'a DirectoryState,
    pub(crate) archives: &'a [PathBuf],
    pub(crate) plan: &'a RecoveryPlan,
    pub(crate) survey: &'a WalSurvey,
    /// How the first missing segment is brought, where that is known.
    pub(crate) fetch: Option<String>,
}

pub(crate) fn run(arguments: &PlanArguments) -> Result<Completion> {
    let session = Session::new(&arguments.common)?.recovered(&arguments.recovery)?;
    let (storage, directory) = (session.storage(), session.directory()?);
    let state = match arguments.common.live {
        true => DirectoryState::read_live(storage, directory)?,
        false => DirectoryState::read(storage, directory)?,
    };
    let state = session.with_tablespaces(state)?;
    let plan_options = session.plan_options();
    let plan = RecoveryPlan::new(&state, &plan_options)?;
    let survey = plan.survey(storage)?;
    let report = PlanReport {
        state: &state,
        archives: &plan_options.archives,
        plan: &plan,
        survey: &survey,
        fetch: wanted_segment(&plan, &survey).map(|wanted| fetch_command(&state, wanted)),
    };
    session.print(&match arguments.json {
        true => format!("{}\n", wal_plan_json::report(&report)),
        false => wal_plan_text::report(&report),
    })?;
    session.finish(&Work::default());
    survey.problems.iter().for_each(complain);
    Ok(if survey.problems.is_empty() { Completion::Done } else { Completion::Incomplete })
}

/// The segment that somebody has to bring, if WAL ends for want of one before it should.
fn wanted_segment(plan: &RecoveryPlan, survey: &WalSurvey) -> Option<SegmentName> {
    if let Some(first) = survey.end.as_ref().and_then(|end| end.missing.first()) {
        return Some(*first);
    }
    let ends_early = survey.problems.iter().any(|problem| {
        matches!(
            problem,
            RecoveryProblem::NotConsistent { .. } | RecoveryProblem::TargetNotMet { .. }
        )
    });
    let end = survey.end.as_ref().filter(|_| ends_early)?;
    let directory = plan.source.directory();
    Some(SegmentName { timeline: survey.timeline, ..directory.segment_of(end.lsn) })
}

/// The command that brings a segment: the cluster's own `restore_command`, or that of the tool it is archived with.
fn fetch_command(state: &DirectoryState, segment: SegmentName) -> String {
    let name = segment.to_string();
    let to = Path::new("pg_wal").join(&name);
    let to = to.display();
    let settings = state.settings();
    let text = |setting: &str| {
        settings.get(setting).map(|value| String::from_utf8_lossy(value).into_owned())
    };
    if let Some(command) = text("restore_command").filter(|command| !command.is_empty()) {
        return command.replace("%f", &name).replace("%p", &to.to_string());
    }
    let archiver = text("archive_command").unwrap_or_default();
    let stanza = archiver.split_whitespace().find(|word| word.starts_with("--stanza="));
    match stanza {
        Some(stanza) => format!("pgbackrest {stanza} archive-get {name} {to}"),
        None if archiver.contains("wal-g") => format!("wal-g wal-fetch {name} {to}"),
        None if archiver.contains("barman") => format!("barman get-wal SERVER {name} > {to}"),
        None => format!("cp ARCHIVE/{name} {to}"),
    }
}
