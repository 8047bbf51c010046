//! Clusters with databases to copy, and what is asked of both sides: every row of every relation, every index, and
//! the files.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_testkit::prepared::filled_cluster;
use pagemill_testkit::{Medium, PgInstall, Program, TestCluster};

/// A database with every kind of relation, some of them in another tablespace.
pub(crate) const SHOP: &str = "shop";
/// One whose own tablespace is not `pg_default`, and that has tables there and elsewhere.
pub(crate) const PLACED: &str = "placed";
/// One with a name that has to be quoted.
pub(crate) const QUOTED: &str = "Grün \"und\" 'blau'; --";
/// One in LATIN1.
pub(crate) const LATIN: &str = "latin";

const RELATIONS: &str = "
    CREATE EXTENSION amcheck;
    CREATE TYPE mood AS ENUM ('sad', 'ok');
    CREATE TABLE things (a int PRIMARY KEY, b text, c mood DEFAULT 'ok', d point, e int[], f tsvector, g inet);
    INSERT INTO things SELECT i, repeat(md5(i::text), CASE WHEN i % 50 = 0 THEN 200 ELSE 1 END), 'sad', point(i, -i),
        ARRAY[i, i % 7], to_tsvector('simple', md5(i::text)), ('10.0.' || i % 256 || '.1')::inet
        FROM generate_series(1, 2500) i;
    ALTER TABLE things ADD COLUMN h int DEFAULT 42;
    DELETE FROM things WHERE a % 11 = 0; UPDATE things SET b = 'short' WHERE a % 13 = 0;
    CREATE INDEX ON things (b text_pattern_ops DESC) WHERE a > 10;
    CREATE INDEX ON things USING hash (b);
    CREATE INDEX ON things USING gin (e); CREATE INDEX ON things USING gin (f);
    CREATE INDEX ON things USING gist (d);
    CREATE INDEX ON things USING spgist (g inet_ops);
    CREATE INDEX ON things USING brin (a) WITH (pages_per_range = 2);
    CREATE TABLE wide (a int, b text); ALTER TABLE wide ALTER b SET STORAGE external;
    INSERT INTO wide SELECT i, (SELECT string_agg(md5((i * 100 + j)::text), '') FROM generate_series(1, 400) j)
        FROM generate_series(1, 160) i;
    CREATE SEQUENCE numbers START 7; SELECT nextval('numbers'), nextval('numbers');
    CREATE MATERIALIZED VIEW summary AS SELECT a % 10 AS k, count(*) FROM things GROUP BY 1;
    CREATE UNIQUE INDEX ON summary (k);
    CREATE VIEW seen AS SELECT * FROM things;
    CREATE UNLOGGED TABLE volatile (a int PRIMARY KEY, b text);
    INSERT INTO volatile SELECT i, md5(i::text) FROM generate_series(1, 700) i;
    CREATE UNLOGGED TABLE volatile_counted (a serial);
    CREATE TABLE parts (a int, b text) PARTITION BY RANGE (a) TABLESPACE outer_space;
    CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (100);
    CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (100) TO (1000) TABLESPACE pg_default;
    INSERT INTO parts SELECT i, 'part' || i FROM generate_series(1, 900) i;
    CREATE INDEX ON parts (a);
    CREATE TABLE far (a int PRIMARY KEY USING INDEX TABLESPACE outer_space, b text) TABLESPACE outer_space;
    INSERT INTO far SELECT i, repeat('far', i % 900) FROM generate_series(1, 1000) i;
    CREATE TABLE empty (a int PRIMARY KEY);
    CREATE TABLE frozen AS SELECT i AS a FROM generate_series(1, 3000) i; VACUUM (FREEZE, ANALYZE) frozen;
    SELECT lo_from_bytea(0, decode(repeat('ab', 5000), 'hex'));
    CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql AS 'SELECT $1 * 2';
    GRANT SELECT ON things TO bob WITH GRANT OPTION; GRANT EXECUTE ON FUNCTION twice(int) TO bob;
    ALTER TABLE wide OWNER TO alice; ALTER DEFAULT PRIVILEGES FOR ROLE alice GRANT INSERT ON TABLES TO bob;
    ALTER TABLE far ENABLE ROW LEVEL SECURITY; CREATE POLICY seen_by ON far TO bob USING (a > 3);
    COMMENT ON TABLE things IS 'kept';
    VACUUM FULL pg_attribute; REINDEX TABLE pg_proc; VACUUM things; ANALYZE;";

