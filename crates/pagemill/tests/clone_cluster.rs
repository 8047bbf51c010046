//! Copies of whole clusters, with PostgreSQL as the judge: a server of every installed version starts on the copy without
//! recovery, finds what the source had, checks it with `pg_amcheck` and goes on working with it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use pagemill_testkit::install::{PgInstall, REQUIRED_MAJOR};
use pagemill_testkit::prepared::filled_cluster;
use pagemill_testkit::scratch::cluster_root;
use pagemill_testkit::{Medium, TestCluster, each_of};

const DATABASE: &str = "postgres";
const BLOCK: usize = 8192;
/// Between tables.
const MARK: &str = "--the next table--";

/// What every source has.
const TABLES: [&str; 9] = [
    "CREATE TABLE rows AS SELECT i AS a, md5(i::text) AS b FROM generate_series(1, 20000) i",
    "CREATE INDEX ON rows (a)",
    "CREATE INDEX ON rows USING hash (b)",
    "CREATE TABLE toasted AS SELECT i AS a, (SELECT string_agg(md5((i * 1000 + j)::text), '') \
     FROM generate_series(1, 300) j) AS b FROM generate_series(1, 50) i",
    "CREATE UNLOGGED TABLE unlogged (a int PRIMARY KEY, b text, c int[])",
    "CREATE INDEX ON unlogged USING gin (c)",
    "INSERT INTO unlogged SELECT i, repeat('x', i), ARRAY[i] FROM generate_series(1, 3000) i",
    "VACUUM",
    "CREATE DATABASE other",
];

fn pagemill(arguments: &[&str], paths: &[&Path]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    command.args(["clone", "--cluster"]).args(arguments).args(paths).env_remove("PGDATA");
    command
}

fn clone(arguments: &[&str], source: &Path, copy: &Path) -> Result<Output> {
    pagemill(arguments, &[source, copy]).output().context("starting the program")
}

fn cloned(arguments: &[&str], source: &Path, copy: &Path) -> Result<Output> {
    let output = clone(arguments, source, copy)?;
    ensure!(output.status.success(), "{}", error_of(&output));
    Ok(output)
}

fn error_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim_end().to_owned()
}

/// The message of a copy that is refused with this status, and of which nothing is there.
fn refused(status: i32, arguments: &[&str], source: &Path, copy: &Path) -> Result<String> {
    let before = names(copy.parent().context("no parent")?);
    let output = clone(arguments, source, copy)?;
    ensure!(output.status.code() == Some(status), "{}: {}", output.status, error_of(&output));
    ensure!(names(copy.parent().context("no parent")?) == before, "something was made");
    let message = error_of(&output);
    message.strip_prefix("pagemill: ").map(str::to_owned).context(message)
}

/// Everything below a directory; nothing where there is none.
fn names(directory: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(entry.path());
            }
            found.insert(entry.path());
        }
    }
    found
}

fn installed() -> PgInstall {
    PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed")
}

/// A stopped cluster with tables, and a place for its copy that the server's account may enter.
fn stopped(install: &PgInstall) -> Result<(TestCluster, TestCluster)> {
    let source = ("rows", include_str!("clone_cluster.rs"));
    let filled = filled_cluster(install, source, Medium::Disk, |cluster| {
        TABLES.iter().try_for_each(|sql| cluster.psql(DATABASE, sql).map(drop))?;
        Ok(String::new())
    })?;
    Ok((filled.cluster, place(install)?))
}

fn place(install: &PgInstall) -> Result<TestCluster> {
    let root = cluster_root(Medium::Disk)?;
    TestCluster::at(install, root)
}

