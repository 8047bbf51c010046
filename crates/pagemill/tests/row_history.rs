//! What WAL tells of a row and of a block, next to what the server said while it was written: transactions, the places of
//! row versions, their columns and the times of commits; `pg_waldump` for which records a block has; and the pages that a
//! server made of the same files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, Program, Session, TestCluster, each_of};
use serde_json::Value;

/// The last of these is created with `external` storage, so that it goes to the TOAST table as it is.
const TABLE: &str = "\
create table goods (id int, name text, price numeric, label text);
create index on goods (id);
alter table goods alter label set storage external;";

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_pagemill"))
}

fn every_version(check: impl Fn(&PgInstall) -> Result<()> + Sync) {
    each_of(&PgInstall::all(), check);
}

/// A row version as the server saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    xid: String,
    ctid: String,
    row: Vec<String>,
}

fn did(session: &mut Session, sql: &str) -> Result<String> {
    session.run(&format!("{sql};"))
}

/// What the server says of a version that a statement makes.
fn made(session: &mut Session, sql: &str, end: &str) -> Result<Seen> {
    did(session, "begin")?;
    let seen = did(
        session,
        &format!(
            "{sql} returning ctid, txid_current() % 4294967296, id, coalesce(name, '\\N'), coalesce(price::text, '\\N'), \
         coalesce(md5(label), '\\N')"
        ),
    )?;
    did(session, end)?;
    let mut fields = seen.trim().split('|').map(str::to_owned);
    let (ctid, xid) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
    Ok(Seen { xid, ctid, row: fields.collect() })
}

fn run(data: &Path, words: &[&str]) -> Result<Output> {
    program().run(data, words)
}

fn json(data: &Path, words: &[&str]) -> Result<Value> {
    let output = run(data, &[words, &["--json"]].concat())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{words:?}: {said}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The columns of a version: texts, the last one as its MD5 where there is one.
fn columns(version: &Value) -> Vec<String> {
    let value = |column: &Value| column["value"].as_str().unwrap_or("\\N").to_owned();
    list(&version["columns"]).iter().map(value).collect()
}

/// Clusters with what happened to one row, and what the server said of it.
struct Story {
    cluster: TestCluster,
    /// The versions, the oldest first.
    versions: Vec<Seen>,
    /// What became of the transaction of each.
    statuses: Vec<&'static str>,
    /// When each committed, as far as the server knows.
    times: Vec<String>,
    /// The place of another row, and the versions that were there one after the other.
    reused: (Seen, Seen),
    /// Who deleted the first of these.
    deleter: String,
    /// What `wal show --block` said of block 0 while the server ran.
    shown_live: String,
}

fn happened(install: &PgInstall, checksums: bool) -> Result<Story> {
    let options = ClusterOptions {
        data_checksums: Some(checksums),
        settings: vec!["track_commit_timestamp = on".into(), "wal_level = replica".into()],
        ..ClusterOptions::default()
    };
    let cluster = TestCluster::create(install, &options)?;
    cluster.psql("postgres", TABLE)?;
    let mut session = Session::open(&cluster, "postgres")?;
    let mut versions = Vec::new();
    let change = |set: &str| format!("update goods set {set} where id % 10 = 1");
    let other = made(&mut session, "insert into goods values (2, 'pear', 7)", "commit")?;
    versions.push(made(&mut session, "insert into goods values (1, 'apple', 1.5)", "commit")?);
    versions.push(made(&mut session, &change("price = 1.6"), "commit")?);
    did(&mut session, "checkpoint")?;
    versions.push(made(&mut session, &change("name = 'a mistake'"), "rollback")?);
    versions.push(made(&mut session, &change("id = 11, name = null"), "commit")?);
    // The page fills up, so that the next version goes to another one.
    did(
        &mut session,
        "insert into goods select i, repeat('x', 900) from generate_series(1000, 1080, 10) i",
    )?;
    versions.push(made(&mut session, &change("label = repeat('long', 900)"), "commit")?);
    versions.push(made(&mut session, &change(&format!("name = '{}'", "y".repeat(600))), "commit")?);
    let deleter = made(&mut session, "delete from goods where id = 2", "commit")?.xid;
    did(&mut session, "vacuum goods")?;
    let reused = made(&mut session, "insert into goods values (3, 'plum', 8)", "commit")?;
    let statuses =
        vec!["committed", "committed", "rolled back", "committed", "committed", "committed"];
    let mut times = Vec::new();
    for seen in &versions {
        let time = format!("select pg_xact_commit_timestamp('{}'::xid)", seen.xid);
        times.push(did(&mut session, &time)?.trim().to_owned());
    }
    drop(session);
    let words = ["wal", "show", "--block", "public.goods:0"];
    let shown_live = shown(&cluster.data_dir(), &words)?;
    Ok(Story { cluster, versions, statuses, times, reused: (other, reused), deleter, shown_live })
}

/// What `wal show` prints: its command line begins with two words.
fn shown(data: &Path, words: &[&str]) -> Result<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    let output = command.args(words).arg("-D").arg(data).env_remove("PGDATA").output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{words:?}: {said}");
    Ok(String::from_utf8(output.stdout)?)
}

