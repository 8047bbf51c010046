//! Clusters of servers that were killed in the midst of all kinds of work, read without a restart.
//!
//! One copy is recovered by the server, which then prints every relation of every database; the other one is read by
//! Pagemill, and must print the same, catalogs, TOAST tables and sequences included. Nothing in it may have changed.
//!
//! `PAGEMILL_TEST_KILLS` is how many clusters are killed for each version, `PAGEMILL_TEST_SEED` where the first one's
//! numbers begin; by hand, dozens of each.

mod load;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::scratch::{Place, cluster_root};
use pagemill_testkit::versions::each_of;
use pagemill_testkit::{
    ClusterOptions, CopyFormat, PgInstall, Program, TestCluster, compare, oracle,
};

use load::{Load, Random};

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_pagemill"))
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Settings that change what is in the WAL.
fn settings(random: &mut Random, major: u32) -> Vec<String> {
    let compression = match major {
        14 => "on",
        // Only Debian's build has the library for the others.
        15 => ["pglz", "lz4", "zstd", "off"][random.below(4) as usize],
        _ => ["pglz", "off"][random.below(2) as usize],
    };
    let mut settings = vec![
        format!("wal_compression = {compression}"),
        format!("max_wal_size = {}", ["64MB", "1GB"][random.below(2) as usize]),
        format!("wal_level = {}", ["replica", "logical"][random.below(2) as usize]),
        "max_prepared_transactions = 20".to_owned(),
        "deadlock_timeout = 50ms".to_owned(),
    ];
    if random.below(3) == 0 {
        settings.push("wal_log_hints = on".to_owned());
    }
    if random.below(2) == 0 {
        settings.push("autovacuum = on".to_owned());
        settings.push("autovacuum_naptime = 1s".to_owned());
    }
    settings
}

/// A cluster whose server was killed under load.
fn killed(install: &PgInstall, seed: u64) -> Result<TestCluster> {
    let mut random = Random::new(seed);
    let options = ClusterOptions {
        data_checksums: Some(random.below(2) == 0),
        settings: settings(&mut random, install.major),
        ..ClusterOptions::default()
    };
    let mut cluster = TestCluster::create(install, &options)?;
    load::prepare(&cluster)?;
    let load = Load::start(&cluster, seed)?;
    std::thread::sleep(Duration::from_millis(300 + random.below(2500)));
    cluster.kill()?;
    load.wait();
    Ok(cluster)
}

/// Size and time of change of all files below a directory.
fn state_of(directory: &Path) -> Result<BTreeMap<PathBuf, (u64, std::time::SystemTime)>> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let about = entry.metadata()?;
            if about.is_dir() {
                left.push(entry.path());
            }
            found.insert(entry.path(), (about.len(), about.modified()?));
        }
    }
    Ok(found)
}

/// What differs between the export of a database and what the recovered server prints.
fn differences(killed: &TestCluster, server: &TestCluster, database: &str) -> Result<Vec<String>> {
    let expected = tempfile::tempdir()?;
    let expected = expected.path().join("expected");
    server.account().create_dir(expected.parent().context("no parent")?)?;
    let tables = oracle::dump(server, database, CopyFormat::Text, &expected)?;
    let exported = tempfile::tempdir()?;
    let out = format!("{}/", exported.path().display());
    let args = ["export", "-d", database, "-t", "*.*", "-o", &out];
    let done = program().run(&killed.data_dir(), &args)?;
    let mut differences = Vec::new();
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        differences.push(format!("{database}: the export ended with {}: {said}", done.status));
    }
    for table in &tables {
        let stem = table.file_stem().context("a name that no file can have")?;
        let actual = fs::read(exported.path().join(format!("{stem}.txt")));
        let wanted = fs::read(oracle::expected_file(&expected, table, CopyFormat::Text))?;
        let told = match actual {
            Ok(actual) => compare(CopyFormat::Text, &table.columns, &wanted, &actual)
                .err()
                .map(|difference| difference.to_string()),
            Err(error) => Some(error.to_string()),
        };
        differences.extend(told.map(|told| format!("{database} {stem}: {told}")));
    }
    ensure!(tables.len() > 100, "{database}: only {} relations", tables.len());
    Ok(differences)
}

fn judge(install: &PgInstall, seed: u64) -> Result<()> {
    let killed = killed(install, seed)?;
    let mut server = killed.copy_to(&cluster_root(Place::Memory)?)?;
    let before = state_of(killed.root())?;
    server.start()?;
    let mut found = Vec::new();
    let listed = program().succeed(&killed.data_dir(), &["ls"])?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    for (_, database) in oracle::databases(&server)? {
        if !listed.lines().any(|line| line.split_whitespace().next() == Some(&database)) {
            found.push(format!("database {database} is not listed: {listed}"));
        }
        found.extend(differences(&killed, &server, &database)?);
    }
    if state_of(killed.root())? != before {
        found.push("a file was changed".to_owned());
    }
    if found.is_empty() {
        return Ok(());
    }
    if number("PAGEMILL_TEST_KEEP", 0) > 0 {
        println!("kept: {} and {}", killed.keep()?.display(), server.keep()?.display());
    }
    let count = found.len();
    found.truncate(12);
    anyhow::bail!("seed {seed}: {count} differences:\n{}", found.join("\n"));
}

#[test]
fn a_killed_cluster_reads_as_the_server_recovers_it() {
    let (kills, first) = (number("PAGEMILL_TEST_KILLS", 2), number("PAGEMILL_TEST_SEED", 1));
    each_of(&PgInstall::all(), |install| {
        (first..first + kills)
            .try_for_each(|seed| judge(install, seed * 100 + u64::from(install.major)))
    });
}
