//! The cluster that pagemill reads, stopped, and a copy of it that a server answers from at the same time.
//!
//! Both have the same bytes: the copy is made after the last checkpoint, and the server only reads.

use std::path::{Path, PathBuf};

use anyhow::Result;
use pagemill_testkit::page_cache::read_files;
use serde_json::Value;

use super::options::Options;
use super::tpch::TABLES;
use crate::bench::server::{Cluster, Contents, LaunchOptions, Server};

const MAJOR: u32 = 18;
/// Bytes of a cluster of scale 1, with its indexes and the WAL that is kept.
const BYTES: f64 = 3e9;
/// Indexes are made, and the statements are answered, with memory as a careful administrator of such a machine gives it.
const SETTINGS: [&str; 6] = [
    "maintenance_work_mem=1GB",
    "work_mem=256MB",
    "effective_cache_size=8GB",
    "random_page_cost=1.1",
    "max_parallel_workers_per_gather=2",
    "max_wal_size=4GB",
];

pub(super) struct BenchCluster {
    /// What pagemill reads.
    pub(super) stopped: Cluster,
    /// What the server answers from.
    pub(super) served: Cluster,
    directory: PathBuf,
    shared_buffers: String,
}

impl BenchCluster {
    pub(super) fn make(options: &Options, directory: &Path) -> Result<Self> {
        std::fs::create_dir_all(directory)?;
        let served = directory.join("served");
        if served.exists() {
            // A run that was killed may have left its server there.
            drop(Cluster::open(&served, MAJOR)?);
            std::fs::remove_dir_all(&served)?;
        }
        let stopped = Cluster::open(&directory.join("stopped"), MAJOR)?;
        let bytes = (BYTES * options.scale) as u64 + (1 << 30);
        stopped.announce("TPC-H's tables, and a copy", 2 * bytes)?;
        eprintln!("filling a cluster of PostgreSQL {MAJOR} ...");
        let statements: Vec<String> = TABLES.iter().map(|table| table.create()).collect();
        let contents =
            Contents { data_checksums: false, statements: &statements, mark: Value::Null };
        let launch = launch(&options.shared_buffers);
        stopped.make(&contents, launch, |cluster| fill(&cluster.start(launch)?, options.scale))?;
        let served = stopped.copy_to(&served)?;
        let directory = directory.canonicalize()?;
        Ok(Self { stopped, served, directory, shared_buffers: options.shared_buffers.clone() })
    }

    /// Starts the server.
    pub(super) fn start(&self) -> Result<Server<'_>> {
        self.served.start(launch(&self.shared_buffers))
    }

    /// Reads all files of the stopped cluster, so that they are in the page cache.
    pub(super) fn cache(&self) -> Result<()> {
        read_files(&crate::bench::files_below(&self.stopped.data())?)
    }

    /// A directory for files of the benchmark's own.
    pub(super) fn scratch(&self) -> Result<PathBuf> {
        let scratch = self.directory.join("scratch");
        std::fs::create_dir_all(&scratch)?;
        Ok(scratch)
    }

    /// Removes everything.
    pub(super) fn remove(self) -> Result<()> {
        for name in ["stopped", "served", "scratch"] {
            let directory = self.directory.join(name);
            if directory.exists() {
                std::fs::remove_dir_all(directory)?;
            }
        }
        Ok(())
    }

    /// A text with words for the directories of this machine.
    pub(super) fn without_places(&self, text: &str) -> String {
        text.replace(&*self.directory.to_string_lossy(), "DIR")
    }

    /// What the server runs with.
    pub(super) fn settings(&self) -> String {
        format!("shared_buffers={} {} jit=off", self.shared_buffers, SETTINGS.join(" "))
    }
}

fn launch(shared_buffers: &str) -> LaunchOptions<'_> {
    LaunchOptions { core: None, shared_buffers, group: None, settings: &SETTINGS }
}

fn fill(server: &Server<'_>, scale: f64) -> Result<()> {
    for table in &TABLES {
        let copy = format!("copy {} from stdin (delimiter '|')", table.name);
        server.copy_in(&copy, |out| table.write(scale, out))?;
        for statement in table.index() {
            server.psql(&[&statement])?;
        }
    }
    server.psql(&["vacuum (freeze, analyze)", "checkpoint"])?;
    Ok(())
}