const SMALL: &str = "CREATE EXTENSION amcheck; CREATE TABLE t (a int PRIMARY KEY, b text);
    INSERT INTO t SELECT i, 'täst' || i FROM generate_series(1, 500) i";

const ELSEWHERE: &str = "CREATE TABLE u TABLESPACE outer_space AS TABLE t;
    CREATE TABLE v TABLESPACE pg_default AS TABLE t";

pub(crate) fn pagemill() -> Program {
    Program::new(env!("CARGO_BIN_EXE_pagemill"))
}

/// The version that the tests cannot do without.
pub(crate) fn required() -> PgInstall {
    PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed")
}

/// A version that may not be there.
pub(crate) fn found(major: u32) -> Option<PgInstall> {
    let install = PgInstall::find(major);
    if install.is_none() {
        eprintln!("SKIPPED: PostgreSQL {major} is not installed");
    }
    install
}

/// A stopped cluster with roles, tablespaces and the four databases, and further SQL run in `postgres`.
pub(crate) fn rich(install: &PgInstall, more: &[&str]) -> Result<TestCluster> {
    let source = ("shop", include_str!("fixture.rs"));
    let mut cluster = filled_cluster(install, source, Medium::Memory, fill)?.cluster;
    cluster.start()?;
    for sql in more {
        cluster.psql("postgres", sql)?;
    }
    // A server removes them when it starts.
    leave_temporary_files(&cluster)?;
    cluster.stop()?;
    Ok(cluster)
}

fn fill(cluster: &TestCluster) -> Result<String> {
    for (space, name) in [("own_space", "own"), ("outer_space", "outer"), ("third_space", "third")]
    {
        let location = cluster.tablespace_dir(name)?;
        let made = format!("CREATE TABLESPACE {space} LOCATION '{}'", location.display());
        cluster.psql("postgres", &made)?;
    }
    cluster.psql("postgres", "CREATE EXTENSION amcheck")?;
    cluster.psql("postgres", "CREATE ROLE alice; CREATE ROLE bob; CREATE ROLE carol SUPERUSER")?;
    for made in [
        "CREATE DATABASE shop OWNER bob",
        "CREATE DATABASE placed TABLESPACE own_space",
        "CREATE DATABASE \"Grün \"\"und\"\" 'blau'; --\"",
        "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0",
    ] {
        cluster.psql("postgres", made)?;
    }
    script(cluster, SHOP, RELATIONS)?;
    if cluster.major() >= 15 {
        let unlogged =
            "CREATE UNLOGGED SEQUENCE volatile_numbers; SELECT nextval('volatile_numbers')";
        cluster.psql(SHOP, unlogged)?;
    }
    cluster.psql("postgres", "GRANT CONNECT ON DATABASE shop TO alice")?;
    cluster.psql("postgres", "COMMENT ON DATABASE shop IS 'not the copy''s'")?;
    cluster.psql("postgres", "ALTER DATABASE shop SET work_mem = '1MB'")?;
    cluster.psql(PLACED, SMALL)?;
    cluster.psql(PLACED, ELSEWHERE)?;
    cluster.psql(QUOTED, SMALL)?;
    cluster.psql(LATIN, SMALL)
}

/// Runs statements one by one, each in its own transaction.
pub(crate) fn script(cluster: &TestCluster, db: &str, sql: &str) -> Result<()> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(sql.as_bytes())?;
    cluster.psql_file(db, file.path(), &[])
}

/// What a session that crashed leaves behind, with what the running server keeps in the same directory.
fn leave_temporary_files(cluster: &TestCluster) -> Result<()> {
    let oid = oid_of(cluster, SHOP)?;
    let directory = cluster.data_dir().join("base").join(oid);
    for name in ["t3_99999", "t3_99999_fsm", "pg_internal.init"] {
        fs::write(directory.join(name), [0; 8192])?;
    }
    Ok(())
}

/// Runs `pagemill clone SOURCE …`.
pub(crate) fn clone(cluster: &TestCluster, arguments: &[&str]) -> Result<Output> {
    pagemill().run(&cluster.data_dir(), &[&["clone"], arguments].concat())
}

/// Runs a command of pagemill that has to succeed, and returns what it says.
pub(crate) fn done(cluster: &TestCluster, arguments: &[&str]) -> Result<String> {
    let output = pagemill().run(&cluster.data_dir(), arguments)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{arguments:?}: {said}");
    Ok(said + &String::from_utf8_lossy(&output.stdout))
}

