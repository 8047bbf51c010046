//! What has to hold after a database was being made or dropped: it is there whole or not at all, nothing else has changed,
//! for Pagemill's reader and for a server; and the next change works and clears away what the first one left.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use pagemill_cluster::change::{NewDatabase, drop_database};
use pagemill_cluster::{Cluster, OpenOptions};
use pagemill_engine::clone::database::{
    CloneOptions, ClonePlan, CloneRequest, CloneStrategy, clone_database,
};
use pagemill_format::wal::ImageCompression;
use pagemill_io::Storage;
use pagemill_sim::WriteFault;
use pagemill_testkit::{PgInstall, TestCluster};

use crate::database_fixture::{DatabaseFixture, SOURCE, VICTIM, logged};
use crate::database_kind::DatabaseKind;
use crate::judge::{check_checksums, hand_over, served};
use crate::recording::Recording;
use crate::trial::{ImageState, Seen, Trial};
use crate::work::{rows_of, state, take_lock};

/// The database that is made.
const COPY: &str = "copy";
/// The one that is made next, where the first is there.
const SECOND: &str = "second";

/// B-trees of a database and of the shared catalogs.
const INDEXES: &str = "SELECT count(bt_index_parent_check(c.oid, true)) FROM pg_class c JOIN pg_am a ON a.oid = c.relam \
     WHERE relkind = 'i' AND amname = 'btree'";
/// Heaps of a database and of the shared catalogs.
const HEAPS: &str = "SELECT c.oid::regclass, v.* FROM pg_class c, verify_heapam(c.oid) v WHERE relkind IN ('r', 't')";

/// Judges one kind of change.
#[derive(Debug)]
pub struct DatabaseJudge<'a> {
    fixture: &'a DatabaseFixture,
    kind: DatabaseKind,
}

impl Trial for DatabaseJudge<'_> {
    fn kind(&self) -> &'static str {
        self.kind.name
    }

    fn install(&self) -> &PgInstall {
        self.fixture.install()
    }

    fn original(&self) -> PathBuf {
        self.fixture.data()
    }

    fn record(&self, fault: Option<(usize, WriteFault)>) -> Result<Recording> {
        Recording::over(&self.original(), &|storage, data| self.change(storage, data, COPY), fault)
    }

    fn command(&self, program: &Path, data: &Path) -> Command {
        let mut command = Command::new(program);
        match self.kind.strategy {
            Some(strategy) => {
                command.args(["clone", "--strategy", strategy.name(), SOURCE, COPY]);
            }
            None => {
                command.args(["drop", VICTIM]);
            }
        }
        command.arg("-D").arg(data);
        command
    }

    fn read(&self, data: &Path) -> Result<ImageState> {
        match state(data)?.as_str() {
            "in production" => Ok(ImageState::InProduction),
            "shut down" => Ok(ImageState::Clean(self.look(data)?)),
            other => bail!("the cluster's state is \"{other}\""),
        }
    }

    fn again(&self, data: &Path, seen: Seen) -> Result<()> {
        let mut expected = self.names(seen);
        let storage = Storage::real();
        match (seen, self.kind.strategy) {
            (Seen::Old, None) => expected.retain(|name| *name != VICTIM),
            _ => expected.push(self.next(seen)),
        }
        self.change_again(&storage, data, seen).context("the next change")?;
        let found = databases(data)?;
        ensure!(found == expected.into_iter().map(str::to_owned).collect(), "then {found:?}");
        if self.kind.strategy.is_some() || seen == Seen::New {
            let next = rows_of(data, self.next(seen), "things")?;
            ensure!(next == rows_of(data, SOURCE, "things")?, "the next copy has other rows");
        }
        check_no_leftovers(data).context("after the next change")
    }

    fn serve(&self, root: &Path) -> Result<Seen> {
        served(self.install(), root, |cluster| self.serve_cluster(cluster))
    }

    fn cut_off_again(&self, data: &Path, seen: Seen) -> Result<()> {
        let job = |storage: &Storage, data: &Path| self.change_again(storage, data, seen);
        let cut = Recording::cut_off(data, &job)?;
        ensure!(state(&cut.data())? == "in production", "not cut off at the decision");
        let root = cut.data();
        let root = root.parent().context("a data directory without a parent")?;
        served(self.install(), root, |cluster| {
            cluster.start()?;
            let drops = seen == Seen::Old && self.kind.strategy.is_none();
            let mut expected = self.names(seen);
            if drops {
                expected.retain(|name| *name != VICTIM);
            } else {
                expected.push(self.next(seen));
            }
            self.check_each(cluster, &expected)?;
            cluster.stop()
        })
    }
}

