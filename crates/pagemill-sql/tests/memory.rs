//! What has to sort more than its memory holds sorts in files, also where many of the first rows are wanted.
//!
//! Invariant: the answer is the server's.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};

const TABLE: &str = "create table t as select i as id, md5(i::text) || repeat('x', 100) as w from generate_series(1, 400000) i";

const STATEMENTS: [&str; 3] = [
    "select id from t order by w, id limit 5 offset 300000",
    "select count(*), min(id), max(w) from (select id, w from t order by w desc limit 250000) s",
    "select id from t order by w, id limit 5",
];

#[test]
fn many_first_rows_are_sorted_in_files() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let options = ClusterOptions { locale: "C".to_owned(), ..ClusterOptions::default() };
    let mut cluster = TestCluster::create(&install, &options)?;
    cluster.psql("postgres", TABLE)?;
    let ask = |statement: &&str| cluster.psql("postgres", statement);
    let expected = STATEMENTS.iter().map(ask).collect::<Result<Vec<String>>>()?;
    cluster.psql("postgres", "checkpoint")?;
    cluster.stop()?;
    for (statement, expected) in STATEMENTS.iter().zip(expected) {
        let mut ours = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
        ours.args([
            "sql", "-d", "postgres", "--memory", "80MB", "--format", "csv", "-c", statement,
        ]);
        let output = ours.arg("-D").arg(cluster.data_dir()).output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{statement}: {errors}");
        let text = String::from_utf8(output.stdout)?;
        let rows: Vec<&str> = text.lines().skip(1).collect();
        let wanted = expected.replace('|', ",");
        ensure!(rows == wanted.lines().collect::<Vec<_>>(), "{statement}: {text} {wanted}");
    }
    Ok(())
}
