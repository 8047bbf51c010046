//! A standby that was there before, read while it replays; recoveries that stop before the commit of a change; a crash
//! just after the decision is in `pagemill-torture`.

use std::fs;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use pagemill_testkit::TestCluster;
use pagemill_testkit::prepared::{empty_cluster, scratch_dir};

use crate::fixture::{
    PLACED, SHOP, check, contents, database_directories, done, found, oid_of, rich,
};

/// Enough for the slowest machine; nothing waits for all of it unless the test fails.
const PATIENCE: Duration = Duration::from_secs(120);

/// A copy that takes its WAL from the other's directory, with further settings and a file that says what it is.
fn follower(cluster: &TestCluster, name: &str, signal: &str, more: &str) -> Result<TestCluster> {
    let root = tempfile::Builder::new().prefix(name).tempdir_in(scratch_dir()?)?.keep();
    let follower = cluster.copy_to(&root)?;
    let data = follower.data_dir();
    let wal = cluster.data_dir().join("pg_wal");
    let mut settings = fs::OpenOptions::new().append(true).open(data.join("postgresql.conf"))?;
    writeln!(settings, "\nrestore_command = 'cp {}/%f %p'\n{more}", wal.display())?;
    fs::write(data.join(signal), "")?;
    Ok(follower)
}

