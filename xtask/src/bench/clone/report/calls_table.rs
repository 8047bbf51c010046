//! The calls of both sides, beside those that were published when the server's reads became a stream.
//!
//! Published are the calls of one backend that copies 9,000,000 rows of table t, 750,000 blocks, counted by `strace -c`:
//! <https://www.postgresql.org/message-id/CAN55FZ0JKL6vk1xQp6rfOXiNFV1u1H0tJDPPGHWoiO3ea2Wc=A@mail.gmail.com>

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::bench::clone::Bench;
use crate::bench::clone::calls::{Calls, Counted};
use crate::bench::clone::rows::{CALLS_TARGET, Template};

/// Blocks of the table there: 12 rows on each.
const PUBLISHED_BLOCKS: u64 = 750_000;

/// `pread64` and `preadv`, `pwrite64` and `pwritev`, `fdatasync` and `fsync`.
const PUBLISHED: [(&str, u64, u64, u64); 2] = [
    ("published: master of 2024", 747_936, 1_288_365 + 1_856, 605 + 121),
    ("published: read by a stream", 46_730, 1_285_782 + 2_368, 633 + 153),
];

/// The table.
pub(super) fn table(bench: &Bench) -> String {
    let mut table = format!(
        "| calls for 64 blocks | reads | writes of data | writes of WAL | all writes | syncs, in all | held against ≤ {CALLS_TARGET} |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | --- |\n"
    );
    for (name, reads, writes, syncs) in PUBLISHED {
        let per = |calls| rate(calls, PUBLISHED_BLOCKS);
        let _ = writeln!(
            table,
            "| {name} | {:.2} | — | — | {:.2} | {syncs} | — |",
            per(reads),
            per(writes)
        );
    }
    for measured in &bench.measured {
        let Some(counted) = &measured.counted else { continue };
        let (id, major) = (measured.row.id, measured.row.major);
        let blocks = counted.stats.blocks;
        table += &line(&format!("{id}: PostgreSQL {major}"), &counted.server, blocks, "—");
        let verdict = match measured.row.template {
            Template::Large => verdict(&counted.pagemill, blocks),
            Template::Small => "—",
        };
        table += &line(&format!("{id}: pagemill"), &counted.pagemill, blocks, verdict);
    }
    table += "\nCounted by strace in a turn of each side that was not timed, files told apart by their paths: all \
              processes of the server, from before CREATE DATABASE until after CHECKPOINT; pagemill without a ring, \
              through which calls are not seen. Pages that are read where they are mapped take no call. A large database \
              has small files too, which have fewer than 64 blocks for their calls.\n";
    table
}

fn line(name: &str, calls: &Calls, blocks: u64, verdict: &str) -> String {
    let per = |calls| rate(calls, blocks);
    format!(
        "| {name} | {:.2} | {:.2} | {:.2} | {:.2} | {} | {verdict} |\n",
        per(calls.data_reads),
        per(calls.data_writes),
        per(calls.wal_writes),
        per(calls.data_writes + calls.wal_writes),
        calls.syncs
    )
}

fn rate(calls: u64, blocks: u64) -> f64 {
    calls as f64 * 64.0 / blocks.max(1) as f64
}

fn verdict(calls: &Calls, blocks: u64) -> &'static str {
    let kinds = [calls.data_reads, calls.data_writes, calls.wal_writes];
    match kinds.iter().all(|&calls| rate(calls, blocks) <= CALLS_TARGET) {
        true => "met",
        false => "missed",
    }
}

/// The raw numbers.
pub(super) fn raw(counted: &Counted) -> Value {
    let calls = |calls: &Calls| {
        json!({
            "data_reads": calls.data_reads,
            "data_writes": calls.data_writes,
            "wal_writes": calls.wal_writes,
            "syncs": calls.syncs,
            "write_backs": calls.write_backs,
        })
    };
    json!({
        "server": calls(&counted.server),
        "pagemill": calls(&counted.pagemill),
        "own_account": {
            "blocks": counted.stats.blocks,
            "read_calls": counted.stats.read_calls,
            "write_calls": counted.stats.write_calls,
            "sync_calls": counted.stats.sync_calls,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_call_is_held_against_the_target() {
        let calls = Calls { data_reads: 0, data_writes: 10, wal_writes: 10, ..Calls::default() };
        assert_eq!(verdict(&calls, 640), "met");
        assert_eq!(verdict(&Calls { wal_writes: 11, ..calls }, 640), "missed");
        assert!((rate(PUBLISHED[1].1, PUBLISHED_BLOCKS) - 3.99).abs() < 0.01);
    }
}
