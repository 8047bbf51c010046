//! What stands for `pagemill worker` and `pagemill export --workers` in a build without the feature `workers`: an answer that says so.
//!
//! Invariant: nothing that was asked of workers is done without them unsaid.

use anyhow::{Result, bail};
use pagemill_cli::failure::Completion;
use pagemill_sql::named_workers::MISSING;

pub(crate) fn run<A>(_: &A) -> Result<Completion> {
    bail!("{MISSING}")
}