/// What COPY prints of every table of a database, catalogs among them.
fn contents(cluster: &TestCluster, database: &str) -> Result<Vec<(String, String)>> {
    let tables = cluster.psql(
        database,
        "SELECT format('%I.%I', nspname, relname) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace \
         WHERE relkind IN ('r', 'S', 'm', 't') AND relpersistence = 'p' ORDER BY 1",
    )?;
    // One session for all: what it prints of each table begins with a line that no row is.
    let script = tempfile::NamedTempFile::new()?;
    let copy = |table: &str| format!("\\echo {MARK}\nCOPY (SELECT * FROM {table}) TO STDOUT;\n");
    fs::write(script.path(), tables.lines().map(copy).collect::<String>())?;
    let script = script.path().to_str().context("a path that is no UTF-8")?;
    let printed = String::from_utf8(cluster.psql_bytes(database, &["-f", script])?)?;
    let rows: Vec<&str> = printed.split(&format!("{MARK}\n")).skip(1).collect();
    ensure!(rows.len() == tables.lines().count(), "{} tables were printed", rows.len());
    Ok(tables.lines().map(Into::into).zip(rows.into_iter().map(Into::into)).collect())
}

fn amcheck(cluster: &TestCluster) -> Result<()> {
    for database in [DATABASE, "other"] {
        cluster.psql(database, "CREATE EXTENSION amcheck")?;
        cluster.psql(
            database,
            "SELECT bt_index_parent_check(i.indexrelid, true) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
             JOIN pg_am a ON a.oid = c.relam WHERE a.amname = 'btree' AND c.relpersistence <> 't'",
        )?;
        let damage = cluster.psql(
            database,
            "SELECT c.oid::regclass, v.* FROM pg_class c, LATERAL verify_heapam(c.oid) v \
             WHERE c.relkind IN ('r', 't', 'm')",
        )?;
        ensure!(damage.is_empty(), "{damage}");
    }
    Ok(())
}

#[test]
fn a_server_of_every_version_starts_on_the_copy_without_recovery_and_finds_everything() {
    each_of(&PgInstall::all(), check_version);
}

fn check_version(install: &PgInstall) -> Result<()> {
    let (mut source, mut copy) = stopped(install)?;
    let space = source.tablespace_dir("fast=1")?;
    source.start()?;
    source.psql(DATABASE, &format!("CREATE TABLESPACE fast LOCATION '{}'", space.display()))?;
    source.psql(DATABASE, "CREATE TABLE spaced TABLESPACE fast AS SELECT * FROM rows")?;
    source.psql(DATABASE, "CREATE UNLOGGED TABLE u2 TABLESPACE fast AS SELECT * FROM rows")?;
    if install.major >= 15 {
        let sql = "SET allow_in_place_tablespaces = on; CREATE TABLESPACE here LOCATION ''";
        for sql in [sql, "CREATE TABLE placed TABLESPACE here AS SELECT * FROM rows"] {
            let file = source.root().join("script.sql");
            fs::write(&file, sql)?;
            source.psql_file(DATABASE, &file, &[])?;
        }
    }
    source.psql(DATABASE, "SELECT pg_create_physical_replication_slot('slot', true)")?;
    source.psql(
        DATABASE,
        "BEGIN; INSERT INTO rows VALUES (-1, 'prepared'); PREPARE TRANSACTION 'later'",
    )?;
    source.stop()?;
    add_litter(&source.data_dir())?;
    let before = names(source.root());

    let new = copy.root().join("fast");
    let mapping = format!("{}={}", space.display().to_string().replace('=', "\\="), new.display());
    cloned(&["-T", &mapping, "--verify"], &source.data_dir(), &copy.data_dir())?;
    ensure!(names(source.root()) == before, "the source was changed");
    check_files(&source.data_dir(), &copy.data_dir())?;
    let version = fs::read_dir(&space)?.next().context("no version")??.file_name();
    ensure!(new.join(version).is_dir());

    source.start()?;
    copy.start()?;
    let log = fs::read_to_string(copy.root().join("server.log"))?;
    ensure!(log.contains("database system was shut down at"), "{log}");
    ensure!(!log.contains("redo starts") && !log.contains("not properly shut down"), "{log}");
    for database in [DATABASE, "other"] {
        let (expected, found) = (contents(&source, database)?, contents(&copy, database)?);
        ensure!(expected.len() > 60 && expected.len() == found.len(), "{}", expected.len());
        for (expected, found) in expected.iter().zip(&found) {
            ensure!(expected == found, "{database}: {} differs", expected.0);
        }
    }
    check_copy(&copy)?;
    copy.stop()?;
    let program = install.program("pg_checksums");
    if !program.exists() {
        eprintln!("SKIPPED: {} is not installed", program.display());
        return Ok(());
    }
    let checked = Command::new(program).arg("-D").arg(copy.data_dir()).output()?;
    ensure!(checked.status.success(), "{}", error_of(&checked));
    Ok(())
}

