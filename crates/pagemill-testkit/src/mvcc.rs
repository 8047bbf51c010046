//! Row states that only overlapping sessions leave behind.
//!
//! Multixacts of several backends with an updater that committed or rolled back, foreign-key locks taken while the
//! parent row was updated, prepared transactions, a crash in mid-transaction, and xids interleaved on one page. The
//! tables are created by `fixtures/mvcc.sql`. None of them is read afterwards, so nothing is hinted.

use anyhow::{Context, Result};

use crate::server::TestCluster;
use crate::session::Session;

/// How many sessions lock one row at once: enough for several groups of multixact members.
const MANY: usize = 40;

/// Fills the `overlap_` tables of `db`. The cluster is restarted once on the way.
pub fn overlap_sessions(cluster: &mut TestCluster, db: &str) -> Result<()> {
    multixacts(cluster, db).context("multixacts")?;
    many_members(cluster, db).context("many members")?;
    foreign_keys(cluster, db).context("foreign keys")?;
    old_snapshot(cluster, db).context("old snapshot")?;
    interleaved(cluster, db).context("interleaved")?;
    crash(cluster, db).context("crash")?;
    // Last, because a prepared transaction holds back what VACUUM may remove.
    prepared(cluster, db).context("prepared transactions")
}

/// `(id, first lock, what the second session does, how each ends)`.
const MULTIXACTS: [(u32, &str, &str, &str, &str); 12] = [
    (1, "FOR KEY SHARE", "FOR KEY SHARE", "COMMIT", "COMMIT"),
    (2, "FOR SHARE", "FOR SHARE", "COMMIT", "ROLLBACK"),
    (3, "FOR KEY SHARE", "UPDATE", "COMMIT", "COMMIT"),
    (4, "FOR KEY SHARE", "UPDATE", "COMMIT", "ROLLBACK"),
    (5, "FOR KEY SHARE", "UPDATE", "ROLLBACK", "COMMIT"),
    (6, "FOR KEY SHARE", "UPDATE", "ROLLBACK", "ROLLBACK"),
    (7, "FOR KEY SHARE", "FOR NO KEY UPDATE", "COMMIT", "COMMIT"),
    (8, "FOR SHARE", "FOR KEY SHARE", "ROLLBACK", "ROLLBACK"),
    (9, "UPDATE", "FOR KEY SHARE", "COMMIT", "COMMIT"),
    (10, "UPDATE", "FOR KEY SHARE", "ROLLBACK", "COMMIT"),
    (11, "UPDATE", "FOR KEY SHARE", "COMMIT", "ROLLBACK"),
    (12, "FOR KEY SHARE", "SUBTRANSACTION", "COMMIT", "COMMIT"),
];

fn multixacts(cluster: &TestCluster, db: &str) -> Result<()> {
    let (mut one, mut two) = (Session::open(cluster, db)?, Session::open(cluster, db)?);
    for (id, first, second, first_end, second_end) in MULTIXACTS {
        one.run(&format!("BEGIN; {}", action(id, first)))?;
        two.run(&format!("BEGIN; {}", action(id, second)))?;
        one.run(&format!("{first_end};"))?;
        two.run(&format!("{second_end};"))?;
    }
    // A deleter among the lockers must wait for them, so it comes from the transaction that locked first.
    one.run("BEGIN; SELECT 1 FROM overlap_multixact WHERE id = 20 FOR KEY SHARE;")?;
    one.run("SAVEPOINT a; DELETE FROM overlap_multixact WHERE id = 20; RELEASE a; COMMIT;")?;
    // Locked again on top of an old multixact, and the new version locked too.
    one.run("BEGIN; SELECT 1 FROM overlap_multixact WHERE id IN (1, 3, 4) FOR KEY SHARE;")?;
    two.run("BEGIN; UPDATE overlap_multixact SET v = 'again' WHERE id IN (1, 4);")?;
    one.run("COMMIT;")?;
    two.run("COMMIT;")?;
    Ok(())
}

