//! `pagemill drop`: a database of a stopped cluster removed.
//!
//! The right to change the cluster is taken before anything of it is read, and given back at the end.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use pagemill_cluster::change::{check_drop, drop_database};
use pagemill_cluster::{Error as ClusterError, OpenOptions};
use pagemill_io::Storage;

use crate::changing::{data_directory, database_row, open, open_as_it_is, take_lock, undone};
use crate::clone_arguments::DropArguments;
use crate::failure::{Completion, say};
use crate::session::stats::{self, Work};
use crate::standard_output::print;

pub(crate) fn run(arguments: &DropArguments) -> Result<Completion> {
    let start = Instant::now();
    let storage = Storage::real();
    let dropped = drop_with(arguments, &storage);
    if let Some(form) = arguments.stats {
        stats::print(form, start.elapsed(), &storage, &Work::default());
    }
    match dropped {
        Err(error) if arguments.if_exists && is_missing(&error) => {
            say(format!("database \"{}\" does not exist, nothing is done", arguments.database));
        }
        dropped => dropped?,
    }
    if arguments.verbose && !arguments.dry_run {
        say(format!("done, {:.3} s", start.elapsed().as_secs_f64()));
    }
    Ok(Completion::Done)
}

fn is_missing(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ClusterError::NotFound { .. }))
}

fn drop_with(arguments: &DropArguments, storage: &Storage) -> Result<()> {
    let directory = data_directory(arguments.pgdata.as_deref())?;
    let lock = take_lock(storage, directory)?;
    let open = if arguments.dry_run { open_as_it_is } else { open };
    let cluster = open(storage, &lock, OpenOptions::default())?;
    let name = database_row(&cluster, &arguments.database)?.name;
    if arguments.dry_run {
        let paths = check_drop(&cluster, &name)?;
        let line = |path: PathBuf| format!("{} would be removed\n", path.display());
        return print(paths.into_iter().map(line).collect::<String>());
    }
    let dropped = drop_database(lock, &cluster, &name);
    dropped.map_err(|error| undone(error.into(), &cluster, "nothing was dropped"))
}
