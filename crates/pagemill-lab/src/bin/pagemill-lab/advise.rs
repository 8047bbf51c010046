//! `pagemill advise`: what measurements of the storage imply for the settings of PostgreSQL.
//!
//! The advice goes to standard output, everything else to standard error. Ctrl-C ends the measuring early: half of a run advises
//! nothing, so nothing goes to standard output, and the process then ends by the signal.

use std::path::PathBuf;

use anyhow::{Context, Result};
use pagemill_cli::sizes::default_jobs;
use pagemill_io::Storage;
use pagemill_lab::results::Results;
use pagemill_lab::{Announcement, Cancel, LabOptions, Scale, Version, Watch, advice};

use crate::advise_arguments::{AdviceFormat, AdviseArguments};
use crate::failure::{Completion, say};
use crate::lab::{print, with_flags};
use crate::lab_compare;
use crate::text_table::pretty_size;

/// The experiments that settings follow from.
const EXPERIMENTS: [&str; 3] = ["device", "extend", "copy"];

pub(crate) fn run(arguments: &AdviseArguments) -> Result<Completion> {
    let version: Version = arguments.pg_version.parse()?;
    let results = match &arguments.from {
        Some(path) => lab_compare::read(&Storage::real().untimed(), path)?,
        None => measured(arguments)?,
    };
    if let Some(why) = results.interrupted.as_ref().filter(|_| arguments.from.is_none()) {
        say(format!("the measuring ended early: {why}; there is no advice from a part of it"));
        return Ok(Completion::Incomplete);
    }
    let advice = advice::advise(&results, version);
    print(&match arguments.format {
        AdviceFormat::Text => advice::text(&advice),
        AdviceFormat::Conf => advice::conf(&advice),
        AdviceFormat::Sql => advice::sql(&advice),
        AdviceFormat::Json => advice::json(&advice).context("advice as JSON")?,
    })?;
    Ok(Completion::Done)
}

fn measured(arguments: &AdviseArguments) -> Result<Results> {
    let cancel = Cancel::watching(pagemill_lab::watch_interrupts()?);
    let options = LabOptions {
        directory: arguments.dir.clone().unwrap_or_else(|| PathBuf::from(".")),
        experiments: EXPERIMENTS.map(str::to_owned).into(),
        scale: Scale::of_advice(arguments.size),
        seed: 0,
        flame_graphs: false,
        jobs: default_jobs(),
        mirrored: false,
        with_postgres: None,
    };
    pagemill_lab::run(&options, &cancel, &AnnouncementsOnly)
        .map_err(|error| with_flags(error, "--size"))
}

/// Who is told of the measuring.
struct AnnouncementsOnly;

impl Watch for AnnouncementsOnly {
    fn announced(&self, announcement: &Announcement) {
        say(format!(
            "measuring {}: about {} s, up to {} of disk space ({} are free)",
            announcement.experiments.join(", "),
            announcement.time.as_secs(),
            pretty_size(announcement.bytes_needed),
            pretty_size(announcement.bytes_free),
        ));
    }
}
