//! A run of the lab: the experiments that were chosen, one after the other, in a directory of their own, all of them twice.
//!
//! ```text
//! first pass    device, pread, …             half of each group's rounds
//! second pass   device, pread, …, postgres   the other half, minutes later: what a cell differs by from itself is noise
//! ```
//!
//! `postgres` comes in the last pass only, with all of its rounds: afterwards the process may have another user.
//!
//! Invariants: space and time are announced before anything is made; what was measured is kept, also when somebody
//! ends the run or an experiment fails; the directory is gone at the end.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::cancel::Cancel;
use crate::environment::{Environment, look_around};
use crate::error::{Error, Result};
use crate::experiments::{Course, PASSES, Plan, Scale, Session, chosen, postgres};
use crate::limits;
use crate::meter::MachineMeter;
use crate::profiler::Profiler;
use crate::results::{Experiment, FORMAT, Fact, Results, Warning, WarningKind};
use crate::runner::Runner;
use crate::server::{self, InstallationSearch};
use crate::watch::{Announcement, Watch};
use crate::workspace::{Workspace, available_bytes};

/// What is to be run.
#[derive(Debug, Clone)]
pub struct LabOptions {
    /// Where.
    pub directory: PathBuf,
    /// Names of experiments; all of them for none.
    pub experiments: Vec<String>,
    /// How large and how long.
    pub scale: Scale,
    /// What random choices depend on.
    pub seed: u64,
    /// Let perf watch one more turn of each group's best.
    pub flame_graphs: bool,
    /// Threads for what may be done by several.
    pub jobs: usize,
    /// Make a RAID1 of two slow loop devices, as root, for what is about mirrors.
    pub mirrored: bool,
    /// Where PostgreSQL's programs are; looked for where packages put them for `None`.
    pub with_postgres: Option<PathBuf>,
}

/// Runs the experiments, and tells what they found, with [`Results::interrupted`] set where the run ended early.
///
/// # Errors
/// When there is nothing to measure with: no such experiment, no directory that can be written to, or too little space.
pub fn run(options: &LabOptions, cancel: &Cancel, watch: &dyn Watch) -> Result<Results> {
    let begin = Instant::now();
    let plans = chosen(&options.experiments)?;
    if !options.directory.is_dir() {
        return Err(Error::NotADirectory { path: options.directory.clone() });
    }
    let server = server(options, &plans)?;
    let announcement = announcement(options, &plans, &server)?;
    watch.announced(&announcement);
    let workspace = Workspace::create(&options.directory, announcement.bytes_needed)?;
    let environment = look_around(workspace.path())?;
    let mut results = Results {
        format: FORMAT,
        pagemill: env!("CARGO_PKG_VERSION").into(),
        started: rfc_3339(SystemTime::now()),
        quick: options.scale.quick,
        environment: facts(&environment, &server),
        warnings: environment.warnings.clone(),
        ..Results::default()
    };
    let profiler = options.flame_graphs.then(|| Profiler::new(workspace.path()));
    let (surroundings, watching, found) = (&environment, profiler.as_ref(), &server);
    let stage = Stage {
        options,
        cancel,
        watch,
        environment: surroundings,
        profiler: watching,
        server: found,
    };
    let (courses, interrupted) = stage.run_all(&plans, workspace.path());
    results.interrupted = interrupted.then(|| "somebody ended it".into());
    for course in courses {
        let (experiment, warnings) = course.finished();
        results.experiments.push(experiment);
        results.warnings.extend(warnings);
    }
    results.warnings.extend(limits::warnings(&results));
    results.warnings.extend(privileges(&results));
    results.warnings.extend(profiler.and_then(|profiler| profiler.refusal()));
    results.verdicts = crate::verdicts(&results);
    drop(workspace);
    results.elapsed_s = begin.elapsed().as_secs_f64();
    Ok(results)
}

