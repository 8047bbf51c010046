//! The runner: contestants of a group take turns, round after round, and every turn becomes a sample.
//!
//! ```text
//! warm-up   a b c d        not counted; who is refused or fails here does not take part
//! round 1   a b c d        before each turn: the cache brought to its state, and looked at; the contestant's prepare
//! round 2   c b a d …      the order turns by one each round, and every second round goes backwards, so that nobody
//!                          always comes after the same neighbour
//! ```
//!
//! Where flame graphs are wanted, whoever has the best median then takes one more turn under [`Profiler`]'s eyes, not counted.
//!
//! A group ends after enough rounds: as many as were asked for, or when its time is over, but never before the least. A
//! group may be gone on with in a later pass of the run: its rounds there follow those it has. Invariants: all cells of a group that were measured have a sample for each whole round; what a
//! contestant cannot do is an absence in its cell, never the end of the run; only the wish to end it is.

use std::path::PathBuf;
use std::time::Duration;

use crate::cache::bring_about;
use crate::cancel::Cancel;
use crate::contestant::{Contestant, Perform, Work, absence};
use crate::error::{Error, Result};
use crate::meter::{Meter, Reading};
use crate::noise::{self, CacheMiss, Others};
use crate::profiler::{Profiler, Recording};
use crate::results::{Absence, CacheState, Cell, Figure, Group, Sample, Warning};
use crate::watch::Watch;

/// Rounds that every group has in all passes of a run together, unless it is interrupted: as many as an interval needs to
/// cover the true median with 94 %.
pub const LEAST_ROUNDS: u32 = 6;
/// Rounds that a group of a full run has at most.
pub const MOST_ROUNDS: u32 = 16;

/// What is to be compared.
#[derive(Debug)]
pub struct GroupPlan<'a> {
    /// As [`Group::name`].
    pub name: String,
    /// As [`Group::title`].
    pub title: String,
    /// As [`Group::bytes`].
    pub bytes: u64,
    /// As [`Group::cache`], and brought about for [`files`](Self::files) before each turn.
    pub cache: CacheState,
    /// As [`Group::figure`].
    pub figure: Figure,
    /// As [`Group::baseline`].
    pub baseline: Option<String>,
    /// The files whose cache state is meant.
    pub files: Vec<PathBuf>,
    /// Follow device and processor over each turn.
    pub timeline: bool,
    /// A turn of each that is not counted comes first.
    pub warm_up: bool,
    /// Those who take turns.
    pub contestants: Vec<Contestant<'a>>,
}

impl<'a> GroupPlan<'a> {
    /// A group of elapsed times, without files, time lines or contestants yet.
    pub fn new(name: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            bytes: 0,
            cache: CacheState::Any,
            figure: Figure::Elapsed,
            baseline: None,
            files: Vec::new(),
            timeline: false,
            warm_up: true,
            contestants: Vec::new(),
        }
    }

    /// Of work of so many bytes.
    #[must_use]
    pub fn bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }

    /// Told by this figure.
    #[must_use]
    pub fn figure(self, figure: Figure) -> Self {
        Self { figure, ..self }
    }

    /// Begun with these files in this state of the cache.
    #[must_use]
    pub fn cache(self, cache: CacheState, files: Vec<PathBuf>) -> Self {
        Self { cache, files, ..self }
    }

    /// Held against this cell.
    #[must_use]
    pub fn baseline(self, cell: &str) -> Self {
        Self { baseline: Some(cell.into()), ..self }
    }

    /// With time lines.
    #[must_use]
    pub fn timeline(self) -> Self {
        Self { timeline: true, ..self }
    }

    /// Without a warm-up, where turns are long and the first is as good as any.
    #[must_use]
    pub fn without_warm_up(self) -> Self {
        Self { warm_up: false, ..self }
    }

    /// With one more contestant.
    #[must_use]
    pub fn contestant(mut self, contestant: Contestant<'a>) -> Self {
        self.contestants.push(contestant);
        self
    }

    /// With more contestants.
    #[must_use]
    pub fn contestants(mut self, more: impl IntoIterator<Item = Contestant<'a>>) -> Self {
        self.contestants.extend(more);
        self
    }

    fn group(&self) -> Group {
        let cell = |contestant: &Contestant<'_>| Cell {
            name: contestant.name.clone(),
            parameters: contestant.parameters.clone(),
            samples: Vec::new(),
            absent: contestant.perform.as_ref().err().cloned(),
            note: contestant.note.clone(),
            profile: None,
        };
        Group {
            name: self.name.clone(),
            title: self.title.clone(),
            bytes: self.bytes,
            cache: self.cache,
            figure: self.figure,
            baseline: self.baseline.clone(),
            cells: self.contestants.iter().map(cell).collect(),
            passes: Vec::new(),
        }
    }
}

