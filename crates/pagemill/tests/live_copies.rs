//! Files of servers at work, copied in each way that PostgreSQL's manual knows, and read without a restore.
//!
//! ```text
//! load ─► backup ─► 14: exclusive backup ─► snapshot ─► restore point ─► crash ─► restart: timeline 1, and its archive
//! backup ─► standby ─► its backup; its files once it is stopped
//! backup ─► promoted: timeline 2 ─► from the same backup, promoted again: timeline 3
//! the first server, which went its own way on timeline 1 ─► rewound to timeline 3
//! ```
//!
//! Of each there are two copies: a server recovers one of them, the other is read with the same archive and target. All rows of
//! all relations must be the same, those of catalogs, TOAST tables and sequences too
//! ([`pagemill_torture::row_oracle`]).
//!
//! `PAGEMILL_TEST_SEED` is where chance begins in the load.
//!
//! Must hold: only servers of the story archive their WAL; one that recovers a copy for comparison would write over it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pagemill_cluster::DirectoryState;
use pagemill_cluster::recovery::plan::{PlanOptions, RecoveryCase, RecoveryPlan};
use pagemill_format::control::ClusterState;
use pagemill_io::Storage;
use pagemill_testkit::scratch::{Medium, cluster_root};
use pagemill_testkit::{ClusterOptions, PgInstall, Program, Session, TestCluster, each_of};
use pagemill_torture::page_oracle::compare_pages;
use pagemill_torture::row_oracle::compare_rows;
use pagemill_torture::server_load::{self, Load};

/// The longest that something may take to be archived or replayed.
const PATIENCE: Duration = Duration::from_secs(60);
/// As many differences are told.
const TOLD: usize = 12;

/// What the first server has beyond any test's.
const SETTINGS: [&str; 7] = [
    "wal_level = replica",
    "archive_mode = on",
    "max_wal_size = 32MB",
    "min_wal_size = 2MB",
    "wal_log_hints = on",
    "autovacuum_naptime = 1s",
    "deadlock_timeout = 50ms",
];

/// Where a recovery ends: what the server is told, and what Pagemill is.
#[derive(Debug, Clone, Copy)]
enum Until {
    End,
    Consistent,
    Here,
}

impl Until {
    fn setting(self) -> &'static str {
        match self {
            Self::End => "",
            Self::Consistent => "recovery_target = 'immediate'",
            Self::Here => "recovery_target_name = 'here'",
        }
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::End => &[],
            Self::Consistent => &["--until", "consistent"],
            Self::Here => &["--until", "name:here"],
        }
    }
}

fn room() -> Result<PathBuf> {
    cluster_root(Medium::Memory)
}

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_pagemill"))
}

/// Adds lines to a stopped cluster's settings; the last one of a name counts.
fn set(cluster: &TestCluster, lines: &[&str]) -> Result<()> {
    let conf = cluster.data_dir().join("postgresql.conf");
    let text = fs::read_to_string(&conf)? + &lines.join("\n") + "\n";
    Ok(fs::write(conf, text)?)
}

fn restore_command(archive: &Path) -> String {
    format!("restore_command = 'cp {}/%f %p'", archive.display())
}

/// Asks for a recovery from the archive, by a file of this name.
fn request(cluster: &TestCluster, archive: &Path, signal: &str) -> Result<()> {
    let signals = ["standby.signal", "recovery.signal"].map(|name| cluster.data_dir().join(name));
    for left in signals.iter().filter(|left| left.exists()) {
        fs::remove_file(left)?;
    }
    let signal = cluster.data_dir().join(signal);
    fs::write(&signal, "")?;
    cluster.account().own(&signal)?;
    set(cluster, &[&restore_command(archive)])
}

