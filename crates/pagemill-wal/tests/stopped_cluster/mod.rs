//! A stopped cluster with a small table, and what tests do to it: append to its WAL, change its control file,
//! and ask the server what became of that.
//!
//! The table's only block is copied to another block number with another transaction id, which is what makes
//! visible whether replay brought it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use pagemill_format::control::{ClusterState, ControlFile};
use pagemill_format::wal::{Commit, DroppedStatistics, Invalidation, RelFileLocator};
use pagemill_format::{BlockBytes, Oid, PgVersion, TransactionId};
use pagemill_io::Storage;
use pagemill_testkit::{PgInstall, TestCluster};
use pagemill_wal::{WalDirectory, WalWriter, WriterOptions};

/// Rows of the table.
pub(crate) const ROWS: u64 = 50;

pub(crate) struct Stopped {
    pub(crate) cluster: TestCluster,
    pub(crate) locator: RelFileLocator,
    pub(crate) table_file: PathBuf,
}

impl Stopped {
    /// A cluster with segments of 1 MiB.
    pub(crate) fn new(install: &PgInstall) -> Result<Self> {
        let mut cluster = pagemill_testkit::prepared::empty_cluster(install)?;
        cluster.start()?;
        // So that the server's tools can be asked about its WAL later.
        cluster.psql("postgres", "alter system set wal_keep_size = '1GB'")?;
        cluster.psql("postgres", "create table t (a int, b text)")?;
        let rows = format!("insert into t select g, 'row ' || g from generate_series(1, {ROWS}) g");
        cluster.psql("postgres", &rows)?;
        cluster.psql("postgres", "vacuum t")?;
        let sql = "select pg_relation_filepath('t'), oid, dattablespace from pg_database \
                   where datname = 'postgres'";
        let found = cluster.psql("postgres", sql)?;
        let fields: Vec<&str> = found.split('|').collect();
        let number = fields[0].rsplit('/').next().context("a path")?;
        let oid = |text: &str| Ok::<_, anyhow::Error>(Oid(text.parse()?));
        let locator = RelFileLocator {
            tablespace: oid(fields[2])?,
            database: oid(fields[1])?,
            number: oid(number)?,
        };
        cluster.stop()?;
        let table_file = cluster.data_dir().join(fields[0]);
        Ok(Self { cluster, locator, table_file })
    }

    pub(crate) fn control_path(&self) -> PathBuf {
        self.cluster.data_dir().join("global/pg_control")
    }

    pub(crate) fn control(&self) -> Result<ControlFile> {
        Ok(ControlFile::parse(&fs::read(self.control_path())?, None)?)
    }

    pub(crate) fn set_control(&self, control: &ControlFile) -> Result<()> {
        Ok(fs::write(self.control_path(), control.encode()?)?)
    }

    /// Says "in production", and changes nothing else.
    pub(crate) fn flip(&self) -> Result<()> {
        let control = ControlFile { state: ClusterState::InProduction, ..self.control()? };
        self.set_control(&control)
    }

    pub(crate) fn version(&self) -> PgVersion {
        PgVersion::from_major(self.cluster.major()).unwrap()
    }

    pub(crate) fn wal(&self) -> Result<WalDirectory> {
        Ok(WalDirectory::of_cluster(&self.cluster.data_dir(), &self.control()?)?)
    }

    pub(crate) fn writer(&self, options: WriterOptions) -> Result<WalWriter> {
        let control = self.control()?;
        let storage = Storage::real();
        Ok(WalWriter::begin(&storage, &self.wal()?, control.checkpoint_location, options)?)
    }

    /// The next transaction id.
    pub(crate) fn xid(&self) -> Result<TransactionId> {
        Ok(self.control()?.checkpoint.next_xid.xid())
    }

