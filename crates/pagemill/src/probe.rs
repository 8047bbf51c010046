//! `pagemill probe`: what kernel, file system and sandbox offer in a directory.
//!
//! As text for people, with reasons and remedies; as JSON for programs, with stable names. That
//! something is missing is what was asked for, and no failure.

use std::path::PathBuf;

use anyhow::Result;
use pagemill_io::probe;

use crate::arguments::ProbeArguments;
use crate::failure::Completion;
use crate::standard_output::print;
use crate::{probe_json, probe_text};

pub(crate) fn run(arguments: &ProbeArguments) -> Result<Completion> {
    let report = probe::run(&directory(arguments))?;
    let text = match arguments.json {
        true => format!("{:#}\n", probe_json::report(&report)),
        false => probe_text::report(&report),
    };
    print(text)?;
    Ok(Completion::Done)
}

/// The directory that was named, or the current one; absolute, so that the report says where it was.
fn directory(arguments: &ProbeArguments) -> PathBuf {
    let data_directory = arguments.pgdata.as_ref().filter(|dir| !dir.is_empty());
    let named = arguments.dir.clone().or_else(|| data_directory.map(PathBuf::from));
    let named = named.unwrap_or_else(|| PathBuf::from("."));
    std::path::absolute(&named).unwrap_or(named)
}
