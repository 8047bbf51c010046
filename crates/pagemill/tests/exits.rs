//! Exit statuses and outputs: one rule for all commands, and no result written where it destroys something.
//!
//! The built program is asked through a shell where streams, masks or limits matter; servers make the clusters.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use pagemill_testkit::install::{PgInstall, REQUIRED_MAJOR};
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{Program, TestCluster};

const DATABASE: &str = "postgres";

fn pagemill() -> Program {
    Program::new(env!("CARGO_BIN_EXE_pagemill"))
}

/// A stopped cluster with a tablespace and a table of 1000 rows.
fn ground() -> Result<TestCluster> {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let mut cluster = empty_cluster(&install)?;
    cluster.start()?;
    let place = cluster.tablespace_dir("elsewhere")?;
    cluster.psql(DATABASE, &format!("CREATE TABLESPACE far LOCATION '{}'", place.display()))?;
    cluster.psql(DATABASE, "CREATE TABLE t (a int, b text)")?;
    cluster
        .psql(DATABASE, "CREATE TABLE many AS SELECT i AS a FROM generate_series(1, 200000) i")?;
    cluster.psql(DATABASE, "CREATE TABLE placed TABLESPACE far AS SELECT 1 AS a")?;
    cluster.stop()?;
    Ok(cluster)
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(Into::into).collect()
}

fn run(cluster: &TestCluster, line: &[String]) -> Result<Output> {
    pagemill().run(&cluster.data_dir(), line)
}

/// The message of something that ends with this status.
fn refused(cluster: &TestCluster, line: &[String], status: i32) -> Result<String> {
    let output = run(cluster, line)?;
    let message = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
    ensure!(output.status.code() == Some(status), "{line:?}: {}: {message}", output.status);
    Ok(message)
}

/// A shell's command line, in which `$P` is the program and `$D` the data directory.
fn shell(cluster: &TestCluster, line: &str) -> Result<Output> {
    let mut command = Command::new("bash");
    command.args(["-c", line]).env("P", env!("CARGO_BIN_EXE_pagemill"));
    command.env("D", cluster.data_dir()).env_remove("PGDATA").stdin(Stdio::null());
    command.output().context("starting a shell")
}

/// `--log-errors` overwrote the file that was loaded, and `PG_VERSION` of the cluster.
#[test]
fn rejected_rows_go_to_no_input_no_file_that_is_there_and_into_no_cluster() -> Result<()> {
    let cluster = ground()?;
    let (data, dir) = (cluster.data_dir(), tempfile::tempdir()?);
    let path = |name: &str| dir.path().join(name);
    fs::write(path("rows"), "x\ty\n")?;
    fs::write(path("there"), "kept")?;
    fs::hard_link(path("rows"), path("hard"))?;
    symlink(path("rows"), path("soft"))?;
    symlink(&data, path("cluster"))?;
    let load = |log: &Path, more: &[&str]| -> Vec<String> {
        let rows = path("rows").display().to_string();
        let line = ["load", "-t", "t", "--log-errors"].map(String::from).into_iter();
        let line = line.chain([log.display().to_string(), rows]);
        line.chain(more.iter().map(|word| (*word).to_owned())).collect()
    };
    let version = fs::read(data.join("PG_VERSION"))?;
    for name in ["rows", "hard", "soft", "./rows"] {
        let message = refused(&cluster, &load(&path(name), &["--force"]), 2)?;
        assert!(message.contains("which is read"), "{message}");
    }
    let far = fs::canonicalize(data.join("pg_tblspc"))?;
    let far = fs::read_dir(far)?.next().context("no tablespace")??.path();
    let version_directory = fs::read_dir(&far)?.next().context("no directory")??.path();
    for log in [
        data.join("PG_VERSION"),
        data.join("base/new"),
        path("cluster/new"),
        path("cluster/pg_wal/new"),
        fs::canonicalize(version_directory)?.join("new"),
    ] {
        let message = refused(&cluster, &load(&log, &["--force"]), 2)?;
        assert!(message.contains("where only the server may write"), "{message}");
    }
    let message = refused(&cluster, &load(&path("there"), &[]), 2)?;
    assert!(message.contains("--force"), "{message}");
    assert_eq!(fs::read(path("there"))?, b"kept");
    assert_eq!(fs::read(path("rows"))?, b"x\ty\n");
    assert_eq!(fs::read(data.join("PG_VERSION"))?, version);
    let done = run(&cluster, &load(&path("there"), &["--force"]))?;
    assert!(done.status.success() && fs::read(path("there"))? != b"kept");
    assert!(run(&cluster, &load(&path("new"), &[]))?.status.success() && path("new").exists());
    let from_stdin = "$P load -D $D -t t --force --log-errors rows - < rows";
    let output = shell(&cluster, &format!("cd {} && {from_stdin}", dir.path().display()))?;
    assert_eq!(output.status.code(), Some(2));
    Ok(())
}

