//! `pagemill lab`: the experiments, run on this storage.
//!
//! Each group of contestants is told on standard output when it is done, the environment and all doubts at the end.
//! Ctrl-C ends the run early: what was measured is told and written all the same, and the exit status is 1.

use std::path::PathBuf;

use anyhow::Result;
use pagemill_cli::sizes::default_jobs;
use pagemill_lab::{Cancel, LabOptions, Scale, report};

use crate::failure::{Outcome, say};
use crate::lab_arguments::LabArguments;
use crate::lab_compare;
use crate::lab_display::LabDisplay;
use crate::lab_documents::LabDocuments;

pub(crate) fn run(arguments: &LabArguments) -> Result<Outcome> {
    if let [first, second] = arguments.compare.as_slice() {
        return lab_compare::run(arguments, first, second);
    }
    let cancel = Cancel::watching(pagemill_lab::watch_interrupts()?);
    let options = LabOptions {
        directory: arguments.dir.clone().unwrap_or_else(|| PathBuf::from(".")),
        experiments: arguments.experiments.clone(),
        scale: Scale::new(arguments.quick, arguments.size),
        seed: arguments.seed,
        flame_graphs: arguments.flame_graphs,
        jobs: arguments.jobs.map_or_else(default_jobs, usize::from),
        mirrored: arguments.mirrored,
        with_postgres: arguments.with_postgres.clone(),
    };
    let documents = LabDocuments::open(arguments)?;
    let display = LabDisplay::new(arguments, cancel.clone());
    let results = pagemill_lab::run(&options, &cancel, &display)?;
    display.finish();
    let page = documents.page.clone();
    documents.write(&results)?;
    let mut ending = Vec::new();
    report::text_ending(&results, &mut ending)?;
    print(&String::from_utf8_lossy(&ending))?;
    if let Some(failure) = display.failure.take() {
        return Err(failure);
    }
    if let Some(page) = page {
        say(format!("charts: {}", page.display()));
    }
    match &results.interrupted {
        None => Ok(Outcome::Done),
        Some(why) => {
            say(format!("the run ended early: {why}; what was measured until then is told"));
            Ok(Outcome::Incomplete)
        }
    }
}

/// Writes a text to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    use std::io::Write as _;
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