/// PostgreSQL's programs, where they are needed. A directory that was named is looked at in any case.
fn server(options: &LabOptions, plans: &[&'static Plan]) -> Result<InstallationSearch> {
    let takes_part = plans.iter().any(|plan| plan.name == postgres::PLAN.name);
    let given = options.with_postgres.as_deref();
    let found = match (takes_part, given) {
        (false, None) => Err(String::new()),
        _ => server::look_for(given)?,
    };
    Ok(if takes_part { found } else { Err(String::new()) })
}

/// What the run runs on, the server included where it takes part.
fn facts(environment: &Environment, server: &InstallationSearch) -> Vec<Fact> {
    let server = server.as_ref().ok();
    let fact =
        server.map(|found| Fact { name: "postgresql".into(), value: found.version().into() });
    environment.facts.iter().cloned().chain(fact).collect()
}

fn announcement(
    options: &LabOptions,
    plans: &[&'static Plan],
    server: &InstallationSearch,
) -> Result<Announcement> {
    let scale = &options.scale;
    // Without a server its experiment takes nothing.
    let is_run = |plan: &&&Plan| plan.name != postgres::PLAN.name || server.is_ok();
    let needed =
        plans.iter().filter(is_run).map(|plan| (plan.bytes_needed)(scale)).max().unwrap_or(0);
    Ok(Announcement {
        experiments: plans.iter().map(|plan| plan.name).collect(),
        bytes_needed: needed,
        bytes_free: available_bytes(&options.directory)?,
        time: plans.iter().filter(is_run).map(|plan| scale.time_of(plan)).sum(),
    })
}

/// What all experiments of a run share.
struct Stage<'r> {
    options: &'r LabOptions,
    cancel: &'r Cancel,
    watch: &'r dyn Watch,
    environment: &'r Environment,
    profiler: Option<&'r Profiler>,
    server: &'r InstallationSearch,
}

impl Stage<'_> {
    /// All passes of all experiments, and whether somebody ended them.
    fn run_all(&self, plans: &[&'static Plan], workspace: &Path) -> (Vec<Course>, bool) {
        let mut courses: Vec<Course> = Vec::new();
        for pass in 1..=PASSES {
            let of_pass = plans.iter().filter(|plan| pass == PASSES || passes_of(plan) == PASSES);
            for plan in of_pass {
                let is_it = |course: &Course| course.experiment.name == plan.name;
                let known = courses.iter().position(is_it);
                let mut course = known.map_or_else(|| Course::new(plan), |at| courses.remove(at));
                let interrupted = self.run(plan, pass, &mut course, workspace);
                courses.insert(known.unwrap_or(courses.len()), course);
                if interrupted {
                    self.tell_unfinished(plans, &courses, pass);
                    return (courses, true);
                }
            }
        }
        (courses, false)
    }

    /// What an ended run did not come to tell: all experiments whose last pass did not end.
    fn tell_unfinished(&self, plans: &[&'static Plan], courses: &[Course], pass: u32) {
        let done = |course: &Course| pass == PASSES && course.is_done;
        for course in courses.iter().filter(|course| !done(course)) {
            let Experiment { name, title, .. } = &course.experiment;
            let time = plans.iter().find(|plan| plan.name == *name);
            let time = time.map_or(Duration::ZERO, |plan| self.options.scale.time_of(plan));
            if !course.is_begun {
                self.watch.experiment_begins(name, title, time);
            }
            for group in course.untold_groups() {
                self.watch.group_done(name, group);
            }
            self.watch.experiment_done(&course.experiment);
        }
    }

    /// One pass of an experiment; true when somebody ended it.
    fn run(&self, plan: &Plan, pass: u32, course: &mut Course, workspace: &Path) -> bool {
        let begin = Instant::now();
        let scale = self.options.scale;
        let passes = passes_of(plan);
        let time = scale.time_of(plan) / passes;
        self.watch.pass_begins(plan.name, pass, PASSES);
        if pass == PASSES {
            course.is_begun = true;
            self.watch.experiment_begins(plan.name, plan.title, time);
        }
        let meter = MachineMeter::new(&self.environment.devices);
        let directory = workspace.join(plan.name);
        let mut session = Session {
            runner: Runner {
                meter: &meter,
                cancel: self.cancel,
                watch: self.watch,
                // One picture is enough.
                profiler: self.profiler.filter(|_| pass == PASSES),
            },
            scale,
            directory: directory.clone(),
            seed: self.options.seed,
            jobs: self.options.jobs,
            mirrored: self.options.mirrored,
            environment: self.environment,
            postgres: self.server,
            named: !self.options.experiments.is_empty(),
            time,
            passes,
            course,
        };
        let made = std::fs::create_dir(&directory).map_err(Error::file(&directory));
        let outcome = made.and_then(|()| (plan.run)(&mut session));
        // What cannot be removed now goes with the workspace.
        let _ = std::fs::remove_dir_all(&directory);
        let interrupted = matches!(outcome, Err(Error::Interrupted)) || self.cancel.is_cancelled();
        if let Err(error) = outcome.as_ref()
            && !matches!(error, Error::Interrupted)
        {
            session.skip("the rest of the experiment", error.to_string());
        }
        without_directory(course, workspace);
        course.experiment.elapsed_s += begin.elapsed().as_secs_f64();
        if pass == PASSES && !interrupted {
            course.is_done = true;
            self.watch.experiment_done(&course.experiment);
        }
        interrupted
    }
}

/// In how many passes an experiment runs.
fn passes_of(plan: &Plan) -> u32 {
    if plan.name == postgres::PLAN.name { 1 } else { PASSES }
}

/// Takes the run's own directory out of what errors say: where it lies is nobody else's concern.
fn without_directory(course: &mut Course, workspace: &Path) {
    use crate::results::Absence::{Failed, Refused, Skipped};
    let directory = format!("{}/", workspace.display());
    let shorten = |text: &mut String| *text = text.replace(&directory, "");
    course.experiment.skipped.iter_mut().for_each(|part| shorten(&mut part.why));
    let cells = course.groups_mut().flat_map(|group| &mut group.cells);
    for cell in cells {
        if let Some(Refused(why) | Skipped(why) | Failed(why)) = &mut cell.absent {
            shorten(why);
        }
        cell.note.iter_mut().for_each(shorten);
    }
}

/// One warning for all that privileges or a sandbox kept from being measured.
fn privileges(results: &Results) -> Option<Warning> {
    use crate::results::Absence;
    let cells =
        results.experiments.iter().flat_map(|each| &each.groups).flat_map(|group| &group.cells);
    let refused = cells.filter(|cell| matches!(cell.absent, Some(Absence::Refused(_)))).count();
    (refused > 0).then(|| Warning {
        kind: WarningKind::Privileges,
        group: None,
        message: format!(
            "{refused} contestants were refused by the kernel, the file system or a sandbox"
        ),
        remedy: "see the reason in their rows; run outside of the sandbox, or as root".into(),
    })
}

/// A moment as RFC 3339 has it, in UTC, to the second.
fn rfc_3339(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_date(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of a number of days since 1970-01-01, by counting whole years and months.
fn civil_date(mut days: u64) -> (u64, usize, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_utc() {
        let at = |seconds| rfc_3339(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_704_067_199), "2023-12-31T23:59:59Z");
    }
}
