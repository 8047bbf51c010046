//! The result of `bench wal`: a page to read and the raw numbers to check it by.
//!
//! A ratio is the other side's time over pagemill's, the median of the pairs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Bench;
use super::rows::{BYTES_PER_CORE, MEMORY_TARGET_MIB, Work};
use super::turns::{Measured, Stand};
use crate::bench::artifact::named;
use crate::bench::figures::{self, ratio, spread};

const METHOD: &str = "\
How it was measured: a server fills tables, is shut down cleanly (a copy of that is the clean one), works as pgbench does \
until there is as much WAL as was asked for, with no checkpoint in between, and is killed (`SIGQUIT`: nothing is written out). Pagemill \
reads what it left, as it lies. Both sides take turns. Before each turn all files of the directory are synced and dropped \
from the page cache, and for cached rows read back, and their residency is asked. Rows `start`: from the start of a server \
(`postgres`; every 2 ms it is looked whether it is ready) on a fresh copy to its answer to `count(*)`, with psql, against the whole process of pagemill. Rows \
`index`: pagemill's own time for reading the WAL (`wal_s` of `--stats`), against 1 GB/s for each core it may use, or, cold, \
against fio (libaio, direct, 1 MiB, 8 deep; dd where there is none) on the same files. Rows `untouched`: a table that WAL says \
nothing of, whole processes without `wal_s`, against the clean copy. Row `tenth`: every tenth page has a record; the whole \
process without `wal_s`, against psql's `\\timing` of a server that has recovered and has counted before. Neither side is \
pinned to a core but in `index-one-core`; servers count without parallel workers.";

/// The page.
pub(super) fn markdown(bench: &Bench) -> String {
    let quick = if bench.options.run.quick { " (quick: little WAL, no result)" } else { "" };
    let name = &bench.options.run.name;
    let mut page =
        format!("# Benchmark of WAL in front of the files: {name}{quick}\n\n{METHOD}\n\n");
    for measured in &bench.measured {
        if let Some(fault) = &measured.fault {
            let _ = writeln!(page, "- {}: {fault}\n", measured.row.id);
        }
    }
    page += &times(bench);
    page += "\n## What was run\n\n| row | other side | pagemill |\n| --- | --- | --- |\n";
    for Measured { row, .. } in &bench.measured {
        let _ = writeln!(page, "| {} | {} | `{}` |", row.id, other(row.work), Stand::spelled(row));
    }
    page += "\n## Environment\n\n";
    for (name, value) in settings(bench).iter().chain(&bench.environment) {
        let _ = writeln!(page, "- {name}: {value}");
    }
    page
}

fn times(bench: &Bench) -> String {
    let mut table = format!(
        "| row | other, ms | pagemill, ms | ratio | target | verdict | WAL, MiB | records | WAL read, ms | GB/s | \
         peak memory, MiB (≤ {MEMORY_TARGET_MIB}) |\n\
         | --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |\n"
    );
    for measured in &bench.measured {
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | ≥ {}× | {} | {} | {} | {:.0} | {} | {} |",
            measured.row.id,
            spread(&measured.other_ms),
            spread(&measured.pagemill_ms),
            ratio(&measured.ratios()),
            measured.row.target,
            measured.verdict(),
            measured.wal_bytes >> 20,
            measured.wal_records,
            measured.wal_ms,
            measured.gigabytes_per_second().map_or("—".to_owned(), |rate| format!("{rate:.2}")),
            measured.peak_memory_mib.map_or("—".to_owned(), |mib| format!("{mib:.0}")),
        );
    }
    table += "\nTimes: median (smallest–largest). The columns of WAL are of the last turn. Peak memory is the high-water \
              mark of the resident set, mapped files included, in a run of its own.\n";
    table
}

fn other(work: Work) -> String {
    match work {
        Work::Start => "`postgres`, `select count(*) from accounts`".to_owned(),
        Work::IndexRate { cores } => {
            format!("{:.0} GB/s on {cores} core(s)", BYTES_PER_CORE / 1e9 * f64::from(cores))
        }
        Work::IndexOfDevice => "fio".to_owned(),
        Work::UntouchedCount | Work::UntouchedExport => "the same on the clean copy".to_owned(),
        Work::Tenth => "`select count(*) from tenth`".to_owned(),
    }
}

fn settings(bench: &Bench) -> Vec<(&'static str, String)> {
    let options = &bench.options;
    let rows = options.rows;
    let tables = format!("accounts {rows} rows, untouched and tenth {} each", 4 * rows);
    vec![
        ("tables", tables),
        ("data checksums", "off".to_owned()),
        ("repetitions", options.run.repetitions.to_string()),
        ("shared_buffers", options.sides.shared_buffers.clone()),
    ]
}

/// The raw numbers.
pub(super) fn raw(bench: &Bench) -> Value {
    json!({
        "name": bench.options.run.name,
        "environment": named(&bench.environment),
        "settings": named(&settings(bench)),
        "rows": bench.measured.iter().map(raw_row).collect::<Vec<Value>>(),
    })
}

fn raw_row(measured: &Measured) -> Value {
    json!({
        "row": measured.row.id,
        "other": other(measured.row.work),
        "command": Stand::spelled(&measured.row),
        "other_ms": measured.other_ms,
        "pagemill_ms": measured.pagemill_ms,
        "ratios": measured.ratios(),
        "figure": figures::raw(&measured.ratios()),
        "target": measured.row.target,
        "verdict": measured.verdict(),
        "wal_bytes": measured.wal_bytes,
        "wal_records": measured.wal_records,
        "wal_ms": measured.wal_ms,
        "peak_memory_mib": measured.peak_memory_mib,
        "fault": measured.fault,
    })
}
