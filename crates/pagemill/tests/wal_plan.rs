//! `pagemill wal plan` next to servers that recover a copy of the same files: where replay begins, from where on the
//! files are consistent, where WAL ends, where targets lie. What a server does it says in its log.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use pagemill_testkit::scratch::{Medium, cluster_root};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use serde_json::Value;

fn every_version(check: impl Fn(&PgInstall) -> Result<()> + Sync) {
    pagemill_testkit::each_of(&PgInstall::all(), check);
}

/// The same for what needs `pg_basebackup`, which not every installation has.
fn every_version_with_backups(check: impl Fn(&PgInstall) -> Result<()> + Sync) {
    every_version(|install| match install.program("pg_basebackup").exists() {
        true => check(install),
        false => {
            eprintln!("SKIPPED: this PostgreSQL {} came without pg_basebackup", install.major);
            Ok(())
        }
    });
}

fn pagemill(data: &Path, args: &[&str]) -> Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    command.args(["wal", "plan", "-D"]).arg(data).args(args).env_remove("PGDATA");
    Ok(command.output()?)
}

/// What is planned, as JSON.
fn plan(data: &Path, args: &[&str]) -> Result<Value> {
    let output = pagemill(data, &[args, &["--json"]].concat())?;
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).with_context(|| format!("{args:?}: {complaint}"))
}

