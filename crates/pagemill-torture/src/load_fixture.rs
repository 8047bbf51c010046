//! Where loads take place: one small stopped cluster with the tables of all kinds, made once by a server, and what
//! the server printed of their rows.
//!
//! Invariant: the ground itself is never changed; whoever changes it takes a copy. It has one database only, since
//! it is copied thousands of times.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::prepared::empty_cluster_in;
use pagemill_testkit::{Medium, PgInstall, TestCluster};

use crate::kind::{KINDS, Kind};

/// The one database.
pub const DATABASE: &str = "postgres";

const SETUP: &str = "CREATE EXTENSION amcheck; UPDATE pg_database SET datistemplate = false;";

/// A cluster with the tables of all kinds.
#[derive(Debug)]
pub struct LoadFixture {
    cluster: TestCluster,
    rows: tempfile::TempDir,
}

/// The rows of a kind as COPY prints them.
#[derive(Debug, Clone)]
pub struct Rows {
    /// Those that are there.
    pub old: Vec<u8>,
    /// Those that are loaded.
    pub new: Vec<u8>,
    /// Those that are loaded once more.
    pub more: Vec<u8>,
}

impl LoadFixture {
    /// Has a server of this installation make it.
    ///
    /// # Errors
    /// When the server cannot.
    pub fn new(install: &PgInstall) -> Result<Self> {
        // On disk: a test that keeps it for the life of its process leaves it there.
        let mut cluster = empty_cluster_in(install, Medium::Disk)?;
        cluster.start()?;
        cluster.psql(DATABASE, SETUP)?;
        cluster.psql(DATABASE, "DROP DATABASE template0")?;
        cluster.psql(DATABASE, "DROP DATABASE template1")?;
        let rows = tempfile::tempdir()?;
        for kind in KINDS {
            cluster.psql(DATABASE, &kind.setup())?;
            let old = format!("TABLE {}", kind.name);
            for (what, query) in
                [("old", old), ("new", kind.new_rows()), ("more", kind.more_rows())]
            {
                let printed = cluster.copy_out(DATABASE, &format!("COPY ({query}) TO STDOUT"))?;
                fs::write(rows.path().join(format!("{}.{what}", kind.name)), printed)?;
            }
        }
        cluster.stop()?;
        Ok(Self { cluster, rows })
    }

    /// The installation whose servers judge.
    pub fn install(&self) -> &PgInstall {
        self.cluster.install()
    }

    /// The file with rows of a kind: `old`, `new` or `more`.
    pub fn file(&self, kind: &Kind, what: &str) -> PathBuf {
        self.rows.path().join(format!("{}.{what}", kind.name))
    }

    /// The rows of a kind.
    ///
    /// # Errors
    /// When their files cannot be read.
    pub fn rows(&self, kind: &Kind) -> Result<Rows> {
        let read = |what| fs::read(self.file(kind, what));
        Ok(Rows { old: read("old")?, new: read("new")?, more: read("more")? })
    }

    /// The data directory, for reading.
    pub fn data(&self) -> PathBuf {
        self.cluster.data_dir()
    }

    /// A copy of the data directory as `into`, which must not exist.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn copy(&self, into: &Path) -> Result<()> {
        copy_directory(&self.data(), into)
    }
}

/// Copies a directory as `into`, which must not exist.
///
/// # Errors
/// When it cannot be copied.
pub fn copy_directory(original: &Path, into: &Path) -> Result<()> {
    let mut copy = Command::new("cp");
    copy.args(["-a", "--reflink=auto"]).arg(original).arg(into);
    let status = copy.status().context("starting cp")?;
    ensure!(status.success(), "cp ended with {status}");
    Ok(())
}
