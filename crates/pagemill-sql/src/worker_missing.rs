//! What stands for workers in a build without the feature `workers`: an answer that says so.
//!
//! Invariant: nothing that was asked of workers is done without them unsaid.

use anyhow::{Result, bail};
use pagemill_cli::failure::Completion;
use pagemill_cli::session::Session as Opened;
use pagemill_cli::sql_arguments::SqlArguments;
use pagemill_cli::worker_arguments::WorkerArguments;
use pagemill_sql::session::Session;

const MISSING: &str = "this build of pagemill-sql has no workers: those of releases have, and it has if it is built with --features workers";

pub(crate) fn run(_: &WorkerArguments) -> Result<Completion> {
    bail!("{MISSING}")
}

pub(crate) fn with_workers(
    session: Session,
    arguments: &SqlArguments,
    _: &Opened<'_>,
) -> Result<Session> {
    match arguments.workers.is_empty() {
        true => Ok(session),
        false => bail!("--workers: {MISSING}"),
    }
}
