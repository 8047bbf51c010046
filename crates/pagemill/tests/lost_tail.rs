//! Tables that lost their end without leaving a gap: the last segment, or all but an empty file. What lies beside them
//! tells, and contradicts no table that is honestly as long as a segment, or empty.
//!
//! The segments are sparse files of pages never written, so a gigabyte costs no disk.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::process::Output;

use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{PgInstall, Program, TestCluster};

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_pagemill"))
}

fn installed() -> PgInstall {
    PgInstall::find(15).expect("PostgreSQL 15 is needed")
}

/// A running cluster in which these statements were run.
fn running(statements: &[&str]) -> TestCluster {
    let mut cluster = empty_cluster(&installed()).unwrap();
    cluster.start().unwrap();
    run(&cluster, statements);
    cluster
}

fn run(cluster: &TestCluster, statements: &[&str]) {
    for statement in statements {
        cluster.psql("postgres", statement).unwrap();
    }
}

fn file_of(cluster: &TestCluster, relation: &str) -> PathBuf {
    let sql = format!("SELECT pg_relation_filepath({relation})");
    cluster.data_dir().join(cluster.psql("postgres", &sql).unwrap())
}

fn set_len(file: &PathBuf, len: u64) {
    OpenOptions::new().write(true).open(file).unwrap().set_len(len).unwrap();
}