/// Asks until the answer comes.
fn wait_for(cluster: &TestCluster, sql: &str, answer: &str) -> Result<()> {
    let start = Instant::now();
    loop {
        let found = cluster.psql("postgres", sql);
        if found.as_ref().is_ok_and(|found| found == answer) {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            bail!("{sql}: {found:?} in place of {answer}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn count_of(names: &str) -> String {
    format!("SELECT count(*) FROM pg_database WHERE datname IN ({names})")
}

fn follow(major: u32) {
    let Some(install) = found(major) else { return };
    let primary = rich(&install, &[]).unwrap();
    let settings =
        "hot_standby = on\nwal_retrieve_retry_interval = '100ms'\nmax_standby_archive_delay = '5s'";
    let mut standby = follower(&primary, "standby", "standby.signal", settings).unwrap();
    standby.start().unwrap();
    let ended = AtomicBool::new(false);
    let judged = std::thread::scope(|scope| {
        let read = scope.spawn(|| read_until(&standby, &ended));
        let judged = change_and_compare(&primary, &standby);
        ended.store(true, Ordering::Relaxed);
        let read = read.join().unwrap();
        judged.and(read)
    });
    judged.and_then(|()| promote(standby)).unwrap_or_else(|e| panic!("PostgreSQL {major}: {e:?}"));
}

/// Asks what any session asks, again and again; returns the first error.
fn read_until(standby: &TestCluster, ended: &AtomicBool) -> Result<()> {
    let expected = standby.psql(SHOP, "SELECT count(*), sum(length(b)) FROM things")?;
    while !ended.load(Ordering::Relaxed) {
        let found = standby.psql(SHOP, "SELECT count(*), sum(length(b)) FROM things")?;
        ensure!(found == expected, "{found} in place of {expected}");
        let whole = "SELECT count(*), count(DISTINCT oid), count(DISTINCT datname) FROM pg_database \
                     WHERE has_database_privilege(oid, 'connect')";
        let counts = standby.psql("postgres", whole)?;
        let counts: Vec<_> = counts.split('|').collect();
        ensure!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    }
    Ok(())
}

fn change_and_compare(primary: &TestCluster, standby: &TestCluster) -> Result<()> {
    for (source, strategy, copy) in [
        (SHOP, "wal_log", "logged"),
        (SHOP, "file_copy", "copied"),
        (PLACED, "wal_log", "placed_logged"),
        (PLACED, "file_copy", "placed_copied"),
    ] {
        let owner = ["--owner", "alice", "--strategy", strategy];
        done(primary, &[&["clone"], &owner[..], &[source, copy]].concat())?;
    }
    let all = "'logged', 'copied', 'placed_logged', 'placed_copied'";
    wait_for(standby, &count_of(all), "4")?;
    // What is not logged is not on a standby, and cannot be read there.
    for (source, copies) in
        [(SHOP, ["logged", "copied"]), (PLACED, ["placed_logged", "placed_copied"])]
    {
        let expected = logged_contents(standby, source)?;
        for copy in copies {
            ensure!(logged_contents(standby, copy)? == expected, "{copy} on the standby");
            let indexes = "SELECT count(bt_index_check(c.oid, true)) FROM pg_class c JOIN pg_am a ON a.oid = c.relam \
                           WHERE relkind = 'i' AND amname = 'btree' AND relpersistence = 'p'";
            standby.psql(copy, indexes)?;
        }
    }
    // A session in a database that is dropped is ended, as by any DROP DATABASE.
    let gone = [oid_of(standby, "copied")?, oid_of(standby, "placed_logged")?];
    let mut session = pagemill_testkit::Session::open(standby, "copied")?;
    session.run("SELECT 1")?;
    done(primary, &["drop", "copied"])?;
    done(primary, &["drop", "placed_logged"])?;
    wait_for(standby, &count_of(all), "2")?;
    let answer = session.run("SELECT current_database(), count(*) FROM pg_class");
    let answer = answer.unwrap_or_default();
    ensure!(answer.is_empty(), "a session is in a database that is gone: {answer}");
    for oid in gone {
        ensure!(database_directories(&standby.data_dir(), &oid)?.is_empty(), "{oid} is left");
    }
    Ok(())
}

fn logged_contents(cluster: &TestCluster, db: &str) -> Result<Vec<u8>> {
    const RELATIONS: &str = "SELECT string_agg(format('COPY (SELECT * FROM %s) TO STDOUT', oid::regclass), ';' ORDER BY oid) \
         FROM pg_class WHERE relkind IN ('r', 'm', 'S', 't') AND NOT relisshared AND relpersistence = 'p'";
    let script = cluster.psql(db, RELATIONS)?;
    cluster.psql_bytes(db, &["-c", &script])
}

/// The standby becomes a server of its own and works with what it has.
fn promote(mut standby: TestCluster) -> Result<()> {
    standby.psql("postgres", "SELECT pg_promote()")?;
    check(&standby, SHOP)?;
    check(&standby, "logged")?;
    // Also what is not logged is there, empty.
    ensure!(standby.psql("logged", "SELECT count(*) FROM volatile")? == "0", "unlogged rows");
    for sql in [
        "INSERT INTO volatile VALUES (1, 'x'); INSERT INTO things VALUES (0, 'x')",
        "INSERT INTO volatile_counted DEFAULT VALUES; SELECT nextval('numbers')",
    ] {
        standby.psql("logged", sql)?;
    }
    standby.psql("postgres", "CREATE DATABASE again TEMPLATE logged")?;
    ensure!(contents(&standby, "again")? == contents(&standby, "logged")?, "a copy of the copy");
    standby.psql("postgres", "DROP DATABASE logged")?;
    standby.stop()?;
    done(&standby, &["clone", "placed_copied", "third"])?;
    standby.start()?;
    check(&standby, "third")
}

#[test]
fn a_standby_of_15_follows_while_it_is_read() {
    follow(15);
}

#[test]
fn a_standby_of_18_follows_while_it_is_read() {
    follow(18);
}

/// The number that the next transaction gets, once the server is stopped.
fn next_transaction(cluster: &mut TestCluster) -> Result<u32> {
    cluster.start()?;
    let last: u32 = cluster.psql("postgres", "SELECT pg_current_xact_id()")?.parse()?;
    cluster.stop()?;
    Ok(last + 1)
}

fn stop_between(major: u32) -> Result<()> {
    let Some(install) = found(major) else { return Ok(()) };
    let mut primary = empty_cluster(&install)?;
    primary.start()?;
    for (db, sql) in [
        ("postgres", "CREATE DATABASE shop"),
        (SHOP, "CREATE EXTENSION amcheck; CREATE ROLE alice"),
        (SHOP, "CREATE TABLE things (a int PRIMARY KEY); GRANT SELECT ON things TO alice"),
        ("postgres", "CREATE EXTENSION amcheck"),
        // What is marked as visible to all has to lose the mark with the row of a change that is not committed.
        ("postgres", "VACUUM (FREEZE) pg_database, pg_shdepend"),
    ] {
        primary.psql(db, sql)?;
    }
    primary.stop()?;
    let first = next_transaction(&mut primary)?;
    let until = |xid: u32| {
        format!(
            "recovery_target_xid = '{xid}'\nrecovery_target_inclusive = off\nrecovery_target_action = 'promote'"
        )
    };
    let mut followers = Vec::new();
    for (number, expected) in (first..).zip(["", "a", "a b"]) {
        let follower = follower(&primary, "stopping", "recovery.signal", &until(number))?;
        followers.push((follower, expected));
    }
    done(&primary, &["clone", "--strategy", "file_copy", SHOP, "a"])?;
    let second = if major == 14 { "file_copy" } else { "wal_log" };
    done(&primary, &["clone", "--strategy", second, SHOP, "b"])?;
    done(&primary, &["drop", "b"])?;
    for (number, (mut follower, expected)) in followers.into_iter().enumerate() {
        follower.start()?;
        wait_for(&follower, "SELECT pg_is_in_recovery()", "f")?;
        let databases = "SELECT coalesce(string_agg(datname, ' ' ORDER BY datname), '') FROM pg_database \
                         WHERE datname IN ('a', 'b')";
        let found = follower.psql("postgres", databases)?;
        ensure!(found == expected, "before {number}: {found} in place of {expected}");
        check(&follower, "postgres")?;
        if number == 2 {
            // As after a DROP DATABASE of the server that did not come to its end: there, and only to be dropped.
            ensure!(follower.psql("b", "SELECT 1").is_err(), "a database without files is open");
            follower.psql("postgres", "DROP DATABASE b")?;
        }
        follower.psql("postgres", "CREATE DATABASE a2 TEMPLATE shop")?;
        check(&follower, "a2")?;
        follower.stop()?;
        done(&follower, &["clone", SHOP, "a3"])?;
        done(&follower, &["drop", "a2"])?;
        follower.start()?;
        check(&follower, "a3")?;
    }
    Ok(())
}

#[test]
fn a_recovery_of_15_that_stops_before_a_commit_has_all_of_what_was_before() {
    stop_between(15).unwrap();
}

#[test]
fn a_recovery_of_18_that_stops_before_a_commit_has_all_of_what_was_before() {
    stop_between(18).unwrap();
}
