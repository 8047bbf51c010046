//! The result of `bench serve`: a page to read and the raw numbers to check it by.
//!
//! A ratio is above 1 where pagemill is better.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Bench;
use super::rows::Work;
use super::turns::Measured;
use crate::bench::artifact::named;
use crate::bench::figures::{self, ratio, spread};

const METHOD: &str = "\
How it was measured: a server of PostgreSQL 18 loads accounts as pgbench makes them, with checksums and a primary key, vacuums, \
freezes, analyzes, and is shut down. Pagemill serves that directory; the server answers from a copy of it. All files are in the page \
cache, and both stand while one of them is asked, through a Unix socket, by the same pgbench or psql on the same machine. They take \
turns, who begins changes, and the first turn of each is left out. Answers are compared first. \
`lookups-…`: `pgbench -S -M prepared` with so many clients; `texts-50`: `-M simple`. `copy`: the whole of psql with \
`COPY … TO STDOUT`. `first-answer`: the whole process of `serve --exec psql` with a row by its key, from nothing to its end. \
`idle-session`: how much the resident set grows by 200 sessions that each read a row by its key and then wait, over 200. \
`soak`: ten clients with lookups, aggregates, sorts and joins under `--memory 512MB`, the resident set in the last minute over \
that in the third.";

/// The page.
pub(super) fn markdown(bench: &Bench) -> String {
    let quick = if bench.options.run.quick { " (quick: few rows, no result)" } else { "" };
    let mut page = format!(
        "# Benchmark of serve: {name}{quick}\n\n{METHOD}\n\n",
        name = bench.options.run.name
    );
    for measured in &bench.measured {
        if let Some(fault) = &measured.fault {
            let _ = writeln!(page, "- {}: {fault}\n", measured.row.id);
        }
    }
    page += &table(bench);
    page += "\n## Environment\n\n";
    for (name, value) in settings(bench).iter().chain(&bench.environment) {
        let _ = writeln!(page, "- {name}: {value}");
    }
    page
}

fn table(bench: &Bench) -> String {
    let mut table = "| row | PostgreSQL | pagemill | unit | ratio | target | verdict |\n\
                     | --- | ---: | ---: | --- | ---: | ---: | --- |\n"
        .to_owned();
    for measured in &bench.measured {
        let work = measured.row.work;
        let compared =
            if work.is_compared() { ratio(&measured.figures()) } else { "—".to_owned() };
        let (theirs, ours) = match work {
            Work::Soak | Work::IdleSession => ("—".to_owned(), figure(&measured.ours)),
            _ => (spread(&measured.theirs), spread(&measured.ours)),
        };
        let (unit, target, verdict) = (work.unit(), target(measured), measured.verdict());
        let id = measured.row.id;
        let _ = writeln!(
            table,
            "| {id} | {theirs} | {ours} | {unit} | {compared} | {target} | {verdict} |"
        );
    }
    table + "\nMedian (smallest–largest); of ratios, median [interval].\n"
}

/// Small numbers want more digits.
fn figure(samples: &[f64]) -> String {
    ratio(samples).replace('×', "")
}

fn target(measured: &Measured) -> String {
    let Some(target) = measured.row.target else { return "—".to_owned() };
    let sign = if measured.row.work.is_least() { "≥" } else { "≤" };
    let unit = if measured.row.work.is_compared() { "×" } else { "" };
    format!("{sign} {target}{unit}")
}

fn settings(bench: &Bench) -> Vec<(&'static str, String)> {
    let options = &bench.options;
    vec![
        ("accounts", (options.thousands * 1000).to_string()),
        ("data checksums", "on".to_owned()),
        ("repetitions", options.run.repetitions.to_string()),
        ("seconds of a turn of lookups", options.seconds.to_string()),
        ("server's settings", format!("shared_buffers={} jit=off", options.shared_buffers)),
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
        "unit": measured.row.work.unit(),
        "server": measured.theirs,
        "pagemill": measured.ours,
        "figures": measured.figures(),
        "figure": figures::raw(&measured.figures()),
        "target": measured.row.target,
        "verdict": measured.verdict(),
        "fault": measured.fault,
    })
}
