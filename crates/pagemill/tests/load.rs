//! `pagemill load`, with PostgreSQL as the judge: what it loads, a server of every installed version accepts, checks
//! with `amcheck` and prints as it would had COPY loaded it, and goes on working with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::install::{PgInstall, REQUIRED_MAJOR};
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{Program, TestCluster, each_of};

const DATABASE: &str = "postgres";

/// Tables with rows that a server made: what COPY prints of each is loaded into an empty one of its kind.
const TABLES: [(&str, &str); 12] = [
    ("integers", "SELECT i AS a, i * 7 % 1000 AS b, -i AS c FROM generate_series(1, 30000) i"),
    (
        "texts",
        "SELECT repeat('a', 100) || i || repeat('b', 500) AS filler FROM generate_series(1, 3000) i",
    ),
    (
        "nulls",
        "SELECT CASE WHEN i % 3 = 0 THEN i END AS a, CASE WHEN i % 2 = 0 THEN 'x' || i END AS b, \
         CASE WHEN i % 5 = 0 THEN i::float8 / 7 END AS c FROM generate_series(1, 5000) i",
    ),
    (
        "mixed",
        "SELECT i::smallint AS a, i::bigint * 1000000007 AS b, (i / 3.0)::numeric(20, 7) AS c, i % 2 = 0 AS d, \
         date '2000-01-01' + i AS e, timestamptz '2020-02-29 12:00+00' + i * interval '1 hour 1.25 s' AS f, \
         md5(i::text)::uuid AS g, md5(i::text)::bytea AS h, ('10.0.' || i % 256 || '.1')::inet AS i \
         FROM generate_series(1, 4000) i",
    ),
    (
        "escapes",
        "SELECT E'tab\\t newline\\n return\\r backslash\\\\ quote\" comma, \\b\\f\\v' || i AS a, '\\N' AS b, '' AS c \
         FROM generate_series(1, 200) i",
    ),
    (
        "nested",
        "SELECT ARRAY[[i, i + 1], [NULL, 3]] AS a, ARRAY['x y', NULL, '\"' || i] AS b, int4range(i, i + 5) AS c, \
         jsonb_build_object('k', i, 'l', ARRAY[i, NULL], 's', md5(i::text)) AS d, \
         json_build_object('k', i) AS e, point(i, -i) AS f FROM generate_series(1, 1000) i",
    ),
    (
        "toasted",
        "SELECT i AS a, repeat(md5(i::text), 40 * (i % 7)) AS pressed, \
         (SELECT string_agg(md5((i * 1000 + j)::text), '') FROM generate_series(1, 90 * (i % 5)) j) AS moved \
         FROM generate_series(1, 300) i",
    ),
    ("one_row", "SELECT 1 AS a, 'b'::text AS b"),
    ("no_rows", "SELECT 1 AS a WHERE false"),
    ("narrow", "SELECT (i % 2)::smallint AS a FROM generate_series(1, 70000) i"),
    ("all_null", "SELECT NULL::int AS a, NULL::text AS b FROM generate_series(1, 3000)"),
    (
        "wide",
        "SELECT i AS a, 'r' || i AS b, i::text::char(10) AS c, i::text::varchar(7) AS d, i::numeric AS e, i::real AS f, \
         i::oid AS g, (i % 100)::text::name AS h, i::bit(17) AS j, interval '1 day' * i AS k, time '00:00' + i * interval '1 s' AS l \
         FROM generate_series(1, 2000) i",
    ),
];

fn pagemill() -> Program {
    Program::new(env!("CARGO_BIN_EXE_pagemill"))
}

/// A stopped cluster with filled tables, each with an empty one of the same kind (`to_…`), and what a server printed
/// of the filled ones.
struct Fixture {
    cluster: TestCluster,
    dir: tempfile::TempDir,
}

