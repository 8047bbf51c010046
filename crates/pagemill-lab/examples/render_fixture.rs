//! Renders the made-up run of the tests, to look at the report without measuring anything.
//!
//! `cargo run -p pagemill-lab --example render_fixture -- OUT.html` writes the page; with `.md`, `.csv`, `.json` or
//! `.txt` it writes that form, with `.screen` that of a terminal. `--compare` before the name sets the run beside the other
//! made-up one; `--from RESULTS.json` takes a kept run, whose claims are judged again.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::error::Error;
use std::fs::File;
use std::io::Write;

use pagemill_lab::report::{self, compare};
use pagemill_lab::results::Results;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let path =
        arguments.pop().ok_or("usage: render_fixture [--compare] OUT.{html,md,csv,json,txt}")?;
    let mut out = File::create(&path)?;
    let extension = path.rsplit('.').next().unwrap_or_default();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--compare"] => write_comparison(extension, &mut out)?,
        ["--from", kept] => {
            let mut results = report::read_json(&std::fs::read(kept)?)?;
            results.verdicts = pagemill_lab::verdicts(&results);
            write_report(&results, extension, &mut out)?;
        }
        _ => write_report(&fixture::results(), extension, &mut out)?,
    }
    Ok(())
}

fn write_report(results: &Results, extension: &str, out: &mut dyn Write) -> report::Result<()> {
    match extension {
        "md" => report::markdown(results, out),
        "csv" => report::csv(results, out),
        "json" => report::json(results, out),
        "txt" => report::text(results, out),
        "screen" => report::screen(results, out),
        _ => report::html(results, out),
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
