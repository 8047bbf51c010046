//! A race: its contestants in turns, the page cache put into its state before each run, every answer checked.
//!
//! Both sides read the very same files: the server is started for its turn and stopped after it. A server's turn in a
//! warm state begins with a run that is not timed, since a server that just started has caches to fill; pagemill's
//! start is part of each of its runs. Invariant: no time is kept of a run whose answer was not the table's row count,
//! or that met another state than the race's.

use std::process::{Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use pagemill_testkit::{ControlGroup, Unavailable};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::bench_cluster::{BenchCluster, Files};
use super::fio;
use super::options::Options;
use super::probe::Probe;
use super::rows::{ClusterKind, Contestant, Race, State};
use crate::bench::floor::Floor;
use crate::bench::server::LaunchOptions;
use crate::bench::{output_of, shown};
use crate::workspace;

/// Shares of a table that must be cached. What was written cannot be brought back when the kernel wanted the memory
/// for others, so a little of it may be missing; what was read is read again.
const WRITTEN_SHARE: f64 = 0.99;
const REREAD_SHARE: f64 = 0.999;

/// The exit status of `timeout` after it ended the command.
const TIMED_OUT: i32 = 124;

const BLOCK_BYTES: u64 = 8192;

/// Why there are no times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Absence {
    /// The binary does not know the flags.
    NotBuilt(String),
    /// The machine cannot.
    Skipped(String),
    /// It ran, and went wrong.
    Failed(String),
}

/// What one contestant did.
#[derive(Debug, Clone, Default)]
pub(super) struct ContestantResult {
    pub(super) label: String,
    /// Its command line, directories left out.
    pub(super) spelled: String,
    pub(super) times_ms: Vec<f64>,
    pub(super) absence: Option<Absence>,
    /// Bytes read from each device in its last run.
    pub(super) device_bytes: Vec<u64>,
}

/// What became of a race.
pub(super) struct Raced {
    pub(super) race: Race,
    pub(super) outcomes: Vec<ContestantResult>,
    /// Bytes of the table, for rates.
    pub(super) table_bytes: u64,
}

impl Raced {
    /// A race that was not run at all.
    pub(super) fn absent(race: &Race, absence: &Absence) -> Self {
        let outcome = |contestant: &Contestant| ContestantResult {
            label: contestant.label(),
            absence: Some(absence.clone()),
            ..ContestantResult::default()
        };
        let outcomes = race.contestants.iter().map(outcome).collect();
        Self { race: race.clone(), outcomes, table_bytes: 0 }
    }
}

/// Everything a run needs to know.
pub(super) struct Stand<'a> {
    pub(super) binary: &'a str,
    pub(super) probe: &'a Probe,
    pub(super) options: &'a Options,
    pub(super) bench_cluster: &'a BenchCluster,
}

impl Stand<'_> {
    /// Runs a race; what goes wrong is part of the result.
    pub(super) fn run(&self, race: &Race) -> Raced {
        let started = self.start(race);
        match started {
            Ok(raced) => raced,
            Err(error) => {
                eprintln!("{}: {error:#}", race.id);
                let absence = match error.downcast::<Unavailable>() {
                    Ok(unavailable) => Absence::Skipped(unavailable.reason),
                    Err(error) => Absence::Failed(format!("{error:#}")),
                };
                Raced::absent(race, &absence)
            }
        }
    }

    fn start(&self, race: &Race) -> Result<Raced> {
        let files = self.bench_cluster.files(race.table);
        let memory = if race.little_memory { Some(little_memory(files)?) } else { None };
        let group = memory.as_ref().or(self.bench_cluster.slow.as_ref());
        let has_floor = race.contestants.contains(&Contestant::Floor);
        let floor = has_floor.then(|| Floor::build(&workspace::root())).transpose()?;
        let _pinned = if race.one_core { Some(Pinned::to(self.options.core)?) } else { None };
        let course = Course { stand: self, race, files, group, floor };
        if race.state == State::Reread && memory.is_none() {
            files.drop_all()?;
            files.read_all()?;
        }
        let mut outcomes: Vec<ContestantResult> =
            race.contestants.iter().map(|contestant| course.enter(contestant)).collect();
        let warm_up = usize::from(race.state != State::Cold);
        for turn in 0..self.options.run.repetitions + warm_up {
            for (contestant, outcome) in race.contestants.iter().zip(&mut outcomes) {
                course.turn(contestant, outcome, turn >= warm_up);
            }
        }
        Ok(Raced { race: race.clone(), outcomes, table_bytes: files.blocks * BLOCK_BYTES })
    }

    /// What one run of pagemill on a table says, `more` after the usual flags.
    pub(super) fn said(&self, table: &str, flags: &[&str]) -> Result<Output> {
        let mut command = Command::new(self.binary);
        command.args(self.arguments(table, flags));
        let output = command.output().with_context(|| shown(&command))?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(output)
    }

    fn arguments(&self, table: &str, flags: &[&str]) -> Vec<String> {
        let data = self.bench_cluster.cluster.data().to_string_lossy().into_owned();
        let words = ["count", "-D", &data, "-d", "postgres", "-t", table];
        words.iter().chain(flags).map(|word| (*word).to_owned()).collect()
    }
}