fn asked(cluster: &TestCluster, args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = program().run(&cluster.data_dir(), args).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn count(cluster: &TestCluster, table: &str) -> (Option<i32>, String, String) {
    asked(cluster, &["count", "-d", "postgres", "-t", table])
}

#[track_caller]
fn is_told(cluster: &TestCluster, table: &str, parts: &[&str]) {
    let (status, printed, said) = count(cluster, table);
    assert!(status == Some(1) && printed.is_empty(), "{table}: {status:?} {printed:?} {said:?}");
    for part in parts {
        assert!(said.contains(part), "{table}: {part:?} is missing in {said:?}");
    }
    let skipping = ["count", "-d", "postgres", "-t", table, "--on-damage", "skip"];
    let (status, printed, said) = asked(cluster, &skipping);
    assert!(status == Some(1) && !printed.is_empty(), "{table}: {status:?} {printed:?} {said:?}");
    let (status, listed, _) = asked(cluster, &["inspect", "-d", "postgres", "-t", table]);
    assert!(status == Some(0) || listed.contains("damaged: "), "{table}: {status:?} {listed}");
}

const ROWS: &str = "INSERT INTO {} SELECT i, repeat('x', 1000) FROM generate_series(1, 300) i";

/// A table never analyzed whose last segment was gone counted 209,716 of 240,000 rows, with status 0.
#[test]
fn a_lost_last_segment_is_told_by_maps_and_indexes_and_by_nothing_in_an_honest_table() {
    let names = ["by_index", "by_visibility", "by_room", "honest"];
    let mut cluster = running(&[]);
    for name in names {
        run(&cluster, &[&format!("CREATE TABLE {name} (i int, v text)")]);
        run(&cluster, &[&ROWS.replace("{}", name)]);
    }
    let files = names.map(|name| file_of(&cluster, &format!("'{name}'")));
    cluster.stop().unwrap();
    files.iter().for_each(|file| set_len(file, 1 << 30));
    cluster.start().unwrap();
    let before_the_rows = ["by_index", "honest"].map(|name| format!("CREATE INDEX ON {name} (i)"));
    run(&cluster, &before_the_rows.each_ref().map(String::as_str));
    for name in &names[..3] {
        run(&cluster, &[&ROWS.replace("{}", name)]);
    }
    // Rows on the last page of the segment, and all maps and statistics.
    run(
        &cluster,
        &[
            "INSERT INTO honest VALUES (1), (2), (3)",
            "VACUUM (ANALYZE) honest",
            "VACUUM (TRUNCATE false) by_visibility",
            "UPDATE pg_class SET relpages = 0 WHERE relname = 'by_visibility'",
        ],
    );
    cluster.stop().unwrap();
    let beside =
        |file: &PathBuf, suffix: &str| PathBuf::from(format!("{}{suffix}", file.display()));
    for file in &files[..3] {
        fs::remove_file(beside(file, ".1")).unwrap();
    }
    let has_map = |at: usize, suffix: &str| beside(&files[at], suffix).exists();
    assert!(!has_map(0, "_vm") && has_map(1, "_vm") && !has_map(2, "_vm") && has_map(2, "_fsm"));
    if has_map(0, "_fsm") {
        fs::remove_file(beside(&files[0], "_fsm")).unwrap();
    }
    let place = [".1: fork main, blocks 131072 to", "the segment file is missing"];
    is_told(
        &cluster,
        "by_index",
        &[&place[..], &["the index public.by_index_i_idx knows"]].concat(),
    );
    is_told(&cluster, "by_visibility", &[&place[..], &["its visibility map knows"]].concat());
    is_told(&cluster, "by_room", &[&place[..], &["its free-space map knows"]].concat());
    let (status, printed, said) = count(&cluster, "honest");
    assert_eq!((status, &*printed, &*said), (Some(0), "303\n", ""));
}

/// A file of 0 bytes was a table without rows.
#[test]
fn an_emptied_file_is_told_by_what_is_left_beside_it_and_an_empty_table_is_none() {
    let mut cluster = running(&[
        "CREATE TABLE vacuumed AS SELECT generate_series(1, 3000) AS i",
        "CREATE TABLE filled (i int, v text)",
        &ROWS.replace("{}", "filled"),
        "CREATE TABLE keyed (i int PRIMARY KEY)",
        "INSERT INTO keyed VALUES (1)",
        "CREATE TABLE long (v text)",
        "ALTER TABLE long ALTER v SET STORAGE EXTERNAL",
        "INSERT INTO long VALUES (repeat('x', 9000))",
        "CREATE SEQUENCE numbers",
        "CREATE TABLE emptied (i int PRIMARY KEY, v text)",
        "ALTER TABLE emptied ALTER v SET STORAGE EXTERNAL",
        "INSERT INTO emptied SELECT i, repeat('x', 9000) FROM generate_series(1, 3000) i",
        "DELETE FROM emptied",
        "VACUUM vacuumed",
        "VACUUM emptied",
        "BEGIN; CREATE TABLE cut (i int PRIMARY KEY); INSERT INTO cut SELECT generate_series(1, 3000); ANALYZE cut; \
         TRUNCATE cut; COMMIT",
        "CREATE UNLOGGED TABLE never (i int PRIMARY KEY, v text)",
        "CREATE TABLE rolled_back (i int PRIMARY KEY, v text)",
        "BEGIN; INSERT INTO rolled_back VALUES (1, 'x'); ROLLBACK",
        "VACUUM rolled_back",
    ]);
    let lost = ["vacuumed", "filled", "keyed", "long", "numbers"];
    let files = lost.map(|name| file_of(&cluster, &format!("'{name}'")));
    let honest = ["emptied", "cut", "never", "rolled_back"];
    for name in honest {
        assert_eq!(
            fs::metadata(file_of(&cluster, &format!("'{name}'"))).unwrap().len(),
            0,
            "{name}"
        );
    }
    let catalog = file_of(&cluster, "'pg_namespace'");
    cluster.stop().unwrap();
    files.iter().for_each(|file| set_len(file, 0));
    is_told(
        &cluster,
        "vacuumed",
        &["fork main, blocks 0 to", "is empty", "its visibility map knows"],
    );
    is_told(&cluster, "filled", &["is empty", "its free-space map knows"]);
    is_told(&cluster, "keyed", &["blocks 0 to 0", "the index public.keyed_pkey knows"]);
    is_told(&cluster, "long", &["is empty", "its TOAST table has long values"]);
    is_told(&cluster, "numbers", &["block 0", "a sequence has one block"]);
    for name in honest {
        let (status, printed, said) = count(&cluster, name);
        assert_eq!((status, &*printed, &*said), (Some(0), "0\n", ""), "{name}");
    }
    // A load would have made the loss one for good.
    let input = cluster.root().join("rows");
    fs::write(&input, "7\n").unwrap();
    let load = ["load", "-d", "postgres", "-t", "vacuumed", &input.display().to_string()];
    let (status, _, said) = asked(&cluster, &load);
    assert!(status == Some(1) && said.contains("its visibility map knows"), "{status:?} {said}");
    set_len(&catalog, 0);
    let (status, _, said) = count(&cluster, "never");
    assert!(status == Some(1) && said.contains("its visibility map knows"), "{said}");
}

/// They were listed as tables of no blocks.
#[test]
fn ls_marks_files_segments_and_tablespaces_that_are_missing() {
    let mut cluster = running(&["CREATE TABLE gone (i int)", "CREATE TABLE gap (i int)"]);
    let place = cluster.tablespace_dir("lost").unwrap();
    let create = format!("CREATE TABLESPACE lost LOCATION '{}'", place.display());
    run(
        &cluster,
        &[
            &create,
            "CREATE TABLE moved (i int) TABLESPACE lost",
            "CREATE DATABASE off",
            "CREATE DATABASE elsewhere TABLESPACE lost",
            "CREATE TABLE vacuumed AS SELECT generate_series(1, 3000) AS i",
            "VACUUM vacuumed",
        ],
    );
    let [gone, gap, vacuumed] =
        ["gone", "gap", "vacuumed"].map(|name| file_of(&cluster, &format!("'{name}'")));
    let oid =
        cluster.psql("postgres", "SELECT oid FROM pg_database WHERE datname = 'off'").unwrap();
    cluster.stop().unwrap();
    let (status, printed, said) = asked(&cluster, &["ls", "-d", "postgres"]);
    assert!(
        status == Some(0) && !printed.contains("Damage") && said.is_empty(),
        "{printed} {said}"
    );
    fs::remove_file(&gone).unwrap();
    set_len(&vacuumed, 0);
    fs::write(format!("{}.2", gap.display()), [0; 8192]).unwrap();
    fs::remove_dir_all(&place).unwrap();
    fs::remove_dir_all(cluster.data_dir().join("base").join(oid)).unwrap();
    let (status, printed, said) = asked(&cluster, &["ls", "-d", "postgres"]);
    assert!(status == Some(1) && said.is_empty(), "{status:?} {said}");
    let line = |name: &str| {
        let is_of = |line: &&str| line.split_whitespace().nth(1) == Some(name);
        printed.lines().find(is_of).unwrap_or_default().to_owned()
    };
    assert!(line("gone").ends_with("the file is missing"), "{printed}");
    assert!(line("moved").ends_with("the tablespace is missing"), "{printed}");
    assert!(line("gap").contains("the segment file is missing"), "{printed}");
    assert!(line("vacuumed").contains("the file is empty"), "{printed}");
    let (status, printed, _) = asked(&cluster, &["ls"]);
    assert_eq!(status, Some(1));
    assert_eq!(printed.matches("damaged: the directory is missing").count(), 2, "{printed}");
    let (_, printed, _) = asked(&cluster, &["ls", "--json", "-d", "postgres", "-t", "gone"]);
    let listed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(listed[0]["damage"][0], "the file is missing");
    let (status, shown, _) = asked(&cluster, &["inspect", "-d", "postgres", "-t", "gone"]);
    assert!(status == Some(1) && shown.contains("the file is missing"), "{status:?} {shown}");
}
