//! A cluster with every fixture, and beside it what the server printed for every relation.
//!
//! Building one takes some ten seconds, and a test runner may start each test in a process of its own, so the
//! result is kept on disk and shared: `SCRATCH/pgN-HASH/`, where HASH covers the server's version, the scripts and
//! this crate's sources. `SCRATCH` is `$PAGEMILL_TEST_SCRATCH`, or `pagemill-oracle-UID` in the temporary
//! directory. A lock file makes the first process build while the others wait.
//!
//! ```text
//! SCRATCH/pg15.lock
//! SCRATCH/pg15-0123456789abcdef/cluster/data    the data directory, as the server left it when it stopped
//!                              /cluster/tblspc  its tablespaces
//!                              /expected/databases, /expected/DBOID/tables, /expected/DBOID/RELOID.txt
//!                              /expected/answers/NAME          what it answered to each `Request`
//!                              /complete        the mark that all of it is there; locked by those who read
//! ```
//!
//! Must hold: the data directory is never started again. Tests only read it; one that writes takes
//! [`Prepared::copy`].

use std::fs::{self, File, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use rustix::fs::{FlockOperation, flock};

use crate::fixtures::Fixture;
use crate::install::PgInstall;
use crate::oracle::{self, CopyFormat, Table};
use crate::requests::{self, Request};
use crate::server::{ClusterOptions, TestCluster, succeed};

/// The file whose presence says that a build was finished.
const COMPLETE: &str = "complete";

/// A stopped cluster with every fixture.
#[derive(Debug)]
pub struct Prepared {
    install: PgInstall,
    dir: PathBuf,
    databases: Vec<PreparedDatabase>,
    /// Holds a shared lock, so that no other build removes the files while they are read.
    _in_use: File,
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
        let scratch = scratch_dir()?;
        let lock = File::create(scratch.join(format!("pg{}.lock", install.major)))?;
        flock(&lock, FlockOperation::LockExclusive).context("waiting for another test's build")?;
        let dir = scratch.join(format!("pg{}-{:016x}", install.major, fingerprint(install)?));
        if !dir.join(COMPLETE).exists() {
            remove_older(&scratch, &format!("pg{}-", install.major))?;
            build(install, &dir).with_context(|| format!("building {}", dir.display()))?;
            File::create(dir.join(COMPLETE))?;
        }
        Prepared::open(install, dir)
    }

    fn open(install: &PgInstall, dir: PathBuf) -> Result<Prepared> {
        let in_use = File::open(dir.join(COMPLETE))?;
        flock(&in_use, FlockOperation::LockShared)?;
        let expected = dir.join("expected");
        let mut databases = Vec::new();
        for (oid, name) in oracle::parse_databases(&fs::read(expected.join("databases"))?)? {
            let dir = expected.join(oid.to_string());
            let tables = oracle::parse_tables(&fs::read(dir.join("tables"))?)?;
            databases.push(PreparedDatabase { oid, name, tables, dir });
        }
        Ok(Prepared { install: install.clone(), dir, databases, _in_use: in_use })
    }

    /// The data directory. Read it, never start a server on it.
    pub fn data_dir(&self) -> PathBuf {
        self.dir.join("cluster/data")
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
        let file = self.dir.join("expected/answers").join(&request.name);
        fs::read(&file).with_context(|| format!("reading {}", file.display()))
    }

    /// A stopped copy of the cluster, in a temporary directory, to start or to write to.
    pub fn copy(&self) -> Result<TestCluster> {
        let root = tempfile::Builder::new().prefix("pagemill-pg").tempdir()?.keep();
        let original = TestCluster::at(&self.install, self.dir.join("cluster"))?;
        let copy = original.copy_to(&root);
        original.keep()?;
        copy
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
    fs::create_dir_all(dir)?;
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

/// Where clusters lie that outlive one test: the server's account, too, can enter it.
pub fn scratch_dir() -> Result<PathBuf> {
    let uid = fs::metadata("/proc/self")?.uid();
    let dir = std::env::var_os("PAGEMILL_TEST_SCRATCH")
        .map(PathBuf::from)
        .unwrap_or_else(|| std::env::temp_dir().join(format!("pagemill-oracle-{uid}")));
    fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    let metadata = fs::metadata(&dir)?;
    ensure!(metadata.uid() == uid, "{} belongs to another user", dir.display());
    fs::set_permissions(&dir, Permissions::from_mode(0o755))?;
    Ok(dir)
}

/// Removes what other sources built, and what was not finished; not what another process reads just now.
fn remove_older(scratch: &Path, prefix: &str) -> Result<()> {
    for entry in fs::read_dir(scratch)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) && !is_in_use(&entry.path()) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn is_in_use(dir: &Path) -> bool {
    File::open(dir.join(COMPLETE))
        .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_err())
}

/// A stopped cluster as `initdb` makes it, with data checksums, in a temporary directory of its
/// own: small and soon there, for tests that make their own tables and damage them. It is made
/// once and copied.
pub fn empty_cluster(install: &PgInstall) -> Result<TestCluster> {
    let scratch = scratch_dir()?;
    let lock = File::create(scratch.join(format!("empty{}.lock", install.major)))?;
    flock(&lock, FlockOperation::LockExclusive).context("waiting for another test's build")?;
    let dir = scratch.join(format!("empty{}-{:016x}", install.major, fingerprint(install)?));
    if !dir.join("complete").exists() {
        remove_older(&scratch, &format!("empty{}-", install.major))?;
        let options = ClusterOptions {
            data_checksums: Some(true),
            initdb_flags: vec!["--wal-segsize=1".into()],
            root: Some(dir.join("cluster")),
            ..ClusterOptions::default()
        };
        fs::create_dir_all(&dir)?;
        let mut cluster = TestCluster::create(install, &options)?;
        cluster.stop()?;
        cluster.keep()?;
        File::create(dir.join("complete"))?;
    }
    let original = TestCluster::at(install, dir.join("cluster"))?;
    let root = tempfile::Builder::new().prefix("pagemill-pg").tempdir()?.keep();
    let copy = original.copy_to(&root);
    original.keep()?;
    copy
}

/// Changes with the server's version and with anything that decides what is built.
fn fingerprint(install: &PgInstall) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    let mut version = Command::new(install.program("postgres"));
    version.arg("--version");
    succeed(version)?.stdout.hash(&mut hasher);
    for part in ["src", "fixtures"] {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(part);
        let mut files: Vec<PathBuf> =
            fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        files.sort();
        for file in files {
            file.file_name().hash(&mut hasher);
            fs::read(&file)?.hash(&mut hasher);
        }
    }
    Ok(hasher.finish())
}
