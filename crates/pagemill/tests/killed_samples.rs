//! Clusters of servers that are not on this machine, stopped in the midst of work and read without a restart: samples
//! of 17.11 and 18.6, whose records name the pages of the visibility map that they change. What is printed is what the
//! server printed once it had recovered.

use anyhow::{Result, ensure};
use pagemill_testkit::Program;
use pagemill_testkit::samples::Sample;

fn check(sample: &Sample) -> Result<()> {
    let program = Program::new(env!("CARGO_BIN_EXE_pagemill"));
    let killed = sample.killed();
    let tables = sample.expected()?;
    ensure!(!tables.is_empty(), "no tables");
    for (table, wanted) in &tables {
        let rows = program.succeed(&killed, &["export", "-d", "postgres", "-t", table])?;
        ensure!(&rows == wanted, "{table}: {}", String::from_utf8_lossy(&rows));
        let lines = wanted.iter().filter(|byte| **byte == b'\n').count();
        let counted = program.succeed(&killed, &["count", "-d", "postgres", "-t", table])?;
        let counted = String::from_utf8_lossy(&counted);
        ensure!(counted.trim() == lines.to_string(), "{table}: {counted:?}, not {lines}");
    }
    Ok(())
}

#[test]
fn tables_of_a_sample_are_those_that_its_server_recovered() {
    for sample in Sample::all().unwrap() {
        if let Err(error) = check(&sample) {
            panic!("PostgreSQL {}: {error:#}", sample.version);
        }
    }
}