fn action(id: u32, what: &str) -> String {
    match what {
        "UPDATE" => format!("UPDATE overlap_multixact SET v = 'updated' WHERE id = {id};"),
        "SUBTRANSACTION" => format!(
            "SAVEPOINT a; UPDATE overlap_multixact SET v = 'undone' WHERE id = {id}; ROLLBACK TO a; \
             SAVEPOINT b; UPDATE overlap_multixact SET v = 'in a subtransaction' WHERE id = {id}; RELEASE b;"
        ),
        lock => format!("SELECT 1 FROM overlap_multixact WHERE id = {id} {lock};"),
    }
}

/// One multixact per locker is made, each with one member more than the last; then updates on top.
fn many_members(cluster: &TestCluster, db: &str) -> Result<()> {
    let mut lockers = Vec::new();
    for _ in 0..MANY {
        let mut session = Session::open(cluster, db)?;
        session.run("BEGIN; SELECT 1 FROM overlap_many_members FOR KEY SHARE;")?;
        lockers.push(session);
    }
    let mut updater = Session::open(cluster, db)?;
    updater.run("UPDATE overlap_many_members SET v = 'committed' WHERE id = 1;")?;
    updater.run("BEGIN; UPDATE overlap_many_members SET v = 'aborted' WHERE id = 2; ROLLBACK;")?;
    updater.run("BEGIN; UPDATE overlap_many_members SET v = 'aborted' WHERE id = 3; ROLLBACK;")?;
    updater.run("UPDATE overlap_many_members SET v = 'committed after an abort' WHERE id = 3;")?;
    for (i, session) in lockers.iter_mut().enumerate() {
        session.run(if i % 2 == 0 { "COMMIT;" } else { "ROLLBACK;" })?;
    }
    updater.run("DELETE FROM overlap_many_members WHERE id = 5;")?;
    Ok(())
}

fn foreign_keys(cluster: &TestCluster, db: &str) -> Result<()> {
    let (mut one, mut two) = (Session::open(cluster, db)?, Session::open(cluster, db)?);
    one.run("BEGIN; INSERT INTO overlap_child VALUES (1, 1), (2, 2), (3, 3);")?;
    two.run("BEGIN; INSERT INTO overlap_child VALUES (4, 1), (5, 2);")?;
    one.run("UPDATE overlap_parent SET v = 'renamed under lock' WHERE id = 2;")?;
    two.run("UPDATE overlap_parent SET v = 'never' WHERE id = 3; ROLLBACK;")?;
    one.run("COMMIT;")?;
    Ok(())
}

/// Versions that a snapshot kept alive while they were updated again and again: HOT chains nobody pruned.
fn old_snapshot(cluster: &TestCluster, db: &str) -> Result<()> {
    let (mut reader, mut writer) = (Session::open(cluster, db)?, Session::open(cluster, db)?);
    reader
        .run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM overlap_old_snapshot;")?;
    for round in 1..=4 {
        writer
            .run(&format!("UPDATE overlap_old_snapshot SET n = {round} WHERE id % {round} = 0;"))?;
    }
    writer.run("BEGIN; UPDATE overlap_old_snapshot SET n = -1; ROLLBACK;")?;
    writer.run("DELETE FROM overlap_old_snapshot WHERE id > 35; VACUUM overlap_old_snapshot;")?;
    reader.run("SELECT sum(n) FROM overlap_old_snapshot; COMMIT;")?;
    Ok(())
}

fn interleaved(cluster: &TestCluster, db: &str) -> Result<()> {
    let mut sessions = Vec::new();
    for _ in 0..5 {
        sessions.push(Session::open(cluster, db)?);
    }
    for session in &mut sessions {
        session.run("BEGIN;")?;
    }
    for round in 0..20 {
        for (i, session) in sessions.iter_mut().enumerate() {
            session.run(&format!(
                "INSERT INTO overlap_interleaved VALUES ({round}, 'session {i}');"
            ))?;
        }
    }
    for (i, session) in sessions.iter_mut().enumerate().rev() {
        session.run(if i % 2 == 0 { "COMMIT;" } else { "ROLLBACK;" })?;
    }
    Ok(())
}