#[test]
fn results_of_other_commands_go_into_no_cluster_either() -> Result<()> {
    let cluster = ground()?;
    let data = cluster.data_dir();
    let link = tempfile::tempdir()?;
    symlink(&data, link.path().join("cluster"))?;
    for directory in [data.clone(), link.path().join("cluster")] {
        for line in [
            format!("$P export -D $D -t t -o {}/x", directory.display()),
            format!("$P generate {}/base --table t --rows 1", directory.display()),
            format!("$P man --dir {}", directory.display()),
            format!("$P lab -e device --quick --no-html --json {}/x", directory.display()),
        ] {
            let output = shell(&cluster, &line)?;
            let message = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{line}: {message}");
            assert!(message.contains("where only the server may write"), "{line}: {message}");
        }
    }
    Ok(())
}

/// `--start-block` past the end gave 1 where `inspect --block` gave 2, and names were judged as differently.
#[test]
fn the_same_mistake_has_the_same_exit_status_in_all_commands() -> Result<()> {
    let cluster = ground()?;
    let long = "x".repeat(64);
    for line in [
        "count -t t --start-block 9".to_owned(),
        "export -t t --start-block 9".to_owned(),
        "inspect -t t --block 9".to_owned(),
        "count -t absent".to_owned(),
        "load -t absent /dev/null".to_owned(),
        "load -t t --columns a,a /dev/null".to_owned(),
        "export -t t --columns a,a".to_owned(),
        "export -t t --columns absent".to_owned(),
        "load -t t --columns absent /dev/null".to_owned(),
        "drop absent".to_owned(),
        "clone absent new".to_owned(),
        "clone postgres new new".to_owned(),
        format!("clone postgres {long}"),
    ] {
        refused(&cluster, &words(&line), 2)?;
    }
    Ok(())
}

#[test]
fn a_reader_that_went_away_is_no_error_and_an_output_that_takes_nothing_is_one() -> Result<()> {
    let cluster = ground()?;
    let status = |line: &str| -> Result<(Option<i32>, String)> {
        let output = shell(&cluster, line)?;
        Ok((output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()))
    };
    for line in ["$P export -D $D -t many", "$P man", "$P export -D $D -t many -j 2"] {
        let (code, said) =
            status(&format!("{line} | head -1 >/dev/null; exit ${{PIPESTATUS[0]}}"))?;
        assert_eq!((code, said.as_str()), (Some(0), ""), "{line}");
    }
    for line in [
        "count -D $D -t many",
        "ls -D $D",
        "man",
        "--help",
        "--version",
        "probe .",
        "completions bash",
    ] {
        for (stream, words) in
            [(">&-", "standard output: it is closed"), (">/dev/full", "no space left")]
        {
            let (code, said) = status(&format!("$P {line} {stream}"))?;
            assert_eq!(code, Some(1), "{line} {stream}: {said}");
            assert!(said.contains(words), "{line} {stream}: {said}");
        }
    }
    let (code, said) = status("$P load -D $D -t t --truncate - <&-")?;
    assert!(code == Some(1) && said.contains("standard input: it is closed"), "{said}");
    let dir = tempfile::tempdir()?;
    let line = format!("ulimit -f 16; $P export -D $D -t many -o {}/x", dir.path().display());
    let (code, said) = status(&line)?;
    assert!(code == Some(1) && said.contains("ulimit -f"), "{code:?} {said}");
    assert_eq!(fs::read_dir(dir.path())?.count(), 0);
    let (code, said) = status("ulimit -f 16; seq 100000 | sed 's/$/\tx/' | $P load -D $D -t t -")?;
    assert!(code == Some(1) && said.contains("too large"), "{code:?} {said}");
    assert!(!cluster.data_dir().join("pagemill.pending").exists());
    Ok(())
}

