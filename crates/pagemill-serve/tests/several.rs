//! Several clusters behind one server, each with flags of its own, opened anew at a signal.
//!
//! Real servers made the files; tokio-postgres and psql ask.

#[path = "several/client.rs"]
mod client;
mod support;

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use client::{Client, Told, asked, cluster};
use pagemill_testkit::TestCluster;
use support::Served;
use tokio_postgres::Config;

/// What the log says of a server that opened anew.
const ANEW: &str = "the data directories were opened anew";
/// How long a message may take to come, on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(60);

fn named(name: &str, cluster: &TestCluster) -> String {
    format!("-D{name}={}", cluster.data_dir().display())
}

/// The values, or what is told in their place.
fn found(served: &Served, database: &str, text: &str) -> String {
    match asked(served, database, text) {
        Ok(values) => values.join(","),
        Err((state, message)) => format!("{state} {message}"),
    }
}

/// Asks a server to open anew, and waits until its log says so often that it did, or did not.
fn reopen(served: &Served, says: (&str, usize)) -> Result<()> {
    let pid = served.child.id().to_string();
    ensure!(Command::new("kill").args(["-HUP", &pid]).status()?.success(), "kill");
    let start = Instant::now();
    while served.log()?.matches(says.0).count() < says.1 {
        ensure!(start.elapsed() < PATIENCE, "{says:?}: {}", served.log()?);
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

#[test]
fn databases_are_named_by_their_cluster() -> Result<()> {
    let a = cluster(&[
        ("shop", "create table t as select 1 i"),
        ("one", "create table t as select 2 i"),
    ])?;
    let b = cluster(&[("shop", "create table t as select 3 i; create role ben superuser login")])?;
    let served = Served::by(|command| {
        command.args(["serve", &named("a", &a), &named("b.c", &b), "-N", "5"])
    })?;
    let text = "select i from t";
    let wanted = [
        ("a.shop", "1"),
        ("a.one", "2"),
        ("b.c.shop", "3"),
        (
            "shop",
            "3D000 database \"shop\" does not exist / The name of a data directory stands before it: a.shop, b.c.shop.",
        ),
        (
            "one",
            "3D000 database \"one\" does not exist / The name of a data directory stands before it: a.one.",
        ),
        (
            "b.shop",
            "3D000 database \"b.shop\" does not exist / The name of a data directory stands before a database's: a, b.c.",
        ),
        ("b.c.one", "3D000 database \"b.c.one\" does not exist"),
        ("a.", "3D000 database \"a.\" does not exist"),
    ];
    for (database, answer) in wanted {
        assert_eq!(found(&served, database, text), answer, "{database}");
    }
    assert_eq!(found(&served, "a.shop", "select current_database()"), "shop");
    // Roles are those of the cluster.
    let as_ben = |database: &str| {
        let mut psql = Command::new(a.install().psql());
        psql.args(["-X", "-A", "-t", "-U", "ben", "-h"]).arg(served.directory.path());
        psql.args(["-d", database, "-c", "select current_user"]).output()
    };
    assert_eq!(as_ben("b.c.shop")?.stdout, b"ben\n");
    let refused = String::from_utf8_lossy(&as_ben("a.shop")?.stderr).into_owned();
    ensure!(refused.contains("role \"ben\" does not exist"), "{refused}");
    Ok(())
}

#[test]
fn limits_and_passwords_are_those_of_the_cluster() -> Result<()> {
    let roles = |password: &str| {
        format!(
            "create role ada login password '{password}' connection limit 1; create table t as select 1 i"
        )
    };
    let a = cluster(&[("postgres", &roles("of a"))])?;
    let b = cluster(&[("postgres", &roles("of b"))])?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let _served = Served::by(|command| {
        let command = command.args(["serve", &named("a", &a), &named("b", &b)]);
        command.args(["--listen", "127.0.0.1", "-p", &port.to_string()])
    })?;
    let over_tcp = |database: &str, password: &str| {
        let mut config = Config::new();
        config.host("127.0.0.1").port(port).user("ada").dbname(database).password(password);
        Client::by(&config)
    };
    // OIDs of roles and databases are the same in both, and a session counts for its own cluster only.
    let first = over_tcp("a.postgres", "of a").expect("the password of a");
    let second = over_tcp("b.postgres", "of b").expect("the password of b");
    for (database, password, state) in [
        ("a.postgres", "of a", "53300"),
        ("b.postgres", "of b", "53300"),
        ("a.postgres", "of b", "28P01"),
        ("b.postgres", "of a", "28P01"),
        // Who names no cluster is asked for a password of the first, and told nothing of what the others hold.
        ("postgres", "of b", "28P01"),
        ("nope.postgres", "of b", "28P01"),
        ("nope", "of a", "3D000"),
    ] {
        let told = over_tcp(database, password).err().expect("it is refused");
        assert_eq!(told.0, state, "{database} by {password}: {}", told.1);
        ensure!(state != "3D000" || told.1.ends_with("before it: a.nope, b.nope."), "{}", told.1);
    }
    drop((first, second));
    Ok(())
}

#[test]
fn wal_is_redone_as_is_said_for_each_directory() -> Result<()> {
    let mut cluster = cluster(&[("postgres", "create table t as select 1 i; checkpoint")])?;
    cluster.start()?;
    let backup = cluster.root().join("backup");
    let mut command = cluster.account().command(&cluster.install().program("pg_basebackup"));
    for (name, value) in cluster.psql_command("postgres").get_envs() {
        value.map(|value| command.env(name, value));
    }
    command.args(["-c", "fast", "-X", "fetch", "-D"]).arg(&backup);
    ensure!(command.status()?.success(), "pg_basebackup");
    cluster.psql("postgres", "insert into t values (2)")?;
    let lsn = cluster.psql("postgres", "select pg_current_wal_insert_lsn()")?;
    cluster.psql("postgres", "insert into t values (3)")?;
    cluster.stop()?;
    let until = format!("lsn:{}", lsn.trim());
    let archive = cluster.data_dir().join("pg_wal");
    let directory = |name: &str| format!("-D{name}={}", backup.display());
    let served = Served::by(|command| {
        let command = command.args(["serve", "-D"]).arg(cluster.data_dir());
        let command = command.args([&directory("all"), "--wal"]).arg(&archive);
        let command = command.args([&directory("early"), "--until", &until, "--wal"]).arg(&archive);
        command.arg(directory("none"))
    })?;
    let text = "select i from t order by i";
    assert_eq!(found(&served, "data.postgres", text), "1,2,3");
    assert_eq!(found(&served, "all.postgres", text), "1,2,3");
    assert_eq!(found(&served, "early.postgres", text), "1,2");
    assert_eq!(found(&served, "none.postgres", text), "1");
    Ok(())
}

#[test]
fn a_signal_opens_anew_for_those_who_come_then() -> Result<()> {
    let mut first = cluster(&[("shop", "create table t as select 1 i")])?;
    let place = tempfile::tempdir()?;
    let second_root = tempfile::tempdir()?;
    let mut second = first.copy_to(&second_root.path().join("copy"))?;
    second.start()?;
    second.psql("shop", "insert into t values (2); create table more as select 5 i")?;
    second.stop()?;
    let link = place.path().join("current");
    symlink(first.data_dir(), &link)?;
    let served = Served::by(|command| command.args(["serve", "-v", "-D"]).arg(&link))?;
    let held = Client::connect(served.directory.path(), "shop").expect("it connects");
    assert_eq!(held.ask("select i from t"), Ok(vec!["1".to_owned()]));

    // The name leads elsewhere, which is seen once the signal came, by those who come then.
    std::fs::remove_file(&link)?;
    symlink(second.data_dir(), &link)?;
    assert_eq!(found(&served, "shop", "select i from t"), "1");
    reopen(&served, (ANEW, 1))?;
    assert_eq!(found(&served, "shop", "select i from t"), "1,2");
    assert_eq!(found(&served, "shop", "select i from more"), "5");
    assert_eq!(held.ask("select i from t"), Ok(vec!["1".to_owned()]));
    assert_eq!(held.ask("select i from more").unwrap_err().0, "42P01");

    // What cannot be opened is said, and what was there is served on.
    second.start()?;
    std::fs::remove_file(&link)?;
    symlink(second.data_dir(), &link)?;
    reopen(&served, ("what was opened before is served on", 1))?;
    ensure!(served.log()?.contains("a server is running"), "{}", served.log()?);
    assert_eq!(held.ask("select i from t"), Ok(vec!["1".to_owned()]));
    second.stop()?;
    std::fs::remove_file(&link)?;
    first.start()?;
    first.psql("shop", "create table anew as select 7 i")?;
    first.stop()?;
    symlink(first.data_dir(), &link)?;
    reopen(&served, (ANEW, 2))?;
    assert_eq!(found(&served, "shop", "select i from anew"), "7");
    Ok(())
}

/// The SQLSTATE and the message of what has to go wrong.
fn refused<T>(outcome: Result<T, Told>) -> Result<Told> {
    outcome.err().context("it is answered")
}

#[test]
fn a_cluster_that_is_started_underneath_gives_no_answer_until_it_is_opened_anew() -> Result<()> {
    let many = "create table t as select i, repeat('x', 100) v from generate_series(1, 100000) i";
    let mut a = cluster(&[("shop", many)])?;
    let b = cluster(&[("shop", "create table t as select 3 i")])?;
    let served = Served::by(|command| command.args(["serve", &named("a", &a), &named("b", &b)]))?;
    let connect = |database| Client::connect(served.directory.path(), database);
    let held = connect("a.shop").expect("it connects");
    let fetching = connect("a.shop").expect("it connects");
    fetching.ask("begin; declare c cursor for select i from t; fetch 2 from c").expect("two");
    // One that is under way: its client does not read on.
    let mut copying = Command::new(a.install().psql());
    copying.args(["-X", "-U", "postgres", "-d", "a.shop", "-c", "copy t to stdout", "-h"]);
    copying.arg(served.directory.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut copying = copying.spawn()?;
    let mut lines = BufReader::new(copying.stdout.take().context("its output")?).lines();
    ensure!(lines.next().context("a row")??.starts_with("1\t"), "rows");

    a.start()?;
    let started = "the data directory has changed since it was opened: a server was started on it";
    for told in [held.ask("select 1"), fetching.ask("fetch 2 from c")] {
        let (state, message) = refused(told)?;
        ensure!(state == "58000" && message.contains(started), "{state} {message}");
    }
    assert_eq!(refused(held.prepare("select i from anew"))?.0, "58000");
    let rows = lines.count();
    let copied = copying.wait_with_output()?;
    let message = String::from_utf8_lossy(&copied.stderr).into_owned();
    ensure!(!copied.status.success() && message.contains(started), "{rows} rows, {message}");
    let (state, message) = refused(connect("a.shop"))?;
    ensure!(state == "57P03" && message.contains("SIGHUP"), "{state} {message}");
    reopen(&served, ("what was opened before is served on", 1))?;
    assert_eq!(refused(connect("a.shop"))?.0, "57P03");
    assert_eq!(found(&served, "b.shop", "select i from t"), "3");

    // It is gone again, and has left its traces.
    a.psql("shop", "create table anew as select 7 i")?;
    a.stop()?;
    let (state, message) = refused(held.ask("select count(*) from t"))?;
    ensure!(state == "58000" && message.contains("its control file has changed"), "{message}");
    assert_eq!(refused(connect("a.shop"))?.0, "57P03");
    reopen(&served, (ANEW, 1))?;
    assert_eq!(found(&served, "a.shop", "select i from anew"), "7");
    assert_eq!(refused(held.ask("select 1"))?.0, "58000");
    Ok(())
}

#[test]
fn files_that_are_replaced_give_no_answer() -> Result<()> {
    let a = cluster(&[("shop", "create table t as select 1 i")])?;
    let served = Served::by(|command| command.args(["serve", "-D"]).arg(a.data_dir()))?;
    let held = Client::connect(served.directory.path(), "shop").expect("it connects");
    assert_eq!(held.ask("select i from t"), Ok(vec!["1".to_owned()]));
    // The same bytes: as of a snapshot from between the same two checkpoints, of which nothing is known.
    let (data, aside) = (a.data_dir(), a.root().join("aside"));
    std::fs::rename(&data, &aside)?;
    let copied = Command::new("cp").arg("-a").args([&aside, &data]).status()?;
    ensure!(copied.success(), "cp");
    let (state, message) = refused(held.ask("select i from t"))?;
    ensure!(state == "58000" && message.contains("other files are in its place"), "{message}");
    reopen(&served, (ANEW, 1))?;
    assert_eq!(found(&served, "shop", "select i from t"), "1");
    assert_eq!(refused(held.ask("select i from t"))?.0, "58000");
    Ok(())
}
