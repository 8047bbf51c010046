//! The cluster whose server is killed, a copy of it from before, and copies for servers to recover.
//!
//! Tables: `accounts`, `branches` and `history` are worked on as pgbench does, until there is as much WAL as was asked for;
//! `untouched` is not; of `tenth`, one row on every tenth page is updated; `tiny` has one row. All but `history` were
//! vacuumed and frozen before. No checkpoint comes in between, so that all WAL has to be redone.
//!
//! Invariant: clusters are new for each run of the benchmark, and gone at its end.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use pagemill_testkit::page_cache::{drop_files, read_files, residency};
use serde_json::Value;

use super::options::Options;
use crate::bench::files_below;
use crate::bench::server::{Cluster, Contents, LaunchOptions, Server};

/// Bytes of a row of `accounts` with its index, and of three integers.
const ACCOUNT_BYTES: u64 = 150;
const NARROW_BYTES: u64 = 40;
/// Transactions between two looks at how much WAL there is.
const BATCH: u64 = 20_000;
/// The share of the files that must be in the page cache.
const CACHED: f64 = 0.99;
/// What the server that is killed runs with: no checkpoint by itself.
const BEFORE: [&str; 5] = [
    "wal_level=replica",
    "max_wal_size=64GB",
    "checkpoint_timeout=1d",
    "synchronous_commit=off",
    "wal_buffers=16MB",
];
/// What servers that recover run with.
const AFTER: [&str; 1] = ["wal_level=replica"];

/// A killed cluster.
pub(super) struct BenchCluster {
    pub(super) killed: Cluster,
    /// As it was before the work, shut down cleanly.
    pub(super) clean: Cluster,
    directory: PathBuf,
    shared_buffers: String,
}

impl BenchCluster {
    pub(super) fn make(options: &Options, major: u32, directory: &Path) -> Result<Self> {
        std::fs::create_dir_all(directory)?;
        let killed = Cluster::open(&directory.join("killed"), major)?;
        let bytes = options.rows * (ACCOUNT_BYTES + 8 * NARROW_BYTES) + (options.wal_mib << 20);
        killed.announce("a killed cluster and two copies", 3 * bytes + (1 << 30))?;
        let statements = tables(options.rows);
        let contents =
            Contents { data_checksums: false, statements: &statements, mark: Value::Null };
        let shared_buffers = options.sides.shared_buffers.clone();
        let launch = launch(&shared_buffers, &BEFORE);
        eprintln!("making a cluster of PostgreSQL {major}, and killing its server ...");
        let mut clean = None;
        killed.make(&contents, launch, |cluster| {
            clean = Some(cluster.copy_to(&directory.join("clean"))?);
            let server = cluster.start(launch)?;
            work(&server, options)?;
            server.kill()
        })?;
        let clean = clean.context("no copy")?;
        Ok(Self { killed, clean, directory: directory.canonicalize()?, shared_buffers })
    }

    /// A copy for a server to recover; the one before is removed.
    pub(super) fn copy(&self) -> Result<Cluster> {
        let directory = self.directory.join("copy");
        remove(&directory)?;
        self.killed.copy_to(&directory)
    }

    /// Starts a server on a copy, which recovers first.
    pub(super) fn start<'c>(&self, copy: &'c Cluster) -> Result<Server<'c>> {
        copy.start(launch(&self.shared_buffers, &AFTER))
    }

    /// The files of WAL.
    pub(super) fn wal(&self) -> Result<Vec<PathBuf>> {
        let mut segments = files_below(&self.killed.data().join("pg_wal"))?;
        segments.sort();
        Ok(segments)
    }

    /// Removes everything.
    pub(super) fn remove(self) -> Result<()> {
        ["killed", "clean", "copy"]
            .into_iter()
            .try_for_each(|name| remove(&self.directory.join(name)))
    }

    /// A text with words for the directories of this machine.
    pub(super) fn without_places(&self, text: &str) -> String {
        text.replace(&*self.directory.to_string_lossy(), "DIR")
    }
}

fn remove(directory: &Path) -> Result<()> {
    if directory.exists() {
        std::fs::remove_dir_all(directory)?;
    }
    Ok(())
}

fn launch<'a>(shared_buffers: &'a str, settings: &'a [&'a str]) -> LaunchOptions<'a> {
    LaunchOptions { core: None, shared_buffers, group: None, settings }
}

fn tables(rows: u64) -> Vec<String> {
    let narrow = 4 * rows;
    let filled = |name: &str| {
        format!(
            "create table {name} as select i as a, i as b, 0 as c from generate_series(1, {narrow}) i"
        )
    };
    let statements = [
        "create table accounts (aid int, bid int, abalance int, filler char(84))".to_owned(),
        format!("insert into accounts select i, 1, 0, '' from generate_series(1, {rows}) i"),
        "alter table accounts add primary key (aid)".to_owned(),
        "create table branches (bid int primary key, bbalance int, filler char(88))".to_owned(),
        "insert into branches select i, 0, '' from generate_series(1, 20) i".to_owned(),
        "create table history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))"
            .to_owned(),
        filled("untouched"),
        filled("tenth"),
        "create table tiny as select 1 as a".to_owned(),
        "vacuum (freeze, analyze)".to_owned(),
    ];
    statements.into_iter().collect()
}

/// Works until there is enough WAL.
fn work(server: &Server<'_>, options: &Options) -> Result<()> {
    let begin = server.psql(&["select pg_current_wal_insert_lsn()"])?;
    let begin = begin.trim();
    // Rows lie in the order of their numbers, and no page has fewer than 100.
    server.psql(&[
        "update tenth set c = 1 where ctid in (select format('(%s,7)', block * 10)::tid \
         from generate_series(0, pg_relation_size('tenth') / 81920) block)",
    ])?;
    let done = format!("select pg_current_wal_insert_lsn() - '{begin}'::pg_lsn");
    for batch in 1.. {
        server.psql(&[&transactions(options.rows, batch)])?;
        let written: f64 = server.psql(&[&done])?.trim().parse()?;
        if written >= (options.wal_mib << 20) as f64 {
            break;
        }
    }
    // What the server still has in memory is lost with it.
    server.psql(&["set synchronous_commit = on", "insert into history values (0)"])?;
    Ok(())
}

/// A batch of pgbench's transactions.
fn transactions(rows: u64, batch: u64) -> String {
    format!(
        "do $$ declare account int; amount int; begin perform setseed({seed}); \
         for i in 1..{BATCH} loop \
         account := 1 + floor(random() * {rows}); amount := floor(random() * 10000) - 5000; \
         update accounts set abalance = abalance + amount where aid = account; \
         update branches set bbalance = bbalance + amount where bid = 1 + i % 20; \
         insert into history values (1, 1 + i % 20, account, amount, now(), ''); \
         commit; end loop; end $$",
        seed = 1.0 / batch as f64
    )
}

/// Brings all files of a data directory into the page cache, or out of it.
pub(super) fn settle(data: &Path, is_cached: bool) -> Result<()> {
    let files = files_below(data)?;
    drop_files(&files)?;
    if !is_cached {
        return Ok(());
    }
    read_files(&files)?;
    let share = residency(&files)?.share();
    let percent = share * 100.0;
    ensure!(
        share >= CACHED,
        "only {percent:.1} % of the files are cached: memory is wanted by others"
    );
    Ok(())
}