/// A group whose memory is a quarter of the table and its index, and room for the program.
fn little_memory(files: &Files) -> Result<ControlGroup, Unavailable> {
    const PROGRAM_BYTES: u64 = 16 << 20;
    let mut group = ControlGroup::create()?;
    let total = files.residency()?.total_bytes;
    group.limit_memory(total / 4 + PROGRAM_BYTES)?;
    Ok(group)
}

/// One race on one stand.
struct Course<'a> {
    stand: &'a Stand<'a>,
    race: &'a Race,
    files: &'a Files,
    group: Option<&'a ControlGroup>,
    /// Where it takes part.
    floor: Option<Floor>,
}

impl Course<'_> {
    fn enter(&self, contestant: &Contestant) -> ContestantResult {
        let missing = self.stand.probe.missing(contestant).map(Absence::NotBuilt);
        let absence = missing.or_else(|| fio::unavailable(contestant).map(Absence::Skipped));
        let (label, spelled) = (contestant.label(), self.spelled(contestant));
        ContestantResult { label, spelled, absence, ..ContestantResult::default() }
    }

    fn spelled(&self, contestant: &Contestant) -> String {
        match contestant {
            Contestant::Server { statement, off, .. } => {
                let off = off.iter().map(|setting| format!("set {setting} = off; "));
                off.chain([statement.clone()]).collect()
            }
            Contestant::Fio(_) | Contestant::Dd { .. } | Contestant::Floor => contestant.label(),
            _ => {
                let flags = self.stand.probe.flags(contestant).unwrap_or_default();
                format!("pagemill count -t {} {}", self.race.table.name(), flags.join(" "))
            }
        }
    }

    /// One run, unless the contestant is out already.
    fn turn(&self, contestant: &Contestant, outcome: &mut ContestantResult, timed: bool) {
        if outcome.absence.is_some() {
            return;
        }
        match self.measure(contestant) {
            Ok((milliseconds, device_bytes)) => {
                if timed {
                    outcome.times_ms.push(milliseconds);
                }
                outcome.device_bytes = device_bytes;
            }
            Err(error) => {
                eprintln!("{}, {}: {error:#}", self.race.id, outcome.label);
                outcome.absence = Some(Absence::Failed(self.without_places(&format!("{error:#}"))));
            }
        }
    }

    fn measure(&self, contestant: &Contestant) -> Result<(f64, Vec<u64>)> {
        let bench_cluster = self.stand.bench_cluster;
        if let Contestant::Server { statement, off, plan } = contestant {
            return self.serve(statement, off, *plan);
        }
        self.set_state()?;
        let before = bench_cluster.device_bytes()?;
        let milliseconds = match contestant {
            Contestant::Fio(fio) => fio::fio_ms(*fio, &self.files.heap)?,
            Contestant::Dd { direct } => fio::dd_ms(*direct, &self.files.heap)?,
            Contestant::Floor => {
                let floor = self.floor.as_ref().context("the floor was not built")?;
                floor.milliseconds(&self.files.heap, None)?
            }
            _ => {
                let flags = self.stand.probe.flags(contestant).unwrap_or_default();
                self.count(&flags)?
            }
        };
        Ok((milliseconds, self.read_since(&before)?))
    }

    /// Brings the page cache into the state of the race, and makes sure.
    fn set_state(&self) -> Result<()> {
        match self.race.state {
            State::Cold => self.make_cold(),
            State::Reread if self.race.little_memory => self.reread_in_group(),
            State::AsWritten => self.require_cached(WRITTEN_SHARE),
            State::Reread if self.require_cached(REREAD_SHARE).is_ok() => Ok(()),
            State::Reread => {
                self.files.drop_all()?;
                self.files.read_all()?;
                self.require_cached(REREAD_SHARE)
            }
        }
    }

    /// Drops the table. Before that it is read once where that is quick: a virtual machine gives memory that
    /// was free for a while back to its host, and whoever comes first would pay for getting it again.
    fn make_cold(&self) -> Result<()> {
        if self.race.place == ClusterKind::Plain {
            self.files.drop_all()?;
            self.files.read_all()?;
        }
        self.files.drop_all()
    }

    fn require_cached(&self, least: f64) -> Result<()> {
        let share = self.files.residency()?.share();
        ensure!(
            share >= least,
            "only {:.1} % is cached: memory is wanted by others",
            share * 100.0
        );
        Ok(())
    }

    /// Reads the table in the group of the race, whose memory is charged with what stays.
    fn reread_in_group(&self) -> Result<()> {
        self.files.drop_all()?;
        let group = self.group.context("little memory without a group")?;
        let status = group.command("cat").args(&self.files.all).stdout(Stdio::null()).status()?;
        ensure!(status.success(), "cat: {status}");
        Ok(())
    }

    fn read_since(&self, before: &[u64]) -> Result<Vec<u64>> {
        let after = self.stand.bench_cluster.device_bytes()?;
        Ok(after.iter().zip(before).map(|(after, before)| after.saturating_sub(*before)).collect())
    }

    /// The statement's time on a server that was started for it.
    fn serve(&self, statement: &str, off: &[&str], plan: Option<&str>) -> Result<(f64, Vec<u64>)> {
        let options = self.stand.options;
        let core = self.race.one_core.then_some(options.core);
        let shared_buffers = &options.sides.shared_buffers;
        let launch = LaunchOptions { core, shared_buffers, group: self.group, settings: &[] };
        let server = self.stand.bench_cluster.cluster.start(launch)?;
        let off: Vec<String> = off.iter().map(|name| format!("set {name} = off")).collect();
        let off: Vec<&str> = off.iter().map(String::as_str).collect();
        if let Some(plan) = plan {
            let explain = format!("explain (costs off) {statement}");
            let shown = server.psql(&[off.as_slice(), &[&explain]].concat())?;
            ensure!(shown.contains(plan), "not the plan that was wanted ({plan}): {shown}");
        }
        if self.race.state != State::Cold {
            server.timed_after(&off, statement)?;
        }
        self.set_state()?;
        let before = self.stand.bench_cluster.device_bytes()?;
        let (answer, milliseconds) = server.timed_after(&off, statement)?;
        self.check(&answer)?;
        let device_bytes = self.read_since(&before)?;
        drop(server);
        Ok((milliseconds, device_bytes))
    }

    /// The time of one count, the whole process.
    fn count(&self, flags: &[&str]) -> Result<f64> {
        let arguments = self.stand.arguments(self.race.table.name(), flags);
        let mut command = match self.group {
            Some(group) => {
                let mut command = group.command("timeout");
                command.arg(self.stand.options.patience.as_secs().to_string());
                command.arg(self.stand.binary);
                command
            }
            None => Command::new(self.stand.binary),
        };
        command.args(arguments);
        let start = Instant::now();
        let output = command.output().with_context(|| shown(&command))?;
        let took = start.elapsed().as_secs_f64() * 1000.0;
        if output.status.code() == Some(TIMED_OUT) && self.group.is_some() {
            bail!("cut off after {} s", self.stand.options.patience.as_secs());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} ({})", said.trim(), output.status);
        self.check(&String::from_utf8_lossy(&output.stdout))?;
        Ok(took)
    }

    fn check(&self, answer: &str) -> Result<()> {
        let expected = self.files.rows.to_string();
        ensure!(answer.trim() == expected, "differs: {} instead of {expected}", answer.trim());
        Ok(())
    }

    fn without_places(&self, text: &str) -> String {
        let data = self.stand.bench_cluster.cluster.data();
        text.replace(&*data.to_string_lossy(), "DATA").replace(self.stand.binary, "pagemill")
    }
}

/// Keeps this process, and so whatever it starts, on one core until it is dropped.
struct Pinned(CpuSet);

impl Pinned {
    fn to(core: usize) -> Result<Self> {
        let before = sched_getaffinity(None)?;
        let mut one = CpuSet::new();
        one.set(core);
        sched_setaffinity(None, &one)?;
        Ok(Self(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Err(error) = sched_setaffinity(None, &self.0) {
            eprintln!("still on one core: {error}");
        }
    }
}

/// What `sync` does: nothing dirty is left to be written while others are timed.
pub(super) fn settle() -> Result<()> {
    output_of(&mut Command::new("sync")).map(drop)
}
