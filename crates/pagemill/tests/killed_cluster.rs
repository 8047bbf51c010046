//! Clusters of servers that were killed in the midst of all kinds of work, read without a restart.
//!
//! One copy is recovered by the server; the other one is read by Pagemill. Every page and every row must be the same, and
//! nothing may have changed ([`pagemill_torture::server_kills`]).
//!
//! `PAGEMILL_TEST_KILLS` is how many kills there are for each version, `PAGEMILL_TEST_SEED` where chance begins,
//! `PAGEMILL_TEST_KEEP` keeps what differs; `cargo xtask torture` does hundreds.

use pagemill_testkit::versions::each_of;
use pagemill_testkit::{PgInstall, Program};
use pagemill_torture::server_kills::ServerKiller;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn a_killed_cluster_reads_as_the_server_recovers_it() {
    let (kills, seed) = (number("PAGEMILL_TEST_KILLS", 2), number("PAGEMILL_TEST_SEED", 1));
    each_of(&PgInstall::all(), |install| {
        let program = Program::new(env!("CARGO_BIN_EXE_pagemill"));
        let mut killer = ServerKiller::new(install, program, seed * 100 + u64::from(install.major));
        for number in 1..=kills {
            let start = std::time::Instant::now();
            let killed = killer.kill()?;
            eprintln!(
                "PostgreSQL {}, kill {number}: {killed:?} in {:.1?}",
                install.major,
                start.elapsed()
            );
        }
        Ok(())
    });
}
