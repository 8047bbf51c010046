//! The result of `bench load`: a page to read and the raw numbers to check it by.
//!
//! A ratio is PostgreSQL's time over pagemill's, the median of the pairs.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::Bench;
use super::rows::{MEMORY_TARGET_MIB, TARGET, WRITES_TARGET};
use super::turns::Measured;
use crate::bench::artifact::named;
use crate::bench::figures::{self, ratio, spread};
use crate::bench::server;

const METHOD: &str = "\
How it was measured: for each row one warm-up of each side, then the two in turns, each into an empty table of the \
same cluster, from the same CSV file, which is in the page cache (read, and its residency asked, before each turn); \
everything written back before each turn. PostgreSQL: started before, and COPY timed by psql's `\\timing`, commit \
included; with a key, `ALTER TABLE … ADD PRIMARY KEY` behind it in the same transaction. Rows `-logged`: \
`wal_level = replica`. Rows `-freeze`: `wal_level = minimal`, COPY with FREEZE in the transaction that created the \
table. Pagemill: the server stopped, the whole process timed from its start to its exit, `--stats=json` included; \
into a table that has the key already. Both are durable at the end: neither a checkpoint of PostgreSQL nor the next \
start is in its time. Neither side is pinned to a core. After each turn a server counts the rows.";

/// The page.
pub(super) fn markdown(bench: &Bench) -> String {
    let quick = if bench.options.run.quick { " (quick: small tables, no result)" } else { "" };
    let mut page =
        format!("# Benchmark of load: {}{quick}\n\n{METHOD}\n\n", bench.options.run.name);
    for measured in &bench.measured {
        if let Some(fault) = &measured.fault {
            let _ = writeln!(page, "- {}: {fault}\n", measured.row.id);
        }
    }
    page += &times(bench);
    page += "\n";
    page += &costs(bench);
    page += "\n## What was run\n\n| row | PostgreSQL | pagemill |\n| --- | --- | --- |\n";
    for measured in &bench.measured {
        let (statement, command) = commands(measured);
        let _ = writeln!(page, "| {} | `{statement}` | `{command}` |", measured.row.id);
    }
    page += "\n## Environment\n\n";
    for (name, value) in settings(bench).iter().chain(&bench.environment) {
        let _ = writeln!(page, "- {name}: {value}");
    }
    page
}

fn times(bench: &Bench) -> String {
    let mut table = String::from(
        "| row | PostgreSQL, ms | pagemill, ms | ratio | target | verdict |\n\
         | --- | ---: | ---: | ---: | ---: | --- |\n",
    );
    for measured in &bench.measured {
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | ≥ {TARGET}× | {} |",
            measured.row.id,
            spread(&measured.server_ms),
            spread(&measured.pagemill_ms),
            ratio(&measured.ratios()),
            measured.verdict(),
        );
    }
    table += "\nTimes: median (smallest–largest).\n";
    table
}

fn costs(bench: &Bench) -> String {
    let mut table = format!(
        "| row | input, MiB | blocks | peak memory, MiB (≤ {MEMORY_TARGET_MIB}) | written, MiB | write calls | \
         per 64 blocks (≤ {WRITES_TARGET}) | syncs | pieces, COPY | pieces, pagemill |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    );
    for measured in &bench.measured {
        let stats = measured.stats;
        let _ = writeln!(
            table,
            "| {} | {:.1} | {} | {} | {:.1} | {} | {} | {} | {} | {} |",
            measured.row.id,
            mib(measured.input_bytes),
            measured.blocks,
            held(measured.peak_memory_mib, MEMORY_TARGET_MIB, 1),
            mib(stats.bytes_written),
            stats.write_calls,
            held(measured.writes_per_64_blocks(), WRITES_TARGET, 2),
            stats.sync_calls,
            count(measured.server_pieces),
            count(measured.pagemill_pieces),
        );
    }
    table += "\nPeak memory is the high-water mark of the resident set, pages of the mapped input included, in a run \
              of its own. Calls and bytes are pagemill's own stats of its last run, WAL included. Pieces are those of \
              the table's file, by `filefrag`.\n";
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

fn count(count: Option<u64>) -> String {
    count.map_or("—".to_owned(), |count| count.to_string())
}

/// What each side ran.
fn commands(measured: &Measured) -> (String, String) {
    let row = measured.row;
    let file = Path::new(row.input.file_name());
    let mut statements = row.before_copy();
    statements.push(row.copy(file));
    let flags: String = row.flags().iter().map(|flag| format!(" {flag}")).collect();
    let command = format!(
        "pagemill load -D DATA -d postgres -t {} --format csv{flags} {}",
        row.input.table(),
        file.display()
    );
    (statements.join("; "), command)
}

fn settings(bench: &Bench) -> Vec<(&'static str, String)> {
    let options = &bench.options;
    let started = bench.measured.iter().map(|measured| measured.row.settings().join(", "));
    let mut started: Vec<String> = started.collect();
    started.sort_unstable();
    started.dedup();
    vec![
        ("tables", format!("t {} rows, bigtable {} rows", options.rows, options.bigtable_rows)),
        ("page cache", "the input; what is loaded is new".to_owned()),
        ("data checksums", "off, PostgreSQL 15's default".to_owned()),
        ("repetitions", options.run.repetitions.to_string()),
        ("shared_buffers", options.sides.shared_buffers.clone()),
        ("server settings", server::SETTINGS.trim().replace('\n', ", ")),
        ("overridden at its start", started.join("; ")),
    ]
}

/// The raw numbers.
pub(super) fn raw(bench: &Bench) -> Value {
    json!({
        "name": bench.options.run.name,
        "environment": named(&bench.environment),
        "settings": named(&settings(bench)),
        "targets": {
            "ratio": TARGET,
            "peak_memory_mib": MEMORY_TARGET_MIB,
            "writes_per_64_blocks": WRITES_TARGET,
        },
        "rows": bench.measured.iter().map(raw_row).collect::<Vec<Value>>(),
    })
}

fn raw_row(measured: &Measured) -> Value {
    let (statement, command) = commands(measured);
    json!({
        "row": measured.row.id,
        "statement": statement,
        "command": command,
        "server_ms": measured.server_ms,
        "pagemill_ms": measured.pagemill_ms,
        "ratios": measured.ratios(),
        "figure": figures::raw(&measured.ratios()),
        "verdict": measured.verdict(),
        "input_bytes": measured.input_bytes,
        "blocks": measured.blocks,
        "peak_memory_mib": measured.peak_memory_mib,
        "write_calls": measured.stats.write_calls,
        "bytes_written": measured.stats.bytes_written,
        "sync_calls": measured.stats.sync_calls,
        "server_pieces": measured.server_pieces,
        "pagemill_pieces": measured.pagemill_pieces,
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
