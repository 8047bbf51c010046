//! Types and functions of contrib's extensions, answered as by the server.
//!
//! Each extension has a script that makes it and its tables, and one of statements, one a line.
//!
//! Invariant: errors are compared by SQLSTATE and message, rows by what psql prints.

#[path = "support/asked.rs"]
mod asked;
mod support;

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use asked::{asked, compare};
use pagemill_testkit::versions::each_of;
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, in_checkout};
use support::Served;

const EXTENSIONS: [&str; 9] = [
    "citext",
    "cube",
    "fuzzystrmatch",
    "hstore",
    "intarray",
    "ltree",
    "pg_trgm",
    "seg",
    "uuid-ossp",
];

fn script(name: &str) -> Result<String> {
    let path = in_checkout("crates/pagemill-serve/tests/extensions").join(name);
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}

fn check(install: &PgInstall) -> Result<()> {
    let locale = "C.UTF-8".to_owned();
    let mut cluster =
        TestCluster::create(install, &ClusterOptions { locale, ..ClusterOptions::default() })?;
    let mut expected = Vec::new();
    for name in EXTENSIONS {
        // Each in a database of its own: extensions share names.
        cluster.psql("postgres", &format!("create database \"{name}\""))?;
        cluster.psql(name, &script(&format!("{name}.setup.sql"))?)?;
        expected.push(asked(cluster.psql_command(name), &script(&format!("{name}.sql"))?)?);
    }
    cluster.psql("postgres", "checkpoint")?;
    cluster.stop()?;
    // Its C library is the one that is here, which no server records for this locale.
    let served = Served::start(&cluster, &["--text-order", "here"])?;
    let mut wrong = Vec::new();
    for (name, expected) in EXTENSIONS.into_iter().zip(&expected) {
        let mut client = Command::new(install.psql());
        client.env("PGHOST", served.directory.path()).env("PGPORT", "5432");
        client.env("PGUSER", "postgres").env("PGDATABASE", name);
        let found = asked(client, &script(&format!("{name}.sql"))?)?;
        if let Err(error) = compare(&found, expected) {
            wrong.push(format!("{name}: {error}"));
        }
        ensure!(found.lines().count() > 20, "much is compared");
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn extensions_are_answered_as_by_the_server() {
    each_of(&PgInstall::spread(), check);
}
