//! Backups whose `backup_label` was removed by hand, as people do whose server asks for WAL that they do not have.
//!
//! A server then begins recovery where the control file says, which in a backup is copied last. What happened between
//! the backup's beginning and that checkpoint to files that were copied before is lost, and no server says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use pagemill_testkit::scratch::{Medium, cluster_root};
use pagemill_testkit::{ClusterOptions, PgInstall, Program, Session, TestCluster, each_of};
use serde_json::Value;

const TABLE: &str =
    "create table paid as select i as id, false as done from generate_series(1, 500) i";
const EXPORT: [&str; 3] = ["export", "-t", "paid"];
const DONE: &str = "select count(*) from paid where done";

fn run(data: &Path, words: &[&str]) -> Result<Output> {
    Program::new(env!("CARGO_BIN_EXE_pagemill")).run(data, words)
}

/// How many rows say that they are done.
fn counted(data: &Path, more: &[&str]) -> Result<usize> {
    let output = run(data, &[&EXPORT[..], more].concat())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    Ok(String::from_utf8(output.stdout)?.lines().filter(|row| row.ends_with("\tt")).count())
}

fn planned(data: &Path, more: &[&str]) -> Result<(Output, String)> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    command.args(["wal", "plan", "-D"]).arg(data).args(more).env_remove("PGDATA");
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output, said))
}

/// A backup as tools make it, with a checkpoint while files are copied, and the place where it began.
struct Backup {
    copy: TestCluster,
    label: String,
    began: String,
}

const LEFT_OUT: [&str; 2] = ["postmaster.pid", "postmaster.opts"];

impl Backup {
    fn of(cluster: &TestCluster) -> Result<Self> {
        let is_14 = cluster.major() == 14;
        let (begin, end) = match is_14 {
            true => ("pg_start_backup('x', true, false)", "labelfile from pg_stop_backup(false)"),
            false => ("pg_backup_start('x', true)", "labelfile from pg_backup_stop()"),
        };
        let mut session = Session::open(cluster, "postgres")?;
        let began = session.run(&format!("select {begin};"))?.trim().to_owned();
        let copy = TestCluster::at(cluster.install(), cluster_root(Medium::Memory)?)?;
        copied(&cluster.data_dir(), &copy.data_dir())?;
        session.run("update paid set done = true where id <= 100;")?;
        session.run("checkpoint;")?;
        let control = Path::new("global/pg_control");
        fs::copy(cluster.data_dir().join(control), copy.data_dir().join(control))?;
        session.run("insert into paid values (501, true);")?;
        let label = session.run(&format!("select {end};"))?;
        session.run("select pg_switch_wal();")?;
        drop(session);
        fs::remove_dir_all(copy.data_dir().join("pg_wal"))?;
        copied(&cluster.data_dir().join("pg_wal"), &copy.data_dir().join("pg_wal"))?;
        for file in LEFT_OUT {
            fs::remove_file(copy.data_dir().join(file))?;
        }
        let subtransactions = copy.data_dir().join("pg_subtrans");
        for file in fs::read_dir(&subtransactions)? {
            fs::remove_file(file?.path())?;
        }
        Ok(Self { copy, label, began })
    }

    fn label_file(&self) -> PathBuf {
        self.copy.data_dir().join("backup_label")
    }
}

fn copied(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    ensure!(status.success(), "cp of {}", from.display());
    Ok(())
}

fn tells_a_removed_label(install: &PgInstall) -> Result<()> {
    // Without an archive the history file of a backup is removed at once.
    let settings = ["wal_level = replica", "archive_mode = on", "archive_command = 'true'"];
    let settings = settings.map(str::to_owned).to_vec();
    let options = ClusterOptions { settings, ..ClusterOptions::default() };
    let mut cluster = TestCluster::create(install, &options)?;
    for sql in [TABLE, "vacuum freeze paid", "checkpoint"] {
        cluster.psql("postgres", sql)?;
    }
    let mut backup = Backup::of(&cluster)?;
    let truth = cluster.psql("postgres", DONE)?;
    ensure!(truth.trim() == "101", "{truth}");
    let data = backup.copy.data_dir();

    // With the label there is nothing to tell, nor with the one that is made of its history file.
    let history = told_by_its_history_file(&backup)?;
    for label in [format!("{}\n", backup.label.trim_end()), history] {
        fs::write(backup.label_file(), label)?;
        ensure!(counted(&data, &[])? == 101, "with its label");
        fs::remove_file(backup.label_file())?;
    }

    let told = format!("says that recovery begins at {}, ", backup.began);
    let output = run(&data, &EXPORT)?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(1) && output.stdout.is_empty(), "{said}");
    ensure!(said.contains("backup_label was removed") && said.contains(&told), "{said}");
    ensure!(said.contains("--allow-inconsistent") && said.lines().count() == 1, "{said}");
    let (output, said) = planned(&data, &["--json"])?;
    ensure!(output.status.code() == Some(1) && said.contains(&told), "{said}");
    let plan: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(plan["earlier_backup"]["start"] == backup.began.as_str(), "{plan:#}");

    // A server's own files of such a moment are those of a crash: nothing is refused, and the plan asks.
    fs::write(data.join("postmaster.opts"), "postgres\n")?;
    let (output, said) = planned(&data, &[])?;
    let plan = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success() && said.is_empty(), "{said}");
    ensure!(plan.contains("if this is that backup, put its backup_label back"), "{plan}");
    fs::remove_file(data.join("postmaster.opts"))?;

    // The server loses 100 changes, and says nothing; so it is read when that is asked for.
    let ours = counted(&data, &["--allow-inconsistent"])?;
    backup.copy.account().own(&data)?;
    backup.copy.start()?;
    let lost = backup.copy.psql("postgres", DONE)?;
    backup.copy.stop()?;
    ensure!(lost.trim() == "1" && ours == 1, "the server: {lost}, pagemill: {ours}");

    // A server that crashes after a backup has the same record in its WAL, and lacks nothing.
    cluster.kill()?;
    ensure!(counted(&cluster.data_dir(), &[])? == 101, "after a crash");
    Ok(())
}

