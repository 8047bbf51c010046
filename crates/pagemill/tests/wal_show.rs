//! `pagemill wal show` next to the servers' own tools: `pg_waldump` where it is installed, `pg_walinspect` from
//! 16 on. 14 has neither here; its WAL is shown to 15's `pg_waldump` with the magic number changed, which works
//! for records without images, but for those of prepared transactions.

#[path = "../../pagemill-wal/tests/busy_cluster/mod.rs"]
mod busy_cluster;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use busy_cluster::{Busy, current_lsn};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};

fn pagemill(args: &[&str]) -> Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    Ok(command.args(["wal", "show"]).args(args).env_remove("PGDATA").output()?)
}

fn shown(args: &[&str]) -> Result<String> {
    let output = pagemill(args)?;
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{args:?}: {complaint}");
    Ok(String::from_utf8(output.stdout)?)
}

fn every_version(check: impl Fn(&PgInstall) -> Result<()> + Sync) {
    pagemill_testkit::each_of(&PgInstall::all(), check);
}

/// What has to be the same in a line: the columns, the record's name, the block references.
fn columns(line: &str) -> Option<(String, String, String)> {
    let (columns, told) = line.split_once("desc: ")?;
    let name = told.split(' ').next().unwrap_or_default().to_owned();
    let blocks = told.find(", blkref #0").map_or("", |at| &told[at..]);
    Some((columns.to_owned(), name, blocks.to_owned()))
}

fn compare(ours: &str, theirs: &str, least: usize) -> Result<()> {
    let told = |text: &str| text.lines().filter_map(columns).collect::<Vec<_>>();
    let (ours, theirs) = (told(ours), told(theirs));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        ensure!(ours == theirs, "\n{ours:?}\n{theirs:?}");
    }
    ensure!(ours.len() == theirs.len(), "{} lines, {} expected", ours.len(), theirs.len());
    ensure!(ours.len() > least, "only {} records", ours.len());
    Ok(())
}

