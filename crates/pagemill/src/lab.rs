//! `pagemill lab`: the experiments, run on this storage.
//!
//! Each group of contestants is told on standard output when it is done, the environment and all doubts at the end.
//! Ctrl-C ends the run early: what was measured is told and written all the same, and the exit status is 1.

use std::path::PathBuf;

use anyhow::{Context, Result};
use pagemill_io::{Output, Storage};
use pagemill_lab::results::Results;
use pagemill_lab::{Cancel, LabOptions, Scale};

use crate::failure::{Outcome, say};
use crate::lab_arguments::LabArguments;
use crate::lab_display::LabDisplay;
use crate::lab_text;
use crate::load::default_jobs;

pub(crate) fn run(arguments: &LabArguments) -> Result<Outcome> {
    let cancel = Cancel::watching(pagemill_lab::watch_interrupts()?);
    let options = LabOptions {
        directory: arguments.dir.clone().unwrap_or_else(|| PathBuf::from(".")),
        experiments: arguments.experiments.clone(),
        scale: Scale::new(arguments.quick, arguments.size),
        seed: arguments.seed,
        jobs: arguments.jobs.map_or_else(default_jobs, usize::from),
        with_postgres: None,
    };
    let documents = Documents::open(arguments)?;
    let display = LabDisplay::new(arguments);
    let results = pagemill_lab::run(&options, &cancel, &display)?;
    display.finish();
    print(&lab_text::ending(&results))?;
    documents.write(&results)?;
    if let Some(failure) = display.failure.take() {
        return Err(failure);
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

/// What is left of a run besides the tables. Opened before it, so that twenty minutes are not lost to a wrong path.
struct Documents {
    json: Option<Output>,
}

impl Documents {
    fn open(arguments: &LabArguments) -> Result<Self> {
        let storage = Storage::real().untimed();
        let open = |path: &PathBuf| Output::file(&storage, path);
        let json = arguments.json.as_ref().map(open).transpose();
        Ok(Self { json: json.map_err(pagemill_engine::Error::Output)? })
    }

    fn write(self, results: &Results) -> Result<()> {
        let Some(mut output) = self.json else { return Ok(()) };
        let mut text = serde_json::to_vec_pretty(results).context("results as JSON")?;
        text.push(b'\n');
        let written = output.write_all(&text).and_then(|()| output.finish());
        Ok(written.map_err(pagemill_engine::Error::Output)?)
    }
}
