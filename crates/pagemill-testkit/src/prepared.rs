//! A cluster with every fixture, and beside it what the server printed for every relation; and smaller ones that tests
//! take copies of.
//!
//! Building one takes some ten seconds, and a test runner may start each test in a process of its own, so they are
//! [kept](crate::scratch):
//!
//! ```text
//! SCRATCH/pg15-0123456789abcdef/cluster/data    the data directory, as the server left it when it stopped
//!                              /cluster/tblspc  its tablespaces
//!                              /expected/databases, /expected/DBOID/tables, /expected/DBOID/RELOID.txt
//!                              /expected/answers/NAME          what it answered to each `Request`
//! ```
//!
//! Must hold: the data directory is never started again. Tests only read it; one that writes takes
//! [`Prepared::copy`].

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::fixtures::Fixture;
use crate::install::PgInstall;
use crate::oracle::{self, CopyFormat, Table};
use crate::requests::{self, Request};
use crate::scratch::{CachedDir, Medium, cluster_root, fingerprint};
use crate::server::{ClusterOptions, TestCluster};

pub use crate::scratch::scratch_dir;

/// A stopped cluster with every fixture.
#[derive(Debug)]
pub struct Prepared {
    install: PgInstall,
    cached: CachedDir,
    databases: Vec<PreparedDatabase>,
}

/// One database of it.
#[derive(Debug)]
pub struct PreparedDatabase {
    /// Its oid.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// Its relations with storage, shared catalogs included.
    pub tables: Vec<Table>,
    dir: PathBuf,
}

impl PreparedDatabase {
    /// What the server printed for this relation.
    pub fn expected(&self, table: &Table, format: CopyFormat) -> Result<Vec<u8>> {
        let file = oracle::expected_file(&self.dir, table, format);
        fs::read(&file).with_context(|| format!("reading {}", file.display()))
    }
}

impl Prepared {
    /// The cluster of this installation, built now if it does not lie there from an earlier test.
    pub fn shared(install: &PgInstall) -> Result<Prepared> {
        let name = format!("pg{}", install.major);
        let cached = CachedDir::new(&name, fingerprint(install, "")?, |dir| build(install, dir))?;
        let expected = cached.dir().join("expected");
        let mut databases = Vec::new();
        for (oid, name) in oracle::parse_databases(&fs::read(expected.join("databases"))?)? {
            let dir = expected.join(oid.to_string());
            let tables = oracle::parse_tables(&fs::read(dir.join("tables"))?)?;
            databases.push(PreparedDatabase { oid, name, tables, dir });
        }
        Ok(Prepared { install: install.clone(), cached, databases })
    }

    /// The data directory. Read it, never start a server on it.
    pub fn data_dir(&self) -> PathBuf {
        self.cached.dir().join("cluster/data")
    }

    /// The major version.
    pub fn major(&self) -> u32 {
        self.install.major
    }

    /// Every database one can connect to.
    pub fn databases(&self) -> &[PreparedDatabase] {
        &self.databases
    }

    /// The database of this name.
    pub fn database(&self, name: &str) -> Result<&PreparedDatabase> {
        self.databases
            .iter()
            .find(|database| database.name == name)
            .with_context(|| format!("no database {name}"))
    }

    /// What the server answered to a request.
    pub fn answer(&self, request: &Request) -> Result<Vec<u8>> {
        let file = self.cached.dir().join("expected/answers").join(&request.name);
        fs::read(&file).with_context(|| format!("reading {}", file.display()))
    }

    /// A stopped copy of the cluster, in a temporary directory, to start or to write to.
    pub fn copy(&self) -> Result<TestCluster> {
        copy(&self.install, self.cached.dir(), Medium::Memory)
    }
}

/// Odd versions with data checksums, even ones without, whatever their `initdb` would choose.
fn cluster_options(install: &PgInstall, dir: &Path) -> ClusterOptions {
    ClusterOptions {
        data_checksums: Some(install.major % 2 == 1),
        root: Some(dir.join("cluster")),
        ..ClusterOptions::default()
    }
}

