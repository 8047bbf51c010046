//! `pagemill clean`: what a run that was cut short left in a cluster, removed.
//!
//! Every command that changes a cluster begins with it; this one does nothing else.

use std::path::PathBuf;

use anyhow::Result;
use pagemill_cluster::OpenOptions;
use pagemill_cluster::change::{Leftover, leftovers, make_ready};
use pagemill_engine::clone::cluster::UnfinishedCopy;
use pagemill_io::Storage;

use crate::changing::{data_directory, open_as_it_is, take_lock};
use crate::clone_arguments::CleanArguments;
use crate::failure::Completion;
use crate::standard_output::print;

pub(crate) fn run(arguments: &CleanArguments) -> Result<Completion> {
    let storage = Storage::real();
    let directory = data_directory(arguments.pgdata.as_deref())?;
    if let Some(unfinished) = UnfinishedCopy::find(&storage, directory)? {
        let is_whole = unfinished.is_whole();
        clean_copy(&storage, unfinished, arguments.dry_run)?;
        if !is_whole {
            return Ok(Completion::Done);
        }
    }
    let lock = take_lock(&storage, directory)?;
    let cluster = open_as_it_is(&storage, &lock, OpenOptions::default())?;
    let (found, what) = match arguments.dry_run {
        true => (leftovers(&cluster)?, "would be removed"),
        false => (make_ready(&cluster)?, "removed"),
    };
    print(text(&found, what))?;
    Ok(Completion::Done)
}

/// A copy of a whole cluster that was cut short is no cluster; one that is whole had its mark still.
fn clean_copy(storage: &Storage, unfinished: UnfinishedCopy, dry_run: bool) -> Result<()> {
    let what = if dry_run { "would be removed" } else { "removed" };
    let found = if unfinished.is_whole() { "mark of a" } else { "unfinished" };
    let line = |path: PathBuf| format!("{}: {found} copy of a cluster: {what}\n", path.display());
    let text: String = unfinished.directories(storage)?.into_iter().map(line).collect();
    if !dry_run {
        unfinished.remove(storage)?;
    }
    print(text)?;
    Ok(())
}

fn text(found: &[Leftover], what: &str) -> String {
    found.iter().map(|leftover| format!("{leftover}: {what}\n")).collect()
}
