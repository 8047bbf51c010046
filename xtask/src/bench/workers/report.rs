//! The result: each statement with its times by one worker and by three, and what it is held to.
//!
//! Invariant: what a row is held to stands here, and was there before it was measured.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Options, RowResult, STATEMENTS, WORKERS};
use crate::bench::artifact::{Entries, named};
use crate::bench::figures::spread;
use crate::bench::statistics::summary;

/// Three workers are so many times as fast as one.
const LEAST: f64 = 2.5;

impl RowResult {
    /// How many times as fast more workers were, turn by turn.
    fn ratios(&self) -> Vec<f64> {
        self.one.iter().zip(&self.three).map(|(one, three)| one / three).collect()
    }

    fn verdict(&self) -> String {
        if let Some(fault) = &self.fault {
            return format!("— | {}", fault.replace('\n', " "));
        }
        let Some(ratio) = summary(&self.ratios()) else { return "— | —".to_owned() };
        let reached = if ratio.median >= LEAST { "reached" } else { "missed" };
        format!("{:.2} ({:.2}–{:.2}) | {reached}", ratio.median, ratio.low, ratio.high)
    }
}

/// The page.
pub(super) fn markdown(options: &Options, environment: &Entries, results: &[RowResult]) -> String {
    let mut page = format!("# Several workers: {}\n\n", options.run.name);
    let _ = writeln!(
        page,
        "A table of {} rows on S3 servers (s3s) on this machine, one for each worker and one for who asks: {} ms before each answer, all \
         answers of a server together at {} MB/s. Nothing is kept on disk; {} turns after one that is not timed. Milliseconds of the whole \
         process that asks, median (least to most), by one worker and by {WORKERS}, in turns. Answers are equal to that of the files here.\n",
        options.rows, options.latency, options.rate, options.run.repetitions
    );
    let _ = writeln!(page, "| engine | row | one | {WORKERS} | times as fast (≥ {LEAST}) | |");
    page += "| --- | --- | ---: | ---: | ---: | --- |\n";
    for result in results {
        let (one, three) = (spread(&result.one), spread(&result.three));
        let _ = writeln!(
            page,
            "| {} | {} | {one} | {three} | {} |",
            result.engine,
            result.name,
            result.verdict()
        );
    }
    page.push('\n');
    for (name, statement) in STATEMENTS {
        let _ = writeln!(page, "- {name}: `{statement}`");
    }
    page += "\n## Environment\n\n";
    for (name, value) in environment {
        let _ = writeln!(page, "- {name}: {value}");
    }
    page
}

/// The raw numbers.
pub(super) fn raw(options: &Options, environment: &Entries, results: &[RowResult]) -> Value {
    let rows = results.iter().map(|result| {
        json!({
            "engine": result.engine,
            "row": result.name,
            "milliseconds_one": result.one,
            "milliseconds_three": result.three,
            "fault": result.fault,
        })
    });
    json!({
        "latency_ms": options.latency,
        "rate_mb_s": options.rate,
        "table_rows": options.rows,
        "environment": named(environment),
        "rows": rows.collect::<Vec<_>>(),
    })
}
