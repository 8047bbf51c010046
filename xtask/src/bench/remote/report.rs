//! The result: each row with its time, its requests, and what it is held to.
//!
//! Invariant: what a row is held to stands here, and was there before it was measured.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Options, Row, RowResult};
use crate::bench::artifact::{Entries, named};
use crate::bench::figures::spread;
use crate::bench::statistics::summary;

/// Requests of a listing.
const MOST_OF_LS: u64 = 40;
/// Of a listing, and of a row by its key: requests one after the other.
const MOST_IN_A_ROW: u64 = 12;
/// Of a row by its key.
const MOST_MB_OF_LOOKUP: f64 = 5.0;
/// A scan at this share of what the link brings.
const SHARE_OF_LINK: f64 = 0.8;
/// Requests of a scan: one for so many bytes, and so many beside.
const BYTES_OF_REQUEST: u64 = 8 << 20;
const REQUESTS_BESIDE: u64 = 200;
/// A scan out of the cache over one of the files here.
const MOST_OF_WARM: f64 = 1.2;

impl RowResult {
    /// What it came to, in words, and whether that is what was wanted.
    fn verdict(&self, options: &Options) -> (String, bool) {
        if let Some(fault) = &self.fault {
            return (fault.replace('\n', " "), false);
        }
        let median = summary(&self.times).map_or(f64::NAN, |times| times.median);
        match self.row {
            Row::Ls => {
                let words =
                    format!("at most {MOST_OF_LS} requests, at most {MOST_IN_A_ROW} in a row");
                (words, self.requests <= MOST_OF_LS && self.in_a_row <= MOST_IN_A_ROW)
            }
            Row::Lookup => {
                let megabytes = self.bytes as f64 / 1e6;
                let words = format!(
                    "at most {MOST_IN_A_ROW} in a row, at most {MOST_MB_OF_LOOKUP:.0} MB; {:.1} times the latency",
                    median / options.latency as f64
                );
                (words, self.in_a_row <= MOST_IN_A_ROW && megabytes <= MOST_MB_OF_LOOKUP)
            }
            Row::Scan => {
                let rate = self.bytes as f64 / 1000.0 / median;
                let share = rate / options.rate as f64;
                let most = self.bytes / BYTES_OF_REQUEST + REQUESTS_BESIDE;
                let words = format!(
                    "{rate:.0} MB/s, {share:.2} of the link (≥ {SHARE_OF_LINK}); at most {most} requests"
                );
                (words, share >= SHARE_OF_LINK && self.requests <= most)
            }
            Row::Warm => {
                let ratios = self.times.iter().zip(&self.local).map(|(own, other)| own / other);
                let ratio = summary(&ratios.collect::<Vec<_>>()).map_or(f64::NAN, |all| all.median);
                let words = format!(
                    "{ratio:.2} of the files here, {} (≤ {MOST_OF_WARM})",
                    spread(&self.local)
                );
                (words, ratio <= MOST_OF_WARM)
            }
        }
    }
}

/// The page.
pub(super) fn markdown(options: &Options, environment: &Entries, results: &[RowResult]) -> String {
    let mut page = format!("# Reading from an object store: {}\n\n", options.run.name);
    let _ = writeln!(
        page,
        "An S3 server (s3s) on this machine over a cluster with one table of {} rows, {} ms before each answer, all answers \
         together at {} MB/s; {} turns after one that is not timed. Milliseconds of whole processes, median (least to \
         most).\n",
        options.rows, options.latency, options.rate, options.run.repetitions
    );
    page += "| row | ms | requests | in a row | MB from the network | | |\n";
    page += "| --- | ---: | ---: | ---: | ---: | --- | --- |\n";
    for result in results {
        let (words, reached) = result.verdict(options);
        let _ = writeln!(
            page,
            "| {:?} | {} | {} | {} | {:.1} | {words} | {} |",
            result.row,
            spread(&result.times),
            result.requests,
            result.in_a_row,
            result.bytes as f64 / 1e6,
            if reached { "reached" } else { "missed" }
        );
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
            "row": format!("{:?}", result.row),
            "milliseconds": result.times,
            "milliseconds_here": result.local,
            "requests": result.requests,
            "requests_in_a_row": result.in_a_row,
            "network_bytes": result.bytes,
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
