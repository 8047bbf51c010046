//! `pagemill generate`: the files of a made-up table.
//!
//! What was made is told on standard output, in one line.

use std::time::Instant;

use anyhow::Result;
use pagemill_engine::{GenerateOptions, GeneratedTable, generate};
use pagemill_io::Storage;

use crate::failure::Outcome;
use crate::generate_arguments::{GenerateArguments, TableChoice};
use crate::load::default_jobs;
use crate::output_paths::refuse_in_any_cluster;
use crate::standard_output::print;
use crate::stats::{self, Work};

pub(crate) fn run(arguments: &GenerateArguments) -> Result<Outcome> {
    let start = Instant::now();
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
    let made = generate(&storage, &arguments.dir, &options)?;
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
    Ok(Outcome::Done)
}