/// What is said instead of a plan, or behind it.
fn complaint(data: &Path, args: &[&str]) -> Result<String> {
    let output = pagemill(data, args)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(
        !output.status.success(),
        "{args:?} was fine: {}",
        String::from_utf8_lossy(&output.stdout)
    );
    ensure!(said.lines().count() >= 1 && !said.contains("panicked"), "{said}");
    Ok(said)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// What a server's log says behind some words: an LSN, up to what is no digit of one.
fn logged(log: &str, words: &str) -> Option<String> {
    let rest = log.split(words).nth(1)?;
    let is_of_lsn = |c: &char| c.is_ascii_hexdigit() || *c == '/';
    Some(rest.chars().take_while(is_of_lsn).collect())
}

/// A load that goes on until it is killed. It pauses, since what counts is how many segments there are and not how full:
/// a server recovers from an archive with a process for each, and does so for every target.
struct Load(Vec<Child>);

impl Load {
    fn begin(cluster: &TestCluster) -> Result<Self> {
        cluster.psql(
            "postgres",
            "create table if not exists t (id int primary key, v text); create sequence if not exists s",
        )?;
        let sql = "do $$ begin for i in 1..1000000 loop \
             insert into t values (nextval('s'), repeat(md5(i::text), (i * 37) % 61)) on conflict do nothing; \
             if i % 3 = 0 then update t set v = v || 'x' where id = i / 2; end if; \
             if i % 50 = 0 then commit; perform pg_sleep(0.01); end if; \
             if i % 977 = 0 then perform pg_switch_wal(); end if; \
             end loop; end $$";
        let before = written(cluster)?;
        let one = || {
            let mut command = cluster.psql_command("postgres");
            command.arg("-c").arg(sql).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
        };
        let children = Self((0..2).map(|_| one()).collect::<std::io::Result<_>>()?);
        // On a busy machine a client may need seconds to say its first word.
        wait_until("the load writes", || Ok(written(cluster)? > before + 64 * 1024))?;
        Ok(children)
    }
}

/// How far WAL is on disk.
fn written(cluster: &TestCluster) -> Result<u64> {
    lsn(cluster.psql("postgres", "select pg_current_wal_flush_lsn()")?.trim())
}

/// Asks every few milliseconds, for a minute at most.
fn wait_until(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    for _ in 0..1200 {
        if holds()? {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    bail!("after a minute it does not hold that {what}")
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A cluster that archives its WAL, and the archive.
fn archiving(install: &PgInstall, more: &[&str]) -> Result<(TestCluster, PathBuf)> {
    // A server goes on with the work of a client that is gone, unless it looks.
    let settings = [
        "wal_level=replica",
        "max_wal_size=32MB",
        "min_wal_size=2MB",
        "archive_mode=on",
        "client_connection_check_interval=50ms",
    ];
    let options = ClusterOptions {
        initdb_flags: vec!["--wal-segsize=1".into()],
        settings: settings.iter().chain(more).map(|line| (*line).to_owned()).collect(),
        ..ClusterOptions::default()
    };
    let cluster = TestCluster::create(install, &options)?;
    let archive = cluster.root().join("archive");
    cluster.account().create_dir(&archive)?;
    cluster.psql(
        "postgres",
        &format!("alter system set archive_command = 'cp %p {}/%f'", archive.display()),
    )?;
    cluster.psql("postgres", "select pg_reload_conf()")?;
    Ok((cluster, archive))
}

/// A copy of files under a new root, which a server may be started on.
fn copied(install: &PgInstall, data: &Path) -> Result<TestCluster> {
    let copy = TestCluster::at(install, cluster_root(Medium::Memory)?)?;
    let status = Command::new("cp").arg("-a").arg(data).arg(copy.data_dir()).status()?;
    ensure!(status.success(), "cp of {}", data.display());
    let _ = fs::remove_file(copy.data_dir().join("postmaster.pid"));
    Ok(copy)
}

/// Lets a server recover a copy, and gives its log of that.
fn recovered(install: &PgInstall, data: &Path, settings: &[String]) -> Result<String> {
    let mut copy = copied(install, data)?;
    let conf = copy.data_dir().join("postgresql.auto.conf");
    let mut lines = fs::read_to_string(&conf).unwrap_or_default();
    // Nobody is let in before the recovery is over.
    lines.push_str("\narchive_mode = off\nhot_standby = off\nlog_min_messages = log\n");
    settings.iter().for_each(|line| lines.push_str(&format!("{line}\n")));
    fs::write(&conf, lines)?;
    if !settings.is_empty() {
        fs::write(copy.data_dir().join("recovery.signal"), "")?;
        copy.account().own(&copy.data_dir().join("recovery.signal"))?;
    }
    let started = copy.start().and_then(|()| wait_until_recovered(&copy));
    let log = log_of(&copy);
    match started {
        Ok(()) => {
            // What a recovery did it has logged, and the copy goes with the test: nothing is left to be written.
            copy.kill()?;
            Ok(log)
        }
        Err(_) if log.contains("FATAL") => Ok(log),
        Err(error) => Err(error),
    }
}

fn log_of(cluster: &TestCluster) -> String {
    fs::read_to_string(cluster.root().join("server.log")).unwrap_or_default()
}

/// A server counts as started once it answers, if only that it lets nobody in before the recovery is over. Its log is
/// looked at, since clients that ask again and again would take the processor from it.
fn wait_until_recovered(cluster: &TestCluster) -> Result<()> {
    for _ in 0..6000 {
        let log = log_of(cluster);
        if log.contains("database system is ready to accept connections") {
            return Ok(());
        }
        if log.contains("database system is shut down") {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    bail!("the recovery did not end: {}", log_of(cluster))
}

/// The last record is the one that the server replayed last.
fn same_end(plan: &Value, log: &str) -> Result<()> {
    match logged(log, "redo done at ") {
        Some(done) => {
            ensure!(text(plan, "last_record") == done, "redo done at {done}\n{plan:#}\n{log}")
        }
        None => {
            ensure!(plan["records"] == 0 && log.contains("redo is not required"), "{plan:#}\n{log}")
        }
    }
    if let Some(start) = logged(log, "redo starts at ") {
        let ours = text(plan, "start");
        // A record that would begin on a page's first byte begins behind its header.
        ensure!(
            ours == start || lsn(ours)? % 8192 == 0 && lsn(start.as_str())? - lsn(ours)? <= 40,
            "{start}\n{plan:#}"
        );
    }
    Ok(())
}

fn lsn(text: &str) -> Result<u64> {
    let lsn: pagemill_format::Lsn = text.parse().map_err(anyhow::Error::msg)?;
    Ok(lsn.0)
}

/// A small generator of numbers, the same in every run.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn a_killed_cluster_ends_where_its_server_finds_the_end_wherever_wal_is_cut() {
    every_version(|install| {
        let (mut cluster, _) = archiving(install, &[])?;
        let mut state = 0x9E37_79B9_7F4A_7C15 ^ u64::from(install.major);
        let mut cut_rounds = 0;
        for round in 0..6 {
            let load = Load::begin(&cluster)?;
            std::thread::sleep(Duration::from_millis(200 + 300 * round));
            cluster.kill()?;
            drop(load);
            let whole = plan(&cluster.data_dir(), &[])?;
            ensure!(whole["case"] == "crash", "{whole:#}");
            same_end(&whole, &recovered(install, &cluster.data_dir(), &[])?)?;
            let (from, to) =
                (lsn(text(&whole, "checkpoint"))? + 200, lsn(text(&whole["end"], "lsn"))?);
            // A checkpoint that ended just before the kill leaves nothing behind it to cut: then another kill.
            if to > from {
                for cut in 0..4 {
                    let at = from + next(&mut state) % (to - from);
                    cut_and_compare(install, &cluster, from..at, cut)?;
                }
                cut_rounds += 1;
            }
            if cut_rounds == 2 {
                return Ok(());
            }
            cluster.start()?;
        }
        bail!("in six kills only {cut_rounds} left records behind their checkpoint")
    });
}

/// Breaks the WAL of a copy at the end of a range, in one of several ways, and asks both where it ends. What lies before the
/// range has to stay: there is the checkpoint.
fn cut_and_compare(
    install: &PgInstall,
    cluster: &TestCluster,
    kept: Range<u64>,
    how: u64,
) -> Result<()> {
    let at = kept.end;
    let copy = copied(install, &cluster.data_dir())?;
    let data = copy.data_dir();
    let (segment, offset) = (at / (1 << 20), (at % (1 << 20)) as usize);
    let names: Vec<PathBuf> = fs::read_dir(data.join("pg_wal"))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect();
    let suffix = format!("{:08X}{:08X}", segment >> 12, segment & 0xFFF);
    let file = names.iter().find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().get(8..) == Some(&suffix))
    });
    let file = file.with_context(|| format!("no segment {suffix}"))?;
    let mut bytes = fs::read(file)?;
    match how {
        0 => bytes[offset..].fill(0),
        1 => bytes.truncate(offset),
        2 => bytes[offset] ^= 0x40,
        _ if segment == kept.start / (1 << 20) => bytes.truncate(offset),
        _ => bytes.truncate(0),
    }
    fs::write(file, bytes)?;
    let planned = plan(&data, &[])?;
    let log = recovered(install, &data, &[])?;
    same_end(&planned, &log).with_context(|| format!("cut at {at:X} in way {how}"))
}

fn base_backup(cluster: &TestCluster, name: &str, args: &[&str]) -> Result<PathBuf> {
    let to = cluster.root().join(name);
    let mut command = cluster.account().command(&cluster.install().program("pg_basebackup"));
    let psql = cluster.psql_command("postgres");
    for (name, value) in psql.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command.env_remove("PGDATABASE").arg("-D").arg(&to).args(["-c", "fast"]).args(args);
    let output = command.output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(to)
}

#[test]
fn a_base_backup_is_consistent_where_its_server_says_and_its_targets_are_where_the_server_stops() {
    every_version_with_backups(|install| {
        let (cluster, archive) = archiving(install, &[])?;
        let load = Load::begin(&cluster)?;
        let streamed = base_backup(&cluster, "streamed", &["-X", "stream"])?;
        let bare = base_backup(&cluster, "bare", &["-X", "none"])?;
        cluster.psql("postgres", "select pg_create_restore_point('here')")?;
        let xid = cluster.psql("postgres", "insert into t values (-1, 'x') returning xmin")?;
        // With an epoch, as pg_current_xact_id() prints it, which neither side looks at.
        let xid = xid.trim().parse::<u64>()? + (1 << 32);
        let time = cluster.psql(
            "postgres",
            "select pg_sleep(0.1); select clock_timestamp() at time zone 'UTC'",
        )?;
        let time = time.lines().last().unwrap_or_default().to_owned();
        let target = cluster.psql("postgres", "select pg_current_wal_insert_lsn()")?;
        std::thread::sleep(Duration::from_millis(300));
        drop(load);
        let last = cluster.psql("postgres", "select pg_walfile_name(pg_switch_wal())")?;
        wait_for(&archive.join(&last))?;

        let planned = plan(&streamed, &[])?;
        ensure!(
            planned["case"] == "backup" && planned["problems"] == serde_json::json!([]),
            "{planned:#}"
        );
        let log = recovered(install, &streamed, &[])?;
        same_end(&planned, &log)?;
        same_consistency(&planned, &log)?;

        let said = complaint(&bare, &[])?;
        ensure!(said.contains("no checkpoint record at"), "{said}");
        let wal = archive.to_str().context("a path")?;
        let restore = format!("restore_command = 'cp {wal}/%f %p'");
        let targets = [
            (vec![], vec![]),
            (vec!["--until", "consistent"], vec!["recovery_target = 'immediate'".to_owned()]),
            (vec!["--until", "name:here"], vec!["recovery_target_name = 'here'".into()]),
        ];
        let (xid_flag, time_flag, lsn_flag) =
            (format!("xid:{xid}"), format!("time:{time}"), format!("lsn:{target}"));
        let more = [
            (&xid_flag, format!("recovery_target_xid = '{xid}'")),
            (&time_flag, format!("recovery_target_time = '{time}+00'")),
            (&lsn_flag, format!("recovery_target_lsn = '{target}'")),
        ];
        let mut all: Vec<(Vec<&str>, Vec<String>)> = targets.into();
        for (flag, setting) in &more {
            all.push((vec!["--until", flag], vec![setting.clone()]));
            let exclusive = "recovery_target_inclusive = off".to_owned();
            all.push((vec!["--until", flag, "--exclusive"], vec![setting.clone(), exclusive]));
        }
        for (flags, mut settings) in all {
            settings.push(restore.clone());
            settings.push("recovery_target_action = promote".into());
            let planned = plan(&bare, &[&flags[..], &["--wal", wal]].concat())?;
            let log = recovered(install, &bare, &settings)?;
            ensure!(planned["problems"] == serde_json::json!([]), "{flags:?}: {planned:#}\n{log}");
            same_consistency(&planned, &log)?;
            let Some(done) = logged(&log, "redo done at ") else { bail!("{flags:?}: {log}") };
            // What a server logs is the record that it read last: asked to stop once it is consistent, the first one that
            // it does not replay.
            let ours = match planned["target"].is_null() {
                true => text(&planned, "last_record"),
                false if flags.contains(&"consistent") => text(&planned["target"], "replayed_to"),
                false => text(&planned["target"], "record"),
            };
            ensure!(ours == done, "{flags:?}: redo done at {done}\n{planned:#}\n{log}");
        }
        targets_that_cannot_be(&bare, wal)?;
        holes(&bare, &archive)
    });
}

fn targets_that_cannot_be(bare: &Path, wal: &str) -> Result<()> {
    for (target, words) in [
        ("name:nowhere", "was not met: WAL ends at"),
        ("xid:4000000000", "was not met: WAL ends at"),
        ("lsn:0/28", "consistent only from"),
    ] {
        let said = complaint(bare, &["--wal", wal, "--until", target])?;
        ensure!(said.contains(words), "{target}: {said}");
    }
    for (args, words) in [
        (&["--wal", "/nowhere"][..], "/nowhere"),
        (&["--wal", wal, "--timeline", "7"][..], "timeline 7 does not exist"),
        (&["--until", "noon"][..], "is wanted"),
        (&["--exclusive"][..], "--until"),
    ] {
        let said = complaint(bare, args)?;
        ensure!(said.contains(words) && said.lines().count() == 1, "{args:?}: {said}");
    }
    Ok(())
}

/// A segment that is missing, or damaged, before others.
fn holes(bare: &Path, archive: &Path) -> Result<()> {
    let wal = archive.to_str().context("a path")?;
    let planned = plan(bare, &["--wal", wal])?;
    let consistent = lsn(text(&planned, "consistent_at"))?;
    let mut names: Vec<String> = fs::read_dir(archive)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.len() == 24)
        .collect();
    names.sort();
    let number = |name: &str| -> u64 {
        let part = |at: usize| u64::from_str_radix(&name[at..at + 8], 16).unwrap_or(0);
        part(8) << 12 | part(16)
    };
    // Behind the record of a switch there is nothing to be damaged.
    let has_records = |name: &str| {
        fs::read(archive.join(name)).is_ok_and(|bytes| bytes[600..1000].iter().any(|&b| b != 0))
    };
    let is_behind = |name: &str| number(name) > consistent >> 20 && has_records(name);
    let hole = names.iter().find(|name| is_behind(name) && **name < names[names.len() - 2]);
    let hole = hole.context("an archive with segments behind consistency")?;
    let file = archive.join(hole);
    let bytes = fs::read(&file)?;
    fs::remove_file(&file)?;
    let without = plan(bare, &["--wal", wal])?;
    ensure!(without["end"]["missing_segments"] == serde_json::json!([hole]), "{without:#}");
    ensure!(text(&without, "fetch_command").contains(hole.as_str()), "{without:#}");
    let said = complaint(bare, &["--wal", wal])?;
    ensure!(said.contains(&format!("segment {hole} is missing, and WAL goes on behind")), "{said}");
    // Damaged, with whole segments behind it.
    let mut damaged = bytes.clone();
    damaged[600..1000].fill(0xEE);
    fs::write(&file, damaged)?;
    let said = complaint(bare, &["--wal", wal])?;
    ensure!(said.contains("WAL is damaged at") || said.contains("cannot be"), "{said}");
    fs::write(&file, bytes)?;
    Ok(())
}

fn wait_for(file: &Path) -> Result<()> {
    wait_until(&format!("{} is archived", file.display()), || Ok(file.exists()))
}

fn same_consistency(plan: &Value, log: &str) -> Result<()> {
    let theirs = logged(log, "consistent recovery state reached at ");
    let theirs = theirs.with_context(|| log.to_owned())?;
    ensure!(text(plan, "consistent_at") == theirs, "consistent at {theirs}\n{plan:#}\n{log}");
    Ok(())
}

#[test]
fn labels_that_are_gone_incremental_or_of_another_cluster_are_told() {
    every_version_with_backups(|install| {
        let (cluster, _) = archiving(install, &[])?;
        let load = Load::begin(&cluster)?;
        let backup = base_backup(&cluster, "backup", &["-X", "stream"])?;
        drop(load);
        let planned = plan(&backup, &[])?;
        let label = backup.join("backup_label");
        let contents = fs::read_to_string(&label)?;
        fs::remove_file(&label)?;
        let without = plan(&backup, &[])?;
        ensure!(
            without["case"] == "lost_label" && without["start"] == planned["start"],
            "{without:#}"
        );
        ensure!(
            lsn(text(&without, "consistent_at"))? >= lsn(text(&planned, "consistent_at"))?,
            "{without:#}\n{planned:#}"
        );
        fs::write(
            &label,
            format!("{contents}INCREMENTAL FROM LSN: 0/2000028\nINCREMENTAL FROM TLI: 1\n"),
        )?;
        let said = complaint(&backup, &[])?;
        ensure!(said.contains("incremental backup") && said.lines().count() == 1, "{said}");
        fs::write(&label, contents.replace("BACKUP FROM: primary", "BACKUP FROM: standby"))?;
        ensure!(complaint(&backup, &[])?.contains("not of the same backup"));
        fs::write(&label, "START WAL LOCATION: somewhere\n")?;
        ensure!(complaint(&backup, &[])?.contains("backup_label"));
        fs::write(&label, &contents)?;
        let other = TestCluster::create(
            install,
            &ClusterOptions {
                initdb_flags: vec!["--wal-segsize=1".into()],
                ..ClusterOptions::default()
            },
        )?;
        other.psql("postgres", "select pg_switch_wal()")?;
        let foreign = other.data_dir().join("pg_wal");
        fs::remove_dir_all(backup.join("pg_wal"))?;
        let status =
            Command::new("cp").arg("-a").arg(&foreign).arg(backup.join("pg_wal")).status()?;
        ensure!(status.success(), "cp");
        let said = complaint(&backup, &[])?;
        ensure!(said.contains("no checkpoint record at") && said.lines().count() == 1, "{said}");
        Ok(())
    });
}

#[test]
fn a_cluster_that_was_shut_down_needs_no_wal() {
    every_version(|install| {
        let (mut cluster, _) = archiving(install, &[])?;
        ensure!(complaint(&cluster.data_dir(), &[])?.contains("a server is running"));
        cluster.stop()?;
        let planned = plan(&cluster.data_dir(), &[])?;
        ensure!(planned["case"] == "shut_down" && planned["end"].is_null(), "{planned:#}");
        let told = String::from_utf8(pagemill(&cluster.data_dir(), &[])?.stdout)?;
        ensure!(told.contains("a cluster that was shut down"), "{told}");
        Ok(())
    });
}

#[test]
fn the_way_leads_over_two_promotions() {
    every_version_with_backups(|install| {
        let (mut cluster, archive) = archiving(install, &[])?;
        let load = Load::begin(&cluster)?;
        let backup = base_backup(&cluster, "backup", &["-X", "none"])?;
        drop(load);
        cluster.psql("postgres", "insert into t values (-7, 'first')")?;
        let last = cluster.psql("postgres", "select pg_walfile_name(pg_switch_wal())")?;
        wait_for(&archive.join(&last))?;
        cluster.stop()?;
        let wal = archive.to_str().context("a path")?;
        for timeline in [2, 3] {
            let mut copy = copied(install, &backup)?;
            let conf = copy.data_dir().join("postgresql.auto.conf");
            let lines = fs::read_to_string(&conf)?
                + &format!(
                    "\nrestore_command = 'cp {wal}/%f %p'\narchive_command = 'cp %p {wal}/%f'\nhot_standby = off\n"
                );
            fs::write(&conf, lines)?;
            fs::write(copy.data_dir().join("recovery.signal"), "")?;
            copy.start()?;
            wait_until_recovered(&copy)?;
            copy.psql(
                "postgres",
                &format!("insert into t values (-{timeline}0, 'x'); checkpoint"),
            )?;
            let last = copy.psql("postgres", "select pg_walfile_name(pg_switch_wal())")?;
            wait_for(&archive.join(&last))?;
            copy.stop()?;
            wait_for(&archive.join(format!("0000000{timeline}.history")))?;
        }
        let planned = plan(&backup, &["--wal", wal])?;
        ensure!(planned["end"]["timeline"] == 3, "{planned:#}");
        ensure!(planned["timelines"].as_array().map(Vec::len) == Some(3), "{planned:#}");
        let restore = format!("restore_command = 'cp {wal}/%f %p'");
        same_end(&planned, &recovered(install, &backup, std::slice::from_ref(&restore))?)?;
        for timeline in ["1", "2"] {
            let planned = plan(&backup, &["--wal", wal, "--timeline", timeline])?;
            let setting = format!("recovery_target_timeline = '{timeline}'");
            same_end(&planned, &recovered(install, &backup, &[restore.clone(), setting])?)?;
        }
        Ok(())
    });
}
