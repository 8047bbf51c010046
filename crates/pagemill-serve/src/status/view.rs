//! A server as it is seen at one moment, for whatever shows it.
//!
//! Invariant: nothing is held while it is shown; what has to be looked for in files is here already.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pagemill_io::CountersSnapshot;

use crate::activity::Activity;
use crate::metrics::Metrics;
use crate::served_cluster::ServedCluster;
use crate::server::{Reloads, Server};

/// All that is shown.
pub(crate) struct View {
    /// Moments are durations since 1970.
    pub(crate) started: Duration,
    pub(crate) opened: Duration,
    pub(crate) now: Duration,
    pub(crate) reloads: Reloads,
    pub(crate) most_sessions: usize,
    /// By their numbers.
    pub(crate) sessions: Vec<(i32, Activity)>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) directories: Vec<Directory>,
}

/// A data directory.
pub(crate) struct Directory {
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) major: u32,
    /// How it is no longer what was opened.
    pub(crate) change: Option<String>,
    /// Names of databases that allow connections; none where they cannot be read.
    pub(crate) databases: Vec<String>,
    pub(crate) reads: CountersSnapshot,
    /// Hits and misses.
    pub(crate) buffers: (u64, u64),
}

impl View {
    /// Looks at a server; also into files.
    pub(crate) fn of(server: &Server) -> Self {
        let opened = server.opened();
        Self {
            started: since_1970(server.started()),
            opened: since_1970(opened.since()),
            now: since_1970(SystemTime::now()),
            reloads: server.reloads(),
            most_sessions: server.registry.most(),
            sessions: server.registry.activities(),
            metrics: server.metrics.clone(),
            directories: opened.clusters().iter().map(|of| Directory::of(of)).collect(),
        }
    }
}

impl Directory {
    fn of(served: &ServedCluster) -> Self {
        let cluster = served.cluster();
        let change = cluster.check_unchanged().err().map(|change| change.to_string());
        let rows = match change {
            None => cluster.databases().unwrap_or_default(),
            // Whatever they say, it is not what was opened.
            Some(_) => Vec::new(),
        };
        let open = rows.iter().filter(|row| row.allows_connections && !row.is_invalid());
        let pool = cluster.buffer_pool();
        Self {
            name: served.name().to_string(),
            path: cluster.path().display().to_string(),
            major: cluster.version().major(),
            change,
            databases: open.map(|row| String::from_utf8_lossy(&row.name).into_owned()).collect(),
            reads: cluster.storage().counters().snapshot(),
            buffers: (pool.hits(), pool.misses()),
        }
    }
}

pub(crate) fn since_1970(moment: SystemTime) -> Duration {
    // A clock before 1970 shows 1970.
    moment.duration_since(UNIX_EPOCH).unwrap_or_default()
}
