//! `pagemill load` and what others make of it: a server that only has the WAL, one that starts too early, and types
//! whose stored form depends on more than their text.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use pagemill_format::control::{ControlFile, FullTransactionId};
use pagemill_testkit::install::{PgInstall, REQUIRED_MAJOR};
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::scratch::cluster_root;
use pagemill_testkit::{Medium, Program, TestCluster, each_of};

const DATABASE: &str = "postgres";

/// The B-trees of all tables of users, and of the TOAST tables of those.
const CHECK_INDEXES: &str = "SELECT bt_index_parent_check(c.oid, true) FROM pg_class c JOIN pg_am a ON a.oid = c.relam \
     WHERE c.relkind = 'i' AND a.amname = 'btree' AND (c.oid >= 16384 OR c.oid IN (2662, 2663, 3455))";
const CHECK_HEAPS: &str = "SELECT count(*) FROM pg_class c, verify_heapam(c.oid) \
     WHERE c.relkind IN ('r', 't') AND c.oid >= 16384";

fn load(cluster: &TestCluster, table: &str, rows: &[u8], more: &[&str]) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("rows");
    fs::write(&file, rows)?;
    let file = file.to_str().context("a path that is no UTF-8")?;
    let args = [&["load", "-d", DATABASE, "-t", table][..], more, &[file]].concat();
    let output = pagemill().run(&cluster.data_dir(), &args)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{table}: {said}");
    Ok(())
}

fn pagemill() -> Program {
    Program::new(env!("CARGO_BIN_EXE_pagemill"))
}

fn installed() -> PgInstall {
    PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed")
}

fn each_version(check: impl Fn(&PgInstall) -> Result<()> + Sync) {
    each_of(&PgInstall::all(), check);
}

/// A copy that restores its WAL from another cluster's directory when it is started, with more settings.
fn follower(cluster: &TestCluster, wal_of: &TestCluster, more: &str) -> Result<TestCluster> {
    let follower = copy(cluster)?;
    let wal = wal_of.data_dir().join("pg_wal");
    let mut settings =
        fs::OpenOptions::new().append(true).open(follower.data_dir().join("postgresql.conf"))?;
    writeln!(settings, "\nrestore_command = 'cp {}/%f %p'\n{more}", wal.display())?;
    fs::write(follower.data_dir().join("recovery.signal"), "")?;
    Ok(follower)
}

/// Starts a follower and waits for the end of its recovery: it answers queries before, or takes none without
/// `hot_standby`.
fn start_and_promote(follower: &mut TestCluster) -> Result<()> {
    follower.start()?;
    for _ in 0..1000 {
        match follower.psql(DATABASE, "SELECT pg_is_in_recovery()") {
            Ok(answer) if answer == "f" => return Ok(()),
            _ => std::thread::sleep(Duration::from_millis(30)),
        }
    }
    bail!("the recovery does not end")
}

fn copy(cluster: &TestCluster) -> Result<TestCluster> {
    let root = cluster_root(Medium::Memory)?;
    cluster.copy_to(&root)
}

#[test]
fn a_server_that_replays_the_wal_has_every_file_and_every_row() {
    each_version(|install| {
        let mut cluster = empty_cluster(install)?;
        cluster.start()?;
        cluster.psql(
            DATABASE,
            "CREATE TABLE filled (a int PRIMARY KEY, b text); CREATE INDEX ON filled (b DESC, a);
             INSERT INTO filled SELECT i, 'old' || i FROM generate_series(1, 1000) i;
             CREATE TABLE fresh (a int PRIMARY KEY, b text);
             CREATE TABLE emptied (a int, b text); INSERT INTO emptied VALUES (1, 'x');
             CREATE INDEX ON emptied (b);
             CREATE EXTENSION amcheck",
        )?;
        cluster.stop()?;
        let mut follower = follower(&cluster, &cluster, "")?;
        let rows: String = (2000..5000).map(|i| format!("{i}\tnew{i}\n")).collect();
        load(&cluster, "filled", rows.as_bytes(), &[])?;
        load(&cluster, "fresh", b"1\tshort\n", &["--freeze"])?;
        load(&cluster, "emptied", b"", &["--truncate"])?;
        start_and_promote(&mut follower)?;
        let counts = "SELECT (SELECT count(*) FROM filled), (SELECT count(*) FROM fresh), (SELECT count(*) FROM emptied)";
        ensure!(
            follower.psql(DATABASE, counts)? == "4000|1|0",
            "{}",
            follower.psql(DATABASE, counts)?
        );
        ensure!(follower.psql(DATABASE, CHECK_HEAPS)? == "0", "a heap is damaged");
        follower.psql(DATABASE, CHECK_INDEXES)?;
        let insert = "INSERT INTO fresh SELECT 7, string_agg(md5(i::text), '') FROM generate_series(1, 999) i";
        follower.psql(DATABASE, insert)?;
        Ok(())
    });
}