/// Transactions open when the server dies have no entry in the commit log at all: neither committed nor aborted.
/// Temporary tables of that session stay in the catalogs without files.
fn crash(cluster: &mut TestCluster, db: &str) -> Result<()> {
    let mut session = Session::open(cluster, db)?;
    session.run(
        "CREATE TEMP TABLE left_over (id serial, v text); INSERT INTO left_over (v) VALUES ('x');",
    )?;
    session.run("BEGIN; INSERT INTO overlap_crashed VALUES (11, 'lost'), (12, 'lost');")?;
    session.run("UPDATE overlap_crashed SET v = 'lost' WHERE id = 1;")?;
    session.run("DELETE FROM overlap_crashed WHERE id = 2; SAVEPOINT a;")?;
    session
        .run("INSERT INTO overlap_crashed VALUES (13, 'lost in a subtransaction'); RELEASE a;")?;
    session.run("SELECT 1 FROM overlap_crashed WHERE id = 3 FOR UPDATE;")?;
    cluster.psql(db, "INSERT INTO overlap_crashed VALUES (20, 'kept'); CHECKPOINT;")?;
    cluster.kill()?;
    drop(session);
    cluster.start()
}

fn prepared(cluster: &TestCluster, db: &str) -> Result<()> {
    let (mut one, mut two) = (Session::open(cluster, db)?, Session::open(cluster, db)?);
    one.run("BEGIN; INSERT INTO overlap_prepared VALUES (101, 'in doubt'), (102, 'in doubt');")?;
    one.run("UPDATE overlap_prepared SET v = 'in doubt' WHERE id IN (1, 2);")?;
    one.run("DELETE FROM overlap_prepared WHERE id IN (3, 4);")?;
    one.run(
        "SAVEPOINT a; INSERT INTO overlap_prepared VALUES (103, 'in doubt, below'); RELEASE a;",
    )?;
    one.run("SAVEPOINT b; DELETE FROM overlap_prepared WHERE id = 5; ROLLBACK TO b;")?;
    one.run(
        "SAVEPOINT c; UPDATE overlap_prepared SET v = 'in doubt, below' WHERE id = 6; RELEASE c;",
    )?;
    one.run("SELECT 1 FROM overlap_prepared WHERE id = 7 FOR UPDATE;")?;
    one.run("SELECT 1 FROM overlap_prepared WHERE id = 8 FOR KEY SHARE; PREPARE TRANSACTION 'left in doubt';")?;
    two.run("UPDATE overlap_prepared SET v = 'updated beside a prepared lock' WHERE id = 8;")?;
    two.run("BEGIN; UPDATE overlap_prepared SET v = 'prepared and committed' WHERE id = 10;")?;
    two.run("INSERT INTO overlap_prepared VALUES (110, 'prepared and committed'); PREPARE TRANSACTION 'yes';")?;
    two.run("BEGIN; UPDATE overlap_prepared SET v = 'prepared and rolled back' WHERE id = 11;")?;
    two.run("INSERT INTO overlap_prepared VALUES (111, 'never'); PREPARE TRANSACTION 'no';")?;
    two.run("COMMIT PREPARED 'yes'; ROLLBACK PREPARED 'no';")?;
    many_subtransactions_in_doubt(&mut two)?;
    two.run("INSERT INTO overlap_prepared VALUES (200, 'after');")?;
    Ok(())
}

/// More than the 64 subtransactions a backend keeps in shared memory, in a transaction left prepared.
fn many_subtransactions_in_doubt(session: &mut Session) -> Result<()> {
    session.run(
        "BEGIN; DO $$ BEGIN FOR i IN 1000 .. 1150 LOOP BEGIN \
         INSERT INTO overlap_prepared VALUES (i, 'one of many in doubt'); \
         EXCEPTION WHEN unique_violation THEN NULL; END; END LOOP; END $$; \
         DELETE FROM overlap_prepared WHERE id = 30; PREPARE TRANSACTION 'many';",
    )?;
    Ok(())
}
