//! What is refused, each with its reason and each leaving the cluster byte for byte as it was.
//!
//! A refusal that changes anything, or a message without its remedy, fails here.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use pagemill_testkit::TestCluster;
use pagemill_testkit::prepared::empty_cluster;

use crate::fixture::{Stamp, done, found, pagemill, required, rich, script, snapshot};

const WRONG_USAGE: i32 = 2;

/// Runs a command that has to be refused for this reason and to change nothing.
fn refuse(cluster: &TestCluster, arguments: &[&str], reason: &str) -> Result<Option<i32>> {
    fails(cluster, arguments, reason, |_| true)
}

/// Runs a command that has to end for this reason on its way. What it wrote behind the checkpoint in the WAL is nobody's,
/// and the next change or server writes over it.
fn stop(cluster: &TestCluster, arguments: &[&str], reason: &str) -> Result<Option<i32>> {
    fails(cluster, arguments, reason, |path| {
        !path.components().any(|part| part.as_os_str() == "pg_wal")
    })
}

fn fails(
    cluster: &TestCluster,
    arguments: &[&str],
    reason: &str,
    counts: fn(&Path) -> bool,
) -> Result<Option<i32>> {
    let counted = || -> Result<BTreeMap<_, _>> {
        Ok(snapshot(cluster)?.into_iter().filter(|(path, _)| counts(path)).collect())
    };
    let before = counted()?;
    let output = pagemill().run(&cluster.data_dir(), arguments)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(!output.status.success(), "{arguments:?} was done");
    ensure!(said.contains(reason), "{arguments:?}: {said}");
    ensure!(said.lines().count() == 1, "{arguments:?}: more than one line: {said}");
    ensure!(output.stdout.is_empty(), "{arguments:?} prints something");
    as_before(&before, &counted()?).with_context(|| format!("{arguments:?}: {said}"))?;
    Ok(output.status.code())
}

fn as_before(before: &BTreeMap<PathBuf, Stamp>, after: &BTreeMap<PathBuf, Stamp>) -> Result<()> {
    for (path, stamp) in before {
        ensure!(after.get(path).is_some_and(|now| now == stamp), "{} has changed", path.display());
    }
    for path in after.keys() {
        ensure!(before.contains_key(path), "{} is left behind", path.display());
    }
    Ok(())
}

#[test]
fn what_cannot_be_made_is_refused_with_its_reason() {
    let invalid = "UPDATE pg_database SET datconnlimit = -2 WHERE datname = 'broken'";
    let cluster = rich(&required(), &["CREATE DATABASE broken", invalid]).unwrap();
    let long = "n".repeat(64);
    let wide = "ü".repeat(32);
    for (arguments, reason) in [
        (&["shop", "placed"][..], "database \"placed\" exists already"),
        (&["shop", "new", "shop"], "database \"shop\" exists already"),
        (&["shopp", "new"], "database \"shopp\" does not exist: did you mean shop?"),
        (&["broken", "new"], "database \"broken\" is invalid"),
        (&["shop", &long], "64 bytes, and a name can have 63"),
        (&["shop", &wide], "64 bytes, and a name can have 63"),
        (&["latin", "\u{65e5}\u{672c}"], "the encoding of \"latin\", LATIN1, does not have"),
        (&["shop", ""], "empty name"),
        (&["shop", "two\nlines"], "end of line"),
        (&["shop", "twice", "twice"], "named twice"),
        (&["--owner", "nobody_at_all", "shop", "new"], "role \"nobody_at_all\" does not exist"),
        (&["--tablespace", "nowhere", "shop", "new"], "tablespace \"nowhere\" does not exist"),
        (&["--tablespace", "pg_global", "shop", "new"], "pg_global cannot be"),
        (&["--tablespace", "outer_space", "shop", "new"], "choose another --tablespace"),
        (&["--tablespace", "pg_default", "placed", "new"], "choose another --tablespace"),
        (&["--connection-limit", "-2", "shop", "new"], "-2"),
        (&["--strategy", "copy", "shop", "new"], "copy"),
        (&["shop"], "TARGET"),
    ] {
        // Of several targets, those before one that cannot be made are made.
        if arguments.len() == 3 && !arguments[0].starts_with("--") && arguments[2] == "shop" {
            continue;
        }
        for dry in [&[][..], &["--dry-run"]] {
            refuse(&cluster, &[&["clone"], dry, arguments].concat(), reason).unwrap();
        }
    }
    let usage = refuse(&cluster, &["clone", "shop", ""], "empty name").unwrap();
    assert_eq!(usage, Some(WRONG_USAGE));
}

#[test]
fn of_several_targets_those_before_a_refused_one_are_made() {
    let mut cluster = empty_cluster(&required()).unwrap();
    let arguments = ["clone", "template1", "one", "two", "postgres", "three"];
    let output = pagemill().run(&cluster.data_dir(), &arguments).unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(said.contains("\"postgres\" is not made; those named before it are there"), "{said}");
    assert!(said.contains("exists already"), "{said}");
    cluster.start().unwrap();
    let made =
        "SELECT string_agg(datname, ' ' ORDER BY datname) FROM pg_database WHERE oid > 16000";
    assert_eq!(cluster.psql("postgres", made).unwrap(), "one two");
}

