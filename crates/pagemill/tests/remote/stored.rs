//! A cluster of the tests, and the same files in a bucket; the command on both.
//!
//! Invariant: the cluster is shut down, killed or backed up before a bucket shows it, so nothing changes under a test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use pagemill_testbucket::{BUCKET, TestBucket};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, skipped};

/// Tables of all sorts: long values, an index, many rows, none, a second database.
const TABLES: &str = "\
create table orders (id int primary key, note text, at timestamptz default '2026-01-02 03:04:05+00');
alter table orders alter note set storage external;
insert into orders select i, repeat(md5(i::text), i % 200) from generate_series(1, 3000) i;
create table wide as select i as id, repeat(md5(i::text), 30) as pad from generate_series(1, 40000) i;
create index wide_id on wide (id);
create table nothing (a int);";

/// The PostgreSQL that makes the clusters; says that the test is skipped where there is none.
pub(super) fn install() -> Option<PgInstall> {
    let found = PgInstall::find(15);
    if found.is_none() {
        skipped("object stores: no PostgreSQL 15");
    }
    found
}

/// A server with the tables in two databases.
pub(super) fn cluster(install: &PgInstall) -> Result<TestCluster> {
    let settings = ["wal_level=replica", "max_wal_senders=4"].map(str::to_owned).to_vec();
    let options = ClusterOptions { settings, ..ClusterOptions::default() };
    let cluster = TestCluster::create(install, &options)?;
    cluster.psql("postgres", "create database shop")?;
    for database in ["postgres", "shop"] {
        cluster.psql(database, TABLES)?;
    }
    cluster.psql("shop", "vacuum (freeze, analyze)")?;
    Ok(cluster)
}

/// The files below a directory, in a bucket.
pub(super) struct Stored {
    pub(super) bucket: TestBucket,
    /// What the bucket shows.
    pub(super) root: PathBuf,
    cache: tempfile::TempDir,
}

impl Stored {
    /// Shows a directory as the bucket.
    pub(super) fn new(root: &Path) -> Result<Self> {
        let bucket = TestBucket::start(root)?;
        Ok(Self { bucket, root: root.to_owned(), cache: tempfile::tempdir()? })
    }

    /// The URL of a path below the directory.
    pub(super) fn url(&self, path: &Path) -> Result<String> {
        let key = path.strip_prefix(&self.root).context("it is not in the bucket")?;
        Ok(format!("s3://{BUCKET}/{}", key.display()))
    }

    /// Where the command keeps pieces.
    pub(super) fn cache(&self) -> &Path {
        self.cache.path()
    }

    /// The command, with what the bucket wants of its environment and no cache on disk.
    pub(super) fn command(&self, words: &[&str], directory: &str) -> Command {
        let mut command = self.caching(words, directory);
        command.args(["--remote-cache", "none"]);
        command
    }

    /// The same with a cache on disk.
    pub(super) fn caching(&self, words: &[&str], directory: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
        command.args(words).args(["-D", directory]);
        command.env_remove("PGDATA").envs(self.bucket.environment());
        command.env("XDG_CACHE_HOME", self.cache());
        command
    }

    /// What the command prints of a directory here and of its files in the bucket, which must be the same.
    pub(super) fn same(&self, words: &[&str], directory: &Path) -> Result<Vec<u8>> {
        let local = directory.to_str().context("not a text")?;
        let here = printed(&mut self.command(words, local)).context("here")?;
        let there = printed(&mut self.command(words, &self.url(directory)?)).context("there")?;
        ensure!(here == there, "{words:?}: {} bytes here, {} there", here.len(), there.len());
        Ok(there)
    }
}

/// What a command prints that succeeds.
pub(super) fn printed(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output()?;
    ensure!(output.status.success(), "{command:?}: {}", told(&output));
    Ok(output.stdout)
}

/// What a command says that does not succeed: one line.
pub(super) fn refused(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    let told = told(&output);
    ensure!(!output.status.success(), "{command:?} was not refused: {told}");
    ensure!(told.lines().count() == 1 && !told.contains("panicked"), "{told}");
    Ok(told)
}

/// Standard error.
pub(super) fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