/// What a server leaves behind, or must not find.
fn add_litter(data: &Path) -> Result<()> {
    let database = fs::read_dir(data.join("base"))?.next().context("no database")??.path();
    fs::create_dir(data.join("base/pgsql_tmp"))?;
    for file in [
        data.join("base/pgsql_tmp/pgsql_tmp1.0"),
        database.join("t3_16384"),
        database.join("t3_16384_fsm.1"),
        database.join("pg_internal.init.77"),
        data.join("postgresql.auto.conf.tmp"),
        data.join("backup_manifest"),
        data.join("pg_stat_tmp/global.stat"),
        data.join("pg_wal/000000010000000000000000"),
    ] {
        fs::write(&file, b"litter").with_context(|| file.display().to_string())?;
    }
    Ok(())
}

fn check_files(source: &Path, copy: &Path) -> Result<()> {
    let within = |root: &Path| -> BTreeSet<String> {
        let names = names(root);
        names
            .iter()
            .filter_map(|name| Some(name.strip_prefix(root).ok()?.display().to_string()))
            .collect()
    };
    let (source_names, copied) = (within(source), within(copy));
    for name in &copied {
        ensure!(source_names.contains(name), "{name} is only in the copy");
        let litter = ["pgsql_tmp", "/t3_", "pg_internal", "backup_manifest", "postmaster", ".tmp"];
        ensure!(!litter.iter().any(|litter| name.contains(litter)), "{name} was copied");
    }
    for emptied in
        ["pg_replslot", "pg_stat_tmp", "pg_notify", "pg_subtrans", "pg_wal/archive_status"]
    {
        ensure!(copied.contains(emptied), "{emptied} is missing");
        ensure!(!copied.iter().any(|name| name.starts_with(&format!("{emptied}/"))), "{emptied}");
    }
    let segments = copied.iter().filter(|name| name.len() == "pg_wal/".len() + 24);
    ensure!((1..=2).contains(&segments.count()), "{copied:?}");
    let mode = |path: &Path| fs::metadata(path).map(|found| found.permissions().mode() & 0o7777);
    for name in ["", "base", "global", "PG_VERSION", "pg_wal"] {
        ensure!(mode(&source.join(name))? == mode(&copy.join(name))?, "the mode of {name:?}");
    }
    Ok(())
}

fn check_copy(copy: &TestCluster) -> Result<()> {
    let one = |sql: &str| copy.psql(DATABASE, sql);
    ensure!(one("SELECT count(*) FROM pg_replication_slots")? == "0");
    ensure!(one("SELECT count(*) FROM unlogged")? == "0" && one("SELECT count(*) FROM u2")? == "0");
    one("INSERT INTO unlogged SELECT i, 'x', ARRAY[i] FROM generate_series(1, 1000) i")?;
    one("SET enable_seqscan = off")?;
    ensure!(one("SELECT count(*) FROM unlogged WHERE c @> ARRAY[7]")? == "1");
    ensure!(one("SELECT count(*) FROM spaced")? == "20000");
    one("COMMIT PREPARED 'later'")?;
    ensure!(one("SELECT b FROM rows WHERE a = -1")? == "prepared");
    amcheck(copy)
}

