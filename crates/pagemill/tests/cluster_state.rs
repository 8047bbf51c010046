//! Data directories that are whole and yet not at rest, or at rest and not whole: copies of running
//! servers, standbys, backups, lost tablespaces, interrupted DROP DATABASEs, catalogs with gaps.
//! Each is refused with what it is and what helps, and made here by a real server.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{PgInstall, TestCluster};

/// A running server on a cluster of its own.
fn started(statements: &[&str]) -> TestCluster {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let mut cluster = empty_cluster(&install).unwrap();
    cluster.start().unwrap();
    for statement in statements {
        cluster.psql("postgres", statement).unwrap();
    }
    cluster
}

fn stopped(statements: &[&str]) -> TestCluster {
    let mut cluster = started(statements);
    cluster.stop().unwrap();
    cluster
}

#[derive(Debug)]
struct CommandResult {
    status: i32,
    printed: String,
    said: String,
}

impl CommandResult {
    fn of(output: Output) -> Self {
        Self {
            status: output.status.code().expect("ended by a signal"),
            printed: String::from_utf8(output.stdout).unwrap(),
            said: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    fn fails_saying(&self, parts: &[&str]) {
        assert_eq!(self.status, 1, "{self:?}");
        assert!(!self.said.contains("panicked"), "{self:?}");
        assert_eq!(self.said.lines().count(), 1, "{self:?}");
        for part in parts {
            assert!(self.said.contains(part), "{part:?} is missing in {self:?}");
        }
    }

    #[track_caller]
    fn prints(&self, parts: &[&str]) {
        assert_eq!(self.status, 0, "{self:?}");
        for part in parts {
            assert!(self.printed.contains(part), "{part:?} is missing in {self:?}");
        }
    }
}

fn run(directory: &Path, args: &[&str]) -> CommandResult {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    command.args(args).arg("-D").arg(directory).env_remove("PGDATA");
    CommandResult::of(command.output().unwrap())
}

fn export(cluster: &TestCluster, table: &str) -> CommandResult {
    export_from(&cluster.data_dir(), table)
}

fn export_from(directory: &Path, table: &str) -> CommandResult {
    run(directory, &["export", "-d", "postgres", "-t", table])
}

#[test]
fn a_lost_column_in_the_catalog_is_damage_that_names_the_table() {
    let cluster = stopped(&[
        "CREATE TABLE middle AS SELECT 1 AS a, 2 AS b, 3 AS c",
        "CREATE TABLE last AS SELECT 1 AS a, 2 AS b, 3 AS c",
        "CREATE TABLE sound AS SELECT 1 AS a, 2 AS b, 3 AS c",
        "CREATE TABLE narrow ()",
        "ALTER TABLE sound DROP b",
        "CREATE TYPE pair AS (x int, y int)",
        "CREATE TABLE pairs AS SELECT ROW(1, 2)::pair AS p",
        "DELETE FROM pg_attribute WHERE attrelid = 'middle'::regclass AND attnum = 2",
        "DELETE FROM pg_attribute WHERE attrelid = 'last'::regclass AND attnum = 3",
        "DELETE FROM pg_attribute WHERE attrelid = 'pair'::regclass AND attnum = 2",
    ]);
    export(&cluster, "middle").fails_saying(&["\"middle\"", "pg_attribute", "no row for column 2"]);
    let counted = ["\"last\"", "pg_attribute has columns up to number 2", "there are 3"];
    export(&cluster, "last").fails_saying(&counted);
    let counted = ["\"pair\"", "pg_attribute has columns up to number 1", "there are 2"];
    export(&cluster, "pairs").fails_saying(&counted);
    export(&cluster, "sound").prints(&["1\t3\n"]);
    export(&cluster, "narrow").prints(&[]);
}

#[test]
fn a_gap_in_the_columns_of_a_catalog_is_damage_too() {
    for (catalog, number) in [(1259, 3), (1249, 5), (1247, 30)] {
        let delete =
            format!("DELETE FROM pg_attribute WHERE attrelid = {catalog} AND attnum = {number}");
        let cluster = stopped(&["CREATE TABLE t AS SELECT 1", &delete]);
        let place = ["pg_attribute has no row for column", &format!("column {number}")];
        export(&cluster, "t").fails_saying(&place);
    }
}

#[test]
fn the_shared_catalogs_are_found_through_any_sound_database() {
    for numbers in ["attnum = 2", "attnum > 0", "attnum >= 5"] {
        let mut cluster = started(&["CREATE TABLE t AS SELECT 7"]);
        let delete = format!("DELETE FROM pg_attribute WHERE attrelid = 1262 AND {numbers}");
        cluster.psql("template1", &delete).unwrap();
        cluster.stop().unwrap();
        run(&cluster.data_dir(), &["ls"]).prints(&["template1", "postgres"]);
        export(&cluster, "t").prints(&["7\n"]);
    }
}

#[test]
fn a_database_half_dropped_is_listed_as_invalid_and_not_opened() {
    let cluster = stopped(&[
        "CREATE DATABASE gone",
        "UPDATE pg_database SET datconnlimit = -2 WHERE datname = 'gone'",
    ]);
    let listed = run(&cluster.data_dir(), &["ls"]);
    let flagged: Vec<_> = listed.printed.lines().filter(|l| l.contains("invalid")).collect();
    assert!(flagged.len() == 1 && flagged[0].starts_with("gone"), "{listed:?}");
    let listed = run(&cluster.data_dir(), &["ls", "--json"]);
    assert_eq!(listed.printed.matches("\"is_invalid\": true").count(), 1, "{listed:?}");
    let asked = run(&cluster.data_dir(), &["ls", "-d", "gone"]);
    asked.fails_saying(&["\"gone\" is invalid", "DROP DATABASE", "interrupted"]);
}

/// The files as they lie, in a directory of their own.
fn copy_of(cluster: &TestCluster) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("copy");
    let mut cp = Command::new("cp");
    assert!(cp.arg("-a").arg(cluster.data_dir()).arg(&copy).status().unwrap().success());
    (dir, copy)
}

#[test]
fn a_copy_of_a_running_server_is_read_as_after_redo_and_its_own_directory_is_refused() {
    let cluster = started(&["CREATE TABLE t AS SELECT 7", "CHECKPOINT"]);
    let (dir, copy) = copy_of(&cluster);
    let read = export_from(&copy, "t");
    read.prints(&["7\n"]);
    assert_eq!(read.said.lines().count(), 1, "{read:?}");
    for part in ["was not shut down", "after redo of its WAL", "a server on", "at one moment"] {
        assert!(read.said.contains(part), "{part:?} is missing in {read:?}");
    }
    run(&copy, &["ls", "--allow-unclean"]).prints(&["postgres"]);
    // The server's own directory stays refused, whatever path leads to it.
    let link = dir.path().join("link");
    symlink(cluster.data_dir(), &link).unwrap();
    for path in [cluster.data_dir(), link] {
        run(&path, &["ls", "--allow-unclean"]).fails_saying(&["a server is running here"]);
    }
}

#[test]
fn a_stopped_standby_is_read_as_after_redo() {
    let mut cluster = stopped(&[]);
    let signal = cluster.data_dir().join("standby.signal");
    fs::write(&signal, "").unwrap();
    cluster.account().own(&signal).unwrap();
    cluster.start().unwrap();
    cluster.stop().unwrap();
    let standby = run(&cluster.data_dir(), &["ls"]);
    standby.prints(&["postgres"]);
    assert!(standby.said.contains("a standby's files: read as after redo"), "{standby:?}");
    run(&cluster.data_dir(), &["ls", "--allow-unclean"]).prints(&["postgres"]);
}

#[test]
fn an_unpacked_base_backup_is_known_by_what_it_holds() {
    let cluster = started(&["CREATE TABLE t AS SELECT 7"]);
    let setting = |name| cluster.psql("postgres", &format!("SHOW {name}")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let backup = dir.path().join("backup");
    let mut program = Command::new(cluster.install().program("pg_basebackup"));
    program.args(["-h", setting("unix_socket_directories").trim(), "-p", setting("port").trim()]);
    program.args(["-U", "postgres", "-c", "fast", "-R", "-D"]).arg(&backup);
    assert!(program.status().unwrap().success());
    let unpacked = run(&backup, &["ls"]);
    unpacked.prints(&["postgres"]);
    assert!(unpacked.said.contains("a backup of a primary: read as after redo"), "{unpacked:?}");
}

#[test]
fn a_killed_servers_directory_is_read_as_after_redo_and_a_restore_on_it_is_known() {
    let mut cluster = started(&["CHECKPOINT", "CREATE TABLE t AS SELECT 7"]);
    cluster.kill().unwrap();
    let plain = export(&cluster, "t");
    plain.prints(&["7\n"]);
    assert!(
        plain.said.contains("a cluster that was not shut down: read as after redo"),
        "{plain:?}"
    );
    fs::write(cluster.data_dir().join("recovery.signal"), "").unwrap();
    let restore = run(&cluster.data_dir(), &["ls"]);
    assert!(restore.said.contains("and an archive: read as after redo"), "{restore:?}");
}

#[test]
fn a_lost_tablespace_is_named_with_where_its_link_leads() {
    let mut cluster = started(&[]);
    let place = cluster.tablespace_dir("fast").unwrap();
    let shown = place.display().to_string();
    for statement in [
        &format!("CREATE TABLESPACE fast LOCATION '{shown}'"),
        "CREATE TABLE t TABLESPACE fast AS SELECT 7",
        "CREATE TABLE here AS SELECT 8",
        "CREATE DATABASE there TABLESPACE fast",
    ] {
        cluster.psql("postgres", statement).unwrap();
    }
    let oid = cluster.psql("postgres", "SELECT oid FROM pg_tablespace WHERE spcname = 'fast'");
    let name = format!("tablespace \"fast\" (OID {})", oid.unwrap().trim());
    cluster.stop().unwrap();
    export(&cluster, "t").prints(&["7\n"]);

    fs::rename(&place, place.with_extension("away")).unwrap();
    let says = [&*name, &shown, "which is not there", "mount"];
    export(&cluster, "t").fails_saying(&says);
    run(&cluster.data_dir(), &["ls", "-d", "there"]).fails_saying(&says);
    let listed = run(&cluster.data_dir(), &["ls", "-d", "postgres"]);
    assert_eq!(listed.status, 1, "{listed:?}");
    let is_marked = |line: &str| line.ends_with("the tablespace is missing");
    let marked: Vec<_> = listed.printed.lines().filter(|line| is_marked(line)).collect();
    assert!(matches!(&marked[..], [only] if only.contains(" t ")), "{listed:?}");
    assert!(listed.printed.contains("here"), "{listed:?}");
    export(&cluster, "here").prints(&["8\n"]);

    fs::create_dir(&place).unwrap();
    export(&cluster, "t").fails_saying(&[&name, &shown, "restore what is missing there"]);
    let links = fs::read_dir(cluster.data_dir().join("pg_tblspc")).unwrap();
    links.for_each(|link| fs::remove_file(link.unwrap().path()).unwrap());
    export(&cluster, "t").fails_saying(&[&name, "is missing: restore it"]);
}
