//! Whether a cluster is in a state to be changed.
//!
//! Invariant: a cluster that passes would start without a recovery, follows nobody and waits for nobody.

use std::path::PathBuf;

use pagemill_format::control::ClusterState;

use super::pending::{self, Leftover};
use crate::data_directory::Cluster;
use crate::error::{Error, Result};
use crate::refusal::{Refusal, StateCause};

/// Transactions that are left before wraparound when no more are given out (`xidStopLimit`).
const RESERVED_TRANSACTIONS: u32 = 3_000_000;

/// Makes a cluster, which was opened under a lock, ready for a change: what an earlier one left is removed, and returned.
/// Every change begins so; whoever asks beforehand how much space there is does it before that.
///
/// # Errors
/// When the cluster is in no state to be changed, or what was left cannot be removed.
pub fn make_ready(cluster: &Cluster) -> Result<Vec<Leftover>> {
    check_state(cluster)?;
    let removed = pending::remove_leftovers(cluster)?;
    for leftover in &removed {
        tracing::warn!(%leftover, "removed what an earlier run left");
    }
    Ok(removed)
}

/// What a change that was not finished left: [`make_ready`] would remove it.
///
/// # Errors
/// When the cluster is in no state to be changed, or the list of what was left cannot be read.
pub fn leftovers(cluster: &Cluster) -> Result<Vec<Leftover>> {
    check_state(cluster)?;
    pending::find(cluster)
}

/// True when a change was not finished, and may have left files. Looks for no more than its list, at any cluster.
///
/// # Errors
/// When the data directory cannot be read.
pub fn has_leftovers(cluster: &Cluster) -> Result<bool> {
    pending::is_there(cluster)
}

/// Refuses a cluster that a change could damage or that would not keep it.
pub(super) fn check_state(cluster: &Cluster) -> Result<()> {
    let control = cluster.control();
    let refuse = |cause| Err(Error::refused(Refusal::State { path: cluster.path().into(), cause }));
    if control.state != ClusterState::ShutDown {
        return refuse(StateCause::NotShutDown(control.state.to_string()));
    }
    for name in ["backup_label", "recovery.signal", "standby.signal"] {
        if cluster.state().contains(name) {
            return refuse(StateCause::RecoveryFile(name));
        }
    }
    let prepared: Vec<PathBuf> = prepared_transactions(cluster)?;
    if !prepared.is_empty() {
        return refuse(StateCause::PreparedTransactions(prepared.len()));
    }
    let left = control
        .checkpoint
        .oldest_xid
        .0
        .wrapping_add(i32::MAX as u32)
        .wrapping_sub(control.checkpoint.next_xid.xid().0);
    if (left as i32) < RESERVED_TRANSACTIONS as i32 {
        return refuse(StateCause::Wraparound);
    }
    Ok(())
}

fn prepared_transactions(cluster: &Cluster) -> Result<Vec<PathBuf>> {
    let directory = cluster.path().join("pg_twophase");
    let entries = cluster.storage().read_dir(&directory)?;
    Ok(entries.into_iter().map(|entry| directory.join(entry.name)).collect())
}
