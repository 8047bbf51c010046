//! The program killed at random moments of loads (`SIGKILL`), with PostgreSQL as the judge. `cargo xtask torture` kills
//! hundreds.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use pagemill_testkit::PgInstall;
use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_torture::judge::Judge;
use pagemill_torture::kills::Killer;
use pagemill_torture::kind::KINDS;
use pagemill_torture::load_fixture::LoadFixture;

const KILLS: usize = 12;

#[test]
fn a_load_that_is_killed_leaves_all_rows_or_none_and_the_next_one_works() {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let fixture = LoadFixture::new(&install).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    // Other moments in every run: what is met depends on the machine anyway.
    let trials = KINDS.map(|kind| Judge::new(&fixture, kind).unwrap()).into();
    let program = Path::new(env!("CARGO_BIN_EXE_pagemill"));
    let mut killer = Killer::new(trials, program, now.as_micros() as u64);
    for _ in 0..KILLS {
        killer.kill().unwrap_or_else(|error| panic!("{error:#}"));
    }
}
