//! pg_dump: what it writes of the files is what it wrote of the server, byte for byte, so that it restores as that does.
//!
//! Whole databases, one schema without data, and one table as statements, large objects among them; and what PostgreSQL's own
//! regression suite leaves behind (`dump/regression.rs`).

#[path = "dump/regression.rs"]
mod regression;

use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::versions::each_of;
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, skipped};

const OBJECTS: &str = include_str!("dump/objects.sql");

/// pg_dump writes a dump's key into it, and PostgreSQL's version, of which files have the major one only.
fn dump(output: Output) -> Result<String> {
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout)?;
    let is_own = |line: &&str| {
        !["-- Dumped from database version", "\\restrict", "\\unrestrict"]
            .iter()
            .any(|own| line.starts_with(own))
    };
    Ok(text.lines().filter(is_own).map(|line| format!("{line}\n")).collect())
}

fn compare(cluster: &TestCluster, expected: &[(Vec<&str>, String)]) -> Result<()> {
    let program = dumper(cluster.install());
    for (arguments, expected) in expected {
        let mut served = Command::new(env!("CARGO_BIN_EXE_pagemill-serve"));
        served.args(["serve", "-D"]).arg(cluster.data_dir()).arg("--exec").arg(&program);
        let found = dump(served.args(arguments).arg("postgres").output()?)
            .with_context(|| format!("pg_dump {arguments:?}"))?;
        same_lines(&found, expected).with_context(|| format!("pg_dump {arguments:?}"))?;
    }
    Ok(())
}

fn same_lines(found: &str, expected: &str) -> Result<()> {
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        ensure!(found == expected, "line {}\n{found}\n{expected}", number + 1);
    }
    ensure!(found.len() == expected.len(), "as much");
    Ok(())
}

/// The major version of the pg_dump that is installed: it reads servers up to its own.
fn dumper_version(install: &PgInstall) -> Result<u32> {
    let output = Command::new(dumper(install)).arg("--version").output()?;
    let text = String::from_utf8(output.stdout)?;
    let version = text.split_whitespace().nth(2).and_then(|version| version.split('.').next());
    version.and_then(|major| major.parse().ok()).with_context(|| format!("{text}: no version"))
}

fn dumper(install: &PgInstall) -> PathBuf {
    install.psql().with_file_name("pg_dump")
}

/// pg_dump of a running server.
fn server_dumper(cluster: &TestCluster) -> Command {
    let mut of_server = cluster.account().command(&dumper(cluster.install()));
    for (name, value) in cluster.psql_command("postgres").get_envs() {
        if let Some(value) = value {
            of_server.env(name, value);
        }
    }
    of_server
}

fn check(install: &PgInstall) -> Result<()> {
    let dumper_major = dumper_version(install)?;
    if dumper_major < install.major {
        skipped(format!("pg_dump {dumper_major} does not read PostgreSQL {}", install.major));
        return Ok(());
    }
    let mut cluster = TestCluster::create(install, &ClusterOptions::default())?;
    cluster.psql("postgres", OBJECTS)?;
    let ways = [vec![], vec!["-s", "-n", "app"], vec!["-a", "--inserts", "-t", "app.customers"]];
    let mut expected = Vec::new();
    for arguments in ways {
        let written = dump(server_dumper(&cluster).args(&arguments).arg("postgres").output()?)?;
        expected.push((arguments, written));
    }
    ensure!(expected[0].1.lines().count() > 400, "there is much to compare");
    cluster.stop()?;
    compare(&cluster, &expected)
}

#[test]
fn pg_dump_writes_what_it_wrote_of_the_server() {
    each_of(&PgInstall::spread(), check);
}
