//! What has to sort more than its memory holds sorts in files, also where many of the first rows are wanted, where rows are wide, and where
//! aggregates keep lists of rows; what cannot is told in words.
//!
//! Invariant: the answer is the server's.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};

const TABLE: &str = "create table t as select i as id, md5(i::text) || repeat('x', 100) as w from generate_series(1, 400000) i";

/// Statements, and for each how little memory it has to do with.
const STATEMENTS: [(&str, &str); 3] = [
    ("80MB", "select id from t order by w, id limit 5 offset 300000"),
    (
        "80MB",
        "select count(*), min(id), max(w) from (select id, w from t order by w desc limit 250000) s",
    ),
    ("80MB", "select id from t order by w, id limit 5"),
];

#[test]
fn many_first_rows_are_sorted_in_files() -> Result<()> {
    are_answered(TABLE, &STATEMENTS)
}

/// Rows of a few hundred bytes to some kilobytes, of which sorts hold few.
const WIDE: &str = "\
create table wide as select i as id, repeat(md5(i::text), 1 + i % 60) as w, i % 300 as k from generate_series(1, 60000) i;
create table narrow as select i as id, md5(i::text) as t from generate_series(1, 60000) i";

/// The same of them.
const IN_LITTLE: [(&str, &str); 8] = [
    (
        "96MB",
        "select count(*), min(id), max(w) from (select id, w from wide order by w desc, id offset 10) s",
    ),
    ("96MB", "select id from wide order by w desc, id limit 3 offset 50000"),
    ("96MB", "select count(*) from (select distinct w from wide) s"),
    (
        "96MB",
        "select k, count(w) from (select k, w, row_number() over (order by w, id) from wide) s group by k order by k limit 3",
    ),
    (
        "16MB",
        "select k, md5(string_agg(t, ',' order by t desc)) from wide join narrow using (id) group by k order by k limit 3",
    ),
    (
        "16MB",
        "select k, percentile_disc(0.5) within group (order by t), count(distinct t) from wide join narrow using (id) group by k order by k limit 3",
    ),
    (
        "16MB",
        "select count(*) from (select t from narrow where id < 50000 except select t from narrow where id > 20000) s",
    ),
    (
        "96MB",
        "select w.id, length(w.w), n.t from wide w join narrow n on n.id = w.id where w.id % 4 = 0 order by w.w, n.t limit 3 offset 9000",
    ),
];

#[test]
fn wide_rows_and_lists_of_many_groups_need_little_memory() -> Result<()> {
    are_answered(WIDE, &IN_LITTLE)
}

#[test]
fn what_does_not_fit_names_the_step_and_the_flag() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let mut cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    cluster.stop()?;
    let statement = "select count(distinct md5(i::text)) from generate_series(1, 400000) i";
    let mut ours = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
    ours.args(["sql", "-d", "postgres", "--memory", "16MB", statement]);
    let output = ours.arg("-D").arg(cluster.data_dir()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && output.stdout.is_empty(), "it was answered");
    ensure!(
        said.contains("out of memory: an aggregate needs") && said.contains("of --memory leave it"),
        "{said}"
    );
    Ok(())
}

/// Answers of the files in so much memory are those of the server.
fn are_answered(tables: &str, statements: &[(&str, &str)]) -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let options = ClusterOptions { locale: "C".to_owned(), ..ClusterOptions::default() };
    let mut cluster = TestCluster::create(&install, &options)?;
    cluster.psql("postgres", tables)?;
    let ask = |(_, statement): &(&str, &str)| cluster.psql("postgres", statement);
    let expected = statements.iter().map(ask).collect::<Result<Vec<String>>>()?;
    cluster.stop()?;
    for ((memory, statement), expected) in statements.iter().zip(expected) {
        is_answered(&cluster, memory, (statement, &expected))?;
    }
    Ok(())
}

fn is_answered(
    cluster: &TestCluster,
    memory: &str,
    (statement, expected): (&str, &str),
) -> Result<()> {
    let mut ours = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
    ours.args(["sql", "-d", "postgres", "--memory", memory, "--format", "csv", "-c", statement]);
    let output = ours.arg("-D").arg(cluster.data_dir()).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{statement}: {errors}");
    let text = String::from_utf8(output.stdout)?;
    let rows: Vec<&str> = text.lines().skip(1).collect();
    let wanted = expected.replace('|', ",");
    ensure!(rows == wanted.lines().collect::<Vec<_>>(), "{statement}: {text} {wanted}");
    Ok(())
}
