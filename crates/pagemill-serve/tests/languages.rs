//! What drivers of four languages make of values: psycopg and SQLAlchemy, node-postgres, pgJDBC; tokio-postgres has tests of its own.
//!
//! Each runs the same script against the server and against its files, and both print the same. Where a driver is not on the machine,
//! the test says SKIPPED; `ci/install-drivers.sh` installs all of them on Debian.

#[path = "support/java.rs"]
mod java;
mod support;

use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use java::JavaDriver;
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, in_checkout, skipped};
use support::Served;

const VALUES: &str = include_str!("languages/objects.sql");
const SCHEMA: &str = include_str!("../../pagemill-sql/tests/information_schema/objects.sql");
const USER: &str = "postgres";

/// Where a server is.
struct ServerAddress {
    directory: PathBuf,
    port: String,
    user: String,
}

impl ServerAddress {
    fn of_server(cluster: &TestCluster) -> Result<Self> {
        let psql = cluster.psql_command("postgres");
        let of = |wanted: &str| {
            let value =
                psql.get_envs().find(|(name, _)| *name == wanted).and_then(|(_, value)| value);
            value.map(|value| value.to_string_lossy().into_owned()).context(wanted.to_owned())
        };
        Ok(Self { directory: of("PGHOST")?.into(), port: of("PGPORT")?, user: USER.to_owned() })
    }

    fn of_files(served: &Served) -> Self {
        let directory = served.directory.path().to_owned();
        Self { directory, port: "5432".to_owned(), user: USER.to_owned() }
    }

    fn socket(&self) -> PathBuf {
        self.directory.join(format!(".s.PGSQL.{}", self.port))
    }

    /// Tells libpq of it.
    fn tell(&self, command: &mut Command) {
        command.env("PGHOST", &self.directory).env("PGPORT", &self.port).env("PGUSER", &self.user);
        command.env("PGDATABASE", "postgres").env("PGTZ", "UTC");
    }
}

fn file(name: &str) -> PathBuf {
    in_checkout("crates/pagemill-serve/tests/languages").join(name)
}

/// Runs what `script` makes for a place against the server and against the files.
fn compare(objects: &str, script: impl Fn(&ServerAddress) -> Result<Command>) -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let options = ClusterOptions { locale: "C".to_owned(), ..ClusterOptions::default() };
    let mut cluster = TestCluster::create(&install, &options)?;
    cluster.psql("postgres", objects)?;
    cluster.psql("postgres", "checkpoint")?;
    let expected = parts(&script(&ServerAddress::of_server(&cluster)?)?.output()?)?;
    cluster.stop()?;
    let served = Served::start(&cluster, &[])?;
    let found = parts(&script(&ServerAddress::of_files(&served))?.output()?)?;
    ensure!(expected.len() > 20, "there is much to compare");
    let differ = found.iter().zip(&expected).filter(|(found, expected)| found != expected);
    let differ: Vec<String> = differ
        .map(|(found, expected)| format!("from the files: {found}by the server: {expected}"))
        .collect();
    ensure!(differ.is_empty(), "{}", differ.join("\n"));
    ensure!(found.len() == expected.len(), "as many answers");
    Ok(())
}

fn parts(output: &Output) -> Result<Vec<String>> {
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout.clone())?;
    Ok(text.split("== ").skip(1).map(str::to_owned).collect())
}

/// A Python that has these modules: the one of the path, or Debian's, which is another where Python was installed beside it.
fn python(modules: &str) -> Option<&'static str> {
    let has = |python: &&str| {
        let told = Command::new(python).arg("-c").arg(format!("import {modules}")).output();
        told.is_ok_and(|told| told.status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(has);
    if found.is_none() {
        skipped(format!("no Python with {modules} on this machine"));
    }
    found
}

#[test]
fn psycopg_makes_of_values_what_it_made_of_the_servers() -> Result<()> {
    let Some(python) = python("psycopg") else { return Ok(()) };
    compare(VALUES, |place| {
        let mut script = Command::new(python);
        script.arg(file("values.py")).arg(file("questions.sql"));
        place.tell(&mut script);
        Ok(script)
    })
}

#[test]
fn sqlalchemy_sees_what_it_saw_of_the_server() -> Result<()> {
    let Some(python) = python("psycopg2, sqlalchemy") else { return Ok(()) };
    compare(SCHEMA, |place| {
        let mut script = Command::new(python);
        script.arg(file("inspected.py"));
        place.tell(&mut script);
        Ok(script)
    })
}

/// Node, told where the driver is: Debian's, or what npm put into the cache.
fn node() -> Option<Command> {
    let home =
        PathBuf::from(std::env::var_os("HOME")?).join(".cache/pagemill-test/node/node_modules");
    let mut paths = vec![home, "/usr/share/nodejs".into()];
    paths.extend(std::env::var_os("NODE_PATH").iter().flat_map(std::env::split_paths));
    let mut node = Command::new("node");
    node.env("NODE_PATH", std::env::join_paths(paths).ok()?);
    Some(node)
}

#[test]
fn node_postgres_makes_of_values_what_it_made_of_the_servers() -> Result<()> {
    let has_driver = node().is_some_and(|mut node| {
        let told = node.args(["-e", "require('pg')"]).output();
        told.is_ok_and(|told| told.status.success())
    });
    if !has_driver {
        skipped("no Node with node-postgres on this machine");
        return Ok(());
    }
    compare(VALUES, |place| {
        let mut script = node().context("it was there")?;
        script.arg(file("values.cjs")).arg(file("questions.sql")).arg(&place.directory);
        script.args([&place.port, &place.user]);
        Ok(script)
    })
}

#[test]
fn pgjdbc_makes_of_values_what_it_made_of_the_servers() -> Result<()> {
    let Some(driver) = JavaDriver::find() else {
        skipped("no Java with a compiler, or no PostgreSQL driver for it, on this machine");
        return Ok(());
    };
    compare(VALUES, |place| {
        let mut script = driver.command("languages/Values.java", &place.socket(), &place.user)?;
        script.arg(file("questions.sql"));
        Ok(script)
    })
}