#[test]
fn what_stands_in_the_way_is_refused_before_anything_is_made() -> Result<()> {
    let install = installed();
    let (mut source, copy) = stopped(&install)?;
    let (from, to) = (source.data_dir(), copy.data_dir());
    let (from_name, to_name) = (from.display(), to.display());

    let message = refused(1, &[], &from, &to.join("below/too"))?;
    assert_eq!(
        message,
        format!("{to_name}/below/too: {to_name}/below is not there: make it first")
    );
    let message = refused(1, &[], &from, &from.join("copy"))?;
    let says = "name a directory outside of it";
    assert_eq!(message, format!("{from_name}/copy: lies in {from_name}: {says}"));
    let message = refused(1, &[], &from, &from)?;
    assert_eq!(message, format!("{from_name}: lies in {from_name}: {says}"));
    fs::write(&to, b"")?;
    let message = refused(1, &[], &from, &to)?;
    assert_eq!(message, format!("{to_name}: it is a file: name a directory"));
    fs::remove_file(&to)?;
    fs::create_dir_all(to.join("mine"))?;
    let message = refused(1, &[], &from, &to)?;
    let says = "not empty: name a directory that is, or one that is not there";
    assert_eq!(message, format!("{to_name}: {says}"));
    fs::create_dir(to.join("global"))?;
    let message = refused(1, &[], &from, &to)?;
    let says = "not empty: it looks like a copy that was not finished, as there is no global/pg_control in it: \
                remove it, and run this again";
    assert_eq!(message, format!("{to_name}: {says}"));
    fs::remove_dir_all(&to)?;
    let message = refused(2, &[], copy.root(), &to)?;
    assert!(
        message.contains("not a PostgreSQL data directory (there is no PG_VERSION in it)"),
        "{message}"
    );

    let segment = fs::read_dir(from.join("pg_wal"))?.flatten().map(|entry| entry.path());
    let segment = segment.filter(|path| path.is_file()).min().context("no WAL")?;
    let hidden = source.root().join("hidden");
    fs::rename(&segment, &hidden)?;
    let rest: Vec<_> = fs::read_dir(from.join("pg_wal"))?.flatten().collect();
    if rest.iter().all(|entry| entry.path().is_dir()) {
        let message = refused(1, &[], &from, &to)?;
        assert!(message.contains("which has the last checkpoint"), "{message}");
    }
    fs::rename(&hidden, &segment)?;

    source.start()?;
    let output = clone(&[], &from, &to)?;
    assert_eq!(output.status.code(), Some(1));
    let message = error_of(&output);
    assert!(message.contains("a server is running here (process "), "{message}");
    assert!(message.ends_with("): stop it first") && !to.exists(), "{message}");
    source.kill()?;
    let message = refused(1, &[], &from, &to)?;
    let says = "the cluster's state is \"in production\", not \"shut down\": start and stop PostgreSQL on it";
    assert_eq!(message, format!("{from_name}: {says}"));
    Ok(())
}

#[test]
fn tablespaces_need_a_mapping_each_and_mappings_a_tablespace() -> Result<()> {
    let install = installed();
    let (mut source, copy) = stopped(&install)?;
    let space = source.tablespace_dir("space")?;
    source.start()?;
    source.psql(DATABASE, &format!("CREATE TABLESPACE fast LOCATION '{}'", space.display()))?;
    source.stop()?;
    let (from, to) = (source.data_dir(), copy.data_dir());
    let (space, new) = (space.display().to_string(), copy.root().join("new"));
    let new_name = new.display().to_string();

    let message = refused(1, &[], &from, &to)?;
    let oid = message.split(['(', ')']).nth(1).context("no OID")?.to_owned();
    let remedy = format!("name a directory for its copy with --tablespace-mapping {space}=NEWDIR");
    assert_eq!(message, format!("tablespace \"fast\" ({oid}) lies in {space}: {remedy}"));
    let mapped =
        |text: &str| refused(2, &["-T", text, "-T", &format!("{space}={new_name}")], &from, &to);
    let message = mapped("/nowhere=/x")?;
    let says = format!("/nowhere is no tablespace of this cluster, which has {space}");
    assert_eq!(message, format!("--tablespace-mapping: {says}"));
    let message = mapped(&format!("{space}=/x"))?;
    assert_eq!(message, format!("--tablespace-mapping: {space} is mapped twice"));
    for (wrong, says) in [
        ("/a", "it must be OLDDIR=NEWDIR"),
        ("a=/b", "the old directory must be absolute"),
        ("/a=b", "the new directory must be absolute"),
    ] {
        let message = refused(2, &["-T", wrong], &from, &to)?;
        assert_eq!(message, format!("--tablespace-mapping {wrong}: {says}"));
    }
    let inside = to.join("new");
    let message = refused(1, &["-T", &format!("{space}={}", inside.display())], &from, &to)?;
    assert!(message.contains("is not there: make it first"), "{message}");
    fs::create_dir(&new)?;
    fs::write(new.join("mine"), b"")?;
    let message = refused(1, &["-T", &format!("{space}={new_name}")], &from, &to)?;
    let says = "not empty: name a directory that is, or one that is not there";
    assert_eq!(message, format!("{new_name}: {says}"));
    fs::remove_file(new.join("mine"))?;

    let mapping = format!("{space}/={new_name}/");
    let planned = cloned(&["-n", "-T", &mapping], &from, &to)?;
    let planned = String::from_utf8_lossy(&planned.stdout).into_owned();
    assert!(planned.starts_with("Tablespace  From") && planned.contains(&new_name), "{planned}");
    assert!(planned.contains(" needed, ") && !to.exists() && names(&new).is_empty(), "{planned}");
    cloned(&["-T", &mapping], &from, &to)?;
    let link = fs::read_dir(to.join("pg_tblspc"))?.next().context("no link")??.path();
    assert_eq!(fs::read_link(link)?, new);
    Ok(())
}

