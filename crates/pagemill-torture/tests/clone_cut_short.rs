//! A few dozen power cuts and faults while databases are made and dropped, judged by Pagemill's reader and some by
//! servers of 15 and 18. `cargo xtask torture` runs all of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pagemill_sim::{Loss, WriteFault};
use pagemill_testkit::PgInstall;
use pagemill_torture::case::FAULTS;
use pagemill_torture::database_fixture::DatabaseFixture;
use pagemill_torture::database_judge::DatabaseJudge;
use pagemill_torture::database_kind::DATABASE_KINDS;
use pagemill_torture::power_cuts::PowerCuts;
use pagemill_torture::trial::{ImageState, Seen};
use pagemill_torture::write_faults::{Ended, judge_fault};

/// The ground of a version, shared by the tests that run at the same time; the last one removes it.
fn ground_of(major: u32) -> Option<Arc<DatabaseFixture>> {
    static GROUNDS: Mutex<BTreeMap<u32, Weak<DatabaseFixture>>> = Mutex::new(BTreeMap::new());
    let install = PgInstall::find(major)?;
    let mut fixtures = GROUNDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(fixture) = fixtures.get(&major).and_then(Weak::upgrade) {
        return Some(fixture);
    }
    let fixture = Arc::new(DatabaseFixture::new(&install).unwrap());
    fixtures.insert(major, Arc::downgrade(&fixture));
    Some(fixture)
}

fn fixture() -> Arc<DatabaseFixture> {
    ground_of(15).expect("PostgreSQL 15 is needed")
}

/// The value, or a panic with the command that repeats the case.
fn held<T>(judged: anyhow::Result<T>) -> T {
    judged.unwrap_or_else(|error| panic!("{error:#}"))
}

#[test]
fn after_a_power_cut_a_database_is_there_whole_or_not_at_all() {
    let fixture = fixture();
    for (number, kind) in (0..).zip(DATABASE_KINDS) {
        let cuts = held(PowerCuts::new(DatabaseJudge::new(&fixture, kind)));
        let (decided, calls) = (*cuts.decision().start(), cuts.calls());
        held(cuts.read(decided / 2 + number as usize, Loss::Torn(number), true));
        held(cuts.read(decided - 2, Loss::None, true));
        held(cuts.read(decided, Loss::All, false));
        let found = held(cuts.read(*cuts.decision().end(), Loss::Ordered(number), false));
        assert_eq!(found, ImageState::InProduction);
        held(cuts.read(calls - 1, Loss::Torn(number), false));
        assert_eq!(held(cuts.read(calls, Loss::All, true)), ImageState::Clean(Seen::New));
    }
}

#[test]
fn a_server_recovers_the_whole_database_or_none_from_a_power_cut() {
    // Both are made before this thread takes a cluster's lock as root: its real user is then that of the cluster, and
    // the loader of a program that it starts trusts no paths beside the program.
    let fixtures = [15, 18].map(|major| (major, ground_of(major)));
    for (major, fixture) in fixtures {
        let Some(fixture) = fixture else { continue };
        for (number, kind) in (0..).zip(DATABASE_KINDS) {
            let cuts = held(PowerCuts::new(DatabaseJudge::new(&fixture, kind)));
            let losses = [Loss::All, Loss::Torn(number), Loss::Ordered(number)];
            let loss = losses[(number as usize + major as usize) % 3];
            held(cuts.serve(cuts.decision().start() + 1 + number as usize * 2, loss));
        }
    }
}

#[test]
fn a_fault_before_the_decision_leaves_everything_as_it_was() {
    let fixture = fixture();
    for (number, kind) in DATABASE_KINDS.into_iter().enumerate() {
        let trial = DatabaseJudge::new(&fixture, kind);
        let before = *held(PowerCuts::new(DatabaseJudge::new(&fixture, kind))).decision().start();
        let places = [before / 3, before / 2, before - 3, before];
        for (fault, call) in FAULTS.into_iter().zip(places) {
            let call = call - number.min(call);
            let ended = held(judge_fault(&trial, (call, fault), false));
            assert!(matches!(ended, Ended::AsBefore | Ended::Done), "{}: {ended:?}", kind.name);
        }
    }
}

#[test]
fn a_fault_after_the_decision_is_told_and_a_server_finishes_the_change() {
    let fixture = fixture();
    for kind in DATABASE_KINDS {
        let trial = DatabaseJudge::new(&fixture, kind);
        let decided = *held(PowerCuts::new(DatabaseJudge::new(&fixture, kind))).decision().start();
        let unsynced = held(judge_fault(&trial, (decided + 1, WriteFault::Failed), false));
        assert_eq!(unsynced, Ended::Undecided, "{}", kind.name);
        let cut = (decided + 3, WriteFault::ReadOnlyFromHere);
        assert_eq!(held(judge_fault(&trial, cut, true)), Ended::Unfinished, "{}", kind.name);
    }
}
