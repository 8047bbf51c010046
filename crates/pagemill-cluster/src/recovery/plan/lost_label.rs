//! Backups that look as if a server had crashed, because `backup_label` and the manifest were removed.
//!
//! The control file of a backup is copied last, so its checkpoint can be one that was made while the other files were
//! being copied. Recovery that begins there leaves out what happened to files that were copied before, and no server
//! notices. What remains is the record at the backup's end, which names where recovery ought to begin.
//!
//! ```text
//! the backup begins ── files are copied ── a checkpoint ── files are copied ── the backup ends
//! recovery has to begin here               the control file says here          this record says where
//! ```
//!
//! The WAL of a server that crashed soon after a backup has the same record, and nothing is wrong with its files. They
//! are told apart by the files that backups leave out.
//!
//! Source: `do_pg_backup_stop` in `src/backend/access/transam/xlog.c`, PostgreSQL 14 to 18.

use pagemill_format::Lsn;

use super::RecoveryPlan;
use super::problem::RecoveryProblem;

/// A backup that ended behind the record where redo begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedBackup {
    /// Where its recovery begins.
    pub start: Lsn,
    /// The record of its end.
    pub end: Lsn,
}

/// The ends of backups that were met.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EndedBackups {
    /// The first that began before redo does.
    pub(super) earlier: Option<EndedBackup>,
    /// One that began where redo does has ended.
    has_own: bool,
}

impl EndedBackups {
    /// Takes in the record of a backup's end.
    pub(super) fn add(&mut self, plan: &RecoveryPlan, backup: EndedBackup) {
        self.has_own |= backup.start == plan.start;
        if backup.start < plan.start && plan.case.is_as_after_a_crash() {
            self.earlier.get_or_insert(backup);
        }
    }

    /// What is wrong with a recovery that has met these.
    pub(super) fn problem(self, plan: &RecoveryPlan, replayed_to: Lsn) -> Option<RecoveryProblem> {
        match self {
            _ if !plan.is_backup_without_label => None,
            Self { earlier: Some(backup), .. } => {
                Some(RecoveryProblem::LostLabel { backup, redo: plan.start })
            }
            Self { has_own: true, .. } => None,
            _ => Some(RecoveryProblem::LostLabelAndEnd { redo: plan.start, end: replayed_to }),
        }
    }
}
