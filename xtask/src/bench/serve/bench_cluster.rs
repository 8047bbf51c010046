//! Accounts as pgbench makes them in a cluster that is stopped, and in the copy that a server answers from.
//!
//! Invariant: there is room for all clients of a row on either side.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use super::options::Options;
use crate::bench::server::Contents;
use crate::bench::twin_clusters::{TwinClusters, TwinContents};

/// Bytes of a thousand accounts with their index, and of a cluster without any.
const BYTES: (u64, u64) = (160_000, 100 << 20);
const SETTINGS: [&str; 2] = ["max_connections=250", "max_wal_size=4GB"];

pub(super) fn make(options: &Options, directory: &Path) -> Result<TwinClusters> {
    let statements = statements(options.thousands);
    let of = TwinContents {
        contents: Contents { data_checksums: true, statements: &statements, mark: Value::Null },
        announced: ("accounts, and a copy", BYTES.0 * options.thousands + BYTES.1),
        shared_buffers: &options.shared_buffers,
        settings: &SETTINGS,
    };
    TwinClusters::make(directory, of, |_, _| Ok(()))
}

/// As `pgbench -i` makes them.
fn statements(thousands: u64) -> Vec<String> {
    let rows = thousands * 1000;
    vec![
        "create table pgbench_accounts (aid int not null, bid int, abalance int, filler char(84)) \
         with (fillfactor = 100)"
            .to_owned(),
        format!(
            "insert into pgbench_accounts select aid, (aid - 1) / 100000 + 1, 0, '' \
             from generate_series(1, {rows}) as aid"
        ),
        "alter table pgbench_accounts add primary key (aid)".to_owned(),
        // By their number pgbench knows how many accounts there are.
        "create table pgbench_branches (bid int primary key, bbalance int, filler char(88))"
            .to_owned(),
        format!(
            "insert into pgbench_branches select bid, 0, '' from generate_series(1, {}) as bid",
            (rows / 100_000).max(1)
        ),
        "vacuum (freeze, analyze)".to_owned(),
        "checkpoint".to_owned(),
    ]
}