#[test]
fn an_empty_variable_is_unset_and_quiet_leaves_errors_only() -> Result<()> {
    let cluster = ground()?;
    for line in ["ls", "count -t t", "drop x", "clean", "clone a b", "load -t t x"] {
        let output = shell(&cluster, &format!("PGDATA='' $P {line}"))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("no data directory"), "{line}: {said}");
    }
    let counted = shell(&cluster, "PGDATA='' PGDATABASE='' $P count -D $D -t many --json")?;
    let text = String::from_utf8(counted.stdout)?;
    let text: String = text.split_whitespace().collect();
    assert_eq!(text, r#"[{"name":"many","rows":200000,"schema":"public"}]"#);
    let notice = shell(&cluster, "$P drop -D $D --if-exists absent")?;
    let quiet = shell(
        &cluster,
        "$P -q drop -D $D --if-exists absent; $P drop -D $D -q --if-exists absent",
    )?;
    assert!(!notice.stderr.is_empty() && quiet.stderr.is_empty() && quiet.status.success());
    assert!(!shell(&cluster, "$P count -q -D $D -t absent")?.stderr.is_empty());
    let planned = shell(&cluster, "$P clone -D $D template1 new && $P drop -n -D $D new")?;
    let planned = String::from_utf8(planned.stdout)?;
    assert!(planned.contains("base/") && planned.contains("would be removed"), "{planned}");
    Ok(())
}

/// The mask of the process took the group's rights from what was made in a cluster that the group may read.
#[test]
fn what_is_made_in_a_cluster_has_the_modes_a_server_gives_it() -> Result<()> {
    let mut cluster = ground()?;
    let mode_of = |path: &Path| -> Result<u32> {
        Ok(fs::symlink_metadata(path)?.permissions().mode() & 0o777)
    };
    for (mode, mask) in [(0o750, "077"), (0o700, "022")] {
        let data = cluster.data_dir();
        fs::set_permissions(&data, fs::Permissions::from_mode(mode))?;
        cluster.start()?;
        cluster.psql(DATABASE, "DROP TABLE IF EXISTS made; CREATE TABLE made (a int)")?;
        let made = data.join(cluster.psql(DATABASE, "SELECT pg_relation_filepath('made')")?);
        cluster.stop()?;
        let expected = mode_of(&made)?;
        assert_eq!(expected, mode & 0o640, "the server's own file");
        let before = names(&data)?;
        let copy = tempfile::tempdir()?;
        let line = format!(
            "umask {mask}; seq 200000 | $P load -D $D -t made - && $P clone -D $D template1 new{mask} && \
             $P clone --cluster --tablespace-mapping $(readlink -f $D/pg_tblspc/*)={0}/far $D {0}/copy",
            copy.path().display(),
        );
        let done = shell(&cluster, &line)?;
        ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let new: Vec<_> = names(&data)?.difference(&before).cloned().collect();
        assert!(new.len() > 200, "{new:?}");
        for path in new.into_iter().chain(names(copy.path())?) {
            let wanted = if path.is_dir() { mode } else { expected };
            // The directory of a tablespace is whatever it was for the source.
            if !path.is_symlink() && !path.ends_with("far") {
                assert_eq!(mode_of(&path)?, wanted, "{}", path.display());
            }
        }
    }
    Ok(())
}

/// Everything below a directory.
fn names(directory: &Path) -> Result<BTreeSet<PathBuf>> {
    let (mut found, mut waiting) = (BTreeSet::new(), vec![directory.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() && !path.is_symlink() {
                waiting.push(path.clone());
            }
            found.insert(path);
        }
    }
    Ok(found)
}
