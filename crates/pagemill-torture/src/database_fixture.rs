//! Where databases are made and dropped: one small stopped cluster with a database to copy and one to drop, made once
//! by a server, and what the server printed of them.
//!
//! Invariant: the ground itself is never changed; whoever changes it takes a copy.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{PgInstall, TestCluster};

/// The database that is copied, and stays.
pub const SOURCE: &str = "postgres";
/// The one that is dropped.
pub const VICTIM: &str = "victim";

const SETUP: [&str; 5] = [
    "CREATE EXTENSION amcheck",
    "CREATE ROLE alice",
    "CREATE TABLE things (a int PRIMARY KEY, b text);
     INSERT INTO things SELECT i, repeat(md5(i::text), 1 + i % 90) FROM generate_series(1, 700) i;
     INSERT INTO things SELECT -i, (SELECT string_agg(md5((i * 1000 + j)::text), '') FROM generate_series(1, 100) j)
         FROM generate_series(1, 70) i;
     CREATE INDEX ON things (b text_pattern_ops) WHERE a > 3 AND length(b) < 1000;
     CREATE UNLOGGED TABLE volatile AS SELECT i AS a FROM generate_series(1, 900) i;
     CREATE SEQUENCE numbers; SELECT nextval('numbers');
     GRANT SELECT ON things TO alice",
    "UPDATE pg_database SET datistemplate = false",
    "CREATE DATABASE victim OWNER alice",
];

/// A cluster with two databases.
#[derive(Debug)]
pub struct DatabaseFixture {
    cluster: TestCluster,
    /// What is logged in the database that is copied.
    pub(crate) source: Vec<u8>,
    /// What is logged in the one that is dropped.
    pub(crate) victim: Vec<u8>,
}

impl DatabaseFixture {
    /// Has a server of this installation make it.
    ///
    /// # Errors
    /// When the server cannot.
    pub fn new(install: &PgInstall) -> Result<Self> {
        let mut cluster = empty_cluster(install)?;
        cluster.start()?;
        for sql in SETUP {
            cluster.psql(SOURCE, sql)?;
        }
        for template in ["template0", "template1"] {
            cluster.psql(SOURCE, &format!("DROP DATABASE {template}"))?;
        }
        cluster
            .psql(VICTIM, "CREATE TABLE kept_until (a int); INSERT INTO kept_until VALUES (1)")?;
        cluster.psql(
            SOURCE,
            "COMMENT ON DATABASE victim IS 'x'; ALTER DATABASE victim SET work_mem = '1MB'",
        )?;
        let (source, victim) = (logged(&cluster, SOURCE)?, logged(&cluster, VICTIM)?);
        cluster.stop()?;
        Ok(Self { cluster, source, victim })
    }

    /// The installation whose servers judge.
    pub fn install(&self) -> &PgInstall {
        self.cluster.install()
    }

    /// The data directory, for reading.
    pub fn data(&self) -> PathBuf {
        self.cluster.data_dir()
    }
}

/// Every row of every relation of a database that is logged, its catalogs included, in the order in which they lie.
pub(crate) fn logged(cluster: &TestCluster, database: &str) -> Result<Vec<u8>> {
    const RELATIONS: &str = "SELECT string_agg(format('COPY (SELECT * FROM %s) TO STDOUT', oid::regclass), ';' ORDER BY oid) \
         FROM pg_class WHERE relkind IN ('r', 'm', 'S', 't') AND NOT relisshared AND relpersistence = 'p'";
    let script = cluster.psql(database, RELATIONS)?;
    let printed = cluster.psql_bytes(database, &["-c", &script])?;
    ensure!(printed.len() > 100_000, "{database} prints as {} bytes", printed.len());
    Ok(printed)
}
