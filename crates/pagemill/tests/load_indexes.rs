//! `pagemill load` into tables whose indexes have more entries than fit one part of the merge, or memory; `amcheck` is the
//! judge. And into files that are filled and made longer in every way there is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::install::{PgInstall, REQUIRED_MAJOR};
use pagemill_testkit::prepared::empty_cluster_in;
use pagemill_testkit::{Medium, Program, TestCluster, each_of};

const DATABASE: &str = "postgres";

fn each_version(check: impl Fn(&PgInstall) -> Result<()> + Sync) {
    each_of(&PgInstall::all(), check);
}

fn try_load(cluster: &TestCluster, table: &str, file: &Path, more: &[&str]) -> Result<Output> {
    let file = file.to_str().context("a path that is no UTF-8")?;
    let args = [&["load", "-d", DATABASE, "-t", table][..], more, &[file]].concat();
    Program::new(env!("CARGO_BIN_EXE_pagemill")).run(&cluster.data_dir(), &args)
}

fn load(cluster: &TestCluster, table: &str, file: &Path, more: &[&str]) -> Result<()> {
    let output = try_load(cluster, table, file, more)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{table}: {said}");
    Ok(())
}

/// The indexes of a table, and that each has every row.
fn check_indexes(cluster: &TestCluster, table: &str) -> Result<()> {
    let indexes = format!(
        "SELECT bt_index_parent_check(indexrelid, true) FROM pg_index WHERE indrelid = '{table}'::regclass"
    );
    cluster.psql(DATABASE, &indexes).map(drop)
}

/// A running cluster, and a file with what COPY prints of a query.
fn ground(install: &PgInstall, query: &str) -> Result<(TestCluster, tempfile::TempDir, PathBuf)> {
    let mut cluster = empty_cluster_in(install, Medium::Disk)?;
    cluster.start()?;
    cluster.psql(DATABASE, "CREATE EXTENSION amcheck")?;
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("rows");
    fs::write(&file, cluster.copy_out(DATABASE, &format!("COPY ({query}) TO STDOUT"))?)?;
    Ok((cluster, dir, file))
}

/// Keys in no order, in few values, and null; all of them with those of rows that were there.
#[test]
fn indexes_of_many_parts_have_every_row_once() {
    each_version(|install| {
        let query = "SELECT i * 7919::bigint % 150001 AS a, i % 3 AS b, nullif(i % 5, 0) AS c, md5(i::text) AS d \
             FROM generate_series(1, 150000) i";
        let (mut cluster, _dir, file) = ground(install, query)?;
        cluster.psql(
            DATABASE,
            "CREATE TABLE t (a bigint PRIMARY KEY, b int, c int, d text);
             CREATE INDEX ON t (b); CREATE INDEX ON t (c DESC, a); CREATE INDEX ON t (d) INCLUDE (b);
             INSERT INTO t SELECT -i, i % 3, nullif(i % 5, 0), md5(i::text) FROM generate_series(1, 30000) i;
             DELETE FROM t WHERE a % 3 = 0",
        )?;
        cluster.stop()?;
        load(&cluster, "t", &file, &["-j", "3"])?;
        cluster.start()?;
        check_indexes(&cluster, "t")?;
        let counts = "SELECT count(*), count(c), sum(a) FROM t";
        let expected =
            "SELECT 150000 + 20000, 120000 + 16000, 150000 * 150001::bigint / 2 - 300000000";
        let (found, expected) =
            (cluster.psql(DATABASE, counts)?, cluster.psql(DATABASE, expected)?);
        ensure!(found == expected, "{found} instead of {expected}");
        cluster.psql(DATABASE, "INSERT INTO t SELECT a + 1000000, b, c, d FROM t LIMIT 20000")?;
        check_indexes(&cluster, "t")
    });
}

/// Each of twelve indexes may keep 8 MiB, and has 10.
#[test]
fn entries_that_memory_does_not_hold_are_all_in_the_index() {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let query = "SELECT (SELECT string_agg(md5((i * 1000 + j)::text), '') FROM generate_series(1, 50) j) AS a \
         FROM generate_series(1, 6500) i";
    let (mut cluster, _dir, file) = ground(&install, query).unwrap();
    let indexes = "CREATE INDEX ON t (a); ".repeat(12);
    let table =
        format!("CREATE TABLE t (a text); ALTER TABLE t ALTER a SET STORAGE PLAIN; {indexes}");
    cluster.psql(DATABASE, &table).unwrap();
    cluster.stop().unwrap();
    load(&cluster, "t", &file, &["--no-wal"]).unwrap();
    cluster.start().unwrap();
    check_indexes(&cluster, "t").unwrap();
    assert_eq!(cluster.psql(DATABASE, "SELECT count(DISTINCT a) FROM t").unwrap(), "6500");
}

