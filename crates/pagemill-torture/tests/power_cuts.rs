//! A few dozen power cuts of loads of every kind, all of whose images Pagemill's reader judges, and some a server.
//! `cargo xtask torture` runs all of them.

use std::sync::OnceLock;

use pagemill_sim::Loss;
use pagemill_testkit::PgInstall;
use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_torture::ground::Ground;
use pagemill_torture::kind::KINDS;
use pagemill_torture::power_cuts::PowerCuts;

fn ground() -> &'static Ground {
    static GROUND: OnceLock<Ground> = OnceLock::new();
    GROUND.get_or_init(|| {
        let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
        Ground::new(&install).unwrap()
    })
}

#[test]
fn after_a_power_cut_all_rows_are_there_or_none_and_the_next_load_works() {
    for (number, kind) in KINDS.into_iter().enumerate() {
        let seed = number as u64;
        let cuts = PowerCuts::new(ground(), kind).unwrap();
        let calls = cuts.calls();
        for (call, loss) in
            [(calls / 2, Loss::Torn(seed)), (*cuts.decision().end(), Loss::All), (calls, Loss::All)]
        {
            cuts.read(call, loss, true).unwrap_or_else(|error| panic!("{error:#}"));
        }
    }
}

#[test]
fn a_server_recovers_all_rows_or_none_from_a_power_cut() {
    for (number, kind) in KINDS.into_iter().enumerate() {
        let seed = number as u64;
        let cuts = PowerCuts::new(ground(), kind).unwrap();
        let call = cuts.decision().start() + 1 + number % 12;
        cuts.serve(call, Loss::Torn(seed)).unwrap_or_else(|error| panic!("{error:#}"));
    }
}
