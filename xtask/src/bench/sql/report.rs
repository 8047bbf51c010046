//! The result of `bench sql`: a page to read and the raw numbers to check it by.
//!
//! A ratio is the other side's time over pagemill's, the median of the pairs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Bench;
use super::rows::{DUCKDB_TARGET, MEAN_TARGET, MEMORY_MIB, Work};
use super::turns::Measured;
use crate::bench::artifact::named;
use crate::bench::figures::{self, ratio, spread};
use crate::bench::statistics::median;

const METHOD: &str = "\
How it was measured: a server loads TPC-H's tables by COPY, makes a primary key for each, an index for each foreign key and one on lower(c_name), \
vacuums, freezes, analyzes, and is shut down. Pagemill reads that directory; the server answers from a copy of it. All files \
are in the page cache, and every contestant has answered once before it is timed, so that the server's buffers are warm. \
They take turns. Pagemill's time is its whole process, from start to exit; the server's is psql's `\\timing`, and DuckDB's that of the \
statement alone, in a session that stands. Answers of pagemill and the server are compared as CSV first, line by line after sorting. \
DuckDB reads Parquet files that pagemill exported, which lie in its own format's favor: columns, compressed, with statistics. \
Rows about memory: the peak of the resident set of the process under `--memory`. Row `parquet`: the whole of \
`COPY … | DuckDB`, and of `pagemill export --format parquet`.";

/// The page.
pub(super) fn markdown(bench: &Bench) -> String {
    let quick = if bench.options.run.quick { " (quick: few rows, no result)" } else { "" };
    let mut page =
        format!("# Benchmark of SQL: {name}{quick}\n\n{METHOD}\n\n", name = bench.options.run.name);
    for measured in &bench.measured {
        if let Some(fault) = &measured.fault {
            let _ = writeln!(page, "- {}: {fault}\n", measured.row.id);
        }
    }
    page += &times(bench);
    page += &means(bench);
    page += "\n## Environment\n\n";
    for (name, value) in settings(bench).iter().chain(&bench.environment) {
        let _ = writeln!(page, "- {name}: {value}");
    }
    page
}

fn times(bench: &Bench) -> String {
    let mut table = "| row | PostgreSQL, ms | pagemill, ms | ratio | target | verdict | DuckDB, ms | its ratio | peak memory, MiB |\n\
                     | --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: |\n"
        .to_owned();
    for measured in &bench.measured {
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            measured.row.id,
            spread(&measured.server_ms),
            spread(&measured.pagemill_ms),
            ratio(&measured.ratios()),
            target(measured),
            measured.verdict(),
            spread(&measured.duckdb_ms),
            ratio(&measured.of_duckdb()),
            measured.peak_memory_mib.map_or("—".to_owned(), |mib| format!("{mib:.0}")),
        );
    }
    table + "\nTimes: median (smallest–largest).\n"
}

fn target(measured: &Measured) -> String {
    let target = measured.row.target;
    match measured.row.work {
        Work::Tpch(_) | Work::Statement | Work::Parquet => format!("≥ {target}×"),
        Work::Time => format!("≤ {target} ms"),
        Work::Memory => format!("≤ {target} × {MEMORY_MIB} MiB"),
    }
}

fn means(bench: &Bench) -> String {
    let of = |ratios: fn(&Measured) -> Vec<f64>| geometric_mean(&bench.measured, ratios);
    let (server, duckdb) = (of(Measured::ratios), of(Measured::of_duckdb));
    let shown = |mean: Option<f64>, target: f64| match mean {
        Some(mean) => {
            let verdict = if mean >= target { "met" } else { "missed" };
            format!("{mean:.2}× (target ≥ {target:.2}×: {verdict})")
        }
        None => "not run".to_owned(),
    };
    format!(
        "\nGeometric means over TPC-H's queries: PostgreSQL's time over pagemill's {}; DuckDB's {}.\n",
        shown(server, MEAN_TARGET),
        shown(duckdb, DUCKDB_TARGET)
    )
}

/// Of the medians of TPC-H's queries; `None` unless all that were chosen have one.
fn geometric_mean(measured: &[Measured], ratios: fn(&Measured) -> Vec<f64>) -> Option<f64> {
    let queries = measured.iter().filter(|measured| matches!(measured.row.work, Work::Tpch(_)));
    let medians: Option<Vec<f64>> = queries.map(|measured| median(&ratios(measured))).collect();
    let medians = medians.filter(|medians| !medians.is_empty())?;
    let sum: f64 = medians.iter().map(|median| median.ln()).sum();
    Some((sum / medians.len() as f64).exp())
}

fn settings(bench: &Bench) -> Vec<(&'static str, String)> {
    vec![
        ("scale", bench.options.scale.to_string()),
        ("data checksums", "off".to_owned()),
        ("repetitions", bench.options.run.repetitions.to_string()),
        ("server's settings", bench.settings.clone()),
        ("DuckDB", bench.duckdb.clone().unwrap_or_else(|| "not installed".to_owned())),
    ]
}

/// The raw numbers.
pub(super) fn raw(bench: &Bench) -> Value {
    json!({
        "name": bench.options.run.name,
        "environment": named(&bench.environment),
        "settings": named(&settings(bench)),
        "mean_of_server": geometric_mean(&bench.measured, Measured::ratios),
        "mean_of_duckdb": geometric_mean(&bench.measured, Measured::of_duckdb),
        "rows": bench.measured.iter().map(raw_row).collect::<Vec<Value>>(),
    })
}

fn raw_row(measured: &Measured) -> Value {
    json!({
        "row": measured.row.id,
        "statement": measured.row.statement,
        "server_ms": measured.server_ms,
        "pagemill_ms": measured.pagemill_ms,
        "duckdb_ms": measured.duckdb_ms,
        "ratios": measured.ratios(),
        "figure": figures::raw(&measured.ratios()),
        "target": measured.row.target,
        "verdict": measured.verdict(),
        "peak_memory_mib": measured.peak_memory_mib,
        "fault": measured.fault,
    })
}