/// Two rows with one key, far from each other in the input, in whichever part of the merge they come.
#[test]
fn a_key_that_is_there_twice_is_named_and_nothing_is_changed() {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let query = "SELECT i * 7919 % 100003 AS a FROM generate_series(1, 100000) i";
    let (mut cluster, _dir, file) = ground(&install, query).unwrap();
    cluster
        .psql(DATABASE, "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (-1)")
        .unwrap();
    cluster.stop().unwrap();
    let rows = fs::read_to_string(&file).unwrap();
    for key in ["7919", "50000", "-1", "100002"] {
        let twice = if rows.lines().any(|row| row == key) || key == "-1" { 1 } else { 2 };
        fs::write(&file, format!("{rows}{}", format!("{key}\n").repeat(twice))).unwrap();
        let output = try_load(&cluster, "t", &file, &[]).unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let duplicate = "duplicate key value violates unique constraint \"t_pkey\"";
        let expected = format!(
            "pagemill: {}: {duplicate}\nDETAIL:  Key (a)=({key}) already exists.\nCONTEXT:  COPY t, line {}\n",
            file.display(),
            100_000 + twice
        );
        assert_eq!(said, expected);
        assert!(!output.status.success());
    }
    cluster.start().unwrap();
    assert_eq!(cluster.psql(DATABASE, "SELECT * FROM t").unwrap(), "-1");
}

/// Rows of which some have the same keys.
struct Duplicates<'a> {
    columns: &'a str,
    before: &'a str,
    rows: &'a str,
    options: &'a str,
    flags: &'a [&'a str],
}

/// Of several rows and indexes, the one that COPY reports, and its line.
#[test]
fn a_duplicate_key_is_reported_as_by_copy() {
    let text = |columns, before, rows| Duplicates {
        columns,
        before,
        rows,
        options: "format text",
        flags: &["--format", "text"],
    };
    let later = "9\ta\n9\tb\n1\tc\n";
    let many: String = (0..150_000).map(|n| format!("{n}\t{}\n", n % 149_990)).collect();
    let csv = Duplicates {
        columns: "a int, b text UNIQUE, UNIQUE (a)",
        before: "",
        rows: "b,a\n1,\"x\ny\"\n2,z\n3,q\n3,\"x\ny\"\n2,r\n",
        options: "format csv, header",
        flags: &["--format", "csv", "--header=skip"],
    };
    let cases = [
        csv,
        text("a int UNIQUE DEFERRABLE, b text", "", later),
        text("a int UNIQUE DEFERRABLE, b int, UNIQUE (b)", "", "1\t1\n1\t2\n2\t2\n"),
        text("a int UNIQUE, b text", "INSERT INTO t VALUES (1, 'old'), (8, 'old');", later),
        text("a int UNIQUE, b text", "INSERT INTO t VALUES (9, 'old');", later),
        text("a int, b int, UNIQUE (b)", "", &many),
    ];
    each_version(|install| cases.iter().try_for_each(|case| is_reported_as_by_copy(install, case)));
}

fn is_reported_as_by_copy(install: &PgInstall, case: &Duplicates<'_>) -> Result<()> {
    let (mut cluster, _dir, file) = ground(install, "SELECT 1")?;
    cluster.psql(DATABASE, &format!("CREATE TABLE t ({}); {}", case.columns, case.before))?;
    fs::write(&file, case.rows)?;
    let copy = format!("\\copy t from '{}' with ({})", file.display(), case.options);
    let server = cluster.psql_command(DATABASE).args(["-c", &copy]).output()?;
    let server = String::from_utf8_lossy(&server.stderr).into_owned();
    cluster.stop()?;
    let output = try_load(&cluster, "t", &file, case.flags)?;
    let ours = String::from_utf8_lossy(&output.stderr).into_owned();
    let message =
        |text: &str| text.find("duplicate key").map(|at| text[at..].trim_end().to_owned());
    ensure!(message(&ours).is_some() && message(&ours) == message(&server), "{ours}\n{server}");
    Ok(())
}

