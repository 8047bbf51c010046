//! The result of `bench tables`: a page to read and the raw numbers to check it by.
//!
//! Kept under `runs/`. A quick run, or one of the server alone, is no result: it lands beside the clusters instead.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};

use super::Bench;
use super::rows::{MEMORY_TARGET_MIB, READS_TARGET, Work};
use super::runs::Measured;
use crate::bench::artifact::{self, named};
use crate::bench::figures::{self, ratio, spread};
use crate::bench::server;

/// What the page cache holds, in words.
fn cache_state(as_written: bool) -> &'static str {
    match as_written {
        true => {
            "as the server (its directory) and cp (pagemill's copy) wrote the files: small folios"
        }
        false => "each file dropped, then read once from front to back: large folios",
    }
}

const METHOD: &str = "\
How it was measured: one warm-up of each side, whose answers must be equal (counts by number, exports \
byte by byte), then the two in turns. Everything is in the page cache, in the state named below. \
PostgreSQL: one statement timed \
by psql's `\\timing`, `max_parallel_workers_per_gather = 0`, `jit = off` (compiling costs these \
statements more than it gains), the server pinned to one core. Pagemill: the whole process, start \
included, pinned to the same core; rows ending in `-j2` use two cores, against PostgreSQL on one. \
Exports go to a \
new file on the same file system, with nothing left to write back from the run before; neither side is \
asked to sync it. A ratio is PostgreSQL's time over pagemill's, the median of the pairs, with an \
interval from order statistics. Peak memory and read calls come from runs of their own.";

/// Whose files are read.
fn directories(same: bool) -> &'static str {
    match same {
        true => {
            "one, read by both; the server is stopped while pagemill runs, and its first run after \
             each start is not timed"
        }
        false => "PostgreSQL runs on one and pagemill reads a cleanly stopped copy of it",
    }
}

/// The page.
pub(super) fn markdown(bench: &Bench) -> String {
    let quick = if bench.options.run.quick { " (quick: small tables, no result)" } else { "" };
    let mut page = format!("# Benchmark: {}{quick}\n\n{METHOD}\n\n", bench.options.run.name);
    page += &faults(bench);
    page += &times(bench);
    page += "\n";
    page += &costs(bench);
    if let Some(seconds) = bench.build_s {
        let _ = writeln!(page, "\nClean release build: {seconds:.1} s.");
    }
    page += "\n## Environment\n\n";
    for (name, value) in settings(bench).iter().chain(&bench.environment) {
        let _ = writeln!(page, "- {name}: {value}");
    }
    page
}

/// What went wrong, before any figure.
fn faults(bench: &Bench) -> String {
    let mut list = String::new();
    for measured in &bench.measured {
        if let Some(fault) = &measured.fault {
            let _ = writeln!(list, "- {}: {}", measured.row.id, fault.trim().replace('\n', " "));
        }
    }
    if list.is_empty() { list } else { list + "\n" }
}

fn times(bench: &Bench) -> String {
    let mut table = String::from(
        "| row | PostgreSQL, ms | pagemill, ms | ratio | target | verdict |\n\
         | --- | ---: | ---: | ---: | ---: | --- |\n",
    );
    for measured in &bench.measured {
        let startup = measured.row.work == Work::Startup;
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {} |",
            measured.row.id,
            spread(&measured.server_ms),
            spread(&measured.pagemill_ms),
            if startup { "—".to_owned() } else { ratio(&measured.samples()) },
            measured.target,
            measured.verdict(),
        );
    }
    table += "\nTimes: median (smallest–largest).\n";
    for measured in bench.measured.iter().filter(|measured| measured.target.is_of_floor()) {
        let _ = writeln!(
            table,
            "\nThe ratio of {} is pagemill's time over the floor's, {} ms: a program that maps the same files and \
             touches one byte of each page, its own start left out. PostgreSQL's time over pagemill's: {}.",
            measured.row.id,
            spread(&measured.floor_ms),
            ratio(&measured.ratios()),
        );
    }
    table
}

