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
mod page_log;
pub mod postgres;
pub mod pread;
mod random;
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
use crate::results::{Experiment, Skipped, Warning};
use crate::runner::{GroupPlan, LEAST_ROUNDS, MOST_ROUNDS, Rounds, Runner};
use crate::server::Found;

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
    /// Its share of the time, where a whole run without PostgreSQL has a hundred.
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
    /// Size of an experiment's main file, in bytes: a multiple of 8 kB, at least [`LEAST_SIZE`].
    pub size: u64,
    /// Time for the whole run, were all experiments in it but `postgres`.
    pub time: Duration,
}

/// The shortest turn of those that last a time.
const SHORTEST_TURN: Duration = Duration::from_millis(20);

/// The smallest files that still are files of several blocks.
pub const LEAST_SIZE: u64 = 1 << 20;
/// Size of files in a quick run.
pub const QUICK_SIZE: u64 = 64 << 20;
/// Size of files in a full run.
pub const FULL_SIZE: u64 = 1 << 30;

impl Scale {
    /// The usual one; `size` replaces the usual size of files.
    pub fn new(quick: bool, size: Option<u64>) -> Self {
        let usual = if quick { QUICK_SIZE } else { FULL_SIZE };
        let size = size.unwrap_or(usual).max(LEAST_SIZE) / 8192 * 8192;
        // Less than the promise, for what is made ready and for slow devices.
        let time = if quick { Duration::from_secs(60) } else { Duration::from_secs(15 * 60) };
        Self { quick, size, time }
    }

    /// The time for an experiment.
    pub fn time_of(&self, plan: &Plan) -> Duration {
        self.time * plan.share / 100
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
    pub(crate) postgres: &'s Found,
    pub(crate) named: bool,
    pub(crate) time: Duration,
    pub(crate) experiment: Experiment,
    pub(crate) warnings: Vec<Warning>,
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
    pub fn postgres(&self) -> &'s Found {
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
        self.experiment.skipped.push(Skipped { what: what.into(), why: why.into() });
    }

    /// The time of a group that has so many hundredths of the experiment's.
    pub fn share_of_time(&self, percent: u32) -> Duration {
        self.time * percent / 100
    }

    /// The time of a turn that may last as long as it likes, so that a group of so many contestants fits into its
    /// hundredths of the experiment's time.
    pub fn turn_time(&self, percent: u32, contestants: usize) -> Duration {
        let rounds = if self.scale.quick { LEAST_ROUNDS } else { MOST_ROUNDS };
        let turns = u32::try_from(contestants).unwrap_or(u32::MAX).saturating_mul(rounds + 1);
        (self.share_of_time(percent) / turns.max(1)).max(SHORTEST_TURN)
    }

    /// Runs a group, for about so many hundredths of the experiment's time: five rounds in a quick run, up to fifteen in
    /// a full one.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; what was measured until then is kept.
    pub fn group(&mut self, plan: GroupPlan<'_>, percent: u32) -> Result<()> {
        let most = if self.scale.quick { LEAST_ROUNDS } else { MOST_ROUNDS };
        let rounds = Rounds { most, time: self.share_of_time(percent) };
        let ran = self.runner.run(&self.experiment.name, plan, rounds);
        self.experiment.groups.push(ran.group);
        self.warnings.extend(ran.warnings);
        if ran.interrupted { Err(Error::Interrupted) } else { Ok(()) }
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