#[test]
fn a_damaged_page_is_named_by_verify_and_copied_without_it() -> Result<()> {
    let install = installed();
    let (mut source, copy) = stopped(&install)?;
    source.start()?;
    let file = source.psql(DATABASE, "SELECT pg_relation_filepath('rows')")?;
    source.stop()?;
    let (from, to) = (source.data_dir(), copy.data_dir());
    let path = from.join(file);
    let mut bytes = fs::read(&path)?;
    bytes[5 * BLOCK + 4000] ^= 1;
    fs::write(&path, &bytes)?;
    let message = refused(1, &["--verify"], &from, &to)?;
    let begin = format!("{}: fork main, block 5: checksum 0x", path.display());
    assert!(message.starts_with(&begin), "{message}");
    assert!(message.ends_with(" computed: leave out --verify to copy it as it is"), "{message}");
    bytes.extend(b"more");
    bytes[5 * BLOCK + 4000] ^= 1;
    fs::write(&path, &bytes)?;
    let message = refused(1, &["--verify"], &from, &to)?;
    assert!(message.contains(": the file ends within the page"), "{message}");

    // An empty directory that was there stays, and stays empty.
    fs::create_dir(&to)?;
    refused(1, &["--verify"], &from, &to)?;
    assert!(to.exists() && names(&to).is_empty());
    cloned(&[], &from, &to)?;
    assert_eq!(fs::read(to.join(path.strip_prefix(&from)?))?, bytes);
    Ok(())
}

#[test]
fn an_interrupted_copy_is_removed_and_a_killed_one_is_no_cluster() -> Result<()> {
    let install = installed();
    let (source, copy) = stopped(&install)?;
    let (from, to) = (source.data_dir(), copy.data_dir());
    // One that is over before it is caught is tried again.
    let mut caught = false;
    for _ in 0..20 {
        let (status, message) = signalled(&from, &to, "-TERM")?;
        if status.success() {
            fs::remove_dir_all(&to)?;
            continue;
        }
        assert_eq!(status.signal(), Some(15), "{message}");
        assert_eq!(message, "pagemill: interrupted: what was copied so far is removed");
        assert!(!to.exists() && !from.join("postmaster.pid").exists());
        caught = true;
        break;
    }
    assert!(caught, "no copy could be interrupted");
    let (status, _) = signalled(&from, &to, "-KILL")?;
    if !status.success() {
        assert!(!to.join("global/pg_control").exists());
        // Something that was put beside it stays, and stands in the way.
        fs::write(to.join("notes"), "mine")?;
        let message = error_of(&clone(&[], &from, &to)?);
        assert!(message.contains("an earlier copy was cut short, and is removed"), "{message}");
        assert!(message.contains("not empty"), "{message}");
        assert_eq!(names(&to), BTreeSet::from([to.join("notes")]));
    }
    fs::remove_dir_all(&to)?;
    let (status, _) = signalled(&from, &to, "-KILL")?;
    if !status.success() {
        let mut clean = Command::new(env!("CARGO_BIN_EXE_pagemill"));
        let output = clean.arg("clean").arg("-D").arg(&to).output()?;
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && told.ends_with("removed\n"), "{told}");
        assert!(names(&to).is_empty());
        fs::remove_dir(&to)?;
    } else {
        fs::remove_dir_all(&to)?;
    }
    let (status, _) = signalled(&from, &to, "-KILL")?;
    if status.success() {
        fs::remove_dir_all(&to)?;
    }
    cloned(&[], &from, &to)?;
    assert!(!to.join("pagemill.copy").exists());
    assert!(to.join("global/pg_control").exists());
    Ok(())
}

