//! What the commands that change a cluster have in common: it is opened under a lock, what an earlier run left is removed
//! and told, and a signal undoes what was begun.
//!
//! Invariant: signals are watched before anything is made, so that none of them finds work that cannot be undone.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use pagemill_cluster::change::{has_leftovers, make_ready};
use pagemill_cluster::{Cluster, ClusterLock, DatabaseRow, OpenOptions};
use pagemill_engine::clone::cluster::UnfinishedCopy;
use pagemill_engine::encoding::stored_text;
use pagemill_io::{Storage, is_url};

use crate::failure::{UsageError, is_interruption, say};

/// The data directory that was named. An empty name is none, and what is changed is on this machine.
pub(crate) fn data_directory(pgdata: Option<&Path>) -> Result<&Path> {
    let named = pgdata.filter(|dir| !dir.as_os_str().is_empty());
    let missing = || UsageError("no data directory: name it with -D, or set PGDATA".into());
    let named = named.ok_or_else(missing)?;
    refuse_url(named)?;
    Ok(named)
}

/// Refuses a URL where something is changed or made.
pub(crate) fn refuse_url(path: &Path) -> Result<()> {
    match is_url(path) {
        false => Ok(()),
        true => Err(UsageError(format!(
            "{}: what lies on an object store is only read: name a directory of this machine",
            path.display()
        ))
        .into()),
    }
}

/// Takes the right to change a cluster, with signals watched from now on.
pub(crate) fn take_lock(storage: &Storage, directory: &Path) -> Result<Arc<ClusterLock>> {
    // Without it a signal ends the process, and the next run removes what was made.
    let _ = pagemill_io::watch_interrupts();
    Ok(Arc::new(ClusterLock::take(storage, directory)?))
}

/// Opens a cluster under its lock and removes what a run that was cut short left.
pub(crate) fn open(storage: &Storage, lock: &ClusterLock, options: OpenOptions) -> Result<Cluster> {
    let cluster = open_as_it_is(storage, lock, options)?;
    let removed = make_ready(&cluster)?;
    if !removed.is_empty() {
        say("an earlier run was cut short, and what it left is removed:");
        removed.iter().for_each(say);
    }
    // It was made by clone --cluster, and is whole.
    if let Some(copy) = UnfinishedCopy::find(storage, cluster.path())? {
        say("the mark of the copy that the cluster is was left, and is removed");
        copy.remove(storage)?;
    }
    Ok(cluster)
}

/// Opens a cluster under its lock, to look at it.
pub(crate) fn open_as_it_is(
    storage: &Storage,
    lock: &ClusterLock,
    options: OpenOptions,
) -> Result<Cluster> {
    Ok(Cluster::open_locked(storage.clone(), lock, options)?)
}

/// Says what became of work that a signal ended: `nothing` is what did not happen.
pub(crate) fn undone(error: anyhow::Error, cluster: &Cluster, nothing: &str) -> anyhow::Error {
    if !is_interruption(&error) {
        return error;
    }
    let is_left = has_leftovers(cluster).unwrap_or(true);
    error.context(if is_left {
        format!("{nothing}; some of what was made could not be removed: run pagemill clean")
    } else {
        format!("{nothing}, and what was made so far is removed")
    })
}

/// The row of a database whose name is stored as it was typed, or in the database's own encoding.
pub(crate) fn database_row(cluster: &Cluster, name: &str) -> Result<DatabaseRow> {
    let rows = cluster.databases()?;
    let typed = rows.iter().find(|row| *row.name == *name.as_bytes());
    let is_stored = |row: &&DatabaseRow| {
        stored_text(row.encoding, name.as_bytes()).is_some_and(|stored| *row.name == *stored)
    };
    match typed.or_else(|| rows.iter().find(is_stored)) {
        Some(row) => Ok(row.clone()),
        // Says which names are like it.
        None => Ok(cluster.database(name)?.row().clone()),
    }
}
