//! TPC-H's tables in a cluster that is stopped, and in the copy that a server answers from.
//!
//! Invariant: indexes are made, and statements are answered, with memory as a careful administrator of such a machine gives it.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use super::options::Options;
use super::tpch::TABLES;
use crate::bench::server::{Contents, Server};
use crate::bench::twin_clusters::{TwinClusters, TwinContents};

/// Bytes of a cluster of scale 1, with its indexes and the WAL that is kept.
const BYTES: f64 = 3e9;
const SETTINGS: [&str; 6] = [
    "maintenance_work_mem=1GB",
    "work_mem=256MB",
    "effective_cache_size=8GB",
    "random_page_cost=1.1",
    "max_parallel_workers_per_gather=2",
    "max_wal_size=4GB",
];

pub(super) fn make(options: &Options, directory: &Path) -> Result<TwinClusters> {
    let bytes = (BYTES * options.scale) as u64 + (1 << 30);
    let statements: Vec<String> = TABLES.iter().map(|table| table.create()).collect();
    let of = TwinContents {
        contents: Contents { data_checksums: false, statements: &statements, mark: Value::Null },
        announced: ("TPC-H's tables, and a copy", bytes),
        shared_buffers: &options.shared_buffers,
        settings: &SETTINGS,
    };
    TwinClusters::make(directory, of, |cluster, launch| {
        fill(&cluster.start(launch)?, options.scale)
    })
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