fn is_as_seen(story: &Story, data: &Path) -> Result<()> {
    let last = &story.versions.last().context("no version")?.ctid;
    for ctid in [last, &story.versions[3].ctid] {
        let told = json(data, &["history", "-t", "goods", "--ctid", ctid])?;
        let row = list(&told["rows"][0]);
        ensure!(row.len() == story.versions.len(), "{} versions at {ctid}: {told:#}", row.len());
        for (index, (version, seen)) in row.iter().zip(&story.versions).enumerate() {
            let what = || format!("version {index}, {seen:?}: {version:#}");
            ensure!(text(&version["ctid"]) == seen.ctid, "{}", what());
            let by = &version["inserted_by"];
            ensure!(by["xid"].as_u64() == seen.xid.parse().ok(), "{}", what());
            ensure!(text(&by["status"]) == story.statuses[index], "{}", what());
            if text(&by["status"]) == "committed" {
                ensure!(
                    text(&by["time"]) == story.times[index],
                    "{}: {}",
                    story.times[index],
                    what()
                );
            }
            let found = columns(version);
            ensure!(found[..3] == seen.row[..3], "{}", what());
            let label = if seen.row[3] == "\\N" { "\\N".into() } else { "long".repeat(900) };
            ensure!(found[3] == label, "{}", what());
            let expected = if index + 1 == row.len() { "visible" } else { text(&version["state"]) };
            ensure!(text(&version["state"]) == expected, "{}", what());
        }
        let visible = row.iter().filter(|version| version["state"] == "visible").count();
        ensure!(visible == 1, "{visible} visible versions: {told:#}");
        // The committed version before the rolled-back one was updated twice.
        let updates = list(&row[1]["events"]).iter().filter(|event| event["action"] == "update");
        let updaters: Vec<_> = updates.map(|e| e["transaction"]["xid"].to_string()).collect();
        let expected = [&story.versions[2].xid, &story.versions[3].xid];
        ensure!(updaters.iter().eq(expected), "{updaters:?}");
    }
    Ok(())
}

/// Two rows were at one place, one after the other.
fn place_was_used_twice(story: &Story, data: &Path) -> Result<()> {
    let (first, second) = &story.reused;
    ensure!(first.ctid == second.ctid, "{first:?} {second:?}");
    let told = json(data, &["history", "-t", "goods", "--ctid", &first.ctid])?;
    let rows = list(&told["rows"]);
    ensure!(rows.len() == 2 && list(&rows[0]).len() == 1, "{told:#}");
    ensure!(columns(&rows[0][0])[..3] == second.row[..3], "{told:#}");
    ensure!(columns(&rows[1][0])[..3] == first.row[..3], "{told:#}");
    ensure!(rows[1][0]["state"] == "gone" && rows[0][0]["state"] == "visible", "{told:#}");
    let actions: Vec<_> = list(&rows[1][0]["events"]).iter().map(|e| text(&e["action"])).collect();
    ensure!(actions[..3] == ["insert", "delete", "dead"], "{actions:?}");
    let deleter = rows[1][0]["events"][1]["transaction"]["xid"].to_string();
    ensure!(deleter == story.deleter, "{deleter}: {}", story.deleter);
    Ok(())
}

/// The places of records in lines of `wal show` or `pg_waldump`.
fn lsns(lines: &str) -> Vec<String> {
    let lsn = |line: &str| Some(line.split_once("lsn: ")?.1.split(',').next()?.to_owned());
    lines.lines().filter_map(lsn).collect()
}

