//! Many clients sort more than memory holds, all at once: they wait for each other, and each has its answer. Joins of small tables that give
//! more than it holds go to files.
//!
//! Invariant: the answers are the server's; a client that takes no rows keeps nobody from his.

mod support;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use support::Served;

const TABLE: &str = "create table t as select i as id, md5(i::text) || repeat('x', 100) as w from generate_series(1, 200000) i;
    create table small as select 1 as x; checkpoint";
const SORT: &str = "select id from t order by w offset 150000 limit 3";
const CLIENTS: usize = 8;

fn psql(served: &Served, cluster: &TestCluster) -> Command {
    let mut command = Command::new(cluster.install().psql());
    command.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-h"]).arg(served.directory.path());
    command.args(["-U", "postgres", "-d", "postgres"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn answer(client: Child) -> Result<String> {
    let output = client.wait_with_output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && errors.is_empty(), "{errors}");
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn clients_that_sort_all_at_once_wait_for_each_other() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let options = ClusterOptions { locale: "C".to_owned(), ..ClusterOptions::default() };
    let mut cluster = TestCluster::create(&install, &options)?;
    cluster.psql("postgres", TABLE)?;
    let expected = cluster.psql("postgres", SORT)?;
    cluster.stop()?;
    let served = Served::start(&cluster, &["--memory", "80MB"])?;

    // One has begun to take its rows, and takes no more.
    let mut idle = psql(&served, &cluster).stdin(Stdio::piped()).spawn()?;
    let mut words = idle.stdin.take().context("its input")?;
    let rows = idle.stdout.take().context("its output")?;
    let mut rows = BufReader::new(rows).lines();
    writeln!(words, "begin; declare c cursor for select id from t order by w; fetch 1 from c;")?;
    let first = rows.next().context("a row")??;

    let clients = (0..CLIENTS).map(|_| Ok(psql(&served, &cluster).args(["-c", SORT]).spawn()?));
    let clients = clients.collect::<Result<Vec<Child>>>()?;
    // Who does not sort does not wait.
    let quick = psql(&served, &cluster).args(["-c", "select x from small order by x"]).spawn()?;
    ensure!(answer(quick)?.trim() == "1");
    for client in clients {
        ensure!(answer(client)?.trim() == expected.trim());
    }
    writeln!(words, "fetch 1 from c; commit;")?;
    drop(words);
    let second = rows.next().context("another row")??;
    ensure!(first != second && rows.next().is_none(), "{first} {second}");
    ensure!(idle.wait()?.success());
    Ok(())
}

/// 200,000 rows on both sides of the last join, of tables that one thread reads.
const JOIN: &str = "with pairs as (select a.id as a, b.id as b, a.s || b.s as s from part a join part b using (k))
    select count(*), max(x.s), min(y.s) from pairs x join pairs y on x.a = y.a and x.b = y.b where y.s > ''";

#[test]
fn a_join_of_small_tables_that_gives_much_goes_to_files() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let options = ClusterOptions { locale: "C".to_owned(), ..ClusterOptions::default() };
    let mut cluster = TestCluster::create(&install, &options)?;
    cluster.psql(
        "postgres",
        "create table part as select i as id, i % 5 as k, repeat('x', 40) as s from generate_series(1, 1000) i;
         analyze; checkpoint",
    )?;
    let expected = cluster.psql("postgres", JOIN)?;
    cluster.stop()?;
    let served = Served::start(&cluster, &["--memory", "16MB"])?;
    // Prepared, too, from whose second run on a plan is kept.
    let prepared = format!("prepare j as {JOIN}; execute j; execute j; execute j");
    let found = answer(psql(&served, &cluster).args(["-c", JOIN, "-c", &prepared]).spawn()?)?;
    let answers: Vec<&str> = found.lines().filter(|line| line.starts_with("200000|")).collect();
    ensure!(answers.len() == 4 && answers.iter().all(|line| *line == expected.trim()), "{found}");
    Ok(())
}
