//! A stopped cluster whose WAL has records of many sorts, and images compressed in each way its server has.
//!
//! Nothing of its WAL is recycled, so that the server's own tools can be asked about it later.

use std::path::PathBuf;

use anyhow::Result;
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, in_checkout};

/// Segments of 1 MiB; nothing is recycled.
const SETTINGS: [&str; 3] = ["wal_keep_size = 1GB", "max_wal_size = 2GB", "wal_level = logical"];

/// Changes that leave an image of each page they touch, when the first after a checkpoint.
const TOUCH_ALL: &str = "update wal_plain set a = a - 1; update wal_points set id = id + 1";

pub(crate) struct Busy {
    pub(crate) cluster: TestCluster,
    /// Where the records of the work begin.
    pub(crate) start: String,
    /// Where they end.
    pub(crate) end: String,
}

impl Busy {
    /// Runs the work load. `wal_compression` is set to each of its values that the server takes.
    pub(crate) fn new(install: &PgInstall) -> Result<Self> {
        let options = ClusterOptions {
            initdb_flags: vec!["--wal-segsize=1".into()],
            settings: SETTINGS.map(str::to_owned).to_vec(),
            ..ClusterOptions::default()
        };
        let mut cluster = TestCluster::create(install, &options)?;
        let start = current_lsn(&cluster)?;
        cluster.psql_file("postgres", &workload(), &[])?;
        let sql = "select unnest(enumvals) from pg_settings where name = 'wal_compression' \
                   union select 'on'";
        for method in cluster.psql("postgres", sql)?.lines() {
            let sql = format!("checkpoint; set wal_compression = {method}; {TOUCH_ALL}");
            let commands: Vec<&str> = sql.split("; ").collect();
            let args: Vec<&str> = commands.iter().flat_map(|command| ["-c", command]).collect();
            cluster.psql_bytes("postgres", &args)?;
        }
        let end = current_lsn(&cluster)?;
        cluster.stop()?;
        Ok(Self { cluster, start, end })
    }
}

pub(crate) fn current_lsn(cluster: &TestCluster) -> Result<String> {
    cluster.psql("postgres", "select pg_current_wal_insert_lsn()")
}

fn workload() -> PathBuf {
    in_checkout("crates/pagemill-wal/tests/workload.sql")
}