fn records_of_the_block(story: &Story, install: &PgInstall, data: &Path) -> Result<()> {
    let words = ["wal", "show", "--block", "public.goods:0"];
    let named = shown(data, &words)?;
    // The server writes a checkpoint or a hint behind what was seen while it ran.
    ensure!(named.starts_with(&story.shown_live) && story.shown_live.len() > 2000, "{named}");
    for told in ["reinitialized; tuples: 1 inserted", "the whole page (image)", "updated to (1,"] {
        ensure!(named.contains(told), "{told}: {named}");
    }
    let file = fs::canonicalize(data)?;
    let inspected = json(data, &["inspect", "-t", "goods"])?;
    let number = text(&inspected["file"]).rsplit('/').next().unwrap_or_default().to_owned();
    let database = text(&inspected["file"]).rsplit('/').nth(1).unwrap_or_default().to_owned();
    let by_oids = format!("1663/{database}/{number}");
    let again = shown(data, &["wal", "show", "--block", &format!("{by_oids}:0")])?;
    ensure!(again == named, "{again}");
    let again = shown(data, &["wal", "show", "-R", &by_oids, "--block", "0"])?;
    ensure!(again == named, "{again}");
    let deletes = shown(data, &[&words[..], &["--xid", &story.deleter]].concat())?;
    ensure!(lsns(&deletes).len() == 1 && deletes.contains("deleted"), "{deletes}");
    let tool = install.program("pg_waldump");
    if install.major >= 15 && tool.exists() {
        let first = format!("0/{:08X}", first_segment(&file.join("pg_wal"))?);
        let mut command = Command::new(tool);
        command.env("TZ", "UTC").arg("-p").arg(file.join("pg_wal")).args(["-s", &first]);
        let output = command.args(["-R", &by_oids, "-B", "0", "-F", "main"]).output()?;
        let theirs = lsns(&String::from_utf8_lossy(&output.stdout));
        ensure!(theirs.len() > 10 && lsns(&named) == theirs, "{theirs:?}\n{named}");
    }
    Ok(())
}

/// Where the oldest segment begins.
fn first_segment(wal: &Path) -> Result<u64> {
    let names = fs::read_dir(wal)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let first = names.filter(|name| name.len() == 24).min().context("no segment")?;
    Ok(u64::from_str_radix(&first[16..], 16)? * (16 << 20))
}

/// The parts of a page that recovery decides: all but hint bits and the checksum.
fn page_of(block: &Value) -> Value {
    let mut lines = list(&block["line_pointers"]).to_vec();
    for line in &mut lines {
        for hint in ["infomask", "flags"] {
            if let Some(tuple) = line["tuple"].as_object_mut() {
                tuple.remove(hint);
            }
        }
    }
    let header = &block["header"];
    serde_json::json!([lines, header["lsn"], header["lower"], header["upper"]])
}

#[test]
fn a_rows_versions_are_those_that_the_server_saw() {
    every_version(|install| {
        let mut story = happened(install, install.major % 2 == 0)?;
        story.cluster.kill()?;
        let data = story.cluster.data_dir();
        is_as_seen(&story, &data)?;
        place_was_used_twice(&story, &data)?;
        records_of_the_block(&story, install, &data)?;
        let redone: Vec<_> = ["0", "1"]
            .iter()
            .map(|number| json(&data, &["inspect", "-t", "goods", "--block", number]))
            .collect::<Result<_>>()?;
        for block in &redone {
            let records = list(&block["wal"]["records"]);
            ensure!(block["wal"]["base"]["page"] == "not looked at", "{block:#}");
            ensure!(records.iter().all(|record| record["applied"] == true), "{block:#}");
            let last = records.iter().rfind(|r| r["record"] != "VISIBLE").context("no record")?;
            let lsn = &block["header"]["lsn"];
            let is_last = records.iter().any(|record| record["end"] == *lsn);
            ensure!(is_last || last["end"] == *lsn, "{block:#}");
        }
        // A server recovers, and stops: its pages are those that were redone, and the row has the same history.
        story.cluster.start()?;
        story.cluster.stop()?;
        for (number, redone) in ["0", "1"].iter().zip(&redone) {
            let block = json(&data, &["inspect", "-t", "goods", "--block", number])?;
            ensure!(block["wal"].is_null(), "{block:#}");
            ensure!(page_of(&block) == page_of(redone), "{block:#}\n{redone:#}");
        }
        is_as_seen(&story, &data)?;
        place_was_used_twice(&story, &data)
    });
}

