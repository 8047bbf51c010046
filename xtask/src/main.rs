//! The project's chores, as programs: `cargo xtask tidy`, `cargo xtask bench`, `cargo xtask ci`.
//!
//! Why a crate and not scripts: the rules are unit-tested, and the benchmark computes its own
//! statistics. Few dependencies, so that the first `cargo xtask` of a fresh checkout is quick.

#![forbid(unsafe_code)]

mod bench;
mod ci;
mod tidy;
mod torture;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask COMMAND

commands:
  tidy    check the house rules; each finding names file:line, the rule and the remedy
  ci      fmt, clippy, tidy, tests, documentation: everything a change must pass
  bench   measure pagemill: `bench tables` (the default) whole commands against PostgreSQL 15,
          `bench read` every way to read, `bench extend` how files grow,
          `bench load` load against COPY, `bench clone` clone against CREATE DATABASE,
          `bench device` the lab's device against fio and pg_test_fsync (each with --help)
  torture loads cut short at every call and judged by servers: hours, kept under runs/ (--help)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest = arguments.get(1..).unwrap_or_default();
    let outcome = match arguments.first().map(String::as_str) {
        Some("tidy") => tidy::run(),
        Some("ci") => ci::run(),
        Some("bench") => bench::run(rest),
        Some("torture") => torture::run(rest),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
