//! The long run: every call of every kind with Pagemill's reader, a sample with servers, every fault, and kills.
//!
//! Invariant: a case that fails is written down and the run goes on; which cases go to a server follows from the seed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Result, anyhow};
use pagemill_sim::Loss;
use pagemill_sim::seed::Random;
use pagemill_testkit::{PgInstall, Program};

use crate::case::FAULTS;
use crate::database_fixture::DatabaseFixture;
use crate::database_judge::DatabaseJudge;
use crate::database_kind::{DATABASE_KINDS, DatabaseKind};
use crate::judge::Judge;
use crate::kills::{Killed, Killer};
use crate::kind::{KINDS, Kind};
use crate::load_fixture::LoadFixture;
use crate::power_cuts::PowerCuts;
use crate::server_kills::ServerKiller;
use crate::trial::Trial;
use crate::write_faults::judge_fault;

/// Changes that one thread kills in turn.
const KILLS_AT_A_TIME: u64 = 10;

/// How much is tried.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Versions of PostgreSQL; those that are not installed are named and passed over.
    pub majors: Vec<u32>,
    /// The kinds of load.
    pub kinds: Vec<Kind>,
    /// What is done to databases.
    pub databases: Vec<DatabaseKind>,
    /// Power cuts before the decision, for the reader: before one call in so many.
    pub cut_stride: usize,
    /// Images that a server judges, for each version, over all kinds.
    pub servers: u64,
    /// Of the images that the reader judges, one in so many is changed again.
    pub load_again: u64,
    /// Faults: one call in so many.
    pub fault_stride: usize,
    /// Faults that a server judges after the decision, for each version.
    pub served_faults: u64,
    /// Changes killed, for each version.
    pub kills: u64,
    /// Servers killed whose files are read, for each version.
    pub server_kills: u64,
    /// The program to kill.
    pub program: PathBuf,
    /// Where chance begins.
    pub seed: u64,
    /// Threads.
    pub jobs: usize,
}

/// What came of it: counts by kind of case and outcome, and failures.
#[derive(Debug, Default)]
pub struct Tally {
    counts: BTreeMap<(String, String), u64>,
    /// Failures, each with the command that repeats it.
    pub failures: Vec<String>,
}

impl Tally {
    fn note(&mut self, what: &str, outcome: Result<String>) {
        let word = outcome.unwrap_or_else(|error| {
            let failure = format!("{error:#}");
            eprintln!("FAILED {what}: {failure}");
            self.failures.push(failure);
            "FAILED".into()
        });
        *self.counts.entry((what.into(), word)).or_default() += 1;
    }

    fn add(&mut self, other: Self) {
        for (key, count) in other.counts {
            *self.counts.entry(key).or_default() += count;
        }
        self.failures.extend(other.failures);
    }

    /// A table in Markdown.
    pub fn table(&self) -> String {
        let mut text = "| what | found | cases |\n| --- | --- | ---: |\n".to_owned();
        for ((what, found), count) in &self.counts {
            text += &format!("| {what} | {found} | {count} |\n");
        }
        text
    }
}

/// A part of the run, done by one thread.
enum Part {
    Load(Kind),
    Database(DatabaseKind),
    /// How many changes are killed, and where chance begins.
    Kills(u64, u64),
    /// The same of servers.
    ServerKills(u64, u64),
}

/// Runs it.
///
/// # Errors
/// When a ground cannot be made, or a load without any fault fails.
pub fn run(plan: &Plan) -> Result<Tally> {
    let mut tally = Tally::default();
    for &major in &plan.majors {
        let Some(install) = PgInstall::find(major) else {
            eprintln!("SKIPPED: PostgreSQL {major} is not installed");
            continue;
        };
        let fixtures = Fixtures {
            loads: LoadFixture::new(&install)?,
            databases: DatabaseFixture::new(&install)?,
        };
        let parts = Mutex::new(parts(plan).into_iter());
        let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            let mut tally = Tally::default();
            while let Some(part) = next() {
                run_part(plan, &fixtures, part, &mut tally)?;
            }
            Ok(tally)
        };
        std::thread::scope(|scope| -> Result<()> {
            let threads: Vec<_> = (0..plan.jobs.max(1)).map(|_| scope.spawn(work)).collect();
            for thread in threads {
                let done: Result<Tally> =
                    thread.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked")));
                tally.add(done?);
            }
            Ok(())
        })?;
    }
    Ok(tally)
}

fn parts(plan: &Plan) -> Vec<Part> {
    let loads = plan.kinds.iter().map(|kind| Part::Load(*kind));
    let databases = plan.databases.iter().map(|kind| Part::Database(*kind));
    let kills = turns(plan.kills).map(|(turn, count)| Part::Kills(count, plan.seed + turn));
    let server_kills = turns(plan.server_kills)
        .map(|(turn, count)| Part::ServerKills(count, plan.seed * 1000 + turn));
    databases.chain(loads).chain(kills).chain(server_kills).collect()
}

/// The turns that so many kills are done in: their numbers, and how many each has.
fn turns(kills: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..kills.div_ceil(KILLS_AT_A_TIME))
        .map(move |turn| (turn, KILLS_AT_A_TIME.min(kills - turn * KILLS_AT_A_TIME)))
}

struct Fixtures {
    loads: LoadFixture,
    databases: DatabaseFixture,
}