/// All WAL of a load but its commit record may be there when a standby is promoted: its rows are in live files then, and
/// its new files are there, yet nobody may see any of it.
#[test]
fn a_replay_that_stops_before_the_commit_leaves_the_old_rows() {
    each_version(|install| {
        let mut cluster = empty_cluster(install)?;
        cluster.start()?;
        cluster.psql(
            DATABASE,
            "CREATE TABLE appended (a int PRIMARY KEY, b text); CREATE INDEX ON appended (b);
             INSERT INTO appended SELECT i, 'old' || i FROM generate_series(1, 1000) i;
             CREATE TABLE replaced (a int PRIMARY KEY, b text);
             ALTER TABLE replaced ALTER b SET STORAGE EXTERNAL;
             INSERT INTO replaced SELECT i, repeat('old', 2000) FROM generate_series(1, 10) i;
             CREATE EXTENSION amcheck",
        )?;
        cluster.stop()?;
        let before = copy(&cluster)?;
        let rows: String = (2000..5000).map(|i| format!("{i}\tnew{i}\n")).collect();
        load(&cluster, "appended", rows.as_bytes(), &[])?;
        load(&cluster, "replaced", rows.as_bytes(), &["--truncate"])?;
        // Only a server tells the transactions, and its own WAL is not to be replayed.
        let after = copy(&cluster)?;
        cluster.start()?;
        let xid =
            |table| cluster.psql(DATABASE, &format!("SELECT xmin FROM {table} WHERE a = 2000"));
        let (first, second) = (xid("appended")?, xid("replaced")?);
        cluster.stop()?;
        check_replay(follower(&before, &after, &stop_before(&first))?, "1000|10|60000")?;
        check_replay(follower(&before, &after, &stop_before(&second))?, "4000|10|60000")?;
        check_replay(follower(&before, &after, "")?, "4000|3000|21000")
    });
}

/// The settings of a recovery that ends before this transaction's commit.
fn stop_before(xid: &str) -> String {
    format!(
        "recovery_target_xid = '{xid}'\nrecovery_target_inclusive = off\nrecovery_target_action = promote"
    )
}

/// What there is of both tables when the recovery has ended, and that it is sound and can be worked with.
fn check_replay(mut follower: TestCluster, expected: &str) -> Result<()> {
    start_and_promote(&mut follower)?;
    let found = "SELECT (SELECT count(*) FROM appended), count(*), sum(length(b)) FROM replaced";
    let found = follower.psql(DATABASE, found)?;
    ensure!(found == expected, "{found} instead of {expected}");
    let by_index = "SET enable_seqscan = off; SELECT count(*) FROM appended WHERE a > 1500";
    let found = follower.psql(DATABASE, by_index)?;
    let is_there = expected.starts_with("4000");
    ensure!(found.ends_with(if is_there { "3000" } else { "0" }), "by the index: {found}");
    for step in [
        CHECK_INDEXES,
        "INSERT INTO appended VALUES (2000, 'x') ON CONFLICT DO NOTHING",
        "INSERT INTO replaced VALUES (0, repeat('x', 9000))",
        "VACUUM",
        CHECK_INDEXES,
    ] {
        follower.psql(DATABASE, step).with_context(|| step.to_owned())?;
        ensure!(follower.psql(DATABASE, CHECK_HEAPS)? == "0", "after {step}: a heap is damaged");
    }
    let found = follower.psql(DATABASE, "SELECT count(*) FROM appended")?;
    ensure!(found == if is_there { "4000" } else { "1001" }, "after an insert: {found}");
    Ok(())
}

