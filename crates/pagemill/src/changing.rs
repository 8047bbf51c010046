//! What the commands that change a cluster have in common: it is opened under a lock, what an earlier run left is removed
//! and told, and a signal undoes what was begun.
//!
//! Invariant: signals are watched before anything is made, so that none of them finds work that cannot be undone.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use pagemill_cluster::change::{has_leftovers, make_ready};
use pagemill_cluster::{Cluster, ClusterLock, Error as ClusterError, OpenOptions};
use pagemill_io::Storage;

use crate::failure::{UsageError, is_interruption, say};

/// The data directory that was named. An empty name is none.
pub(crate) fn data_directory(pgdata: Option<&Path>) -> Result<&Path> {
    pgdata.filter(|dir| !dir.as_os_str().is_empty()).ok_or_else(|| {
        UsageError("no data directory: name it with -D, or set PGDATA".into()).into()
    })
}

/// Takes the right to change a cluster, with signals watched from now on.
pub(crate) fn take_lock(storage: &Storage, directory: &Path) -> Result<Arc<ClusterLock>> {
    // Without it a signal ends the process, and the next run removes what was made.
    let _ = pagemill_io::watch_interrupts();
    Ok(Arc::new(ClusterLock::take(storage, directory).map_err(for_writing)?))
}

/// Opens a cluster under its lock and removes what a run that was cut short left.
pub(crate) fn open(storage: &Storage, lock: &ClusterLock, options: OpenOptions) -> Result<Cluster> {
    let cluster = open_as_it_is(storage, lock, options)?;
    let removed = make_ready(&cluster)?;
    if !removed.is_empty() {
        say("an earlier run was cut short, and what it left is removed:");
        removed.iter().for_each(say);
    }
    Ok(cluster)
}

/// Opens a cluster under its lock, to look at it.
pub(crate) fn open_as_it_is(
    storage: &Storage,
    lock: &ClusterLock,
    options: OpenOptions,
) -> Result<Cluster> {
    let cluster = Cluster::open_locked(storage.clone(), lock, options);
    cluster.map_err(for_writing)
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

/// What reading allows with a flag, writing never does.
pub(crate) fn for_writing(error: ClusterError) -> anyhow::Error {
    match error {
        ClusterError::Running { path, pid } => {
            anyhow!("{}: a server is running here (process {pid}): stop it first", path.display())
        }
        ClusterError::NotShutDown { path, state, advice } => {
            anyhow!(
                "{}: the cluster's state is \"{state}\", not \"shut down\": {advice}",
                path.display()
            )
        }
        other => other.into(),
    }
}
