//! A server that logs, beside what its records change, the pages as they are afterwards; and what it is asked to do.
//!
//! Invariant: all WAL from the copy's stop to the server's own is kept, and the copy shares no file with it.

use std::path::PathBuf;

use anyhow::Result;
use pagemill_testkit::scratch::{Medium, cluster_root};
use pagemill_testkit::{ClusterOptions, PgInstall, Session, TestCluster, in_checkout};

/// How a server is set up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) wal_level: &'static str,
    pub(crate) wal_compression: &'static str,
    pub(crate) data_checksums: bool,
}

/// A cluster as it was before the work, and the same one after it, both stopped.
pub(crate) struct Worked {
    pub(crate) before: TestCluster,
    pub(crate) after: TestCluster,
}

impl Worked {
    /// Sets a server up, and has it do some work.
    pub(crate) fn new(
        install: &PgInstall,
        setup: Setup,
        work: fn(&TestCluster) -> Result<()>,
    ) -> Result<Self> {
        let settings = [
            "wal_consistency_checking = all",
            "full_page_writes = off",
            // Nothing of the WAL is recycled.
            "wal_keep_size = 8GB",
            "max_wal_size = 8GB",
            "checkpoint_timeout = 1h",
        ];
        let mut settings = settings.map(str::to_owned).to_vec();
        settings.push(format!("wal_level = {}", setup.wal_level));
        settings.push(format!("wal_compression = {}", setup.wal_compression));
        let options = ClusterOptions {
            data_checksums: Some(setup.data_checksums),
            settings,
            ..ClusterOptions::default()
        };
        let mut after = TestCluster::create(install, &options)?;
        after.stop()?;
        let before = after.copy_to(&cluster_root(Medium::Memory)?)?;
        after.start()?;
        work(&after)?;
        after.stop()?;
        Ok(Self { before, after })
    }
}

/// Records of tables and sequences.
pub(crate) fn work_on_tables(cluster: &TestCluster) -> Result<()> {
    cluster.psql_file("postgres", &script("workload.sql"), &[])?;
    lock_what_was_updated(cluster)
}

/// Records of indexes.
pub(crate) fn work_on_indexes(cluster: &TestCluster) -> Result<()> {
    cluster.psql_file("postgres", &script("indexes.sql"), &[])
}

fn script(name: &str) -> PathBuf {
    in_checkout("crates/pagemill-wal/tests/record_oracle").join(name)
}

/// A row is locked whose update is still going on: its newer version is locked with it, and both lockers make a
/// multixact.
fn lock_what_was_updated(cluster: &TestCluster) -> Result<()> {
    let mut updater = Session::open(cluster, "postgres")?;
    let mut locker = Session::open(cluster, "postgres")?;
    updater.run("begin; update parent set n = n + 1 where id <= 30;")?;
    locker.run("begin; select 1 from parent where id <= 30 for key share;")?;
    updater.run("commit;")?;
    locker.run("commit;")?;
    cluster.psql("postgres", "vacuum (freeze) parent")?;
    Ok(())
}
