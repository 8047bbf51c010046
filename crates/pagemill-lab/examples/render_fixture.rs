//! Renders the made-up run of the tests, to look at the report without measuring anything.
//!
//! `cargo run -p pagemill-lab --example render_fixture -- OUT.html` writes the page; with `.md`, `.csv`, `.json` or
//! `.txt` it writes that form. `--compare` before the name sets the run beside the other made-up one.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::error::Error;
use std::fs::File;
use std::io::Write;

use pagemill_lab::report::{self, compare};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let path =
        arguments.pop().ok_or("usage: render_fixture [--compare] OUT.{html,md,csv,json,txt}")?;
    let mut out = File::create(&path)?;
    let extension = path.rsplit('.').next().unwrap_or_default();
    match arguments.first().map(String::as_str) {
        Some("--compare") => write_comparison(extension, &mut out)?,
        _ => write_report(extension, &mut out)?,
    }
    Ok(())
}

fn write_report(extension: &str, out: &mut dyn Write) -> report::Result<()> {
    let results = fixture::results();
    match extension {
        "md" => report::markdown(&results, out),
        "csv" => report::csv(&results, out),
        "json" => report::json(&results, out),
        "txt" => report::text(&results, out),
        _ => report::html(&results, out),
    }
}

fn write_comparison(extension: &str, out: &mut dyn Write) -> report::Result<()> {
    let (first, second) = (fixture::results(), fixture::other_results());
    let first = compare::Run { label: "before", results: &first };
    let second = compare::Run { label: "after <&> \"upgrade\"", results: &second };
    match extension {
        "md" => compare::markdown(&first, &second, out),
        "txt" => compare::text(&first, &second, out),
        _ => compare::html(&first, &second, out),
    }
}
