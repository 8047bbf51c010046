//! The runner with a clock that contestants turn themselves.
//!
//! So nothing here depends on time or on the machine.

use std::cell::RefCell;
use std::io;

use super::*;
use crate::results::WarningKind;
use crate::watch::Nobody;

/// A clock that stands still unless somebody turns it.
#[derive(Default)]
struct FakeMeter(RefCell<Reading>);

impl FakeMeter {
    fn pass(&self, elapsed: Duration, user: Duration) {
        let mut now = self.0.borrow_mut();
        now.elapsed += elapsed;
        now.user += user;
        now.thread = Some(now.thread.unwrap_or_default() + user);
        now.queued = Some(Duration::ZERO);
    }
}

impl Meter for FakeMeter {
    fn read(&self) -> Reading {
        *self.0.borrow()
    }
}

const SECOND: Duration = Duration::from_secs(1);
const ROUNDS: Rounds = Rounds { least: 6, most: 8, time: Duration::from_secs(3600) };

struct Scene {
    meter: FakeMeter,
    cancel: Cancel,
    turns: RefCell<Vec<String>>,
    profiler: Option<Profiler>,
}

impl Scene {
    fn new() -> Self {
        Self {
            meter: FakeMeter::default(),
            cancel: Cancel::default(),
            turns: RefCell::default(),
            profiler: None,
        }
    }

