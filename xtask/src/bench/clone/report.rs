//! The result of `bench clone`: a page to read and the raw numbers to check it by.
//!
//! A ratio is PostgreSQL's time over pagemill's, the median of the pairs.

mod calls_table;
mod device_table;
mod wholes_table;

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Bench;
use super::rows::{
    CALLS_TARGET, MEMORY_TARGET_MIB, REFLINK_TARGET_MS, Row, SHARED_TARGET, Strategy,
};
use super::turns::Measured;
use crate::bench::artifact::named;
use crate::bench::figures::{self, ratio, spread};
use crate::bench::server;

const METHOD: &str = "\
How it was measured: for each row one warm-up of each side, then the two in turns, each copying the same database of \
the same cluster, in the state of the page cache that is named below (made, and its residency asked, before each \
turn); everything written back before each turn. PostgreSQL: started before, and CREATE DATABASE and the CHECKPOINT \
behind it each timed by psql's `\\timing`; the ratio is that of their sum, after which the copy lies on the device and \
the cluster needs no WAL to have it, as it is at pagemill's end. The second ratio is that of CREATE DATABASE alone, \
after which the copy is durable by its WAL (wal_log), or by itself (file_copy). Pagemill: the server stopped, the \
whole process timed from its start to its exit, `--stats=json` included. The start and stop of a server are in \
nobody's time, and neither side is pinned to a core. After each turn a server compares a sum over all rows of the copy \
with that of the template, and drops the copy.";

/// The page.
pub(super) fn markdown(bench: &Bench) -> String {
    let quick = if bench.options.run.quick { " (quick: a small table, no result)" } else { "" };
    let mut page =
        format!("# Benchmark of clone: {}{quick}\n\n{METHOD}\n\n", bench.options.run.name);
    for measured in &bench.measured {
        for reason in measured.fault.iter().chain(&measured.absence) {
            let _ = writeln!(page, "- {}: {reason}\n", measured.row.id);
        }
    }
    for measured in &bench.wholes {
        if let Some(fault) = &measured.fault {
            let _ = writeln!(page, "- {}: {fault}\n", measured.row.id);
        }
    }
    page += &times(bench);
    page += "\n";
    page += &device_table::table(bench);
    page += "\n";
    page += &costs(bench);
    page += "\n";
    page += &calls_table::table(bench);
    page += "\n";
    page += &wholes_table::table(bench);
    page += "\n## What was run\n\n| row | PostgreSQL | pagemill |\n| --- | --- | --- |\n";
    for measured in &bench.measured {
        let command = command(bench, &measured.row);
        let _ = writeln!(
            page,
            "| {} | `{}; checkpoint` | `{command}` |",
            measured.row.id,
            measured.row.statement()
        );
    }
    page += "\n## Environment\n\n";
    for (name, value) in settings(bench).iter().chain(&bench.environment) {
        let _ = writeln!(page, "- {name}: {value}");
    }
    page
}

fn times(bench: &Bench) -> String {
    let mut table = String::from(
        "| row | CREATE DATABASE, ms | CHECKPOINT, ms | pagemill, ms | ratio | target | verdict | without CHECKPOINT |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |\n",
    );
    for measured in &bench.measured {
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            measured.row.id,
            spread(&measured.create_ms),
            spread(&measured.checkpoint_ms),
            spread(&measured.pagemill_ms),
            ratio(&measured.ratios()),
            target(&measured.row),
            measured.verdict(),
            ratio(&measured.ratios_of_create()),
        );
    }
    table += "\nTimes: median (smallest–largest).\n";
    table
}

fn target(row: &Row) -> String {
    match (row.strategy, row.target()) {
        (Strategy::Reflink, _) => {
            format!("< {REFLINK_TARGET_MS} ms, shared ≥ {:.0} %", SHARED_TARGET * 100.0)
        }
        (_, Some(target)) => format!("≥ {target}×"),
        (_, None) => "—".to_owned(),
    }
}

