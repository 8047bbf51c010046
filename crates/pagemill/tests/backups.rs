//! Base backups and their archives, read without a restore: every row as the server had it at the moment asked for.
//!
//! The judge is the server that wrote the WAL: what it printed before the next change.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, each_of};

/// Tables with TOAST values, indexes and a sequence, of which each change below makes something else.
const TABLES: &str = "\
create table orders (id int primary key, note text, at timestamptz default now());
alter table orders alter note set storage external;
create sequence numbers;
insert into orders select nextval('numbers'), repeat(md5(i::text), i % 200) from generate_series(1, 3000) i;
create table dropped as select i, 'row ' || i as v from generate_series(1, 500) i;";

fn pagemill(words: &[&str], data: &Path, archive: &Path) -> Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    command.arg(words[0]).arg("-D").arg(data).args(&words[1..]).env_remove("PGDATA");
    if !archive.as_os_str().is_empty() {
        command.arg("--wal").arg(archive);
    }
    Ok(command.output()?)
}

/// The rows of a table as COPY prints them, sorted.
fn exported(table: &str, until: &[&str], data: &Path, archive: &Path) -> Result<Vec<String>> {
    let words = [&["export", "-d", "postgres", "-t", table], until].concat();
    let output = pagemill(&words, data, archive)?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{words:?}: {said}");
    ensure!(said.contains("read as after redo of its WAL from"), "{words:?}: {said}");
    Ok(sorted(String::from_utf8(output.stdout)?.as_str()))
}

fn refused(words: &[&str], data: &Path, archive: &Path) -> Result<String> {
    let output = pagemill(words, data, archive)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(!output.status.success(), "{words:?} was not refused: {said}");
    ensure!(output.stdout.is_empty() && !said.contains("panicked"), "{words:?}: {said}");
    Ok(said)
}

fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn rows(cluster: &TestCluster, table: &str) -> Result<Vec<String>> {
    let printed = cluster.psql("postgres", &format!("copy {table} to stdout"))?;
    Ok(sorted(&printed))
}

fn backup(cluster: &TestCluster, wal: &str) -> Result<PathBuf> {
    let target = cluster.root().join(format!("backup-{wal}"));
    let mut command = cluster.account().command(&cluster.install().program("pg_basebackup"));
    let psql = cluster.psql_command("postgres");
    let set = psql.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.envs(set).env_remove("PGDATABASE");
    let output = command.args(["-c", "fast", "-X", wal, "-D"]).arg(&target).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(target)
}

/// A cluster with the tables, which archives its WAL in segments of 1 MB, and its archive.
fn archiving(install: &PgInstall) -> Result<(TestCluster, PathBuf)> {
    let options = ClusterOptions {
        initdb_flags: vec!["--wal-segsize=1".into()],
        settings: ["wal_level=replica", "max_wal_size=32MB", "min_wal_size=2MB", "archive_mode=on"]
            .map(str::to_owned)
            .to_vec(),
        ..ClusterOptions::default()
    };
    let cluster = TestCluster::create(install, &options)?;
    let archive = cluster.root().join("archive");
    cluster.account().create_dir(&archive)?;
    let command = format!("alter system set archive_command = 'cp %p {}/%f'", archive.display());
    cluster.psql("postgres", &command)?;
    cluster.psql("postgres", "select pg_reload_conf()")?;
    cluster.psql("postgres", TABLES)?;
    Ok((cluster, archive))
}

/// Unlogged relations of before a backup, of which it has only the init forks, and such that later WAL makes.
fn make_unlogged(cluster: &TestCluster, name: &str) -> Result<()> {
    cluster
        .psql("postgres", &format!("create unlogged table {name} (a int primary key, b text)"))?;
    cluster.psql("postgres", &format!("insert into {name} values (1, 'x')"))?;
    if cluster.major() > 14 {
        cluster.psql("postgres", &format!("create unlogged sequence {name}_seq"))?;
    }
    Ok(())
}

