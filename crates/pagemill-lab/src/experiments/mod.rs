//! The experiments by name, and what they run in.
//!
//! An experiment is a [`Plan`] in [`PLANS`]: what it asks, what it needs, and a function that makes its files in the
//! directory of its [`Session`] and runs groups there. What cannot be done here is [skipped](Session::skip) with a reason.
//!
//! Invariants: an experiment makes files nowhere else; they are removed when it is done; an error of one experiment is
//! a part of it that was skipped, and the run goes on.

mod block_io;
pub mod copy;
pub mod device;
pub mod extend;
mod file_copies;
mod file_tree;
mod grow;
mod late_enospc;
mod mapped_writing;
mod mirrored_disks;
pub mod mmap;
mod pace;
mod page_log;
pub mod postgres;
pub mod pread;
pub(crate) mod random;
pub mod readahead;
pub mod readiness;
mod relation_scans;
mod server_changes;
mod simulated_mirror;
pub mod single_cell;
mod sync_methods;
mod table_reads;
mod test_file;
mod text_loading;
mod waits;
mod wal_segments;
mod whole_file_reads;
mod write_back;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cancel::Cancel;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::results::{Experiment, Group, Skipped, Warning};
use crate::runner::{GroupPlan, LEAST_ROUNDS, MOST_ROUNDS, Ran, Rounds, Runner};
use crate::server::InstallationSearch;

/// One of the arguments, as it can be run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// As on the command line.
    pub name: &'static str,
    /// One line.
    pub title: &'static str,
    /// The question it answers.
    pub question: &'static str,
    /// Bytes of files that it has at once, at most.
    pub bytes_needed: fn(&Scale) -> u64,
    /// Its share of [`Scale::time`] in hundredths; `device`, whose turns have a length, takes what they take.
    pub share: u32,
    /// Runs it.
    pub run: fn(&mut Session<'_>) -> Result<()>,
}

/// All experiments, in the order in which they run. `postgres` is the last, since taking the right to change a cluster may
/// leave the process with the real user of the cluster's owner.
pub const PLANS: &[Plan] = &[
    device::PLAN,
    pread::PLAN,
    readahead::PLAN,
    mmap::PLAN,
    readiness::PLAN,
    copy::PLAN,
    extend::PLAN,
    postgres::PLAN,
];

/// How large and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// A short run with small files.
    pub quick: bool,
    /// Groups from which no setting follows are left out.
    pub only_advice: bool,
    /// Size of an experiment's main file, in bytes: a multiple of 8 kB, at least [`LEAST_SIZE`].
    pub size: u64,
    /// Time of which the experiments but `device` have their shares.
    pub time: Duration,
    /// The least time of a turn that measures the device: a limit of the device, such as that of a cloud volume or a control
    /// group, lets more through in the first tenths of a second.
    pub device_turn: Duration,
}

/// The shortest turn of those that last a time.
const SHORTEST_TURN: Duration = Duration::from_millis(20);

/// The smallest files that still are files of several blocks.
pub const LEAST_SIZE: u64 = 1 << 20;
/// Size of files in a quick run.
pub const QUICK_SIZE: u64 = 64 << 20;
/// Size of files in a full run.
pub const FULL_SIZE: u64 = 1 << 30;
/// The least time of a turn that measures the device.
const DEVICE_TURN: Duration = Duration::from_millis(500);
/// Files below this size say nothing of a device, so their turns need not last.
const TRIAL_SIZE: u64 = 16 << 20;
/// Passes of a run: minutes apart, so that they tell how far a figure is from itself.
pub(crate) const PASSES: u32 = 2;

impl Scale {
    /// The usual one; `size` replaces the usual size of files.
    pub fn new(quick: bool, size: Option<u64>) -> Self {
        let usual = if quick { QUICK_SIZE } else { FULL_SIZE };
        let size = size.unwrap_or(usual).max(LEAST_SIZE) / 8192 * 8192;
        let time = if quick { Duration::from_secs(75) } else { Duration::from_secs(20 * 60) };
        let device_turn = if size < TRIAL_SIZE { SHORTEST_TURN } else { DEVICE_TURN };
        Self { quick, only_advice: false, size, time, device_turn }
    }

    /// A quick one of what settings follow from.
    pub fn of_advice(size: Option<u64>) -> Self {
        Self { only_advice: true, ..Self::new(true, size) }
    }

    /// The time for an experiment, in all passes together.
    pub fn time_of(&self, plan: &Plan) -> Duration {
        match plan.name == device::PLAN.name {
            true => device::planned_time(self),
            false => self.time * plan.share / 100,
        }
    }

    /// Rounds of a group at most, in all passes together.
    pub(crate) fn most_rounds(&self) -> u32 {
        if self.quick { LEAST_ROUNDS } else { MOST_ROUNDS }
    }
}

/// What an experiment runs in.
pub struct Session<'s> {
    pub(crate) runner: Runner<'s>,
    pub(crate) scale: Scale,
    pub(crate) directory: PathBuf,
    pub(crate) seed: u64,
    pub(crate) jobs: usize,
    pub(crate) mirrored: bool,
    pub(crate) environment: &'s Environment,
    pub(crate) postgres: &'s InstallationSearch,
    pub(crate) named: bool,
    /// Of this pass.
    pub(crate) time: Duration,
    /// In how many passes the experiment runs.
    pub(crate) passes: u32,
    pub(crate) course: &'s mut Course,
}

/// What an experiment has found so far, pass by pass.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// Without its groups.
    pub(crate) experiment: Experiment,
    /// The groups, in the order in which they ran first.
    groups: Vec<Option<Ran>>,
    /// Names of those that a watcher was told of.
    told: Vec<String>,
    /// Its last pass has begun.
    pub(crate) is_begun: bool,
    /// Its last pass has ended.
    pub(crate) is_done: bool,
}