impl<'a> DatabaseJudge<'a> {
    /// Judges a kind on a ground.
    pub fn new(fixture: &'a DatabaseFixture, kind: DatabaseKind) -> Self {
        Self { fixture, kind }
    }

    /// The change: the copy gets this name.
    fn change(&self, storage: &Storage, data: &Path, copy: &str) -> pagemill_engine::Result<()> {
        match self.kind.strategy {
            Some(strategy) => make(storage, data, copy, strategy),
            None => remove(storage, data, VICTIM),
        }
    }

    /// The next change: the same if it had not taken place, else another copy.
    fn change_again(
        &self,
        storage: &Storage,
        data: &Path,
        seen: Seen,
    ) -> pagemill_engine::Result<()> {
        match (seen, self.kind.strategy) {
            (Seen::New, None) => make(storage, data, self.next(seen), CloneStrategy::FileCopy),
            _ => self.change(storage, data, self.next(seen)),
        }
    }

    /// What the next copy is called.
    fn next(&self, seen: Seen) -> &'static str {
        if seen == Seen::Old { COPY } else { SECOND }
    }

    /// The databases that are there.
    fn names(&self, seen: Seen) -> Vec<&'static str> {
        match (seen, self.kind.strategy) {
            (Seen::Old, _) => vec![SOURCE, VICTIM],
            (Seen::New, Some(_)) => vec![COPY, SOURCE, VICTIM],
            (Seen::New, None) => vec![SOURCE],
        }
    }

    fn seen(&self, found: &BTreeSet<String>) -> Result<Seen> {
        let is = |seen| self.names(seen).into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
        match found {
            names if *names == is(Seen::Old) => Ok(Seen::Old),
            names if *names == is(Seen::New) => Ok(Seen::New),
            names => bail!("databases {names:?}: neither those from before nor those after"),
        }
    }

    /// What Pagemill's reader finds in a cluster that was shut down.
    fn look(&self, data: &Path) -> Result<Seen> {
        let seen = self.seen(&databases(data)?)?;
        for name in self.names(seen) {
            let (table, like) =
                if name == VICTIM { ("kept_until", VICTIM) } else { ("things", SOURCE) };
            let rows = rows_of(data, name, table)?;
            ensure!(rows == rows_of(&self.original(), like, table)?, "{name} has other rows");
        }
        if seen == Seen::New && self.kind.strategy.is_some() {
            let unlogged = rows_of(data, COPY, "volatile")?;
            ensure!(unlogged == rows_of(data, SOURCE, "volatile")?, "unlogged rows of the copy");
        }
        Ok(seen)
    }

    fn serve_cluster(&self, cluster: &mut TestCluster) -> Result<Seen> {
        cluster.start()?;
        let found = served_databases(cluster)?;
        let first = self.seen(&found)?;
        self.check_each(cluster, &self.names(first))?;
        cluster.kill()?;
        cluster.start().context("starting after a crash of the server")?;
        // The change may take place now (`judge.rs`).
        let seen = self.seen(&served_databases(cluster)?)?;
        ensure!(seen >= first, "what was done is undone after a crash of the server");
        self.check_each(cluster, &self.names(seen)).context("after a crash of the server")?;
        cluster.psql(SOURCE, "CREATE DATABASE by_server TEMPLATE postgres")?;
        cluster.psql(SOURCE, "DROP DATABASE by_server")?;
        cluster.stop()?;
        // Before, the copy of a change that did not finish may be torn, and waits for the next one to remove it.
        if !cluster.data_dir().join("pagemill.pending").exists() {
            check_checksums(self.install(), cluster)?;
        }
        let read = self.read(&cluster.data_dir())?;
        ensure!(read == ImageState::Clean(seen), "the server had {seen:?}, the reader {read:?}");
        self.again(&cluster.data_dir(), seen)?;
        check_checksums(self.install(), cluster).context("after the next change")?;
        hand_over(cluster)?;
        cluster.start().context("starting after the next change")?;
        let found = served_databases(cluster)?;
        let found: Vec<_> = found.iter().map(String::as_str).collect();
        self.check_each(cluster, &found).context("after the next change")?;
        cluster.stop()?;
        Ok(first)
    }

    /// Each of these databases is there and whole, and all indexes and heaps are sound.
    fn check_each(&self, cluster: &TestCluster, names: &[&str]) -> Result<()> {
        for &name in names {
            let expected = if name == VICTIM { &self.fixture.victim } else { &self.fixture.source };
            ensure!(logged(cluster, name)? == *expected, "{name} has other rows");
            if name == VICTIM {
                continue;
            }
            let found = cluster.psql(name, HEAPS)?;
            ensure!(found.is_empty(), "{name}: {found}");
            cluster.psql(name, INDEXES)?;
            let unlogged = "SELECT count(*) FROM volatile";
            let (here, there) = (cluster.psql(name, unlogged)?, cluster.psql(SOURCE, unlogged)?);
            ensure!(here == there, "{name} has {here} unlogged rows, the source {there}");
        }
        let orphans = "SELECT count(*) FROM pg_shdepend d WHERE dbid <> 0 AND NOT EXISTS \
             (SELECT FROM pg_database WHERE oid = dbid)";
        ensure!(cluster.psql(SOURCE, orphans)? == "0", "dependencies of no database");
        Ok(())
    }
}

