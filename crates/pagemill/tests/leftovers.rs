//! Work that ends before its time: a signal has it undo itself, a kill leaves what the next run finds, and nothing is
//! removed that a server uses.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pagemill_testkit::install::{PgInstall, REQUIRED_MAJOR};
use pagemill_testkit::prepared::empty_cluster_in;
use pagemill_testkit::program::end_signals;
use pagemill_testkit::{Medium, Program, TestCluster};

const DATABASE: &str = "postgres";
const LIST: &str = "pagemill.pending";
/// What does not come within this time does not come.
const PATIENCE: Duration = Duration::from_secs(60);

fn pagemill() -> Program {
    Program::new(env!("CARGO_BIN_EXE_pagemill"))
}

/// A stopped cluster with an empty table, and a database that takes a while to copy.
fn ground() -> Result<TestCluster> {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let mut cluster = empty_cluster_in(&install, Medium::Disk)?;
    cluster.start()?;
    cluster.psql(DATABASE, "CREATE TABLE t (a int PRIMARY KEY, b text)")?;
    cluster.stop()?;
    Ok(cluster)
}

/// Every file and directory of a cluster.
fn names(cluster: &TestCluster) -> Vec<PathBuf> {
    let (mut found, mut waiting) = (Vec::new(), vec![cluster.data_dir()]);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

fn wait_for(what: &Path) -> Result<()> {
    let begin = Instant::now();
    while !what.exists() {
        ensure!(begin.elapsed() < PATIENCE, "{} does not come", what.display());
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn signal(child: &Child, name: &str) -> Result<()> {
    let sent = Command::new("kill").arg(name).arg(child.id().to_string()).status()?;
    ensure!(sent.success(), "the signal was not sent");
    Ok(())
}

/// A load that has some rows and waits for more, as its standard input is held open. It has listed its files, and has made
/// one of them at least: the list is written first.
fn waiting_load(cluster: &TestCluster) -> Result<Child> {
    let mut command = pagemill().command(&cluster.data_dir(), &["load", "-t", "t", "-"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let rows: String = (0..5000).map(|row| format!("{row}\trow\n")).collect();
    child.stdin.as_mut().context("no input")?.write_all(rows.as_bytes())?;
    wait_for(&cluster.data_dir().join(LIST))?;
    let begin = Instant::now();
    while !is_file_made(cluster)? {
        ensure!(begin.elapsed() < PATIENCE, "no file comes");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(child)
}

/// Whether a file of the list is there.
fn is_file_made(cluster: &TestCluster) -> Result<bool> {
    let list = fs::read_to_string(cluster.data_dir().join(LIST))?;
    Ok(listed_files(cluster, &list).iter().any(|file| file.exists()))
}

/// The files of a list, made or not.
fn listed_files(cluster: &TestCluster, list: &str) -> Vec<PathBuf> {
    let base = cluster.data_dir().join("base");
    let numbers = |line: &str| line.split(' ').skip(1).take(2).collect::<PathBuf>();
    list.lines().skip(2).map(|line| base.join(numbers(line))).collect()
}

/// How it ended, and what it said. Its standard input stays open until then.
fn ended(mut child: Child) -> Result<(std::process::ExitStatus, String)> {
    let input = child.stdin.take();
    let output = child.wait_with_output()?;
    drop(input);
    Ok((output.status, String::from_utf8_lossy(&output.stderr).trim_end().to_owned()))
}

fn said<S: AsRef<OsStr>>(cluster: &TestCluster, words: &[S]) -> Result<(String, String)> {
    let output = pagemill().run(&cluster.data_dir(), words)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    ensure!(output.status.success(), "{}: {}", output.status, text(&output.stderr));
    Ok((text(&output.stdout), text(&output.stderr)))
}

/// A load that waited for its input was not to be stopped but by a second signal, which left its files.
#[test]
fn a_load_that_a_signal_stops_undoes_itself_and_says_so() -> Result<()> {
    let cluster = ground()?;
    let before = names(&cluster);
    for (name, number) in end_signals() {
        let child = waiting_load(&cluster)?;
        signal(&child, name)?;
        let (status, message) = ended(child)?;
        assert_eq!(status.signal(), Some(number), "{message}");
        assert_eq!(
            message,
            "pagemill: interrupted: nothing was loaded, and what was made so far is removed"
        );
        assert_eq!(names(&cluster), before);
    }
    Ok(())
}

#[test]
fn a_clone_that_a_signal_stops_undoes_itself_and_says_so() -> Result<()> {
    let mut cluster = ground()?;
    cluster.start()?;
    let sql = "CREATE TABLE large AS SELECT i, repeat(md5(i::text), 60) AS b FROM generate_series(1, 30000) i";
    cluster.psql("template1", sql)?;
    cluster.stop()?;
    for strategy in ["wal_log", "file_copy"] {
        // One that is done before the signal comes has to be taken again.
        let stops = |attempt: u32| is_stopped(&cluster, strategy, &format!("{strategy}{attempt}"));
        let mut attempts = 0;
        while !stops(attempts)? {
            attempts += 1;
            ensure!(attempts < 10, "{strategy}: each was done before it was stopped");
        }
    }
    Ok(())
}

/// Stops a clone; false where it is done before.
fn is_stopped(cluster: &TestCluster, strategy: &str, name: &str) -> Result<bool> {
    let before = names(cluster);
    let words = ["clone", "--strategy", strategy, "template1", name];
    let mut command = pagemill().command(&cluster.data_dir(), &words);
    let mut child = command.stderr(Stdio::piped()).spawn()?;
    let list = cluster.data_dir().join(LIST);
    while !list.exists() {
        if child.try_wait()?.is_some() {
            return Ok(false);
        }
    }
    signal(&child, "-INT")?;
    let (status, message) = ended(child)?;
    if status.success() {
        return Ok(false);
    }
    assert_eq!(status.signal(), Some(2), "{message}");
    let expected = format!(
        "pagemill: interrupted: \"{name}\" was not made, and what was made so far is removed"
    );
    assert_eq!(message, expected);
    assert_eq!(names(cluster), before, "{strategy}");
    Ok(true)
}

/// What a killed load had made was removed in silence, by the next load or clone alone that came far enough.
#[test]
fn what_a_killed_load_left_is_told_by_readers_and_removed_by_the_next_command_that_changes()
-> Result<()> {
    let cluster = ground()?;
    let before = names(&cluster);
    for words in
        [&["clean"][..], &["load", "-t", "absent", "/dev/null"], &["drop", "--if-exists", "absent"]]
    {
        let child = waiting_load(&cluster)?;
        signal(&child, "-KILL")?;
        ended(child)?;
        assert!(names(&cluster).len() > before.len());
        let (counted, warning) = said(&cluster, &["count", "-t", "t"])?;
        assert!(counted == "0\n" && warning.contains("was cut short here"), "{warning}");
        let (planned, _) = said(&cluster, &["clean", "--dry-run"])?;
        assert!(planned.lines().all(|line| line.ends_with("would be removed")), "{planned}");
        assert_eq!(said(&cluster, &["-q", "count", "-t", "t"].as_slice()[1..])?.0, "0\n");
        let output = pagemill().run(&cluster.data_dir(), words)?;
        let told = [output.stdout, output.stderr].concat();
        let told = String::from_utf8_lossy(&told);
        assert!(told.contains("files of a relation") && told.contains("base/"), "{told}");
        assert_eq!(names(&cluster), before, "{words:?}");
        assert_eq!(said(&cluster, &["clean"])?, (String::new(), String::new()));
    }
    Ok(())
}

/// A number that a killed load had listed and not used is the next one that a server gives out. Where it becomes the file
/// of a mapped catalog, no row of `pg_class` has it, and cleaning removed the catalog.
#[test]
fn what_a_server_made_of_the_numbers_of_a_killed_load_stays() -> Result<()> {
    let mut cluster = ground()?;
    let child = waiting_load(&cluster)?;
    signal(&child, "-KILL")?;
    ended(child)?;
    let list = fs::read_to_string(cluster.data_dir().join(LIST))?;
    let files: Vec<_> = list.lines().skip(2).collect();
    // Not all of them were made by then.
    for file in listed_files(&cluster, &list).iter().filter(|file| file.exists()) {
        fs::remove_file(file)?;
    }
    cluster.start()?;
    cluster.psql(DATABASE, "VACUUM FULL pg_class")?;
    cluster.psql(DATABASE, "CREATE TABLE more AS SELECT 7 AS a")?;
    let query = "SELECT string_agg(pg_relation_filenode(o)::text, ' ') FROM \
                 (VALUES ('pg_class'::regclass), ('more')) v (o)";
    let used = cluster.psql(DATABASE, query)?;
    let listed = |number: &str| files.iter().any(|line| line.ends_with(&format!(" {number}")));
    ensure!(used.split(' ').any(listed), "no number was given out again: {used} of {list}");
    cluster.stop()?;
    let before = names(&cluster);
    said(&cluster, &["clean"])?;
    // The kill may have met the list as it was written anew: then its successor is there beside it, and goes with it.
    let lists = [LIST.to_owned(), format!("{LIST}.new")].map(|name| cluster.data_dir().join(name));
    let expected: Vec<_> = before.into_iter().filter(|name| !lists.contains(name)).collect();
    assert_eq!(names(&cluster), expected);
    cluster.start()?;
    assert_eq!(cluster.psql(DATABASE, "SELECT a FROM more")?, "7");
    Ok(())
}

/// A directory of a killed clone stayed for good once a server had been started and stopped.
#[test]
fn a_killed_clone_is_found_after_a_server_ran_and_its_neighbors_stay() -> Result<()> {
    let mut cluster = ground()?;
    let before = names(&cluster).len();
    let words = ["clone", "--strategy", "file_copy", "template1", "new"];
    let mut killed = false;
    for _ in 0..20 {
        let mut command = pagemill().command(&cluster.data_dir(), &words);
        let child = command.stderr(Stdio::piped()).spawn()?;
        wait_for(&cluster.data_dir().join(LIST))?;
        std::thread::sleep(Duration::from_millis(30));
        signal(&child, "-KILL")?;
        ended(child)?;
        killed = cluster.data_dir().join(LIST).exists() && names(&cluster).len() > before + 10;
        if killed {
            break;
        }
        let _ = pagemill().run(&cluster.data_dir(), &["drop", "--if-exists", "new"])?;
    }
    ensure!(killed, "no clone was killed in time");
    cluster.start()?;
    cluster.psql(DATABASE, "CREATE DATABASE beside")?;
    cluster.stop()?;
    let (_, warning) = said(&cluster, &["ls"])?;
    assert!(warning.contains("was cut short here"), "{warning}");
    let (removed, _) = said(&cluster, &["clean"])?;
    assert!(removed.contains("directory of a database"), "{removed}");
    cluster.start()?;
    let query = "SELECT count(*) FROM pg_ls_dir('base') d WHERE d NOT IN (SELECT oid::text FROM pg_database)";
    assert_eq!(cluster.psql("beside", query)?, "0");
    Ok(())
}

/// A killed export left a file of its own beside its target, which nobody removed.
#[test]
fn an_export_that_is_stopped_or_killed_leaves_nothing_and_the_older_file_stays() -> Result<()> {
    let mut cluster = ground()?;
    cluster.start()?;
    cluster.psql(
        DATABASE,
        "INSERT INTO t SELECT i, repeat('x', 500) FROM generate_series(1, 200000) i",
    )?;
    cluster.stop()?;
    let dir = tempfile::tempdir()?;
    let target = dir.path().join("t.txt");
    fs::write(&target, "older")?;
    for (name, number) in end_signals().into_iter().chain([("-KILL", 9)]) {
        let words = ["export", "-t", "t", "-o", target.to_str().context("a path")?];
        let child = pagemill().command(&cluster.data_dir(), &words).spawn()?;
        // It is at work once it has opened its file, named or not.
        let files = PathBuf::from(format!("/proc/{}/fd", child.id()));
        let is_open = |path: PathBuf| path.starts_with(dir.path());
        let begin = Instant::now();
        loop {
            let mut open =
                fs::read_dir(&files)?.flatten().filter_map(|fd| fs::read_link(fd.path()).ok());
            if open.any(is_open) {
                break;
            }
            ensure!(begin.elapsed() < Duration::from_secs(60), "nothing is written");
        }
        signal(&child, name)?;
        let (status, _) = ended(child)?;
        assert_eq!(status.signal(), Some(number));
        assert_eq!(fs::read(&target)?, b"older");
        assert_eq!(fs::read_dir(dir.path())?.count(), 1);
    }
    said(&cluster, &["export", "-t", "t", "-o", target.to_str().context("a path")?])?;
    assert!(fs::metadata(&target)?.len() > 100_000_000 && fs::read_dir(dir.path())?.count() == 1);
    Ok(())
}
