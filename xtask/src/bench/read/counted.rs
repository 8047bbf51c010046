//! Calls per block, counted in one run, by the binary's own counters (which agree with `strace -c`).
//!
//! What finding the table costs is taken off: the calls of counting an empty table with the same flags.

use anyhow::{Context, Result};
use serde_json::Value;

use super::bench_cluster::{BenchCluster, EMPTY_TABLE};
use super::rows::{Calls, Table};
use super::turns::{Absence, Stand};

/// Blocks of a full segment (RELSEG_SIZE of pg_config.h).
const SEGMENT_BLOCKS: u64 = 131_072;

/// What was counted.
pub(super) struct Counted {
    pub(super) row: Calls,
    pub(super) calls: u64,
    pub(super) units: u64,
    pub(super) absence: Option<Absence>,
}

impl Counted {
    pub(super) fn absent(row: &Calls, absence: Absence) -> Self {
        Self { row: row.clone(), calls: 0, units: 0, absence: Some(absence) }
    }

    /// Calls for one unit.
    pub(super) fn figure(&self) -> f64 {
        self.calls as f64 / self.units as f64
    }

    pub(super) fn is_met(&self) -> bool {
        let (low, high) = self.row.range;
        (low..=high).contains(&self.figure())
    }
}

/// Counts the calls of a row.
pub(super) fn count(row: &Calls, stand: &Stand<'_>) -> Counted {
    if let Some(refusal) = stand.probe.refusal(&row.flags) {
        return Counted::absent(row, Absence::NotBuilt(refusal));
    }
    let counted = || -> Result<u64> {
        let table = calls(stand, Table::T.name(), row)?;
        Ok(table.saturating_sub(calls(stand, EMPTY_TABLE, row)?))
    };
    match counted() {
        Ok(calls) => {
            let units = units(stand.bench_cluster, row.blocks);
            Counted { row: row.clone(), calls, units, absence: None }
        }
        Err(error) => Counted::absent(row, Absence::Failed(format!("{error:#}"))),
    }
}

/// How many units of so many blocks the table has; none crosses a segment.
fn units(bench_cluster: &BenchCluster, blocks: u64) -> u64 {
    let total = bench_cluster.files(Table::T).blocks;
    let (full, rest) = (total / SEGMENT_BLOCKS, total % SEGMENT_BLOCKS);
    full * SEGMENT_BLOCKS.div_ceil(blocks) + rest.div_ceil(blocks)
}

fn calls(stand: &Stand<'_>, table: &str, row: &Calls) -> Result<u64> {
    let flags = [row.flags.as_slice(), &["--stats=json"]].concat();
    let output = stand.said(table, &flags)?;
    calls_in(&String::from_utf8_lossy(&output.stderr)).context("no record of --stats=json")
}

/// Reads and seeks in the record; a method that never seeks may leave that number out.
fn calls_in(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.starts_with('{'))?;
    let record: Value = serde_json::from_str(line).ok()?;
    Some(record["read_calls"].as_u64()? + record["seek_calls"].as_u64().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeks_are_calls_too() {
        assert_eq!(calls_in("x\n{\"read_calls\":3,\"seek_calls\":2}\n"), Some(5));
        assert_eq!(calls_in("{\"read_calls\":3}"), Some(3));
        assert_eq!(calls_in("pagemill: no\n"), None);
    }
}