fn wait_until(what: &str, is_so: impl Fn() -> Result<bool>) -> Result<()> {
    let begin = Instant::now();
    while !is_so()? {
        ensure!(begin.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Starts a server and waits until it has recovered: it takes no connections before, and `postmaster.pid` does not tell.
fn start_recovered(server: &mut TestCluster) -> Result<()> {
    set(server, &["hot_standby = off"])?;
    server.start()?;
    let is_recovered = || Ok(server.psql("postgres", "SELECT 1").is_ok());
    let log = || fs::read_to_string(server.root().join("server.log")).unwrap_or_default();
    wait_until("the server takes connections", is_recovered).with_context(log)
}

/// The first server with the tables of the load, which archives its WAL in segments of 1 MB, and the archive.
fn archiving(install: &PgInstall) -> Result<(TestCluster, PathBuf)> {
    let options = ClusterOptions {
        initdb_flags: vec!["--wal-segsize=1".into()],
        settings: SETTINGS.map(str::to_owned).into(),
        ..ClusterOptions::default()
    };
    let cluster = TestCluster::create(install, &options)?;
    let archive = cluster.root().join("archive");
    cluster.account().create_dir(&archive)?;
    let file = format!("{}/%f", archive.display());
    // No file of its final name is there by half.
    let command = format!("cp %p {file}.part && mv {file}.part {file}");
    cluster.psql("postgres", &format!("ALTER SYSTEM SET archive_command = '{command}'"))?;
    cluster.psql("postgres", "SELECT pg_reload_conf()")?;
    server_load::prepare(&cluster)?;
    Ok((cluster, archive))
}

/// After a crash: ends the transactions that were prepared, and prepares another.
///
/// While an older one is open, a standby keeps the locks of those that the crash ended (`StandbyReleaseOldLocks()` in
/// `src/backend/storage/ipc/standby.c`); one that rebuilt an index of `pg_class` has it let nobody in.
fn end_prepared(cluster: &TestCluster) -> Result<()> {
    let open = cluster.psql("postgres", "SELECT gid FROM pg_prepared_xacts")?;
    for id in open.lines() {
        cluster.psql("postgres", &format!("COMMIT PREPARED '{id}'"))?;
    }
    // Its record of running transactions has the locks released.
    cluster.psql("postgres", "CHECKPOINT")?;
    let another = "BEGIN; CREATE TABLE late AS SELECT 1 AS one; PREPARE TRANSACTION 'late'";
    cluster.psql("postgres", another).map(drop)
}

/// Makes a table of this name, and archives all WAL so far.
fn archive_all(cluster: &TestCluster, archive: &Path, table: &str) -> Result<()> {
    cluster.psql("postgres", &format!("CREATE TABLE {table} AS SELECT 1 AS one"))?;
    let last = cluster.psql("postgres", "SELECT pg_walfile_name(pg_switch_wal())")?;
    wait_until(&format!("{last} in the archive"), || Ok(archive.join(&last).exists()))
}

/// A backup of a running server; its WAL is in the archive alone.
fn backup(cluster: &TestCluster) -> Result<TestCluster> {
    let (start, stop) = match cluster.major() {
        14 => ("pg_start_backup('b', true, false)", "pg_stop_backup(false, false)"),
        _ => ("pg_backup_start('b', true)", "pg_backup_stop(false)"),
    };
    let mut session = Session::open(cluster, "postgres")?;
    session.run(&format!("SELECT {start};"))?;
    let copy = cluster.copy_live(&room()?)?;
    let label = session.run(&format!("SELECT labelfile FROM {stop};"))?;
    let file = copy.data_dir().join("backup_label");
    fs::write(&file, label.trim_end().to_owned() + "\n")?;
    copy.account().own(&file)?;
    remove_wal(&copy)?;
    Ok(copy)
}

/// The same as 14 can also do it: the label lies in the directory that is copied.
fn exclusive_backup(cluster: &TestCluster) -> Result<TestCluster> {
    cluster.psql("postgres", "SELECT pg_start_backup('exclusive', true)")?;
    let copy = cluster.copy_live(&room()?)?;
    cluster.psql("postgres", "SELECT pg_stop_backup()")?;
    ensure!(copy.data_dir().join("backup_label").exists(), "an exclusive backup has its label");
    remove_wal(&copy)?;
    Ok(copy)
}

fn remove_wal(copy: &TestCluster) -> Result<()> {
    for directory in ["pg_wal", "pg_wal/archive_status"] {
        for entry in fs::read_dir(copy.data_dir().join(directory))? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}

/// Fails with what a comparison found, and says how long it took.
fn is_same(what: &str, compare: impl FnOnce() -> Result<Vec<String>>) -> Result<()> {
    let begin = Instant::now();
    let mut found = compare().with_context(|| what.to_owned())?;
    eprintln!("{what}: {:.1?}", begin.elapsed());
    let count = found.len();
    found.truncate(TOLD);
    ensure!(count == 0, "{what}: {count} differences:\n{}", found.join("\n"));
    Ok(())
}

/// What Pagemill takes these files for, beside an archive.
fn case_of(files: &TestCluster, archive: &Path) -> Result<RecoveryCase> {
    let state = DirectoryState::read(&Storage::real(), &files.data_dir())?;
    let options = PlanOptions { archives: vec![archive.to_owned()], ..PlanOptions::default() };
    Ok(RecoveryPlan::new(&state, &options)?.case)
}

/// Has a server recover a copy of these files with an archive, and compares.
fn same_rows(what: &str, files: &TestCluster, archive: &Path, until: Until) -> Result<()> {
    is_same(&format!("PostgreSQL {}, {what}", files.major()), || {
        let mut server = files.copy_to(&room()?)?;
        request(&server, archive, "recovery.signal")?;
        let own = ["archive_mode = off", "recovery_target_action = promote", until.setting()];
        set(&server, &own)?;
        start_recovered(&mut server)?;
        let archive = archive.to_str().context("a path")?;
        let flags = [&["--wal", archive], until.flags()].concat();
        compare_rows(&program(), &files.data_dir(), &server, &flags)
    })
}

/// The same without an archive, page by page too.
fn same_pages(what: &str, files: &TestCluster) -> Result<()> {
    is_same(&format!("PostgreSQL {}, {what}", files.major()), || {
        let mut server = files.copy_to(&room()?)?;
        set(&server, &["archive_mode = off"])?;
        server.recover()?;
        let options = PlanOptions::default();
        let mut found = compare_pages(&files.data_dir(), &server.data_dir(), &options)?.faults;
        server.start()?;
        found.extend(compare_rows(&program(), &files.data_dir(), &server, &[])?);
        Ok(found)
    })
}

/// What is copied while the server works.
struct Copies {
    backup: TestCluster,
    exclusive: Option<TestCluster>,
    snapshot: TestCluster,
}

/// Ends with a crash.
fn copies_under_load(cluster: &mut TestCluster) -> Result<Copies> {
    let seed = std::env::var("PAGEMILL_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let load = Load::start(cluster, seed.unwrap_or(u64::from(cluster.major())))?;
    let work = || std::thread::sleep(Duration::from_millis(600));
    work();
    let backup = backup(cluster)?;
    let exclusive = match cluster.major() {
        14 => Some(exclusive_backup(cluster)?),
        _ => None,
    };
    let snapshot = cluster.frozen(|| cluster.copy_live(&room()?))?;
    work();
    cluster.psql("postgres", "SELECT pg_create_restore_point('here')")?;
    work();
    cluster.kill()?;
    load.wait()?;
    Ok(Copies { backup, exclusive, snapshot })
}

/// A standby that follows the archive: its backup, and its files once it was stopped.
fn standbys(files: &TestCluster, archive: &Path) -> Result<()> {
    let mut standby = files.copy_to(&room()?)?;
    request(&standby, archive, "standby.signal")?;
    // Slowly, so that it still replays while it is copied.
    let slow = restore_command(archive).replace("cp ", "sleep 0.05; cp ");
    set(&standby, &[&slow, "hot_standby = on", "archive_mode = off"])?;
    standby.start()?;
    let copied = backup(&standby)?;
    let case = case_of(&copied, archive)?;
    ensure!(matches!(&case, RecoveryCase::Backup(label) if label.from_standby), "{case:?}");
    same_rows("a backup of a standby", &copied, archive, Until::End)?;
    same_rows("a backup of a standby, once consistent", &copied, archive, Until::Consistent)?;
    wait_until("the standby replays all", || {
        let found = standby.psql("postgres", "SELECT to_regclass('last_of_first') IS NOT NULL")?;
        Ok(found == "t")
    })
    .with_context(|| fs::read_to_string(standby.root().join("server.log")).unwrap_or_default())?;
    standby.stop()?;
    let state = DirectoryState::read(&Storage::real(), &standby.data_dir())?.control().state;
    ensure!(state == ClusterState::ShutDownInRecovery, "{state:?}");
    ensure!(matches!(case_of(&standby, archive)?, RecoveryCase::Standby), "not of a standby");
    same_rows("a standby that was stopped", &standby, archive, Until::End)?;
    let empty = archive.with_file_name("nothing");
    standby.account().create_dir(&empty)?;
    same_rows("a standby that was stopped, by its own WAL", &standby, &empty, Until::End)
}

/// Two servers promoted one after the other from the same backup; the last one, stopped.
fn promotions(files: &TestCluster, archive: &Path) -> Result<TestCluster> {
    let promoted = |table: &str| -> Result<TestCluster> {
        let mut server = files.copy_to(&room()?)?;
        request(&server, archive, "recovery.signal")?;
        start_recovered(&mut server)?;
        archive_all(&server, archive, table)?;
        server.stop()?;
        Ok(server)
    };
    promoted("last_of_second")?;
    let last = promoted("last_of_third")?;
    ensure!(archive.join("00000003.history").exists(), "there is no third timeline");
    same_rows("a backup, over two promotions", files, archive, Until::End)?;
    Ok(last)
}

/// The first server went its own way, and is set back to the last one's.
fn rewound(cluster: &mut TestCluster, source: &TestCluster, archive: &Path) -> Result<()> {
    let program = cluster.install().program("pg_rewind");
    if !program.exists() {
        eprintln!("SKIPPED: this PostgreSQL {} came without pg_rewind", cluster.major());
        return Ok(());
    }
    cluster.psql("postgres", "CREATE TABLE own_way AS SELECT 1 AS one; CHECKPOINT")?;
    cluster.stop()?;
    set(cluster, &[&restore_command(archive)])?;
    let mut rewind = cluster.account().command(&program);
    rewind.arg("--source-pgdata").arg(source.data_dir());
    rewind.arg("--target-pgdata").arg(cluster.data_dir()).arg("-c");
    let output = rewind.output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let case = case_of(cluster, archive)?;
    ensure!(matches!(case, RecoveryCase::Rewound(_)), "{case:?}");
    same_rows("a cluster that was rewound", cluster, archive, Until::End)
}

fn reads_live_copies(install: &PgInstall) -> Result<()> {
    let (mut cluster, archive) = archiving(install)?;
    let copies = copies_under_load(&mut cluster)?;
    cluster.start()?;
    end_prepared(&cluster)?;
    archive_all(&cluster, &archive, "last_of_first")?;
    let backup = &copies.backup;
    same_rows("a backup, to a name", backup, &archive, Until::Here)?;
    same_rows("a backup, to the end", backup, &archive, Until::End)?;
    if let Some(exclusive) = &copies.exclusive {
        let case = case_of(exclusive, &archive)?;
        ensure!(matches!(case, RecoveryCase::Exclusive(_, true)), "{case:?}");
        same_rows("an exclusive backup", exclusive, &archive, Until::Here)?;
    }
    let case = case_of(&copies.snapshot, &archive)?;
    ensure!(matches!(case, RecoveryCase::Snapshot), "{case:?}");
    same_pages("a snapshot", &copies.snapshot)?;
    same_rows("a snapshot and an archive", &copies.snapshot, &archive, Until::Here)?;
    standbys(backup, &archive)?;
    let last = promotions(backup, &archive)?;
    rewound(&mut cluster, &last, &archive)
}

#[test]
fn copies_of_servers_at_work_read_as_a_server_recovers_them() {
    each_of(&PgInstall::spread(), reads_live_copies);
}