    /// Somebody whose work takes a time, half of it in the processor.
    fn worker(&self, name: &'static str, time: Duration) -> Contestant<'_> {
        Contestant::new(name, move |_| {
            self.turns.borrow_mut().push(name.into());
            self.meter.pass(time, time / 2);
            Ok(Work::operations(10).with_calls("pread", 10))
        })
    }

    fn run(&self, plan: GroupPlan<'_>, rounds: Rounds) -> Ran {
        let (meter, cancel, profiler) = (&self.meter, &self.cancel, self.profiler.as_ref());
        let runner = Runner { meter, cancel, watch: &Nobody, profiler };
        runner.run("experiment", plan, rounds, None)
    }
}

fn samples(ran: &Ran) -> Vec<usize> {
    ran.group.cells.iter().map(|cell| cell.samples.len()).collect()
}

#[test]
fn everybody_has_a_turn_in_each_round_after_a_warm_up_that_does_not_count() {
    let scene = Scene::new();
    let plan = GroupPlan::new("g", "G")
        .contestant(scene.worker("a", SECOND))
        .contestant(scene.worker("b", SECOND * 2))
        .contestant(scene.worker("c", SECOND));
    let ran = scene.run(plan, ROUNDS);
    assert_eq!(samples(&ran), [8, 8, 8]);
    let turns = scene.turns.borrow();
    assert_eq!(turns.len(), 27);
    assert_eq!(turns[..9], ["a", "b", "c", "b", "c", "a", "b", "a", "c"]);
    let sample = &ran.group.cell("b").unwrap().samples[0];
    assert_eq!((sample.elapsed_s, sample.user_s, sample.wait_s), (2.0, 1.0, Some(1.0)));
    assert_eq!((sample.operations, sample.calls["pread"]), (10, 10));
    assert!(ran.warnings.is_empty() && !ran.interrupted, "{:?}", ran.warnings);
}

#[test]
fn when_the_time_is_over_the_rounds_end_but_not_before_there_are_six() {
    let scene = Scene::new();
    let plan = || GroupPlan::new("g", "G").contestant(scene.worker("a", SECOND));
    let time = |seconds| Rounds { least: 6, most: 15, time: SECOND * seconds };
    assert_eq!(samples(&scene.run(plan(), time(1))), [6]);
    assert_eq!(samples(&scene.run(plan(), time(9))), [9]);
    assert_eq!(samples(&scene.run(plan(), time(100))), [15]);
}

#[test]
fn a_later_pass_goes_on_where_the_one_before_ended() {
    let scene = Scene::new();
    let plan = || {
        let absent = Absence::Skipped("no such call here".into());
        GroupPlan::new("g", "G")
            .contestant(scene.worker("a", SECOND))
            .contestant(Contestant::absent("b", absent))
    };
    let (meter, cancel) = (&scene.meter, &scene.cancel);
    let runner = Runner { meter, cancel, watch: &Nobody, profiler: None };
    let rounds = Rounds { least: 3, most: 3, time: SECOND };
    let first = runner.run("experiment", plan(), rounds, None);
    assert_eq!((samples(&first), &*first.group.passes), (vec![3, 0], &[3][..]));
    let both = runner.run("experiment", plan(), Rounds { most: 4, ..rounds }, Some(first));
    assert_eq!(samples(&both)[1], 0);
    assert_eq!(both.group.passes.iter().sum::<u32>() as usize, samples(&both)[0]);
    assert_eq!(both.group.passes.len(), 2);
}

#[test]
fn who_is_refused_or_fails_is_absent_and_the_others_go_on() {
    let scene = Scene::new();
    let refused = |_: &Cancel| Err(Error::system("ring")(io::Error::from(rustix::io::Errno::PERM)));
    let mut turns = 0;
    let failing = move |_: &Cancel| {
        turns += 1;
        match turns {
            1..=3 => Ok(Work::operations(1)),
            _ => Err(Error::system("disk")(io::Error::from(rustix::io::Errno::IO))),
        }
    };
    let skipped = Absence::Skipped("no such call here".into());
    let plan = GroupPlan::new("g", "G")
        .contestant(Contestant::new("refused", refused))
        .contestant(Contestant::new("failing", failing))
        .contestant(Contestant::absent("skipped", skipped.clone()))
        .contestant(scene.worker("fine", SECOND));
    let ran = scene.run(plan, ROUNDS);
    assert_eq!(samples(&ran), [0, 0, 0, 8]);
    let absent = |name| ran.group.cell(name).unwrap().absent.clone();
    assert!(matches!(absent("refused"), Some(Absence::Refused(why)) if why.contains("ring")));
    assert!(matches!(absent("failing"), Some(Absence::Failed(_))));
    assert_eq!(absent("skipped"), Some(skipped));
    assert_eq!(absent("fine"), None);
}

#[test]
fn an_interrupted_group_keeps_what_it_measured() {
    let scene = Scene::new();
    let mut turns = 0;
    let cancel = scene.cancel.clone();
    let plan = GroupPlan::new("g", "G")
        .without_warm_up()
        .contestant(scene.worker("a", SECOND))
        .contestant(Contestant::new("b", move |_| {
            turns += 1;
            if turns == 3 {
                cancel.cancel();
            }
            Ok(Work::operations(1))
        }));
    let ran = scene.run(plan, ROUNDS);
    assert!(ran.interrupted);
    assert_eq!(samples(&ran), [2, 3]);
    assert_eq!(ran.warnings[0].kind, WarningKind::FewSamples);
}

#[test]
fn a_contestant_is_prepared_before_each_turn_and_outside_of_its_time() {
    let scene = Scene::new();
    let contestant = scene.worker("a", SECOND).prepared(|| {
        scene.turns.borrow_mut().push("prepare".into());
        scene.meter.pass(SECOND * 7, SECOND);
        Ok(())
    });
    let ran = scene.run(GroupPlan::new("g", "G").contestant(contestant), ROUNDS);
    assert_eq!(scene.turns.borrow()[..4], ["prepare", "a", "prepare", "a"]);
    assert!(ran.group.cells[0].samples.iter().all(|sample| sample.elapsed_s == 1.0));
}

#[test]
fn the_best_is_watched_once_more_and_that_does_not_count() {
    let dir = tempfile::tempdir().unwrap();
    let scene = Scene { profiler: Some(Profiler::new(dir.path())), ..Scene::new() };
    let plan = GroupPlan::new("g", "G")
        .baseline("slow")
        .contestant(scene.worker("slow", SECOND * 2))
        .contestant(scene.worker("fast", SECOND));
    let ran = scene.run(plan, ROUNDS);
    assert_eq!(samples(&ran), [8, 8]);
    let turns = scene.turns.borrow();
    match scene.profiler.as_ref().and_then(Profiler::refusal) {
        None => assert!(turns.len() > 18 && turns[18..].iter().all(|name| name == "fast")),
        Some(why) => eprintln!("SKIPPED: {why:?}"),
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