/// A copy that gets a signal as soon as its directory is there.
fn signalled(from: &Path, to: &Path, signal: &str) -> Result<(std::process::ExitStatus, String)> {
    let mut command = pagemill(&["-j", "1"], &[from, to]);
    let mut child = command.stderr(std::process::Stdio::piped()).spawn()?;
    while !to.join("base").exists() && child.try_wait()?.is_none() {
        std::thread::yield_now();
    }
    Command::new("kill").arg(signal).arg(child.id().to_string()).output()?;
    let output = child.wait_with_output()?;
    Ok((output.status, error_of(&output)))
}

/// Holes became zeros on the disk, and a file larger than the disk could not be copied at all.
#[test]
fn a_sparse_file_stays_sparse_and_has_the_same_bytes() -> Result<()> {
    let install = installed();
    let (source, copy) = stopped(&install)?;
    let (from, to) = (source.data_dir(), copy.data_dir());
    let sizes = [(3 << 20) + 5000, 100 << 20, 1 << 40];
    for (number, len) in sizes.into_iter().enumerate() {
        let file = fs::File::create(from.join(format!("sparse{number}")))?;
        file.set_len(len)?;
        for offset in [4096, 1_000_000, len - 100] {
            file.write_all_at(b"some bytes", offset)?;
        }
    }
    for strategy in ["file_copy", "auto"] {
        cloned(&["--verify", "--strategy", strategy], &from, &to)?;
        for number in 0..sizes.len() {
            let name = format!("sparse{number}");
            let (old, new) = (from.join(&name), to.join(&name));
            let (old_blocks, new_blocks) =
                (fs::metadata(&old)?.blocks(), fs::metadata(&new)?.blocks());
            assert!(new_blocks <= old_blocks + 48, "{name}: {old_blocks} became {new_blocks}");
            if number < 2 {
                assert!(fs::read(&old)? == fs::read(&new)?, "{name}");
            }
        }
        fs::remove_dir_all(&to)?;
    }
    Ok(())
}

/// A copy into a tablespace of its source was made, and became part of what it was a copy of.
#[test]
fn a_target_within_a_tablespace_of_the_source_is_refused() -> Result<()> {
    let install = installed();
    let (mut source, copy) = stopped(&install)?;
    source.start()?;
    let place = source.tablespace_dir("far")?;
    source.psql(DATABASE, &format!("CREATE TABLESPACE far LOCATION '{}'", place.display()))?;
    source.stop()?;
    let (from, to) = (source.data_dir(), copy.data_dir());
    let mapping =
        |new: &Path| format!("--tablespace-mapping={}={}", place.display(), new.display());
    let elsewhere = to.with_file_name("far");
    let link = elsewhere.with_file_name("link");
    std::os::unix::fs::symlink(&place, &link)?;
    for inside in [place.join("copy"), link.join("copy")] {
        let output = clone(&[&mapping(&elsewhere)], &from, &inside)?;
        assert!(
            !output.status.success() && error_of(&output).contains(": lies in "),
            "{}",
            error_of(&output)
        );
        let output = clone(&[&mapping(&inside)], &from, &to)?;
        assert!(
            !output.status.success() && error_of(&output).contains(": lies in "),
            "{}",
            error_of(&output)
        );
        assert!(!inside.exists() && !to.exists());
    }
    Ok(())
}