#[test]
fn no_server_starts_while_rows_come_in() {
    let mut cluster = empty_cluster(&installed()).unwrap();
    cluster.start().unwrap();
    cluster.psql(DATABASE, "CREATE TABLE slow (a int)").unwrap();
    cluster.stop().unwrap();
    let args = ["load", "-d", DATABASE, "-t", "slow", "-"];
    let mut command = pagemill().command(&cluster.data_dir(), &args);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut rows = child.stdin.take().unwrap();
    rows.write_all(b"1\n").unwrap();
    let lock = cluster.data_dir().join("postmaster.pid");
    while !lock.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended without a lock");
        std::thread::yield_now();
    }
    assert!(cluster.start().is_err(), "a server started beside the load");
    drop(rows);
    assert!(child.wait().unwrap().success());
    cluster.start().unwrap();
    assert_eq!(cluster.psql(DATABASE, "SELECT * FROM slow").unwrap(), "1");
}

#[test]
fn composites_are_read_by_a_server_whose_types_have_changed() {
    each_version(|install| {
        let mut cluster = empty_cluster(install)?;
        cluster.start()?;
        cluster.psql(
            DATABASE,
            "CREATE TYPE pair AS (a int, b text, c numeric); CREATE DOMAIN couple AS pair;
             CREATE TYPE changed AS (a int, b text); ALTER TYPE changed ADD ATTRIBUTE c date;
             ALTER TYPE changed DROP ATTRIBUTE a;
             CREATE TYPE outer_one AS (x pair, y pair[]);
             CREATE TABLE of_rows (p pair, q couple, r changed, s outer_one, t pair[]);
             INSERT INTO of_rows VALUES ('(1,x,2.5)', '(1,\"a b\",)', '(y,2000-02-29)',
                 ROW(ROW(1, 'x', 2)::pair, ARRAY[ROW(2, 'y', 3)::pair, NULL]), '{\"(1,,2)\",NULL}'), (NULL, NULL, NULL, NULL, NULL);
             CREATE TABLE to_rows (LIKE of_rows)",
        )?;
        let copy = |cluster: &TestCluster, table| {
            cluster.copy_out(DATABASE, &format!("COPY {table} TO STDOUT"))
        };
        let rows = copy(&cluster, "of_rows")?;
        cluster.stop()?;
        load(&cluster, "to_rows", &rows, &[])?;
        cluster.start()?;
        ensure!(copy(&cluster, "to_rows")? == rows, "other rows came back");
        ensure!(
            cluster.psql(
                DATABASE,
                "SELECT count(*) FROM of_rows JOIN to_rows ON of_rows.* *= to_rows.*"
            )? == "2",
            "the stored rows differ"
        );
        Ok(())
    });
}

#[test]
fn an_index_over_a_domain_of_an_enum_is_in_the_order_of_the_enum() {
    let mut cluster = empty_cluster(&installed()).unwrap();
    cluster.start().unwrap();
    let tables = "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy'); ALTER TYPE mood ADD VALUE 'meh' BEFORE 'ok';
        CREATE DOMAIN outward AS mood; CREATE DOMAIN shown AS outward;
        CREATE TABLE moods (a shown, b int); CREATE INDEX ON moods (a, b DESC); CREATE EXTENSION amcheck";
    cluster.psql(DATABASE, tables).unwrap();
    cluster.stop().unwrap();
    let labels = ["meh", "happy", "sad", "ok"].into_iter().cycle();
    let rows: String = (0..3000).zip(labels).map(|(i, label)| format!("{label}\t{i}\n")).collect();
    load(&cluster, "moods", rows.as_bytes(), &[]).unwrap();
    cluster.start().unwrap();
    cluster.psql(DATABASE, CHECK_INDEXES).unwrap();
}

#[test]
fn a_column_left_out_whose_type_has_a_default_is_refused() {
    let mut cluster = empty_cluster(&installed()).unwrap();
    cluster.start().unwrap();
    let table = "CREATE DOMAIN five AS int DEFAULT 5; CREATE TABLE fives (a int, b five)";
    cluster.psql(DATABASE, table).unwrap();
    cluster.stop().unwrap();
    let refused = load(&cluster, "fives", b"1\n", &["--columns", "a"]).unwrap_err().to_string();
    assert!(refused.contains("column b of public.fives has the default of its type"), "{refused}");
}