/// They are there, with the files that a server's start makes of their init forks.
fn has_unlogged(name: &str, data: &Path, archive: &Path) -> Result<()> {
    ensure!(exported(name, &["--order-by", &format!("{name}_pkey")], data, archive)?.is_empty());
    for words in [
        &["ls", "-d", "postgres", "-t", &format!("{name}*")][..],
        &["inspect", "-d", "postgres", "-t", &format!("{name}_pkey")],
    ] {
        let output = pagemill(words, data, archive)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success() && !said.contains("missing"), "{words:?}: {said}");
    }
    Ok(())
}

fn reads_every_moment(install: &PgInstall) -> Result<()> {
    if !install.program("pg_basebackup").exists() {
        eprintln!("SKIPPED: this PostgreSQL {} came without pg_basebackup", install.major);
        return Ok(());
    }
    let (mut cluster, archive) = archiving(install)?;
    make_unlogged(&cluster, "fleeting")?;
    let without = backup(&cluster, "none")?;
    make_unlogged(&cluster, "made_later")?;
    cluster.psql("postgres", "create table rewritten (a int primary key)")?;
    cluster.psql("postgres", "alter table rewritten set unlogged")?;
    let at_backup = rows(&cluster, "orders")?;
    cluster.psql("postgres", "update orders set note = note || 'changed' where id % 3 = 0")?;
    cluster.psql("postgres", "insert into orders values (nextval('numbers') + 5000, 'later')")?;
    cluster.psql("postgres", "vacuum orders")?;
    let (changed, dropped) = (rows(&cluster, "orders")?, rows(&cluster, "dropped")?);
    cluster.psql("postgres", "select pg_create_restore_point('before')")?;
    let time = cluster
        .psql("postgres", "select to_char(now() at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')")?;
    let place = cluster.psql("postgres", "select pg_current_wal_insert_lsn()")?;
    cluster.psql("postgres", "delete from orders")?;
    cluster.psql("postgres", "drop table dropped")?;
    let streamed = backup(&cluster, "stream")?;
    cluster.psql("postgres", "insert into orders values (1, 'the last')")?;
    let last = rows(&cluster, "orders")?;
    cluster.stop()?;

    let moments = [
        vec!["--until".to_owned(), "name:before".into()],
        vec!["--until".to_owned(), format!("time:{}+00", time.trim())],
        vec!["--until".to_owned(), format!("lsn:{}", place.trim()), "--exclusive".into()],
    ];
    for moment in &moments {
        let until: Vec<&str> = moment.iter().map(String::as_str).collect();
        ensure!(exported("orders", &until, &without, &archive)? == changed, "{until:?}");
        ensure!(exported("dropped", &until, &without, &archive)? == dropped, "{until:?}");
    }
    let consistent = exported("orders", &["--until", "consistent"], &without, &archive)?;
    ensure!(consistent == at_backup, "rows of the moment the backup ended");
    ensure!(exported("orders", &[], &without, &archive)? == last, "rows at the end of WAL");
    ensure!(exported("orders", &[], &streamed, Path::new(""))?.is_empty(), "all were deleted");
    has_unlogged("fleeting", &without, &archive)?;
    has_unlogged("made_later", &without, &archive)?;
    has_unlogged("made_later", &streamed, Path::new(""))?;
    ensure!(pagemill(&["ls", "-d", "postgres"], &without, &archive)?.status.success(), "all");
    // The index of the primary key, and the sequence.
    let ordered = ["--order-by", "orders_pkey", "--until", "name:before"];
    ensure!(exported("orders", &ordered, &without, &archive)? == changed, "in index order");

    let count = ["count", "-d", "postgres", "-t", "orders"];
    let early = refused(&count, &without, Path::new(""))?;
    ensure!(early.contains("no checkpoint record"), "without the archive: {early}");
    let never = refused(&[&count[..], &["--until", "name:never"]].concat(), &without, &archive)?;
    ensure!(never.contains("never"), "{never}");
    let raw = refused(&[&count[..], &["--allow-unclean"]].concat(), &without, &archive)?;
    ensure!(raw.contains("--allow-unclean"), "{raw}");
    std::fs::metadata(without.join("backup_label")).context("nothing is written")?;
    Ok(())
}

#[test]
fn a_base_backup_and_its_archive_give_back_what_was_deleted_and_dropped_later() {
    each_of(&PgInstall::all(), reads_every_moment);
}
