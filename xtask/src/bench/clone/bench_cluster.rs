//! The cluster whose databases are copied, on the disk or on XFS.
//!
//! Invariant: it is new for each run of the benchmark, and gone at its end, with the device that was made for it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use pagemill_testkit::devices::{FileSystem, Unavailable, Volume};
use pagemill_testkit::page_cache::{drop_files, read_files, residency};
use serde_json::Value;

use super::options::Options;
use super::rows::{FileSystemChoice, Row, Template};
use crate::bench::server::{Cluster, Contents, LaunchOptions, Server};
use crate::bench::settling::settle;

/// Bytes of a row of `t` on its page.
const ROW_BYTES: u64 = 690;
/// What a cluster takes without the table, and some room for WAL that is kept.
const REST_BYTES: u64 = 3 << 30;
/// What a file system takes for itself, with room to spare; an image has no blocks before they are written.
const SPARE_BYTES: u64 = 2 << 30;
/// The share of a database that must be in the page cache.
const CACHED: f64 = 0.999;

/// A cluster with table t in the database `postgres`.
pub(super) struct BenchCluster {
    pub(super) cluster: Cluster,
    /// Where everything of it lies.
    directory: PathBuf,
    // Last: it is taken down when nothing uses it any more.
    _volume: Option<Volume>,
}

impl BenchCluster {
    /// Makes a cluster of this version, in `place` or on XFS in it.
    pub(super) fn make(
        options: &Options,
        (major, kind): (u32, FileSystemChoice),
        place: &Path,
    ) -> Result<Result<Self, Unavailable>> {
        std::fs::create_dir_all(place)?;
        // The table, its copy, the WAL of that, and what a server keeps to use again.
        let bytes = options.rows * ROW_BYTES * 4 + REST_BYTES;
        let volume = match kind {
            FileSystemChoice::Here => None,
            FileSystemChoice::Xfs => {
                match Volume::create(FileSystem::Xfs, place, bytes + SPARE_BYTES) {
                    Ok(volume) => Some(volume),
                    Err(unavailable) => return Ok(Err(unavailable)),
                }
            }
        };
        let directory = volume.as_ref().map_or(place, Volume::path);
        let directory = directory.join(format!("pg{major}"));
        let cluster = Cluster::open(&directory, major)?;
        let bench_cluster = Self { cluster, directory, _volume: volume };
        bench_cluster.fill(options, major, bytes)?;
        Ok(Ok(bench_cluster))
    }

    fn fill(&self, options: &Options, major: u32, bytes: u64) -> Result<()> {
        self.cluster.announce("a cluster, a copy of its table, and WAL", bytes)?;
        let rows = options.rows;
        eprintln!("filling t ({rows} rows) ...");
        let statements = [
            format!(
                "create table t as select repeat('a', 100) || i || repeat('b', 500) as filler \
                 from generate_series(1, {rows}) as i"
            ),
            "vacuum (freeze) t".to_owned(),
        ];
        let contents = Contents {
            // As initdb of the version does it without being told.
            data_checksums: major >= 18,
            statements: &statements,
            mark: Value::Null,
        };
        self.cluster.make(&contents, launch(options, &[]), |_| Ok(()))
    }

    /// Brings everything that was written to the device, and a database into the page cache, or out of it.
    pub(super) fn settle(&self, options: &Options, template: Template, oid: u32) -> Result<()> {
        settle(&self.cluster.directory)?;
        let files = self.files_of(oid)?;
        if options.cold {
            return drop_files(&files);
        }
        read_files(&files)?;
        let share = residency(&files)?.share();
        let (percent, name) = (share * 100.0, template.database());
        ensure!(
            share >= CACHED,
            "only {percent:.1} % of {name} is cached: memory is wanted by others"
        );
        Ok(())
    }

    /// The files of a database.
    pub(super) fn files_of(&self, oid: u32) -> Result<Vec<PathBuf>> {
        let directory = self.cluster.data().join("base").join(oid.to_string());
        let entries = std::fs::read_dir(&directory).context("a database without a directory")?;
        let mut files = Vec::new();
        for entry in entries {
            files.push(entry?.path());
        }
        Ok(files)
    }

    pub(super) fn start(&self, options: &Options, row: &Row) -> Result<Server<'_>> {
        self.cluster.start(launch(options, row.settings()))
    }

    /// Takes everything away.
    pub(super) fn remove(self) -> Result<()> {
        std::fs::remove_dir_all(&self.directory)?;
        Ok(())
    }

    /// A text with a word for the directory of this machine.
    pub(super) fn without_places(&self, text: &str) -> String {
        text.replace(&*self.cluster.data().to_string_lossy(), "DATA")
    }
}

pub(super) fn launch<'a>(options: &'a Options, settings: &'a [&'a str]) -> LaunchOptions<'a> {
    LaunchOptions {
        core: None,
        shared_buffers: &options.sides.shared_buffers,
        group: None,
        settings,
    }
}