fn waldump(install: &PgInstall, directory: &Path, args: &[&str]) -> Result<String> {
    let mut command = Command::new(install.program("pg_waldump"));
    command.env("TZ", "UTC").arg("-p").arg(directory).args(args);
    let output = command.output().context("starting pg_waldump")?;
    Ok(String::from_utf8(output.stdout)?)
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn records_are_those_that_the_servers_tools_show() {
    every_version(|install| {
        let mut busy = Busy::new(install)?;
        let data = busy.cluster.data_dir();
        let (start, end) = (busy.start.clone(), busy.end.clone());
        let ours = shown(&["-D", path(&data), &start, &end])?;
        if install.program("pg_waldump").exists() {
            let theirs = waldump(install, &data.join("pg_wal"), &["-s", &start, "-e", &end])?;
            compare(&ours, &theirs, 1500)?;
            let ours = shown(&["-D", path(&data), &start, &end, "--bkp-details"])?;
            let theirs = waldump(install, &data.join("pg_wal"), &["-s", &start, "-e", &end, "-b"])?;
            let details = |text: &str| -> Vec<String> {
                text.lines().filter(|line| line.starts_with('\t')).map(str::to_owned).collect()
            };
            ensure!(details(&ours) == details(&theirs), "the details differ");
            let has = |method: &str| ours.contains(&format!("method: {method}"));
            ensure!(has("pglz") && has("lz4") && has("zstd"), "not every method was met");
        }
        if install.major >= 16 {
            busy.cluster.start()?;
            compare(&ours, &inspected(&busy.cluster, &start, &end)?, 1500)?;
            busy.cluster.stop()?;
        }
        Ok(())
    });
}

/// What `pg_walinspect` says, as lines of `pg_waldump`.
fn inspected(cluster: &TestCluster, start: &str, end: &str) -> Result<String> {
    cluster.psql("postgres", "create extension if not exists pg_walinspect")?;
    let padded = |column: &str| {
        format!(
            "split_part({column}::text, '/', 1) || '/' || lpad(split_part({column}::text, '/', 2), 8, '0')"
        )
    };
    let sql = format!(
        "select format('rmgr: %s len (rec/tot): %s/%s, tx: %s, lsn: %s, prev %s, desc: %s %s', \
           rpad(resource_manager, greatest(11, length(resource_manager))), \
           lpad((record_length - fpi_length)::text, 6), lpad(record_length::text, 6), \
           lpad(xid::text, 10), {}, {}, record_type, \
           case when block_ref is null or block_ref = '' then '' else ', ' || \
             regexp_replace(regexp_replace(regexp_replace(block_ref, ' fork main', '', 'g'), \
               ' \\(FPW\\); hole: offset: \\d+, length: \\d+(, compression saved: \\d+, method: \\w+)?', ' FPW', 'g'), \
               ' blkref', ', blkref', 'g') end) \
         from pg_get_wal_records_info('{start}', '{end}')",
        padded("start_lsn"),
        padded("prev_lsn"),
    );
    cluster.psql("postgres", &sql)
}

#[test]
fn fourteens_records_without_images_are_shown_as_fifteens_tool_shows_them() {
    let (Some(install), Some(tool)) = (PgInstall::find(14), PgInstall::find(15)) else {
        eprintln!("SKIPPED: PostgreSQL 14 is not installed");
        return;
    };
    compare_patched(&install, &tool).unwrap();
}

fn compare_patched(install: &PgInstall, tool: &PgInstall) -> Result<()> {
    // With checksums, hint bits are logged as images whatever `full_page_writes` says.
    let options = ClusterOptions {
        data_checksums: Some(false),
        settings: vec!["full_page_writes = off".into(), "wal_keep_size = 1GB".into()],
        ..ClusterOptions::default()
    };
    let mut cluster = TestCluster::create(install, &options)?;
    // The tool looks at a page's first record too: no image may be on it.
    for sql in
        ["create table t (id int primary key, b text)", "checkpoint", "select pg_switch_wal()"]
    {
        cluster.psql("postgres", sql)?;
    }
    let start = current_lsn(&cluster)?;
    for sql in [
        "insert into t select g, repeat('x', g % 100) from generate_series(1, 3000) g",
        "update t set b = b || '.' where id % 3 = 0",
        "delete from t where id % 2 = 0",
        "vacuum t",
        "begin; insert into t values (-1); savepoint a; insert into t values (-2); commit",
    ] {
        cluster.psql("postgres", sql)?;
    }
    let end = current_lsn(&cluster)?;
    cluster.stop()?;
    let patched = tempfile::tempdir()?;
    for entry in fs::read_dir(cluster.data_dir().join("pg_wal"))?.filter_map(Result::ok) {
        if entry.metadata()?.is_file() {
            let mut bytes = fs::read(entry.path())?;
            for page in bytes.chunks_mut(8192).filter(|page| page.starts_with(&[0x0D, 0xD1])) {
                page[0] = 0x10;
            }
            fs::write(patched.path().join(entry.file_name()), bytes)?;
        }
    }
    let theirs = waldump(tool, patched.path(), &["-s", &start, "-e", &end])?;
    let data = cluster.data_dir();
    compare(&shown(&["-D", path(&data), &start, &end])?, &theirs, 6000)
}

#[test]
fn files_filters_limits_and_sums_choose_among_the_same_records() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 (ci/install-postgres.sh)")?;
    let busy = Busy::new(&install)?;
    let data = busy.cluster.data_dir();
    let all = shown(&["-D", path(&data), &busy.start, &busy.end])?;
    let lines = |wanted: &dyn Fn(&str) -> bool| -> String {
        all.lines().filter(|line| wanted(line)).map(|line| format!("{line}\n")).collect()
    };
    let with = |more: &[&str]| {
        let mut args = vec!["-D", path(&data), busy.start.as_str(), busy.end.as_str()];
        args.extend(more);
        shown(&args)
    };
    ensure!(
        with(&["--limit", "7"])?
            == all.lines().take(7).map(|l| format!("{l}\n")).collect::<String>()
    );
    ensure!(with(&["--rmgr", "heap"])? == lines(&|line| line.starts_with("rmgr: Heap  ")));
    let xid = all.lines().find_map(|line| line.split("tx: ").nth(1)?.split(',').next()).unwrap();
    let xid = all
        .lines()
        .filter_map(|l| l.split("tx: ").nth(1)?.split(',').next())
        .find(|x| x.trim() != "0")
        .unwrap_or(xid);
    ensure!(with(&["--xid", xid.trim()])? == lines(&|line| line.contains(&format!("tx: {xid},"))));
    let rel = all
        .lines()
        .find_map(|line| line.split("blkref #0: rel ").nth(1)?.split(' ').next())
        .unwrap();
    ensure!(with(&["--relation", rel])? == lines(&|line| line.contains(&format!(": rel {rel} "))));
    let sums = with(&["--summary"])?;
    let total = sums.lines().last().unwrap_or_default();
    let count = all.lines().count().to_string();
    ensure!(
        total.starts_with("Total") && total.split_whitespace().nth(1) == Some(&count),
        "{sums}"
    );
    ensure!(with(&["--summary=record"])?.contains("Heap/INSERT+INIT"));

    // The files of the WAL hold the same records as the WAL, and more before and behind.
    let mut files: Vec<_> = fs::read_dir(data.join("pg_wal"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| file.file_name().is_some_and(|name| name.len() == 24))
        .collect();
    files.sort();
    let files: Vec<&str> = files.iter().map(|file| path(file)).collect();
    let of_files = shown(&files)?;
    ensure!(of_files.contains(&all), "the files hold other records");
    Ok(())
}

#[test]
fn the_end_of_wal_is_no_failure_and_damage_is_one() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 (ci/install-postgres.sh)")?;
    let busy = Busy::new(&install)?;
    let data = busy.cluster.data_dir();
    let output = pagemill(&["-D", path(&data), &busy.start, "--verbose"])?;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success() && told.contains("WAL ends at"), "{told}");

    let all = String::from_utf8(output.stdout)?;
    let record =
        all.lines().nth(500).and_then(|line| line.split("lsn: ").nth(1)?.split(',').next());
    let record = record.context("a record")?;
    let low = u64::from_str_radix(record.split('/').nth(1).unwrap_or_default(), 16)?;
    let file = data.join(format!("pg_wal/0000000100000000{:08X}", low >> 20));
    let mut bytes = fs::read(&file)?;
    bytes[(low % (1 << 20)) as usize + 20] ^= 1;
    fs::write(&file, bytes)?;
    let output = pagemill(&["-D", path(&data), &busy.start])?;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() == Some(1), "{told}");
    let offset = format!("{:08X}: offset {}", low >> 20, low % (1 << 20));
    ensure!(told.contains(&offset) && told.contains("CRC-32C"), "{told}");
    ensure!(output.stdout.iter().filter(|&&byte| byte == b'\n').count() == 500);

    // A page of zeros.
    let mut bytes = fs::read(&file)?;
    bytes[0x4000..0x6000].fill(0);
    fs::write(&file, bytes)?;
    for args in [&["-D", path(&data), &busy.start][..], &[path(&file)]] {
        let output = pagemill(args)?;
        ensure!(output.status.code() == Some(1), "{args:?}");
    }

    for wrong in [&["0/1", "file"][..], &["-D", path(&data), "0/1", "0/2", "0/3"], &["--rmgr", "x"]]
    {
        ensure!(pagemill(wrong)?.status.code() == Some(2), "{wrong:?}");
    }
    ensure!(pagemill(&[path(&data.join("PG_VERSION"))])?.status.code() == Some(1));
    ensure!(pagemill(&["-D", path(&data), "F/0"])?.status.code() == Some(1));
    Ok(())
}