/// When a group has had enough rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounds {
    /// So many there are anyway.
    pub least: u32,
    /// At most so many.
    pub most: u32,
    /// No further one is begun when the group took this long.
    pub time: Duration,
}

/// What groups run with.
pub struct Runner<'r> {
    /// What measures.
    pub meter: &'r dyn Meter,
    /// The wish to end the run.
    pub cancel: &'r Cancel,
    /// Who watches.
    pub watch: &'r dyn Watch,
    /// Who makes flame graphs, if they are wanted.
    pub profiler: Option<&'r Profiler>,
}

/// A group that was run.
#[derive(Debug)]
pub struct Ran {
    /// What was measured.
    pub group: Group,
    /// What is doubtful about it.
    pub warnings: Vec<Warning>,
    /// It ended early because somebody asked for it.
    pub interrupted: bool,
    /// What others did meanwhile.
    pub(crate) others: Others,
    /// Turns whose cache was not in its state.
    pub(crate) misses: Vec<CacheMiss>,
}

impl Runner<'_> {
    /// Runs a group of the experiment of that name; goes on with it where it ran in an earlier pass.
    pub fn run(
        &self,
        experiment: &str,
        plan: GroupPlan<'_>,
        rounds: Rounds,
        earlier: Option<Ran>,
    ) -> Ran {
        let begun = earlier.map(|earlier| (earlier.group, earlier.others, earlier.misses));
        let (group, others, misses) =
            begun.unwrap_or_else(|| (plan.group(), Others::default(), Vec::new()));
        let mut match_up = Match { runner: self, group, plan, others, misses };
        self.watch.group_begins(&match_up.group, rounds.most);
        let before = match_up.whole_rounds();
        let interrupted = match_up.play(rounds).is_err();
        let played = match_up.whole_rounds().saturating_sub(before);
        match_up.group.passes.push(played);
        let Match { group, others, misses, .. } = match_up;
        let mut warnings = noise::warnings(experiment, &group, &others, &misses);
        if group.cells.iter().all(|cell| cell.samples.is_empty()) {
            warnings.clear();
        }
        Ran { group, warnings, interrupted, others, misses }
    }
}

/// A group in the running.
struct Match<'m, 'a> {
    runner: &'m Runner<'m>,
    plan: GroupPlan<'a>,
    group: Group,
    others: Others,
    misses: Vec<CacheMiss>,
}

impl Match<'_, '_> {
    /// All rounds; an error only for the wish to end the run.
    fn play(&mut self, rounds: Rounds) -> Result<()> {
        let begin = self.runner.meter.read().elapsed;
        if self.plan.warm_up {
            self.round(0)?;
        }
        for round in 1..=rounds.most.max(rounds.least) {
            let took = self.runner.meter.read().elapsed.saturating_sub(begin);
            if round > rounds.least && took > rounds.time {
                break;
            }
            self.round(round)?;
        }
        self.flame_graph()
    }

    /// Rounds in which everybody who takes part had a turn.
    fn whole_rounds(&self) -> u32 {
        let measured = self.group.cells.iter().filter(|cell| cell.absent.is_none());
        let least = measured.map(|cell| cell.samples.len()).min().unwrap_or(0);
        u32::try_from(least).unwrap_or(u32::MAX)
    }

    /// One more turn of the best, watched; an error only for the wish to end the run.
    fn flame_graph(&mut self) -> Result<()> {
        let Some(profiler) = self.runner.profiler else { return Ok(()) };
        let Some((leader, _)) = self.group.leader() else { return Ok(()) };
        let Some(place) = self.group.cells.iter().position(|cell| cell.name == leader.name) else {
            return Ok(());
        };
        self.runner
            .watch
            .preparing(&format!("{}: flame graph of {}", self.group.name, leader.name));
        let cancel = self.runner.cancel;
        let turn = |recording: &mut Recording<'_>| self.watched_turn(place, recording);
        let folded = match profiler.profile(cancel, turn) {
            Err(error) if absence(&error).is_none() => return Err(error),
            // What was measured stays, and has no flame graph.
            outcome => outcome.unwrap_or_default(),
        };
        if let Some(cell) = self.group.cells.get_mut(place) {
            cell.profile = folded;
        }
        Ok(())
    }

    /// One turn of everybody who still takes part. Round 0 is not counted.
    fn round(&mut self, round: u32) -> Result<()> {
        for place in order(self.plan.contestants.len(), round) {
            self.runner.cancel.check()?;
            let Some(cell) = self.group.cells.get(place) else { continue };
            if cell.absent.is_some() {
                continue;
            }
            self.runner.watch.turn_begins(&cell.name, round);
            match self.turn(place, round > 0) {
                Ok(sample) if round > 0 => self.keep(place, sample),
                Ok(_) => {}
                Err(error) => match absence(&error) {
                    Some(absent) => self.give_up(place, absent),
                    None => return Err(error),
                },
            }
        }
        Ok(())
    }

