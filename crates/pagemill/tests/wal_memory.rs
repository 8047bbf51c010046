//! A killed cluster whose WAL is more than `--wal-memory` holds: what is told of it is the same as with memory for all of it.
//!
//! Invariant: both runs read the same copy, and the small one is seen to have used temporary files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, each_of};

/// Records of 130 000 changes and more since the checkpoint, in tables that grow, change, are cut and dropped.
const WORK: &str = "\
create table goods (id int primary key, name text, price int);
create table events (id int);
create table gone (id int);
insert into goods select i, 'first', 0 from generate_series(1, 2000) i;
checkpoint;
insert into events select generate_series(1, 60000);
insert into gone select generate_series(1, 9000);
insert into goods select i, 'second', i from generate_series(2001, 30000) i;
update goods set price = price + 1 where id % 3 = 0;
delete from events where id > 30000;
vacuum events;
drop table gone;
update goods set price = price + 1 where id % 7 = 0;
create table last (id int);
insert into last select generate_series(1, 20000);";

fn run(data: &Path, words: &[&str], memory: Option<&str>, temporary: &Path) -> Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    command.args(words).arg("-D").arg(data).env("TMPDIR", temporary).env_remove("PGDATA");
    if let Some(memory) = memory {
        command.args(["--wal-memory", memory]);
    }
    Ok(command.output()?)
}

fn is_the_same(data: &Path, words: &[&str], temporary: &Path) -> Result<()> {
    let expected = run(data, words, None, temporary)?;
    let found = run(data, words, Some("1MB"), temporary)?;
    let said = String::from_utf8_lossy(&found.stderr).into_owned();
    ensure!(expected.status.success() && found.status.success(), "{words:?}: {said}");
    ensure!(!expected.stdout.is_empty() && expected.stdout == found.stdout, "{words:?} differs");
    Ok(())
}

fn compare(install: &PgInstall) -> Result<()> {
    let settings = vec!["max_wal_size = 10GB".into(), "autovacuum = off".into()];
    let mut cluster =
        TestCluster::create(install, &ClusterOptions { settings, ..ClusterOptions::default() })?;
    for statement in WORK.split_inclusive(';') {
        cluster.psql("postgres", statement)?;
    }
    cluster.kill_all()?;
    let (data, temporary) = (cluster.data_dir(), tempfile::tempdir()?);
    let none = temporary.path().join("none");
    let count = ["count", "-t", "goods", "-t", "events", "-t", "last"];
    ensure!(run(&data, &count, None, &none)?.status.success(), "all fits in memory by default");
    let refused = run(&data, &count, Some("1MB"), &none)?;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    let says =
        "the directory for temporary files does not exist: make it, or set TMPDIR to another";
    ensure!(!refused.status.success(), "with 1MB a temporary file is wanted");
    ensure!(said.contains(&format!("{}: {says}", none.display())), "{said}");
    for words in [
        &count[..],
        &["ls", "-d", "postgres", "-S"],
        &["export", "-t", "goods"],
        &["export", "-t", "goods", "--order-by", "goods_pkey"],
        &["export", "-t", "events"],
        &["history", "-t", "goods", "--ctid", "(3,7)"],
        &["wal", "show", "--block", "public.goods:3"],
    ] {
        is_the_same(&data, words, temporary.path())?;
    }
    ensure!(fs::read_dir(temporary.path())?.next().is_none(), "nothing is left behind");
    Ok(())
}

#[test]
fn what_does_not_fit_in_memory_is_read_from_temporary_files() {
    let all = PgInstall::all();
    let newest = all.iter().max_by_key(|install| install.major).cloned();
    each_of(&newest.into_iter().collect::<Vec<_>>(), compare);
}