fn next_xid(cluster: &TestCluster) -> Result<u64> {
    let control = fs::read(cluster.data_dir().join("global/pg_control"))?;
    Ok(ControlFile::parse(&control, None)?.checkpoint.next_xid.0)
}

/// Sets the next transaction in the control file, as `pg_resetwal -x` does it.
fn set_next_xid(cluster: &TestCluster, xid: u64) -> Result<()> {
    let path = cluster.data_dir().join("global/pg_control");
    let mut control = ControlFile::parse(&fs::read(&path)?, None)?;
    control.checkpoint.next_xid = FullTransactionId(xid);
    fs::write(&path, control.encode()?)?;
    Ok(())
}

/// A stopped cluster with an empty table.
fn with_a_table(install: &PgInstall) -> Result<TestCluster> {
    let mut cluster = empty_cluster(install)?;
    cluster.start()?;
    cluster.psql(DATABASE, "CREATE TABLE t (a int PRIMARY KEY); CREATE EXTENSION amcheck")?;
    cluster.stop()?;
    Ok(cluster)
}

/// After `pg_resetwal -x 1048575` a load ended with "committed, but its last steps failed", as its page of the commit log
/// was not there, and no server could start any more.
#[test]
fn a_load_whose_page_of_the_commit_log_is_missing_is_refused_before_anything_has_changed() {
    each_version(|install| {
        let mut cluster = with_a_table(install)?;
        let next_xid = next_xid(&cluster)?;
        for (xid, file) in [(1_048_575, "0000"), (1_048_577, "0001")] {
            set_next_xid(&cluster, xid)?;
            let path = cluster.data_dir().join("global/pg_control");
            let control = fs::read(&path)?;
            let refused = load(&cluster, "t", b"1\n2\n", &[]).unwrap_err().to_string();
            let what = format!(
                "pg_xact/{file}: the commit log has no page for the next transaction, {xid}"
            );
            ensure!(refused.contains(&what), "{refused}");
            ensure!(control == fs::read(&path)?, "the control file has changed");
        }
        // 14 looks at the page when the transaction ends.
        match cluster.start() {
            Ok(()) if install.major == 14 => cluster.stop()?,
            Ok(()) => bail!("a server starts without that page"),
            Err(_) => {}
        }
        set_next_xid(&cluster, next_xid)?;
        cluster.start()?;
        ensure!(cluster.psql(DATABASE, "SELECT count(*) FROM t")? == "0", "rows are there");
        Ok(())
    });
}

#[test]
fn a_load_at_the_border_of_a_page_of_the_commit_log_is_seen_by_a_server_and_by_a_replay() {
    each_version(|install| {
        let original = with_a_table(install)?;
        // The first and the last transaction of a page, and of a segment.
        for (xid, bytes) in
            [(32_768, 8_192), (65_535, 16_384), (1_048_575, 262_144), (1_048_576, 0)]
        {
            let mut cluster = copy(&original)?;
            set_next_xid(&cluster, xid)?;
            if bytes > 0 {
                let log = cluster.data_dir().join("pg_xact/0000");
                fs::OpenOptions::new().write(true).open(log)?.set_len(bytes)?;
            }
            let before = copy(&cluster)?;
            load(&cluster, "t", b"1\n2\n", &[])?;
            load(&cluster, "t", b"3\n", &[])?;
            // Sessions in a recovery would have to know of all transactions between.
            let mut replayed = follower(&before, &cluster, "hot_standby = off")?;
            start_and_promote(&mut replayed)?;
            cluster.start()?;
            for server in [&cluster, &replayed] {
                server.psql(DATABASE, CHECK_INDEXES)?;
                let seen =
                    server.psql(DATABASE, "SELECT min(xmin::text::int8), count(*) FROM t")?;
                ensure!(seen == format!("{xid}|3"), "{seen} after {xid}");
                server.psql(DATABASE, "INSERT INTO t VALUES (4); CHECKPOINT")?;
                server.psql(DATABASE, "VACUUM FREEZE t")?;
            }
        }
        Ok(())
    });
}