impl Fixture {
    fn new(install: &PgInstall, tables: &[(&str, &str)]) -> Result<Self> {
        let mut cluster = empty_cluster(install)?;
        cluster.start()?;
        let dir = tempfile::tempdir()?;
        cluster.psql(DATABASE, "CREATE EXTENSION amcheck")?;
        for (name, query) in tables {
            cluster.psql(DATABASE, &format!("CREATE TABLE {name} AS {query}"))?;
            cluster.psql(DATABASE, &format!("CREATE TABLE to_{name} (LIKE {name})"))?;
            fs::write(
                dir.path().join(name),
                cluster.copy_out(DATABASE, &format!("COPY {name} TO STDOUT"))?,
            )?;
        }
        cluster.stop()?;
        Ok(Self { cluster, dir })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn load(&self, table: &str, file: &Path, more: &[&str]) -> Result<Output> {
        let file = file.to_str().context("a path that is no UTF-8")?;
        let args = [&["load", "-d", DATABASE, "-t", table][..], more, &[file]].concat();
        pagemill().run(&self.cluster.data_dir(), &args)
    }
}

fn succeeded(output: Output) -> Result<()> {
    ensure!(
        output.status.success(),
        "{}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Heap, TOAST table and indexes of a table, as `amcheck` sees them; and that it can be worked with.
fn check_table(cluster: &TestCluster, table: &str) -> Result<()> {
    let heap = format!("SELECT count(*) FROM verify_heapam('{table}')");
    ensure!(
        cluster.psql(DATABASE, &heap)? == "0",
        "{table}: {}",
        cluster.psql(DATABASE, &format!("SELECT * FROM verify_heapam('{table}') LIMIT 3"))?
    );
    let indexes = format!(
        "SELECT bt_index_parent_check(indexrelid, true) FROM pg_index WHERE indrelid = '{table}'::regclass \
         OR indrelid = (SELECT reltoastrelid FROM pg_class WHERE oid = '{table}'::regclass AND reltoastrelid <> 0)"
    );
    cluster.psql(DATABASE, &indexes)?;
    cluster.psql(DATABASE, "SELECT bt_index_parent_check(oid::regclass, true) FROM pg_class WHERE oid IN (2662, 2663, 3455)")?;
    Ok(())
}

fn each_version(check: impl Fn(&PgInstall) -> Result<()> + Sync) {
    each_of(&PgInstall::all(), check);
}

#[test]
fn what_is_loaded_is_what_copy_would_have_loaded() {
    let ways: [&[&str]; 3] = [&[], &["--no-wal"], &["--freeze", "-j", "1"]];
    each_version(|install| {
        let mut fixture = Fixture::new(install, &TABLES)?;
        for (way, (name, _)) in ways.iter().cycle().zip(&TABLES) {
            succeeded(fixture.load(&format!("to_{name}"), &fixture.file(name), way)?)
                .context(*name)?;
        }
        fixture.cluster.start()?;
        for (name, _) in &TABLES {
            let table = format!("to_{name}");
            let printed = fixture.cluster.copy_out(DATABASE, &format!("COPY {table} TO STDOUT"))?;
            ensure!(printed == fs::read(fixture.file(name))?, "{table} is another than {name}");
            check_table(&fixture.cluster, &table)?;
            fixture.cluster.psql(DATABASE, &format!("INSERT INTO {table} SELECT * FROM {name}"))?;
            fixture.cluster.psql(DATABASE, &format!("VACUUM {table}"))?;
            check_table(&fixture.cluster, &table)?;
        }
        Ok(())
    });
}

#[test]
fn rows_are_appended_behind_those_that_are_there() {
    each_version(|install| {
        let mut fixture = Fixture::new(install, &TABLES)?;
        for (name, way) in [
            ("integers", &[][..]),
            ("toasted", &[]),
            ("mixed", &["--no-wal"]),
            ("nested", &["--no-wal"]),
        ] {
            succeeded(fixture.load(name, &fixture.file(name), way)?).context(name)?;
        }
        fixture.cluster.start()?;
        for name in ["integers", "toasted", "mixed", "nested"] {
            let printed = fixture.cluster.copy_out(DATABASE, &format!("COPY {name} TO STDOUT"))?;
            let once = fs::read(fixture.file(name))?;
            ensure!(printed == [&once[..], &once[..]].concat(), "{name} has not its rows twice");
            check_table(&fixture.cluster, name)?;
            fixture.cluster.psql(DATABASE, &format!("UPDATE {name} SET a = a"))?;
            fixture.cluster.psql(DATABASE, &format!("VACUUM FREEZE {name}"))?;
            check_table(&fixture.cluster, name)?;
        }
        Ok(())
    });
}

#[test]
fn a_truncated_table_has_the_new_rows_only_and_its_old_files_are_gone() {
    each_version(|install| {
        let mut fixture = Fixture::new(install, &TABLES[..2])?;
        fixture.cluster.start()?;
        let path = fixture.cluster.psql(DATABASE, "SELECT pg_relation_filepath('integers')")?;
        fixture.cluster.stop()?;
        let short = fixture.file("short");
        fs::write(&short, "1\t2\t3\n")?;
        succeeded(fixture.load("integers", &short, &["--truncate", "--freeze"])?)?;
        ensure!(!fixture.cluster.data_dir().join(path).exists(), "the old file is still there");
        fixture.cluster.start()?;
        let printed = fixture.cluster.psql(DATABASE, "SELECT * FROM integers")?;
        ensure!(printed == "1|2|3", "{printed}");
        check_table(&fixture.cluster, "integers")
    });
}

#[test]
fn a_wrong_row_changes_nothing_and_is_told_as_copy_tells_it() {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let mut fixture = Fixture::new(&install, &TABLES[..1]).unwrap();
    let before = files_of(&fixture.cluster);
    let bad = fixture.file("bad");
    let mut text = fs::read(fixture.file("integers")).unwrap();
    text.extend_from_slice(b"1\tx\t3\n");
    fs::write(&bad, text).unwrap();
    let output = fixture.load("integers", &bad, &[]).unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in ["line 30001", "column b: \"x\"", "invalid input syntax for type integer: \"x\""] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(files_of(&fixture.cluster), before);
    fixture.cluster.start().unwrap();
    assert_eq!(fixture.cluster.psql(DATABASE, "SELECT count(*) FROM integers").unwrap(), "30000");
}

/// Names and contents of everything in the data directory but WAL behind the last checkpoint.
fn files_of(cluster: &TestCluster) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![cluster.data_dir()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if !path.parent().unwrap().ends_with("pg_wal") {
                found.push((path.clone(), fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_wal_of_a_load_that_fails_is_removed_and_that_of_a_killed_one_by_the_next() {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let fixture = Fixture::new(&install, &TABLES[..2]).unwrap();
    let before = segments_of(&fixture.cluster);
    let large = fixture.file("large");
    let mut text = fs::read(fixture.file("texts")).unwrap().repeat(14);
    text.extend_from_slice(b"one\ttoo many\n");
    fs::write(&large, text).unwrap();
    let output = fixture.load("texts", &large, &[]).unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(segments_of(&fixture.cluster), before);
    // As a killed load leaves it.
    let data = fixture.cluster.data_dir();
    let last = before.last().unwrap();
    let number = u64::from_str_radix(&last[16..], 16).unwrap();
    let list = format!("relation files of a change that was not finished\nwal 1 {number}\n");
    fs::write(data.join("pagemill.pending"), list).unwrap();
    for left in [number + 1, number + 2] {
        let name = format!("{}{left:08X}", &last[..16]);
        fs::copy(data.join("pg_wal").join(last), data.join("pg_wal").join(name)).unwrap();
    }
    succeeded(fixture.load("integers", &fixture.file("integers"), &[]).unwrap()).unwrap();
    let after = segments_of(&fixture.cluster);
    assert!(after.len() <= before.len() + 1, "{after:?}");
    assert!(!data.join("pagemill.pending").exists());
}

/// Names of the files of WAL, in order.
fn segments_of(cluster: &TestCluster) -> Vec<String> {
    let entries = fs::read_dir(cluster.data_dir().join("pg_wal")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name != "archive_status").collect();
    names.sort();
    names
}

#[test]
fn a_table_that_needs_a_server_is_refused_with_the_reason() {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let mut cluster = empty_cluster(&install).unwrap();
    cluster.start().unwrap();
    cluster
        .psql(
            DATABASE,
            "CREATE TABLE parent (a int PRIMARY KEY);
             CREATE TABLE child (a int REFERENCES parent);
             CREATE TABLE checked (a int CONSTRAINT positive CHECK (abs(a) > 0));
             CREATE TABLE generated (a int, b int GENERATED ALWAYS AS (a + 1) STORED);
             CREATE TABLE guarded (a int); ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
             CREATE TABLE parted (a int) PARTITION BY RANGE ((a + 1));
             CREATE VIEW seen AS SELECT 1 AS a;
             CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
             CREATE TABLE triggered (a int);
             CREATE TRIGGER watch BEFORE INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION f();
             CREATE TABLE excluded (a int, EXCLUDE USING btree (a WITH =));
             CREATE TABLE hashed (a int); CREATE INDEX by_hash ON hashed USING hash (a);
             CREATE TABLE computed (a int); CREATE INDEX by_sum ON computed ((a + 1));
             CREATE TABLE partial (a int); CREATE INDEX by_some ON partial (a) WHERE a > 3;
             CREATE TABLE defaulted (a int, b int DEFAULT 3 * random());",
        )
        .unwrap();
    cluster.stop().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rows");
    fs::write(&file, "1\n").unwrap();
    for (table, flags, reason) in [
        ("child", &[][..], "foreign key child_a_fkey"),
        ("parent", &["--truncate"], "foreign key child_a_fkey"),
        ("checked", &[], "check constraint positive"),
        ("generated", &["--columns", "a"], "column b is generated"),
        ("guarded", &[], "row security"),
        ("parted", &[], "its partition key has an expression"),
        ("seen", &[], "it is a view"),
        ("triggered", &[], "its trigger watch"),
        ("excluded", &[], "exclusion constraint"),
        ("hashed", &[], "by_hash is no B-tree"),
        ("computed", &[], "by_sum is over an expression"),
        ("partial", &[], "by_some has a WHERE clause"),
        ("defaulted", &["--columns", "a"], "column b of public.defaulted has a default"),
        ("pg_class", &[], "table of the system"),
    ] {
        let args =
            [&["load", "-d", DATABASE, "-t", table][..], flags, &[file.to_str().unwrap()]].concat();
        let output = pagemill().run(&cluster.data_dir(), &args).unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{table}: {said}");
        assert!(said.contains(reason), "{table}: {said}");
    }
}

#[test]
fn a_server_that_runs_and_a_cluster_that_crashed_are_left_alone() {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let mut fixture = Fixture::new(&install, &TABLES[..1]).unwrap();
    fixture.cluster.start().unwrap();
    let output = fixture.load("integers", &fixture.file("integers"), &[]).unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("a server is running here"));
    assert!(!output.status.success());
    fixture.cluster.kill().unwrap();
    let output = fixture.load("integers", &fixture.file("integers"), &[]).unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("in production"), "{said}");
    assert!(!fixture.cluster.data_dir().join("postmaster.pid").exists());
}
