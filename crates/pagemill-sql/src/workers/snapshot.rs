//! What a cluster is known by where several machines open it: which it is, and up to where its transactions are seen.
//!
//! Invariant: two that are equal show the same rows. The CRC of the control file stands for all of that; where WAL was redone, the
//! counters of transactions stand for how far.

use std::fmt;
use std::path::Path;

use pagemill_cluster::Cluster;
use pagemill_io::{HostFiles, is_url};
use serde::{Deserialize, Serialize};

/// A cluster at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Snapshot {
    system_identifier: u64,
    timeline: u32,
    /// Where the latest checkpoint lies.
    checkpoint: u64,
    /// No page is newer than this: the end of the WAL that was redone, where any was.
    newest: u64,
    next_transaction: u64,
    oldest_transaction: u32,
    next_multixact: u32,
    /// Of the control file.
    crc: u32,
}

impl Snapshot {
    /// What is opened now.
    pub fn of(cluster: &Cluster) -> Self {
        let (control, counters) = (cluster.control(), cluster.counters());
        Self {
            system_identifier: control.system_identifier,
            timeline: control.checkpoint.timeline,
            checkpoint: control.checkpoint_location.0,
            newest: cluster.newest_page().0,
            next_transaction: counters.next_xid.0,
            oldest_transaction: counters.oldest_xid.0,
            next_multixact: counters.next_multi.0,
            crc: control.crc,
        }
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lsn = |at: u64| format!("{:X}/{:X}", at >> 32, at & 0xFFFF_FFFF);
        write!(
            f,
            "system identifier {}, timeline {}, checkpoint at {}, pages up to {}, next transaction {}, control file {:08x}",
            self.system_identifier,
            self.timeline,
            lsn(self.checkpoint),
            lsn(self.newest),
            self.next_transaction,
            self.crc
        )
    }
}

/// What both sides call a data directory: a URL as it was given, without the slashes at its end; a path as links lead to it.
pub fn directory_name(path: &Path) -> String {
    let resolved = match is_url(path) {
        true => path.to_owned(),
        false => HostFiles::real().resolve(path).unwrap_or_else(|_| path.to_owned()),
    };
    resolved.to_string_lossy().trim_end_matches('/').to_owned()
}
