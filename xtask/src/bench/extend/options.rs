//! The flags of `cargo xtask bench extend`.
//!
//! Invariant: a size is at least one block and at most a segment, so that a contestant has one file.

use clap::Args;

use crate::bench::options::{RunOptions, number};

/// Blocks in a MiB.
const PER_MIB: u32 = 128;

const NOTE: &str =
    "n blocks at a time, against fio, and against dd in how many pieces they lie; the result is
kept under runs/.";

/// Measure how files are extended and filled
#[derive(Debug, Clone, PartialEq, Args)]
#[command(
    mut_arg("repetitions", |arg| arg.default_value_if("quick", "true", "1")),
    mut_arg("name", |arg| arg.default_value("extend")),
    mut_arg("directory", |arg| arg.help("Where the files lie [default: target/bench-extend]")),
    after_help = NOTE
)]
pub(crate) struct Options {
    /// Size of the file in MiB, at most 1024
    #[arg(long, value_name = "N", value_parser = mib_of_one_segment)]
    #[arg(default_value = "1024", default_value_if("quick", "true", "64"))]
    size_mib: u32,
    #[command(flatten)]
    pub(in crate::bench) run: RunOptions,
}

impl Options {
    /// Blocks of the file.
    pub(in crate::bench) fn blocks(&self) -> u32 {
        self.size_mib * PER_MIB
    }
}

fn mib_of_one_segment(text: &str) -> Result<u32, String> {
    let mib = number(text)?;
    if mib <= 1024 { Ok(mib) } else { Err("must be at most 1024".into()) }
}