/// Runs SQL in a database whose name may be of any bytes.
pub(crate) fn ask(cluster: &TestCluster, db: impl AsRef<OsStr>, sql: &str) -> Result<String> {
    let printed = run(cluster, db, &["-A", "-t", "-c", sql])?;
    Ok(String::from_utf8_lossy(&printed).trim_end_matches('\n').to_owned())
}

fn run(cluster: &TestCluster, db: impl AsRef<OsStr>, arguments: &[&str]) -> Result<Vec<u8>> {
    let mut psql = cluster.psql_command("postgres");
    let output = psql.env("PGDATABASE", &db).args(arguments).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {said}", db.as_ref().display());
    Ok(output.stdout)
}

/// Every row of every relation of a database, its catalogs included, in the order in which they lie.
pub(crate) fn contents(cluster: &TestCluster, db: impl AsRef<OsStr>) -> Result<Vec<u8>> {
    const RELATIONS: &str = "SELECT format('COPY (SELECT * FROM %s) TO STDOUT;', oid::regclass) FROM pg_class \
         WHERE relkind IN ('r', 'm', 'S', 't') AND NOT relisshared AND relpersistence <> 't' ORDER BY oid";
    let script = ask(cluster, &db, RELATIONS)?;
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(script.as_bytes())?;
    let path = file.path().to_str().context("a path that is no UTF-8")?;
    run(cluster, db, &["-f", path])
}

/// Fails unless `amcheck` finds every heap and every B-tree of a database sound, those of the shared catalogs included.
pub(crate) fn check(cluster: &TestCluster, db: impl AsRef<OsStr>) -> Result<()> {
    const HEAPS: &str = "SELECT c.oid::regclass, v.* FROM pg_class c, verify_heapam(c.oid::regclass, check_toast => true) v \
         WHERE c.relkind IN ('r', 'm', 't') AND c.relpersistence <> 't'";
    const INDEXES: &str = "SELECT count(bt_index_parent_check(c.oid, true, true)) FROM pg_class c \
         JOIN pg_am a ON a.oid = c.relam JOIN pg_index i ON i.indexrelid = c.oid \
         WHERE c.relkind = 'i' AND a.amname = 'btree' AND indisvalid AND c.relpersistence <> 't'";
    let found = ask(cluster, &db, HEAPS)?;
    ensure!(found.is_empty(), "{}: {found}", db.as_ref().display());
    ask(cluster, db, INDEXES).map(|_| ())
}

/// The OID of a database.
pub(crate) fn oid_of(cluster: &TestCluster, db: &str) -> Result<String> {
    let name = db.replace('\'', "''");
    cluster.psql("postgres", &format!("SELECT oid FROM pg_database WHERE datname = '{name}'"))
}

/// Files of a database in all tablespaces, without those that servers make anew.
pub(crate) fn files(cluster: &TestCluster, oid: &str) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for directory in database_directories(&cluster.data_dir(), oid)? {
        for entry in fs::read_dir(directory)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !name.starts_with("pg_internal.init") && !name.starts_with('t') {
                found.insert(name);
            }
        }
    }
    Ok(found)
}

/// The directories of a database in all tablespaces.
pub(crate) fn database_directories(data: &Path, oid: &str) -> Result<Vec<PathBuf>> {
    let mut found = vec![data.join("base").join(oid)];
    for tablespace in fs::read_dir(data.join("pg_tblspc"))? {
        for version in fs::read_dir(tablespace?.path())? {
            found.push(version?.path().join(oid));
        }
    }
    Ok(found.into_iter().filter(|path| path.exists()).collect())
}

/// What a file had when it was looked at: number, length and the time of its last change, which tells more than its bytes.
pub(crate) type Stamp = (u64, u64, i64, i64);

/// All files of a cluster, tablespaces included. Directories are there or not.
pub(crate) fn snapshot(cluster: &TestCluster) -> Result<BTreeMap<PathBuf, Stamp>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![cluster.data_dir()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let seen = fs::metadata(&path)?;
            if seen.is_dir() {
                found.insert(path.clone(), Stamp::default());
                waiting.push(path);
            } else {
                let stamp = (seen.ino(), seen.len(), seen.ctime(), seen.ctime_nsec());
                found.insert(path, stamp);
            }
        }
    }
    Ok(found)
}

/// Has `pg_checksums` look at every page of a stopped cluster, where this installation has it.
pub(crate) fn check_checksums(cluster: &TestCluster) -> Result<()> {
    let program = cluster.install().program("pg_checksums");
    if !program.exists() {
        return Ok(());
    }
    let output = Command::new(program).arg("--check").arg("-D").arg(cluster.data_dir()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "pg_checksums: {said}");
    Ok(())
}
