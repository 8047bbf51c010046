//! `pagemill lab`: the experiments, run on this storage.
//!
//! At the end standard output gets a screen of what matters; with `--details` also the table of each group when it is done,
//! and all claims and warnings.
//! Ctrl-C ends the run early: what was measured is told and written all the same, and the process then
//! ends by the signal.

use std::path::PathBuf;

use anyhow::Result;
use pagemill_cli::sizes::default_jobs;
use pagemill_lab::{Cancel, LabOptions, Scale, report};

use crate::failure::{Completion, say};
use crate::lab_arguments::LabArguments;
use crate::lab_compare;
use crate::lab_display::LabDisplay;
use crate::lab_documents::LabDocuments;

pub(crate) fn run(arguments: &LabArguments) -> Result<Completion> {
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
    let flags =
        if arguments.quick { "--experiment, --size" } else { "--experiment, --quick, --size" };
    let ran = pagemill_lab::run(&options, &cancel, &display);
    let results = ran.map_err(|error| with_flags(error, flags))?;
    display.finish();
    let page = documents.page.clone();
    documents.write(&results)?;
    let mut ending = Vec::new();
    if arguments.details {
        report::text_ending(&results, &mut ending)?;
        ending.push(b'\n');
    }
    report::screen(&results, &mut ending)?;
    print(&String::from_utf8_lossy(&ending))?;
    if let Some(failure) = display.failure.take() {
        return Err(failure);
    }
    match page {
        Some(page) => say(format!("charts, tables and all claims: {}", page.display())),
        None if !arguments.details => say("for all tables and claims as text add --details"),
        None => {}
    }
    match &results.interrupted {
        None => Ok(Completion::Done),
        Some(why) => {
            say(format!("the run ended early: {why}; what was measured until then is reported"));
            Ok(Completion::Incomplete)
        }
    }
}

/// An error of the lab with the flags that help.
pub(crate) fn with_flags(error: pagemill_lab::Error, flags: &str) -> anyhow::Error {
    match error {
        pagemill_lab::Error::NoSpace { .. } => anyhow::anyhow!("{error} ({flags})"),
        error => error.into(),
    }
}

/// Writes a text to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    crate::standard_output::print(text)
}
