//! `pagemill generate`: the files of a made-up table.
//!
//! What was made is told on standard output, in one line.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, anyhow};
use pagemill_cli::sizes::default_jobs;
use pagemill_engine::{GenerateOptions, GeneratedTable, generate};
use pagemill_io::Storage;

use crate::changing::refuse_url;
use crate::failure::{Completion, is_interruption};
use crate::generate_arguments::{GenerateArguments, TableChoice};
use crate::output_paths::refuse_in_any_cluster;
use crate::session::stats::{self, Work};
use crate::standard_output::print;

pub(crate) fn run(arguments: &GenerateArguments) -> Result<Completion> {
    let start = Instant::now();
    refuse_url(&arguments.dir)?;
    let storage = Storage::real();
    let options = GenerateOptions {
        table: match arguments.table {
            TableChoice::T => GeneratedTable::T,
            TableChoice::Bigtable => GeneratedTable::Bigtable,
        },
        rows: arguments.rows,
        seed: arguments.seed,
        fillfactor: arguments.fillfactor,
        checksums: arguments.checksums,
        jobs: arguments.jobs.map_or_else(default_jobs, usize::from),
        writing: arguments.writing.settings()?,
    };
    refuse_in_any_cluster("the directory", &arguments.dir)?;
    // Without it a signal ends the process, and what was made stays.
    let _ = pagemill_io::watch_interrupts();
    let made = generate(&storage, &arguments.dir, &options);
    let made = made.map_err(|error| undone(error, &arguments.dir))?;
    let elapsed = start.elapsed();
    if let Some(form) = arguments.stats {
        let work = Work { rows: made.rows, pages: made.blocks.into(), ..Work::default() };
        stats::print(form, elapsed, &storage, &work);
    }
    print(format!(
        "{}: {} rows in {} blocks, {:.3} s\n",
        made.path.display(),
        made.rows,
        made.blocks,
        elapsed.as_secs_f64()
    ))?;
    Ok(Completion::Done)
}

/// Says what became of work that a signal ended, and which directory is missing.
fn undone(error: pagemill_engine::Error, directory: &Path) -> anyhow::Error {
    if matches!(&error, pagemill_engine::Error::Output(error) if error.is_not_found()) {
        return anyhow!("{}: there is no directory to create it in", directory.display());
    }
    let error = anyhow::Error::from(error);
    match is_interruption(&error) {
        true => error.context("no table was generated, and what was made so far is removed"),
        false => error,
    }
}