fn run_part(plan: &Plan, fixtures: &Fixtures, part: Part, tally: &mut Tally) -> Result<()> {
    let (major, start) = (fixtures.loads.install().major, Instant::now());
    match part {
        Part::Load(kind) => {
            cut(plan, || Judge::new(&fixtures.loads, kind), tally)?;
            fail(plan, || Judge::new(&fixtures.loads, kind), tally)?;
            eprintln!("PostgreSQL {major}, {}: {:.0?}", kind.name, start.elapsed());
        }
        Part::Database(kind) => {
            cut(plan, || Ok(DatabaseJudge::new(&fixtures.databases, kind)), tally)?;
            fail(plan, || Ok(DatabaseJudge::new(&fixtures.databases, kind)), tally)?;
            eprintln!("PostgreSQL {major}, {}: {:.0?}", kind.name, start.elapsed());
        }
        Part::Kills(count, seed) => {
            let mut random = Random::new(seed);
            for _ in 0..count {
                let seed = random.below(1 << 30);
                let words = kill(plan, fixtures, seed)
                    .map(|left| format!("{:?}, then {:?}", left.found, left.seen));
                tally.note(&format!("{major} killed"), words);
            }
            eprintln!("PostgreSQL {major}, {count} kills: {:.0?}", start.elapsed());
        }
        Part::ServerKills(count, seed) => {
            let program = Program::new(&plan.program);
            let mut killer = ServerKiller::new(fixtures.loads.install(), program, seed);
            for _ in 0..count {
                let words = killer.kill().map(|_| "every page and row as recovered".to_owned());
                tally.note(&format!("{major} server killed"), words);
            }
            eprintln!("PostgreSQL {major}, {count} servers killed: {:.0?}", start.elapsed());
        }
    }
    Ok(())
}

/// Kills something of one of the kinds of the plan.
fn kill(plan: &Plan, fixtures: &Fixtures, seed: u64) -> Result<Killed> {
    let all = plan.kinds.len() + plan.databases.len();
    let number = Random::new(seed).below(all.max(1) as u64) as usize;
    match plan.databases.get(number) {
        Some(&kind) => {
            let trials = vec![DatabaseJudge::new(&fixtures.databases, kind)];
            Killer::new(trials, &plan.program, seed).kill()
        }
        None => {
            let kind = plan.kinds[number - plan.databases.len()];
            Killer::new(vec![Judge::new(&fixtures.loads, kind)?], &plan.program, seed).kill()
        }
    }
}

fn share(of: u64, kinds: usize) -> u64 {
    of.div_ceil(kinds.max(1) as u64)
}

/// The losses tried at each call.
fn losses(random: &mut Random) -> [Loss; 4] {
    let mut seed = || random.below(1 << 20);
    [Loss::All, Loss::None, Loss::Torn(seed()), Loss::Ordered(seed())]
}

fn cut<T: Trial>(plan: &Plan, trial: impl Fn() -> Result<T>, tally: &mut Tally) -> Result<()> {
    let trial = trial()?;
    let major = trial.install().major;
    let mut random = Random::new(plan.seed ^ u64::from(major));
    let cuts = PowerCuts::new(trial)?;
    let (calls, stride) = (cuts.calls(), plan.cut_stride.max(1));
    let decided = *cuts.decision().start();
    for call in (0..=calls).filter(|&call| call + 1 >= decided || call % stride == 0) {
        for loss in losses(&mut random) {
            let again = random.below(plan.load_again.max(1)) == 0;
            let found = cuts.read(call, loss, again).map(|found| format!("{found:?}"));
            tally.note(&format!("{major} cut, reader"), found);
        }
    }
    for _ in 0..share(plan.servers, plan.kinds.len() + plan.databases.len()) {
        // Two of three from the decision on, where a server has work to do.
        let decided = *cuts.decision().start() as u64;
        let call = match random.below(3) {
            0 => random.below(decided + 1),
            _ => decided + random.below(calls as u64 - decided + 1),
        };
        let loss = losses(&mut random)[random.below(4) as usize];
        let seen = cuts.serve(call as usize, loss).map(|seen| format!("{seen:?}"));
        tally.note(&format!("{major} cut, server"), seen);
        if random.below(4) == 0 {
            let call = random.below(decided + 1) as usize;
            let served = cuts.serve_second(call, loss).map(|served| match served {
                Some(()) => "the second".to_owned(),
                None => "not clean".to_owned(),
            });
            tally.note(&format!("{major} cut, second change cut, server"), served);
        }
    }
    Ok(())
}

fn fail<T: Trial>(plan: &Plan, trial: impl Fn() -> Result<T>, tally: &mut Tally) -> Result<()> {
    let (cuts, trial) = (PowerCuts::new(trial()?)?, trial()?);
    let major = trial.install().major;
    let mut random = Random::new(plan.seed ^ u64::from(major) ^ 0xfa);
    let served = share(plan.served_faults, plan.kinds.len() + plan.databases.len());
    let decided = *cuts.decision().start() as u64;
    for call in (0..cuts.calls()).step_by(plan.fault_stride.max(1)) {
        for fault in FAULTS {
            let ended = judge_fault(&trial, (call, fault), false);
            tally
                .note(&format!("{major} fault {fault:?}"), ended.map(|ended| format!("{ended:?}")));
        }
    }
    for _ in 0..served {
        let call = decided + random.below(cuts.calls() as u64 - decided);
        let fault = FAULTS[random.below(4) as usize];
        let ended = judge_fault(&trial, (call as usize, fault), true);
        tally.note(&format!("{major} fault, server"), ended.map(|ended| format!("{ended:?}")));
    }
    Ok(())
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            majors: vec![15, 18],
            kinds: KINDS.to_vec(),
            databases: DATABASE_KINDS.to_vec(),
            cut_stride: 1,
            servers: 300,
            load_again: 4,
            fault_stride: 1,
            served_faults: 60,
            kills: 100,
            server_kills: 200,
            program: PathBuf::from("pagemill"),
            seed: 1,
            jobs: 4,
        }
    }
}