fn build(install: &PgInstall, dir: &Path) -> Result<()> {
    let mut cluster = TestCluster::create(install, &cluster_options(install, dir))?;
    for fixture in Fixture::ALL {
        fixture.load(&mut cluster).with_context(|| format!("loading {fixture:?}"))?;
    }
    cluster.stop()?;
    let mut copy = cluster.copy_to(&dir.join("oracle"))?;
    copy.start()?;
    dump_all(&copy, &dir.join("expected"))?;
    answer_all(&copy, &dir.join("expected/answers"))?;
    copy.stop()?;
    cluster.keep()?;
    Ok(())
}

/// Dumps every database of a running cluster into `dir`.
pub fn dump_all(cluster: &TestCluster, dir: &Path) -> Result<()> {
    cluster.account().create_dir(dir)?;
    let list = oracle::database_list(cluster)?;
    for (oid, name) in oracle::parse_databases(&list)? {
        let database_dir = dir.join(oid.to_string());
        let formats = Fixture::of_database(&name).map_or(&[CopyFormat::Text][..], Fixture::formats);
        for format in formats {
            oracle::dump(cluster, &name, *format, &database_dir)?;
        }
        fs::write(database_dir.join("tables"), oracle::table_list(cluster, &name)?)?;
    }
    fs::write(dir.join("databases"), list).context("writing the list of databases")
}

/// Writes the answers to every request this version understands.
fn answer_all(cluster: &TestCluster, dir: &Path) -> Result<()> {
    fs::create_dir_all(dir)?;
    for request in requests::all().iter().filter(|request| request.since <= cluster.major()) {
        let answer = requests::answer(cluster, request).with_context(|| request.name.clone())?;
        fs::write(dir.join(&request.name), answer)?;
    }
    Ok(())
}

/// A stopped cluster as `initdb` makes it, with data checksums, in a temporary directory of its
/// own: small and soon there, for tests that make their own tables and damage them. It is made
/// once and copied.
pub fn empty_cluster(install: &PgInstall) -> Result<TestCluster> {
    empty_cluster_in(install, Medium::Memory)
}

/// An empty cluster on a medium of the caller's choice.
pub fn empty_cluster_in(install: &PgInstall, medium: Medium) -> Result<TestCluster> {
    copy(install, empty(install)?.dir(), medium)
}

fn empty(install: &PgInstall) -> Result<CachedDir> {
    let name = format!("empty{}", install.major);
    CachedDir::new(&name, fingerprint(install, "")?, |dir| {
        let options = ClusterOptions {
            data_checksums: Some(true),
            initdb_flags: vec!["--wal-segsize=1".into()],
            root: Some(dir.join("cluster")),
            ..ClusterOptions::default()
        };
        TestCluster::create(install, &options)?.keep().map(drop)
    })
}

/// A stopped copy of a cluster that a server has filled, in a temporary directory of its own.
#[derive(Debug)]
pub struct Filled {
    /// The copy.
    pub cluster: TestCluster,
    notes: String,
}

impl Filled {
    /// What `fill` gave back when the cluster was made.
    pub fn notes(&self) -> &str {
        &self.notes
    }
}

/// An empty cluster that `fill` was run on, with a server. Like the empty one it is made once and copied. `source` is
/// what decides what is made: the text of the file that has `fill`.
pub fn filled_cluster(
    install: &PgInstall,
    (name, source): (&str, &str),
    medium: Medium,
    fill: impl FnOnce(&TestCluster) -> Result<String>,
) -> Result<Filled> {
    let name = format!("{name}{}", install.major);
    let cached = CachedDir::new(&name, fingerprint(install, source)?, |dir| {
        let mut cluster = copy_to(install, empty(install)?.dir(), &dir.join("cluster"))?;
        cluster.start()?;
        fs::write(dir.join("notes"), fill(&cluster)?)?;
        cluster.keep().map(drop)
    })?;
    let notes = fs::read_to_string(cached.dir().join("notes"))?;
    Ok(Filled { cluster: copy(install, cached.dir(), medium)?, notes })
}

/// A copy of a cached cluster in a temporary directory of its own.
fn copy(install: &PgInstall, cached: &Path, medium: Medium) -> Result<TestCluster> {
    copy_to(install, cached, &cluster_root(medium)?)
}

pub(crate) fn copy_to(install: &PgInstall, cached: &Path, root: &Path) -> Result<TestCluster> {
    let original = TestCluster::at(install, cached.join("cluster"))?;
    let copy = original.copy_to(root);
    original.keep()?;
    copy
}