#[test]
fn without_wal_there_is_the_version_on_the_page() {
    let Some(install) = PgInstall::all().into_iter().next() else { return };
    let mut story = happened(&install, true).unwrap();
    let mut session = Session::open(&story.cluster, "postgres").unwrap();
    let last = made(&mut session, "update goods set price = 9 where id = 11", "commit").unwrap();
    drop(session);
    story.cluster.stop().unwrap();
    let data = story.cluster.data_dir();
    for entry in fs::read_dir(data.join("pg_wal")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::remove_file(path).unwrap();
        }
    }
    let words = ["history", "-t", "goods", "--ctid", &last.ctid];
    let output = run(&data, &words).unwrap();
    let (told, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("only what its pages tell") && said.contains("no WAL at"), "{said}");
    assert!(told.contains(&format!("at {}: visible", last.ctid)), "{told}");
    assert!(
        told.contains(&format!(
            "older than the WAL that is there: inserted by transaction {}",
            last.xid
        )),
        "{told}"
    );
    // The version before it is on the same page, and leads to it.
    let found = json(&data, &words).unwrap();
    let row = list(&found["rows"][0]);
    assert!(found["wal"].is_null() && row.len() == 2, "{found:#}");
    assert_eq!([&columns(&row[0])[2], &columns(&row[1])[2]], ["1.6", "9"], "{found:#}");
}

#[test]
fn a_page_that_was_written_is_begun_from_and_its_records_are_skipped() {
    let Some(install) = PgInstall::all().into_iter().next() else { return };
    let options = ClusterOptions {
        settings: vec!["full_page_writes = off".into(), "shared_buffers = 128kB".into()],
        ..ClusterOptions::default()
    };
    let mut cluster = TestCluster::create(&install, &options).unwrap();
    let sql = "create table small (i int, v text); insert into small values (1, 'one'), (2, 'two');
        create table big as select i, repeat('x', 500) from generate_series(1, 5000) i";
    cluster.psql("postgres", sql).unwrap();
    cluster.psql("postgres", "checkpoint").unwrap();
    cluster.psql("postgres", "update small set v = 'three' where i = 1").unwrap();
    // The page leaves the buffers.
    cluster.psql("postgres", "select count(*) from big a").unwrap();
    cluster.psql("postgres", "update big set i = i").unwrap();
    cluster.psql("postgres", "update small set v = 'four' where i = 1").unwrap();
    cluster.kill().unwrap();
    let data = cluster.data_dir();
    let block = json(&data, &["inspect", "-t", "small", "--block", "0"]).unwrap();
    assert_eq!(block["wal"]["base"]["page"], "in file", "{block:#}");
    let records = list(&block["wal"]["records"]);
    let applied: Vec<_> = records.iter().map(|record| record["applied"] == true).collect();
    let skipped: Vec<_> =
        records.iter().map(|record| record["end"] == block["wal"]["base"]["lsn"]).collect();
    assert!(applied.contains(&true) && applied.contains(&false), "{block:#}");
    assert_eq!(skipped.iter().filter(|is_base| **is_base).count(), 1, "{block:#}");
    let told = run(&data, &["inspect", "-t", "small", "--block", "0"]).unwrap();
    let told = String::from_utf8_lossy(&told.stdout);
    assert!(told.contains("in the file, LSN") && told.contains("skipped: in the file"), "{told}");
    let found = json(&data, &["history", "-t", "small", "--ctid", "(0,1)"]).unwrap();
    let values: Vec<_> = list(&found["rows"][0]).iter().map(|v| columns(v)[1].clone()).collect();
    assert_eq!(values, ["one", "three", "four"], "{found:#}");
}

