//! `ls --ddl`: the statements that make a database's relations are those of pg_dump, and a server that runs them has the same relations.
//!
//! The relations are tables of every form, views, sequences and what belongs to them. In a copy of the database they are dropped
//! and made again by the statements, from whose files the statements are then the same once more.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::versions::each_of;
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};

/// Objects of every kind, as pg_dump is held against the server with them too; and relations of more forms.
const OBJECTS: [&str; 2] =
    [include_str!("../../pagemill-serve/tests/dump/objects.sql"), include_str!("ddl/objects.sql")];

/// Drops what is made again; types and functions stay.
const DROP: &str = "do $$ declare r record; begin
    for r in select oid, oid::regclass::text as name, relkind from pg_class where relnamespace::regnamespace::text in ('app', 'q')
        and relkind in ('r', 'p', 'v', 'm', 'f', 'S') order by relkind = 'S', oid loop
        if exists (select from pg_class where oid = r.oid) then
            execute 'drop ' || case r.relkind when 'v' then 'view ' when 'm' then 'materialized view ' when 'f' then 'foreign table '
                when 'S' then 'sequence ' else 'table ' end || r.name || ' cascade';
        end if;
    end loop; end $$";

fn text(output: Output) -> Result<String> {
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}");
    Ok(String::from_utf8(output.stdout)?)
}

fn ours(cluster: &TestCluster, database: &str, patterns: &[&str]) -> Result<String> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
    program.args(["ls", "--ddl", "-D"]).arg(cluster.data_dir()).args(["-d", database]);
    text(program.args(patterns.iter().flat_map(|pattern| ["-t", pattern])).output()?)
}

const SCHEMAS: [&str; 2] = ["app.*", "q.*"];

/// The statements of a dump, each as often as it stands there: pg_dump has an order of its own.
fn statements(dump: &str) -> BTreeMap<String, usize> {
    let (mut found, mut statement) = (BTreeMap::new(), String::new());
    for line in dump.lines() {
        let is_session = ["SET ", "SELECT pg_catalog.set_config", "\\restrict", "\\unrestrict"]
            .iter()
            .any(|begin| line.starts_with(begin));
        let is_between = line.is_empty() || line.starts_with("--") || is_session;
        if statement.is_empty() && is_between {
            continue;
        }
        statement.push_str(line);
        statement.push('\n');
        if line.ends_with(';') {
            *found.entry(std::mem::take(&mut statement)).or_default() += 1;
        }
    }
    found
}

/// What pg_dump writes of the server; nothing where the one that is installed does not read that version.
fn dumped(cluster: &TestCluster) -> Result<Option<String>> {
    let program: PathBuf = cluster.install().psql().with_file_name("pg_dump");
    let version = text(Command::new(&program).arg("--version").output()?)?;
    let major = version.split_whitespace().nth(2).and_then(|word| word.split('.').next());
    let major: u32 = major.context("a version")?.parse()?;
    if major < cluster.install().major {
        eprintln!("skipped: pg_dump {major} does not read PostgreSQL {}", cluster.install().major);
        return Ok(None);
    }
    let psql = cluster.psql_command("postgres");
    let mut command = cluster.account().command(&program);
    command.args(["-s", "-O", "-x", "-t", SCHEMAS[0], "-t", SCHEMAS[1], "postgres"]);
    command.envs(psql.get_envs().filter_map(|(name, value)| Some((name, value?))));
    text(command.output()?).map(Some)
}

fn compare(ours: &str, dump: &str) -> Result<()> {
    let (found, mut expected) = (statements(ours), statements(dump));
    ensure!(expected.len() > 90, "there is much to compare");
    for (statement, times) in found {
        // pg_dump leaves those of the statistics out where tables are chosen.
        let is_beside =
            statement.contains(" STATISTICS app.") || statement.contains(" STATISTICS q.");
        let known = expected.remove(&statement);
        ensure!(
            known == Some(times) || is_beside && known.is_none(),
            "not of pg_dump:\n{statement}"
        );
    }
    ensure!(expected.is_empty(), "missing: {expected:#?}");
    Ok(())
}

/// Runs a script in a session that ends with the first error.
fn run_script(cluster: &TestCluster, database: &str, script: &str) -> Result<()> {
    let mut psql = cluster.psql_command(database);
    psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", "-"]).stdin(Stdio::piped());
    let mut child = psql.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    child.stdin.take().context("no input")?.write_all(script.as_bytes())?;
    text(child.wait_with_output()?).map(drop)
}

fn check(install: &PgInstall) -> Result<()> {
    let mut cluster = TestCluster::create(install, &ClusterOptions::default())?;
    for objects in OBJECTS {
        cluster.psql("postgres", objects)?;
    }
    let dump = dumped(&cluster)?;
    cluster.stop()?;
    let found = ours(&cluster, "postgres", &SCHEMAS)?;
    if let Some(dump) = dump {
        compare(&found, &dump)?;
    }
    cluster.start()?;
    cluster.psql("postgres", "create database again template postgres")?;
    cluster.psql("again", DROP)?;
    run_script(&cluster, "again", &found)?;
    cluster.stop()?;
    let again = ours(&cluster, "again", &SCHEMAS)?;
    for (again, found) in again.lines().zip(found.lines()) {
        ensure!(again == found, "made again:\n{again}\n{found}");
    }
    ensure!(again.len() == found.len(), "as much");
    let one = ours(&cluster, "postgres", &["app.orders"])?;
    ensure!(one.starts_with("CREATE TABLE app.orders (") && one.contains("ADD GENERATED"), "{one}");
    ensure!(!one.contains("CREATE TABLE app.customers"), "{one}");
    Ok(())
}

#[test]
fn a_server_that_runs_the_statements_has_the_same_relations() {
    each_of(&PgInstall::spread(), check);
}
