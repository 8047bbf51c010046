//! psql's `\d` and its kin: what it prints of the files is what it printed of the server, byte for byte.
//!
//! The commands run in one session each way, from a file.

use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, in_checkout};

const OBJECTS: &str = include_str!("describe/objects.sql");

/// The file of commands.
fn commands() -> std::path::PathBuf {
    in_checkout("crates/pagemill-serve/tests/describe/commands.sql")
}

fn client(mut command: Command) -> Result<Output> {
    // Each command is told before what it prints, so that a difference has its place.
    command.args(["-q", "-a", "-f"]).arg(commands()).env("PGTZ", "UTC");
    Ok(command.output()?)
}

#[test]
fn psql_describes_what_it_described_of_the_server() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let mut cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    cluster.psql("postgres", OBJECTS)?;
    // Files grow in the background of a server that runs.
    cluster.psql("postgres", "vacuum analyze")?;
    cluster.psql("postgres", "checkpoint")?;
    let mut psql = cluster.psql_command("postgres");
    psql.args(["-X", "-v", "ON_ERROR_STOP=0"]);
    let expected = client(psql)?;
    cluster.stop()?;
    let mut served = Command::new(env!("CARGO_BIN_EXE_pagemill-serve"));
    served.args(["serve", "-D"]).arg(cluster.data_dir()).arg("--exec");
    served.arg(cluster.install().psql()).args(["-X"]);
    let found = client(served)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let errors = text(&found.stderr);
    ensure!(!errors.contains("ERROR"), "{errors}");
    let (found, expected) = (text(&found.stdout), text(&expected.stdout));
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        ensure!(found == expected, "line {}\n{found}\n{expected}", number + 1);
    }
    ensure!(found.lines().count() == expected.lines().count(), "as many lines");
    ensure!(expected.lines().count() > 500, "there is much to compare");
    Ok(())
}