#[test]
fn a_backup_and_its_archive_tell_up_to_the_moment_that_is_asked_for() {
    every_version(|install| {
        if !install.program("pg_basebackup").exists() {
            eprintln!("SKIPPED: this PostgreSQL {} came without pg_basebackup", install.major);
            return Ok(());
        }
        let options = ClusterOptions {
            initdb_flags: vec!["--wal-segsize=1".into()],
            settings: vec!["wal_level = replica".into(), "archive_mode = on".into()],
            ..ClusterOptions::default()
        };
        let mut cluster = TestCluster::create(install, &options)?;
        let archive = cluster.root().join("archive");
        cluster.account().create_dir(&archive)?;
        let command =
            format!("alter system set archive_command = 'cp %p {}/%f'", archive.display());
        cluster.psql("postgres", &command)?;
        cluster.psql("postgres", "select pg_reload_conf()")?;
        cluster.psql("postgres", TABLE)?;
        cluster.psql("postgres", "insert into goods values (1, 'before', 1)")?;
        let target = cluster.root().join("backup");
        let mut command = cluster.account().command(&install.program("pg_basebackup"));
        let psql = cluster.psql_command("postgres");
        let set = psql.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.envs(set).env_remove("PGDATABASE");
        let output = command.args(["-c", "fast", "-X", "none", "-D"]).arg(&target).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut session = Session::open(&cluster, "postgres")?;
        let changed = made(&mut session, "update goods set name = 'behind'", "commit")?;
        did(&mut session, "delete from goods")?;
        did(&mut session, "drop table goods")?;
        did(&mut session, "select pg_switch_wal()")?;
        drop(session);
        cluster.stop()?;
        let place = archive.to_str().context("a path")?;
        let until = format!("xid:{}", changed.xid);
        let words =
            ["history", "--wal", place, "--until", &until, "-t", "goods", "--ctid", &changed.ctid];
        let told = json(&target, &words)?;
        let row = list(&told["rows"][0]);
        ensure!(row.len() == 2 && row[1]["state"] == "visible", "{told:#}");
        ensure!(columns(&row[0])[1] == "before" && columns(&row[1])[1] == "behind", "{told:#}");
        ensure!(list(&row[1]["events"]).len() == 1, "{told:#}");
        let listed = shown(
            &target,
            &["wal", "show", "--wal", place, "-R", &locator(&target, &words)?, "--block", "0"],
        )?;
        ensure!(listed.contains("1 inserted") && listed.contains("2 deleted"), "{listed}");
        // In the end the table is gone.
        let gone = run(&target, &["history", "--wal", place, "-t", "goods", "--ctid", "(0,1)"])?;
        let said = String::from_utf8_lossy(&gone.stderr);
        ensure!(gone.status.code() == Some(2) && said.contains("goods"), "{said}");
        ensure!(said.contains("--until"), "{said}");
        Ok(())
    });
}

/// The files of the table of a story, as WAL names them.
fn locator(data: &Path, words: &[&str]) -> Result<String> {
    let words = [&["inspect"], &words[1..7]].concat();
    let inspected = json(data, &words)?;
    let mut parts = text(&inspected["file"]).rsplit('/');
    let (number, database) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    Ok(format!("1663/{database}/{number}"))
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let Some(install) = PgInstall::all().into_iter().next() else { return };
    let mut story = happened(&install, false).unwrap();
    let sql =
        "create table parts (i int) partition by list (i); create unlogged table fleeting (i int);
        insert into fleeting values (1)";
    story.cluster.psql("postgres", sql).unwrap();
    let data = story.cluster.data_dir();
    let running = run(&data, &["history", "-t", "goods", "--ctid", "(0,1)"]).unwrap();
    assert!(String::from_utf8_lossy(&running.stderr).contains("--live"));
    story.cluster.stop().unwrap();
    let refused = |words: &[&str], expected: &str| {
        let output = run(&data, words).unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{words:?}: {said}");
        assert!(said.contains(expected), "{words:?}: {said}");
    };
    let of = |table: &'static str, ctid: &'static str| ["history", "-t", table, "--ctid", ctid];
    refused(&of("goods", "7,3"), "as in (7,3)");
    refused(&of("goods", "(7,0)"), "as in (7,3)");
    refused(&of("goods", "(99,1)"), "which has 2 blocks");
    refused(&of("goods", "(0,200)"), "a row at (0,200) of public.goods, now or earlier,");
    refused(&of("nothing", "(0,1)"), "nothing");
    refused(&of("parts", "(0,1)"), "partition");
    for block in ["goods", "goods:x", "7", "nothing:0"] {
        let said = shown(&data, &["wal", "show", "--block", block]).unwrap_err().to_string();
        assert!(said.contains("the number of a block") || said.contains("nothing"), "{said}");
    }
    // No such block: nothing happened to it.
    assert_eq!(shown(&data, &["wal", "show", "--block", "goods:99"]).unwrap(), "");
    let output = run(&data, &of("fleeting", "(0,1)")).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("the table is not logged"), "{said}");
}