    /// The table's only block, as block `number` and of transaction `xid`.
    pub(crate) fn copied_block(&self, number: u32, xid: TransactionId) -> Result<Box<BlockBytes>> {
        let bytes = fs::read(&self.table_file)?;
        ensure!(bytes.len() == 8192, "the table has one block");
        let mut page: Box<BlockBytes> = bytes.into_boxed_slice().try_into().unwrap();
        // No LSN, no checksum, not all-visible.
        page[..10].fill(0);
        page[10] &= !0x04;
        let lower = usize::from(u16::from_le_bytes([page[12], page[13]]));
        for at in (24..lower).step_by(4) {
            let pointer = u32::from_le_bytes(page[at..at + 4].try_into()?);
            let tuple = (pointer & 0x7FFF) as usize;
            page[tuple..tuple + 4].copy_from_slice(&xid.0.to_le_bytes());
            page[tuple + 12..tuple + 14].copy_from_slice(&((number >> 16) as u16).to_le_bytes());
            page[tuple + 14..tuple + 16].copy_from_slice(&(number as u16).to_le_bytes());
            // No hint about the inserting transaction; the deleting one is none.
            page[tuple + 21] = page[tuple + 21] & !0x03 | 0x08;
        }
        Ok(page)
    }

    /// A commit now.
    pub(crate) fn commit(&self) -> Commit {
        Commit { time: 800_000_000_000_000, ..Commit::default() }
    }

    /// What was written to the directory of WAL belongs to the server's account.
    pub(crate) fn hand_over(&self) -> Result<()> {
        for entry in fs::read_dir(self.cluster.data_dir().join("pg_wal"))? {
            self.cluster.account().own(&entry?.path())?;
        }
        Ok(())
    }

    /// How often the server's log says something since the last call.
    pub(crate) fn log_since(&self, before: usize) -> Result<String> {
        let log = fs::read(self.log_path())?;
        Ok(String::from_utf8_lossy(log.get(before..).unwrap_or_default()).into_owned())
    }

    pub(crate) fn log_len(&self) -> usize {
        fs::metadata(self.log_path()).map_or(0, |metadata| metadata.len() as usize)
    }

    fn log_path(&self) -> PathBuf {
        self.cluster.root().join("server.log")
    }

    pub(crate) fn count(&self) -> Result<u64> {
        Ok(self.cluster.psql("postgres", "select count(*) from t")?.parse()?)
    }

    /// What `amcheck` has against the table: nothing, if it is sound.
    pub(crate) fn verify(&self) -> Result<String> {
        self.cluster.psql("postgres", "create extension if not exists amcheck")?;
        self.cluster.psql("postgres", "select * from verify_heapam('t', check_toast => true)")
    }
}

/// Runs a check with every installed version, and fails with all that failed.
pub(crate) fn every_version(check: impl Fn(&PgInstall) -> Result<()> + Sync) {
    pagemill_testkit::each_of(&PgInstall::all(), check);
}

/// `pg_waldump`, where this version was installed with it.
pub(crate) fn waldump(
    install: &PgInstall,
    directory: &Path,
    args: &[&str],
) -> Result<Option<String>> {
    let program = install.program("pg_waldump");
    if !program.exists() {
        return Ok(None);
    }
    let output =
        Command::new(program).env("TZ", "UTC").arg("-p").arg(directory).args(args).output()?;
    Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// A commit with everything that can be in it. It drops the files of a relation that there never was.
pub(crate) fn full_commit(stopped: &Stopped, relation: Oid) -> Commit {
    let database = stopped.locator.database;
    let statistics = DroppedStatistics { kind: 2, database, object: u64::from(relation.0) };
    let has_statistics = stopped.version() >= PgVersion::V15;
    Commit {
        database: Some((database, stopped.locator.tablespace)),
        dropped_files: vec![RelFileLocator { number: relation, ..stopped.locator }],
        dropped_statistics: if has_statistics { vec![statistics] } else { Vec::new() },
        invalidations: vec![
            Invalidation::Relation { database, relation },
            Invalidation::Catalog { database, catalog: Oid(1259) },
            Invalidation::Storage { locator: stopped.locator },
            Invalidation::Snapshot { database, relation },
        ],
        had_exclusive_locks: true,
        update_relcache_file: true,
        force_sync: true,
        ..stopped.commit()
    }
}