fn make(
    storage: &Storage,
    data: &Path,
    copy: &str,
    strategy: CloneStrategy,
) -> pagemill_engine::Result<()> {
    let lock = Arc::new(take_lock(storage, data)?);
    let cluster = Cluster::open_locked(storage.clone(), &lock, OpenOptions::default())?;
    let template = cluster.database(SOURCE)?;
    let new = NewDatabase {
        name: copy.as_bytes().into(),
        owner: cluster.role("alice")?,
        tablespace: None,
        is_template: false,
        allow_connections: true,
        connection_limit: -1,
    };
    let plan = ClonePlan::new(&template, None, Some(strategy))?;
    let options = CloneOptions {
        verify_checksums: true,
        compression: ImageCompression::Off,
        writing: Default::default(),
        verify: false,
        jobs: 1,
        progress: Default::default(),
    };
    let request = CloneRequest { new, plan: &plan, options: &options };
    clone_database(lock, &template, request).map(|_| ())
}

fn remove(storage: &Storage, data: &Path, name: &str) -> pagemill_engine::Result<()> {
    let lock = Arc::new(take_lock(storage, data)?);
    let cluster = Cluster::open_locked(storage.clone(), &lock, OpenOptions::default())?;
    Ok(drop_database(lock, &cluster, name.as_bytes())?)
}

fn databases(data: &Path) -> Result<BTreeSet<String>> {
    let cluster = Cluster::open(Storage::real(), data, OpenOptions::default())?;
    let rows = cluster.databases()?;
    Ok(rows.iter().map(|row| String::from_utf8_lossy(&row.name).into_owned()).collect())
}

fn served_databases(cluster: &TestCluster) -> Result<BTreeSet<String>> {
    let names = cluster.psql(SOURCE, "SELECT datname FROM pg_database")?;
    Ok(names.lines().map(str::to_owned).collect())
}

/// Fails when there is a directory that no database has, or a file that marks an unfinished change.
fn check_no_leftovers(data: &Path) -> Result<()> {
    for name in ["pagemill.pending", "pagemill.pending.new", "postmaster.pid", "postmaster.pid.new"]
    {
        ensure!(!data.join(name).exists(), "{name} is left");
    }
    let cluster = Cluster::open(Storage::real(), data, OpenOptions::default())?;
    let numbers: BTreeSet<_> = cluster.databases()?.iter().map(|row| row.oid.to_string()).collect();
    for entry in std::fs::read_dir(data.join("base"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        ensure!(numbers.contains(&name), "base/{name} belongs to no database");
        for file in std::fs::read_dir(data.join("base").join(&name))? {
            let file = file?.file_name().to_string_lossy().into_owned();
            ensure!(!file.ends_with(".new") && !file.contains("tmp"), "{file} is left");
        }
    }
    Ok(())
}