fn costs(bench: &Bench) -> String {
    let mut table = String::from(
        "| row | peak memory, MiB | target | verdict | read calls | per 16 blocks | target | verdict |\n\
         | --- | ---: | ---: | --- | ---: | ---: | ---: | --- |\n",
    );
    for measured in &bench.measured {
        let (memory, reads) = (measured.peak_memory_mib, measured.reads_per_16_blocks());
        let _ = writeln!(
            table,
            "| {} | {} | ≤ {MEMORY_TARGET_MIB} | {} | {} | {} | ≤ {READS_TARGET} | {} |",
            measured.row.id,
            or_dash(memory, 1),
            at_most(memory, MEMORY_TARGET_MIB),
            measured.read_calls.map_or("—".to_owned(), |calls| calls.to_string()),
            or_dash(reads, 2),
            at_most(reads, READS_TARGET),
        );
    }
    table += "\nRead calls are those of the whole process, catalogs and libraries included; a page fault \
              of a mapping is not one.\n";
    table
}

fn or_dash(value: Option<f64>, digits: usize) -> String {
    value.map_or("—".to_owned(), |value| format!("{value:.digits$}"))
}

fn at_most(value: Option<f64>, target: f64) -> &'static str {
    match value {
        Some(value) if value <= target => "met",
        Some(_) => "missed",
        None => "—",
    }
}

fn settings(bench: &Bench) -> Vec<(&'static str, String)> {
    let options = &bench.options;
    let cached = bench.cached_share.map_or("unknown, fincore is missing".to_owned(), |share| {
        format!("{:.1} %", share * 100.0)
    });
    vec![
        (
            "tables",
            format!(
                "t {} rows, bigtable {} rows, both frozen",
                options.rows, options.bigtable_rows
            ),
        ),
        ("data directories", directories(options.same_directory).to_owned()),
        ("page cache", cache_state(options.as_written).to_owned()),
        ("data checksums", if options.data_checksums { "on" } else { "off" }.to_owned()),
        ("repetitions", options.run.repetitions.to_string()),
        ("core", options.core.to_string()),
        ("shared_buffers", options.sides.shared_buffers.clone()),
        ("server settings", server::SETTINGS.trim().replace('\n', ", ")),
        ("in the page cache before the first run", cached),
    ]
}

/// The raw numbers.
pub(super) fn raw(bench: &Bench) -> Value {
    json!({
        "name": bench.options.run.name,
        "environment": named(&bench.environment),
        "settings": named(&settings(bench)),
        "cached_share": bench.cached_share,
        "build_s": bench.build_s,
        "targets": { "peak_memory_mib": MEMORY_TARGET_MIB, "reads_per_16_blocks": READS_TARGET },
        "rows": bench.measured.iter().map(raw_row).collect::<Vec<Value>>(),
    })
}

fn raw_row(measured: &Measured) -> Value {
    json!({
        "row": measured.row.id,
        "statement": measured.statement,
        "command": measured.command,
        "server_ms": measured.server_ms,
        "pagemill_ms": measured.pagemill_ms,
        "ratios": measured.ratios(),
        "figure": figures::raw(&measured.samples()),
        "floor_ms": measured.floor_ms,
        "target": measured.target.bound(),
        "of_floor": measured.target.is_of_floor(),
        "verdict": measured.verdict(),
        "peak_memory_mib": measured.peak_memory_mib,
        "read_calls": measured.read_calls,
        "blocks": measured.blocks,
        "output_bytes": measured.output_bytes,
        "fault": measured.fault,
    })
}

/// Writes both files and gives their paths.
pub(super) fn keep(bench: &Bench, directory: &Path) -> Result<[PathBuf; 2]> {
    let (page, numbers) = (markdown(bench), raw(bench));
    artifact::keep(directory, &bench.options.run.name, &bench.environment, &page, &numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_are_not_there_are_dashes() {
        assert_eq!(
            (at_most(None, 1.0), at_most(Some(1.0), 1.0), at_most(Some(2.0), 1.0)),
            ("—", "met", "missed")
        );
    }
}