    fn turn(&mut self, place: usize, counts: bool) -> Result<Sample> {
        self.prepare(place, counts)?;
        let Self { plan, group, others, runner, .. } = self;
        let (by_threads, perform) = performer(&mut plan.contestants, place)?;
        let line = plan.timeline.then(|| runner.meter.follow()).flatten();
        let before = runner.meter.read();
        let outcome = perform_turn(perform, runner.cancel);
        let took = runner.meter.read().since(&before);
        let points = line.map(|line| line.finish()).unwrap_or_default();
        let mut work = outcome?;
        let took = took.with_others(work.processor.unwrap_or_default());
        if counts {
            note_others(others, &took);
        }
        if let (Some(note), Some(cell)) = (work.note.take(), group.cells.get_mut(place)) {
            cell.note = Some(note);
        }
        Ok(Sample { timeline: points, ..sample(&took, work, by_threads) })
    }

    /// Brings the cache and the contestant's files to the state that a turn begins in.
    fn prepare(&mut self, place: usize, counts: bool) -> Result<()> {
        let GroupPlan { contestants, files, cache, .. } = &mut self.plan;
        let Some(contestant) = contestants.get_mut(place) else { return Err(Error::Interrupted) };
        let found = bring_about(*cache, files).map_err(Error::system("page cache"))?;
        if let Some(share) = found.filter(|_| counts) {
            self.misses.push(CacheMiss { cell: contestant.name.clone(), share });
        }
        contestant.prepare.as_mut().map_or(Ok(()), |prepare| prepare())
    }

    /// A turn of which nothing is kept but the picture.
    fn watched_turn(&mut self, place: usize, recording: &mut Recording<'_>) -> Result<()> {
        self.prepare(place, false)?;
        let (_, perform) = performer(&mut self.plan.contestants, place)?;
        recording.watch(|| perform_turn(perform, self.runner.cancel)).map(drop)
    }

    fn keep(&mut self, place: usize, sample: Sample) {
        if let Some(cell) = self.group.cells.get_mut(place) {
            cell.samples.push(sample);
        }
    }

    /// Takes a contestant out of the running: samples without pairs would say nothing.
    fn give_up(&mut self, place: usize, absent: Absence) {
        if let Some(cell) = self.group.cells.get_mut(place) {
            cell.samples.clear();
            cell.absent = Some(absent);
        }
    }
}

fn sample(took: &Reading, work: Work, by_threads: bool) -> Sample {
    let waited = work.wait.or_else(|| took.waited().filter(|_| !by_threads));
    let device = took.device_read.zip(took.device_written).map(|(read, written)| read + written);
    Sample {
        elapsed_s: work.elapsed.unwrap_or(took.elapsed).as_secs_f64(),
        user_s: took.user.as_secs_f64(),
        system_s: took.system.as_secs_f64(),
        wait_s: waited.map(|waited| waited.as_secs_f64()),
        device_bytes: device,
        operations: work.operations,
        bytes: work.bytes,
        parts: work.parts,
        counted: work.counted,
        latency_s: work.latency.map(|latency| latency.as_secs_f64()),
        calls: work.calls,
        timeline: Vec::new(),
    }
}

/// Whether threads of its own do the work of a contestant, and what does it.
fn performer<'c, 'a>(
    contestants: &'c mut [Contestant<'a>],
    place: usize,
) -> Result<(bool, &'c mut Perform<'a>)> {
    let Some(contestant) = contestants.get_mut(place) else { return Err(Error::Interrupted) };
    match &mut contestant.perform {
        Ok(perform) => Ok((contestant.by_threads, perform)),
        Err(_) => Err(Error::Interrupted),
    }
}

/// Does the work. Flame graphs begin below this function, so it stays one, and stands above what it calls.
#[inline(never)]
fn perform_turn(perform: &mut Perform<'_>, cancel: &Cancel) -> Result<Work> {
    std::hint::black_box(perform(cancel))
}

fn note_others(others: &mut Others, took: &Reading) {
    others.elapsed += took.elapsed;
    others.stolen += took.stolen.unwrap_or_default();
    others.queued += took.queued.unwrap_or_default();
    let own = took.user + took.system;
    others.busy += took.busy.unwrap_or_default().saturating_sub(own);
}

/// The order of a round: begun one further each time, every second one backwards.
fn order(count: usize, round: u32) -> Vec<usize> {
    let start = round as usize % count.max(1);
    let mut order: Vec<usize> = (0..count).map(|place| (place + start) % count).collect();
    if round > 0 && round.is_multiple_of(2) {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests;