#[test]
fn every_way_to_write_and_to_extend_files_writes_the_same_rows() {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let query = "SELECT i AS a, repeat(md5(i::text), 80 * (i % 100 / 99)) || i AS b FROM generate_series(1, 30000) i";
    let (mut cluster, _dir, file) = ground(&install, query).unwrap();
    let mut ways = vec![vec!["--direct"], vec!["--file-extend-method", "write_zeros", "--direct"]];
    for method in ["auto", "pwrite", "pwritev", "mmap", "worker", "io_uring"] {
        for extend in ["auto", "posix_fallocate", "write_zeros"] {
            ways.push(vec!["--io-method", method, "--file-extend-method", extend]);
        }
    }
    let table = |number| format!("t{number}");
    for number in 0..ways.len() {
        let make = format!("CREATE TABLE {} (a int PRIMARY KEY, b text)", table(number));
        cluster.psql(DATABASE, &make).unwrap();
    }
    cluster.stop().unwrap();
    let mut loaded = Vec::new();
    for (number, way) in ways.iter().enumerate() {
        let output = try_load(&cluster, &table(number), &file, way).unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if way.contains(&"io_uring") && said.contains("io_uring") && !output.status.success() {
            println!("SKIPPED {way:?}: {said}");
            continue;
        }
        assert!(output.status.success(), "{way:?}: {said}");
        loaded.push(number);
    }
    cluster.start().unwrap();
    let rows = fs::read(&file).unwrap();
    for number in loaded {
        let copy = format!("COPY {} TO STDOUT", table(number));
        assert!(cluster.copy_out(DATABASE, &copy).unwrap() == rows, "{:?}", ways[number]);
        check_indexes(&cluster, &table(number)).unwrap();
    }
}

/// An index of a table whose rows were all deleted kept their entries: it had 5.4 MB where REINDEX made 0.3 MB of it.
#[test]
fn an_index_has_no_entries_of_dead_rows_and_is_as_small_as_a_server_makes_it() {
    each_version(|install| {
        let (mut cluster, _dir, file) = ground(
            install,
            "SELECT i AS a, i % 7 AS b, i::text AS c FROM generate_series(1, 3000) i",
        )?;
        cluster.psql(
            DATABASE,
            "CREATE TABLE t (a int PRIMARY KEY, b int, c text); CREATE INDEX t_b ON t (b);
             CREATE INDEX t_c ON t (c COLLATE \"C\", b) WITH (deduplicate_items = off);
             ALTER TABLE t SET (autovacuum_enabled = off);
             INSERT INTO t SELECT i, i % 7, i FROM generate_series(1, 60000) i",
        )?;
        cluster.psql(
            DATABASE,
            "BEGIN; INSERT INTO t SELECT -i, i % 7, i FROM generate_series(1, 9000) i; ROLLBACK",
        )?;
        cluster.psql(
            DATABASE,
            "UPDATE t SET b = b + 1 WHERE a % 1000 = 0; UPDATE t SET c = a WHERE a % 100 = 0;
             DELETE FROM t WHERE a % 50 <> 0",
        )?;
        cluster.stop()?;
        let text = fs::read_to_string(&file)?;
        // Keys of rows that are gone are free again.
        let rows: String = text
            .lines()
            .enumerate()
            .map(|(n, _)| format!("{}\t{}\tx\n", n * 50 + 1, n % 7))
            .collect();
        fs::write(&file, rows)?;
        load(&cluster, "t", &file, &[])?;
        cluster.start()?;
        check_indexes(&cluster, "t")?;
        let sizes = "SELECT string_agg(pg_relation_size(indexrelid)::text, ' ' ORDER BY indexrelid) \
             FROM pg_index WHERE indrelid = 't'::regclass";
        let ours = cluster.psql(DATABASE, sizes)?;
        cluster.psql(DATABASE, "REINDEX TABLE t")?;
        let servers = cluster.psql(DATABASE, sizes)?;
        ensure!(ours == servers, "ours have {ours} bytes, a server's {servers}");
        ensure!(cluster.psql(DATABASE, "SELECT count(*) FROM t")? == "4200", "rows are missing");
        cluster.psql(DATABASE, "VACUUM t")?;
        check_indexes(&cluster, "t")
    });
}