/// `wal show` of the file that keeps the label for those who lost it; and the label that it makes.
fn told_by_its_history_file(backup: &Backup) -> Result<String> {
    let files = fs::read_dir(backup.copy.data_dir().join("pg_wal"))?;
    let mut files = files.filter_map(|file| Some(file.ok()?.path()));
    let is_history = |file: &PathBuf| file.extension().is_some_and(|end| end == "backup");
    let file = files.find(is_history).context("a backup history file")?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    let output = command.args(["wal", "show"]).arg(&file).env_remove("PGDATA").output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let told = format!("the WAL of backup \"x\" is that from {} to ", backup.began);
    ensure!(output.status.code() == Some(2) && said.lines().count() == 1, "{said}");
    ensure!(said.contains("a backup history file") && said.contains(&told), "{said}");
    let contents = fs::read_to_string(&file)?;
    let is_of_label = |line: &&str| !line.starts_with("STOP WAL LOCATION");
    Ok(contents.lines().filter(is_of_label).map(|line| format!("{line}\n")).collect())
}

#[test]
fn a_backup_without_its_label_is_refused_where_a_server_loses_changes_and_a_crash_is_not() {
    each_of(&PgInstall::all(), tells_a_removed_label);
}

fn tells_a_base_backup_without_its_end(install: &PgInstall) -> Result<()> {
    if !install.program("pg_basebackup").exists() {
        eprintln!("SKIPPED: this PostgreSQL {} came without pg_basebackup", install.major);
        return Ok(());
    }
    let options = ClusterOptions {
        settings: vec!["wal_level = replica".into()],
        ..ClusterOptions::default()
    };
    let cluster = TestCluster::create(install, &options)?;
    for sql in [TABLE, "vacuum freeze paid", "checkpoint"] {
        cluster.psql("postgres", sql)?;
    }
    let data = cluster.root().join("backup");
    let mut command = cluster.account().command(&install.program("pg_basebackup"));
    let psql = cluster.psql_command("postgres");
    command.envs(psql.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env_remove("PGDATABASE").args(["-c", "fast", "-X", "stream", "-D"]).arg(&data);
    let output = command.output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Nothing but the label was lost, and the control file begins where it would: nothing is wrong.
    for file in ["backup_label", "backup_manifest"] {
        fs::remove_file(data.join(file))?;
    }
    ensure!(counted(&data, &[])? == 0, "of a whole backup");
    // Its WAL ends before the backup did: the last record but one is the backup's end.
    let (output, _) = planned(&data, &["--json"])?;
    let plan: Value = serde_json::from_slice(&output.stdout)?;
    let end = plan["last_record"].as_str().unwrap_or_default();
    let end: pagemill_format::Lsn = end.parse().map_err(anyhow::Error::msg)?;
    let segment = format!("{:08X}{:08X}{:08X}", 1, end.0 >> 32, (end.0 >> 24) & 0xFF);
    let segment = data.join("pg_wal").join(segment);
    let mut bytes = fs::read(&segment)?;
    let in_segment = (end.0 & 0xFF_FFFF) as usize;
    bytes[in_segment.saturating_sub(40)..].fill(0);
    fs::write(&segment, bytes)?;
    let output = run(&data, &EXPORT)?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(1) && output.stdout.is_empty(), "{said}");
    ensure!(said.contains("no backup that began at") && said.lines().count() == 1, "{said}");
    Ok(())
}

#[test]
fn a_base_backup_without_its_label_is_read_if_its_wal_has_its_end() {
    each_of(&PgInstall::all(), tells_a_base_backup_without_its_end);
}