#[test]
fn a_cluster_that_is_in_no_state_to_be_changed_is_left_alone() {
    let mut cluster = empty_cluster(&required()).unwrap();
    let data = cluster.data_dir();
    let both = [&["clone", "template1", "new"][..], &["drop", "victim"]];
    cluster.start().unwrap();
    cluster.psql("postgres", "CREATE DATABASE victim").unwrap();
    for arguments in both {
        // The server writes its own files meanwhile.
        let output = pagemill().run(&data, arguments).unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("running"), "{said}");
    }
    cluster.kill().unwrap();
    for arguments in both {
        refuse(&cluster, arguments, "start and stop PostgreSQL on it").unwrap();
    }
    cluster.start().unwrap();
    cluster
        .psql("postgres", "BEGIN; CREATE TABLE t (a int); PREPARE TRANSACTION 'waiting'")
        .unwrap();
    cluster.stop().unwrap();
    for arguments in both {
        let dry = [&arguments[..1], &["--dry-run"], &arguments[1..]].concat();
        refuse(&cluster, arguments, "prepared transactions").unwrap();
        refuse(&cluster, &dry, "prepared transactions").unwrap();
    }
    cluster.start().unwrap();
    cluster.psql("postgres", "ROLLBACK PREPARED 'waiting'").unwrap();
    cluster.stop().unwrap();
    fs::write(data.join("standby.signal"), "").unwrap();
    for arguments in both {
        refuse(&cluster, arguments, "standby.signal").unwrap();
    }
    fs::remove_file(data.join("standby.signal")).unwrap();
    for arguments in both {
        done(&cluster, arguments).unwrap();
    }
}

#[test]
fn a_database_of_14_cannot_be_logged_page_by_page() {
    let Some(install) = found(14) else { return };
    let cluster = empty_cluster(&install).unwrap();
    let arguments = ["clone", "--strategy", "wal_log", "template1", "new"];
    refuse(&cluster, &arguments, "use --strategy file_copy").unwrap();
}

#[test]
fn blocks_that_cannot_be_shared_are_not_copied_in_silence() {
    let cluster = empty_cluster(&required()).unwrap();
    let arguments = ["clone", "--strategy", "reflink", "template1", "new"];
    // Where the temporary directory is on XFS or btrfs, it is done.
    if !pagemill().run(&cluster.data_dir(), &arguments).unwrap().status.success() {
        refuse(&cluster, &arguments, "use --strategy file_copy").unwrap();
    }
}

/// A database with a table whose pages can be damaged, and its file.
fn damaged(name: &str) -> (TestCluster, PathBuf) {
    let mut cluster = empty_cluster(&required()).unwrap();
    cluster.start().unwrap();
    cluster.psql("postgres", "CREATE DATABASE source").unwrap();
    let sql = "CREATE TABLE small AS SELECT i, md5(i::text) FROM generate_series(1, 1000) i;
        CREATE TABLE large AS SELECT i, repeat(md5(i::text), 20) FROM generate_series(1, 4000) i";
    script(&cluster, "source", sql).unwrap();
    let path = cluster.psql("source", &format!("SELECT pg_relation_filepath('{name}')")).unwrap();
    cluster.stop().unwrap();
    let path = cluster.data_dir().join(path);
    (cluster, path)
}

#[test]
fn a_damaged_page_ends_the_copy_or_is_carried_along_still_damaged() {
    for (table, block) in [("small", 2), ("large", 200)] {
        let (mut cluster, path) = damaged(table);
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(b"damage", block * 8192 + 7000).unwrap();
        let fault = format!("block {block}");
        for strategy in ["wal_log", "file_copy"] {
            let how = ["clone", "--strategy", strategy];
            stop(&cluster, &[&how[..], &["source", "new"]].concat(), &fault).unwrap();
            let carried = ["--no-verify-checksums", "source", strategy];
            done(&cluster, &[&how[..], &carried].concat()).unwrap();
        }
        cluster.start().unwrap();
        for copy in ["wal_log", "file_copy"] {
            let other = if table == "small" { "large" } else { "small" };
            cluster.psql(copy, &format!("SELECT count(*) FROM {other}")).unwrap();
            let read = cluster.psql(copy, &format!("SELECT count(*) FROM {table}"));
            let told = format!("{:#}", read.unwrap_err());
            assert!(told.contains(&format!("invalid page in block {block}")), "{copy}: {told}");
        }
    }
}

#[test]
fn a_file_that_is_cut_or_missing_ends_the_copy() {
    let (cluster, path) = damaged("large");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 100]).unwrap();
    for strategy in ["wal_log", "file_copy"] {
        let arguments = ["clone", "--strategy", strategy, "source", "new"];
        stop(&cluster, &arguments, file_name(&path)).unwrap();
    }
    fs::remove_file(&path).unwrap();
    let arguments = ["clone", "--strategy", "wal_log", "source", "new"];
    stop(&cluster, &arguments, file_name(&path)).unwrap();
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap()
}

#[test]
fn a_collation_of_another_version_is_refused_and_one_without_gets_that_of_the_system() {
    let mut cluster = empty_cluster(&required()).unwrap();
    cluster.start().unwrap();
    for (name, version) in [("old", "'0.1'"), ("unversioned", "NULL")] {
        cluster.psql("postgres", &format!("CREATE DATABASE {name}")).unwrap();
        // The locale itself need not be there: nobody connects.
        let moved = format!(
            "UPDATE pg_database SET datcollate = 'de_DE.UTF-8', datcollversion = {version} WHERE datname = '{name}'"
        );
        cluster.psql("postgres", &moved).unwrap();
    }
    cluster.stop().unwrap();
    let reason = "made with version 0.1 of its collation";
    refuse(&cluster, &["clone", "old", "new"], reason).unwrap();
    refuse(&cluster, &["clone", "--dry-run", "old", "new"], reason).unwrap();
    done(&cluster, &["clone", "unversioned", "new"]).unwrap();
    cluster.start().unwrap();
    let same = "SELECT datcollversion = pg_database_collation_actual_version(oid) FROM pg_database WHERE datname = 'new'";
    assert_eq!(cluster.psql("postgres", same).unwrap(), "t");
}