impl Course {
    /// Nothing yet.
    pub(crate) fn new(plan: &Plan) -> Self {
        let experiment = Experiment {
            name: plan.name.into(),
            title: plan.title.into(),
            question: plan.question.into(),
            ..Experiment::default()
        };
        Self { experiment, ..Self::default() }
    }

    /// The experiment with all of its groups, and what is doubtful about them.
    pub(crate) fn finished(self) -> (Experiment, Vec<Warning>) {
        let mut experiment = self.experiment;
        let mut warnings = Vec::new();
        for ran in self.groups.into_iter().flatten() {
            experiment.groups.push(ran.group);
            warnings.extend(ran.warnings);
        }
        (experiment, warnings)
    }

    /// The groups so far.
    pub(crate) fn groups_mut(&mut self) -> impl Iterator<Item = &mut Group> {
        self.groups.iter_mut().flatten().map(|ran| &mut ran.group)
    }

    /// Those that a watcher was not told of, as the run ended before their last pass did.
    pub(crate) fn untold_groups(&self) -> impl Iterator<Item = &Group> {
        let untold = |ran: &&Ran| !self.told.contains(&ran.group.name);
        self.groups.iter().flatten().filter(untold).map(|ran| &ran.group)
    }

    /// Where the group of that name stands, and what it found in earlier passes.
    fn take(&mut self, name: &str) -> (usize, Option<Ran>) {
        let is_it = |ran: &Option<Ran>| ran.as_ref().is_some_and(|ran| ran.group.name == name);
        match self.groups.iter().position(is_it) {
            Some(at) => (at, self.groups.get_mut(at).and_then(Option::take)),
            None => {
                self.groups.push(None);
                (self.groups.len() - 1, None)
            }
        }
    }
}

impl<'s> Session<'s> {
    /// How large and how long.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Where it makes its files; empty at first.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What random choices depend on.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Threads for what may be done by several, such as making a table.
    pub fn jobs(&self) -> usize {
        self.jobs
    }

    /// Whether mirrored disks may be made where privileges allow.
    pub fn mirrored(&self) -> bool {
        self.mirrored
    }

    /// What the run runs on.
    pub fn environment(&self) -> &'s Environment {
        self.environment
    }

    /// PostgreSQL's programs, or why there are none.
    pub fn postgres(&self) -> &'s InstallationSearch {
        self.postgres
    }

    /// Whether experiments were chosen by name, so that others take no time.
    pub fn is_named(&self) -> bool {
        self.named
    }

    /// The wish to end the run.
    pub fn cancel(&self) -> &'s Cancel {
        self.runner.cancel
    }

    /// Tells that something is made ready, which is no measuring.
    pub fn preparing(&self, what: &str) {
        self.runner.watch.preparing(what);
    }

    /// Notes that a part is left out.
    pub fn skip(&mut self, what: impl Into<String>, why: impl Into<String>) {
        let part = Skipped { what: what.into(), why: why.into() };
        // Each pass finds the same reasons.
        if !self.course.experiment.skipped.contains(&part) {
            self.course.experiment.skipped.push(part);
        }
    }

    /// The time of a group that has so many hundredths of the experiment's.
    pub fn share_of_time(&self, percent: u32) -> Duration {
        self.time * percent / 100
    }

    /// The time of a turn that may last as long as it likes, so that a group of so many contestants fits into its
    /// hundredths of the experiment's time.
    pub fn turn_time(&self, percent: u32, contestants: usize) -> Duration {
        let rounds = self.scale.most_rounds() / self.passes;
        let turns = u32::try_from(contestants).unwrap_or(u32::MAX).saturating_mul(rounds + 1);
        (self.share_of_time(percent) / turns.max(1)).max(SHORTEST_TURN)
    }

    /// Runs a group, for about so many hundredths of the experiment's time: six rounds in a quick run, up to sixteen in
    /// a full one, in its passes together.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; what was measured until then is kept.
    pub fn group(&mut self, plan: GroupPlan<'_>, percent: u32) -> Result<()> {
        let rounds = Rounds {
            least: LEAST_ROUNDS / self.passes,
            most: self.scale.most_rounds() / self.passes,
            time: self.share_of_time(percent),
        };
        let (at, earlier) = self.course.take(&plan.name);
        let passes_before =
            earlier.as_ref().map_or(0, |ran| u32::try_from(ran.group.passes.len()).unwrap_or(0));
        let name = &self.course.experiment.name;
        let ran = self.runner.run(name, plan, rounds, earlier);
        let interrupted = ran.interrupted;
        if passes_before + 1 == self.passes && !interrupted {
            self.runner.watch.group_done(name, &ran.group);
            self.course.told.push(ran.group.name.clone());
        }
        assert!(at < self.course.groups.len(), "a group has its place before it runs");
        self.course.groups[at] = Some(ran);
        if interrupted { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// The experiments of these names, in the order in which they run; all of them for no name.
///
/// # Errors
/// When there is none of a name.
pub fn chosen(names: &[String]) -> Result<Vec<&'static Plan>> {
    let known = || PLANS.iter().map(|plan| plan.name).collect::<Vec<_>>().join(", ");
    for name in names {
        if !PLANS.iter().any(|plan| plan.name == name) {
            return Err(Error::NoSuchExperiment { name: name.clone(), known: known() });
        }
    }
    let is_chosen = |plan: &&Plan| names.is_empty() || names.iter().any(|name| name == plan.name);
    Ok(PLANS.iter().filter(is_chosen).collect())
}
