//! A few dozen power cuts and faults in loads of every kind, judged by Pagemill's reader and some by a server.
//! `cargo xtask torture` runs all of them.

use std::sync::OnceLock;

use pagemill_sim::{Loss, WriteFault};
use pagemill_testkit::PgInstall;
use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_torture::case::FAULTS;
use pagemill_torture::judge::Judge;
use pagemill_torture::kind::{KINDS, Kind};
use pagemill_torture::load_fixture::LoadFixture;
use pagemill_torture::power_cuts::PowerCuts;
use pagemill_torture::trial::{ImageState, Seen};
use pagemill_torture::write_faults::{Ended, judge_fault};

fn fixture() -> &'static LoadFixture {
    static GROUND: OnceLock<LoadFixture> = OnceLock::new();
    GROUND.get_or_init(|| {
        let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
        LoadFixture::new(&install).unwrap()
    })
}

fn trial(kind: Kind) -> Judge<'static> {
    held(Judge::new(fixture(), kind))
}

/// The value, or a panic with the command that repeats the case.
fn held<T>(judged: anyhow::Result<T>) -> T {
    judged.unwrap_or_else(|error| panic!("{error:#}"))
}

#[test]
fn after_a_power_cut_all_rows_are_there_or_none_and_the_next_load_works() {
    for (number, kind) in KINDS.into_iter().enumerate() {
        let seed = number as u64;
        let cuts = held(PowerCuts::new(trial(kind)));
        let middle = cuts.calls() * (number + 1) / (KINDS.len() + 2);
        held(cuts.read(middle, Loss::Torn(seed), true));
        let decided = held(cuts.read(*cuts.decision().end(), Loss::Ordered(seed), false));
        assert_eq!(decided, ImageState::InProduction);
        let whole = held(cuts.read(cuts.calls(), Loss::All, true));
        assert_eq!(whole, ImageState::Clean(Seen::New));
    }
}

#[test]
fn a_server_recovers_all_rows_or_none_from_a_power_cut() {
    for (number, kind) in KINDS.into_iter().enumerate() {
        let cuts = held(PowerCuts::new(trial(kind)));
        let losses = [Loss::All, Loss::Torn(number as u64), Loss::Ordered(number as u64)];
        held(cuts.serve(cuts.decision().start() + 1 + number % 12, losses[number % 3]));
    }
}

#[test]
fn a_fault_before_the_decision_leaves_everything_as_it_was() {
    for (number, kind) in KINDS.into_iter().enumerate() {
        let cuts = held(PowerCuts::new(trial(kind)));
        let before = *cuts.decision().start();
        let places = [before / 3, before / 2, before - 3, before];
        // Two of the four for each kind, in turns.
        let cases = FAULTS.into_iter().zip(places).skip(number % 2).step_by(2);
        for (fault, call) in cases {
            let call = call - number.min(call);
            let ended = held(judge_fault(&trial(kind), (call, fault), false));
            assert!(matches!(ended, Ended::AsBefore | Ended::Done), "{}: {ended:?}", kind.name);
        }
    }
}

#[test]
fn a_fault_after_the_decision_is_told_and_a_server_finishes_the_load() {
    for name in ["indexed_filled", "toasted_no_wal_filled", "truncated"] {
        let kind = Kind::find(name).unwrap();
        let decided = *held(PowerCuts::new(trial(kind))).decision().start();
        for (call, fault, expected) in [
            (decided + 1, WriteFault::Failed, Ended::Undecided),
            (decided + 3, WriteFault::ReadOnlyFromHere, Ended::Unfinished),
        ] {
            assert_eq!(held(judge_fault(&trial(kind), (call, fault), true)), expected, "{name}");
        }
    }
}
