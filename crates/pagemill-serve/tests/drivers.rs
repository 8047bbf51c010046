//! What drivers and tools ask of the catalogs: the statements of pgJDBC's DatabaseMetaData, of Grafana, Metabase, DBeaver, DataGrip, Power BI,
//! Tableau and Superset as they were recorded, and the driver itself where Java and it are on the machine. Each answer is the server's, row for row; where a statement has no order, in any.
//!
//! Where the driver cannot run, the test says SKIPPED. What drivers make of values is in `languages.rs`.

#[path = "support/java.rs"]
mod java;
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use java::JavaDriver;
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, skipped};
use support::Served;

const OBJECTS: &str = include_str!("../../pagemill-sql/tests/information_schema/objects.sql");
const QUERIES: [&str; 2] = [include_str!("jdbc/queries.sql"), include_str!("tools/queries.sql")];

fn cluster() -> Result<TestCluster> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let options = ClusterOptions { locale: "C".to_owned(), ..ClusterOptions::default() };
    let cluster = TestCluster::create(&install, &options)?;
    cluster.psql("postgres", OBJECTS)?;
    cluster.psql("postgres", "checkpoint")?;
    Ok(cluster)
}

fn statements() -> Vec<&'static str> {
    let lines = QUERIES.into_iter().flat_map(str::lines);
    lines.filter(|line| !line.starts_with("--")).collect()
}

/// The statements, each behind a line that says its number.
fn script(directory: &Path) -> Result<PathBuf> {
    let statements = statements().into_iter().enumerate();
    let numbered = statements.map(|(at, statement)| format!("\\echo == {at}\n{statement}\n"));
    let path = directory.join("queries.sql");
    std::fs::write(&path, numbered.collect::<String>())?;
    Ok(path)
}

fn asked(mut psql: Command, script: &Path) -> Result<Vec<String>> {
    psql.args(["-X", "-q", "-A", "-P", "null=NULL", "-f"]).arg(script).env("PGTZ", "UTC");
    let output = psql.output()?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success() && !errors.contains("ERROR"), "{errors}");
    let text = String::from_utf8(output.stdout)?;
    Ok(text.split("== ").skip(1).map(str::to_owned).collect())
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn what_drivers_and_tools_ask_is_answered_as_by_the_server() -> Result<()> {
    let mut cluster = cluster()?;
    let directory = tempfile::tempdir()?;
    let script = script(directory.path())?;
    let expected = asked(cluster.psql_command("postgres"), &script)?;
    cluster.stop()?;
    let mut served = Command::new(env!("CARGO_BIN_EXE_pagemill-serve"));
    served.args(["-q", "serve", "-D"]).arg(cluster.data_dir()).arg("--exec");
    served.arg(cluster.install().psql());
    let found = asked(served, &script)?;
    let statements = statements();
    ensure!(found.len() == expected.len() && found.len() == statements.len(), "all are answered");
    for ((found, expected), statement) in found.iter().zip(&expected).zip(statements) {
        let is_same = match statement.to_lowercase().contains("order by") {
            true => found == expected,
            false => sorted(found) == sorted(expected),
        };
        ensure!(is_same, "{statement}\n{found}\n{expected}");
    }
    Ok(())
}

/// The parts of what the driver tells, those without an order sorted.
fn parts(output: &Output) -> Result<Vec<String>> {
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout.clone())?;
    let part = |part: &str| match part.starts_with("getTypeInfo") {
        true => sorted(part).join("\n"),
        false => part.to_owned(),
    };
    Ok(text.split("== ").skip(1).map(part).collect())
}

fn socket_of(psql: &Command) -> Result<PathBuf> {
    let of = |wanted: &str| {
        let found = psql.get_envs().find(|(name, _)| *name == wanted).and_then(|(_, value)| value);
        found.map(|value| value.to_string_lossy().into_owned()).with_context(|| wanted.to_owned())
    };
    Ok(Path::new(&of("PGHOST")?).join(format!(".s.PGSQL.{}", of("PGPORT")?)))
}

#[test]
fn the_driver_for_java_tells_what_it_told_of_the_server() -> Result<()> {
    let Some(driver) = JavaDriver::find() else {
        skipped("no Java with a compiler, or no PostgreSQL driver for it, on this machine");
        return Ok(());
    };
    let mut cluster = cluster()?;
    let told = |socket: &Path| {
        driver
            .command("jdbc/Metadata.java", socket, "postgres")?
            .output()
            .map_err(anyhow::Error::from)
    };
    let expected = parts(&told(&socket_of(&cluster.psql_command("postgres"))?)?)?;
    cluster.stop()?;
    let served = Served::start(&cluster, &[])?;
    let found = parts(&told(&served.socket())?)?;
    ensure!(expected.len() > 50, "there is much to compare");
    for (found, expected) in found.iter().zip(&expected) {
        ensure!(found == expected, "{found}\n{expected}");
    }
    ensure!(found.len() == expected.len(), "as many answers");
    Ok(())
}