fn costs(bench: &Bench) -> String {
    let mut table = format!(
        "| row | files | MiB | peak memory, MiB (≤ {MEMORY_TARGET_MIB}) | written, MiB | read calls | write calls | \
         syncs | shared, MiB | shared, filefrag |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    );
    for measured in &bench.measured {
        let stats = measured.stats;
        let _ = writeln!(
            table,
            "| {} | {} | {:.1} | {} | {:.1} | {} | {} | {} | {} | {} |",
            measured.row.id,
            measured.files,
            mib(measured.bytes),
            held(measured.peak_memory_mib, MEMORY_TARGET_MIB, 1),
            mib(stats.bytes_written),
            stats.read_calls,
            stats.write_calls,
            stats.sync_calls,
            stats.shared_bytes.map_or("—".to_owned(), |bytes| format!("{:.1}", mib(bytes))),
            measured.shared.map_or("—".to_owned(), |share| format!("{:.1} %", share * 100.0)),
        );
    }
    table += "\nFiles and MiB are those of the template. Peak memory is the high-water mark of the resident set, pages \
              of mapped files included, in a run of its own. Calls and bytes are pagemill's own stats of its last run, \
              WAL and catalogs included; pages that are read where they are mapped take no call. What is shared is the \
              whole copy as pagemill tells, and the largest file of it as `filefrag` (FIEMAP) shows.\n";
    table
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / (1 << 20) as f64
}

fn held(figure: Option<f64>, most: f64, digits: usize) -> String {
    match figure {
        None => "—".to_owned(),
        Some(figure) if figure <= most => format!("{figure:.digits$}, met"),
        Some(figure) => format!("{figure:.digits$}, missed"),
    }
}

/// What pagemill was run with.
fn command(bench: &Bench, row: &Row) -> String {
    format!("pagemill clone -D DATA {}", row.arguments(&bench.options).join(" "))
}

fn settings(bench: &Bench) -> Vec<(&'static str, String)> {
    let options = &bench.options;
    let started = bench.measured.iter().map(|measured| measured.row.settings().join(", "));
    let mut started: Vec<String> = started.collect();
    started.sort_unstable();
    started.dedup();
    let cache = if options.cold { "nothing of the template" } else { "all of the template" };
    vec![
        ("table t", format!("{} rows", options.rows)),
        ("page cache", format!("{cache}; the copy is new")),
        ("data checksums", "as initdb has it: off in 15, on in 18".to_owned()),
        ("repetitions", options.run.repetitions.to_string()),
        ("shared_buffers", options.sides.shared_buffers.clone()),
        ("server settings", server::SETTINGS.trim().replace('\n', ", ")),
        ("overridden at its start", started.join("; ")),
        ("rows reflink", "XFS on a loop device".to_owned()),
    ]
}

/// The raw numbers.
pub(super) fn raw(bench: &Bench) -> Value {
    json!({
        "name": bench.options.run.name,
        "environment": named(&bench.environment),
        "settings": named(&settings(bench)),
        "targets": {
            "peak_memory_mib": MEMORY_TARGET_MIB,
            "calls_per_64_blocks": CALLS_TARGET,
            "reflink_ms": REFLINK_TARGET_MS,
        },
        "rows": bench.measured.iter().map(|measured| raw_row(bench, measured)).collect::<Vec<_>>(),
        "whole_clusters": bench.wholes.iter().map(wholes_table::raw).collect::<Vec<_>>(),
    })
}

fn raw_row(bench: &Bench, measured: &Measured) -> Value {
    let stats = measured.stats;
    json!({
        "row": measured.row.id,
        "statement": measured.row.statement(),
        "command": command(bench, &measured.row),
        "create_ms": measured.create_ms,
        "checkpoint_ms": measured.checkpoint_ms,
        "pagemill_ms": measured.pagemill_ms,
        "fio_ms": measured.fio_ms,
        "ratios": measured.ratios(),
        "figure": figures::raw(&measured.ratios()),
        "figure_without_checkpoint": figures::raw(&measured.ratios_of_create()),
        "target": measured.row.target(),
        "verdict": measured.verdict(),
        "template_files": measured.files,
        "template_bytes": measured.bytes,
        "peak_memory_mib": measured.peak_memory_mib,
        "blocks": stats.blocks,
        "read_calls": stats.read_calls,
        "write_calls": stats.write_calls,
        "bytes_written": stats.bytes_written,
        "sync_calls": stats.sync_calls,
        "shared_bytes": stats.shared_bytes,
        "shared_share": measured.shared,
        "traced": measured.counted.map(|counted| calls_table::raw(&counted)),
        "absence": measured.absence,
        "fault": measured.fault,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_held_against_what_is_allowed() {
        assert_eq!(held(None, 1.0, 1), "—");
        assert_eq!(held(Some(1.0), 1.0, 1), "1.0, met");
        assert_eq!(held(Some(1.26), 1.0, 1), "1.3, missed");
    }
}
