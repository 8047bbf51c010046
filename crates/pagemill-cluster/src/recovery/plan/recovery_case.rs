//! How a data directory came to be as it is, which decides where its recovery begins and when it is consistent.
//!
//! A label says it. Without one the control file does, but for a backup whose label was removed: its manifest still
//! knows from where to where WAL is needed. A manifest stays for good, so it counts only where the control file is of
//! the time of the backup: one that was ever recovered has its checkpoint behind it.
//!
//! Without its manifest too, such a backup looks as if its server had crashed. The ends of backups in the WAL then tell
//! whether it is one (`lost_label.rs`).
//!
//! A standby's state without a signal file is taken as a standby's copy all the same. A server would recover it
//! as after a crash, and would not look whether its WAL suffices.

use std::fmt;
use std::path::Path;

use pagemill_format::Lsn;
use pagemill_format::backup::{BackupLabel, BackupMethod, WalRange};
use pagemill_format::control::{ClusterState, ControlFile};

use super::checkpoint_record::CheckpointRecord;
use super::{ConsistentAt, CopyFiles, refused};
use crate::error::Result;
use crate::refusal::RecoveryCause;

/// How a data directory came to be as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryCase {
    /// A server stopped cleanly.
    ShutDown,
    /// A server was killed, or copied as it lay at one moment.
    Crash,
    /// The same, and an archive goes on behind its own WAL.
    Snapshot,
    /// A backup of a primary or of a standby, with its label.
    Backup(BackupLabel),
    /// A directory that `pg_rewind` made fit.
    Rewound(BackupLabel),
    /// The label of 14's exclusive mode: that of a backup, or one that a crash left behind; true when recovery goes
    /// on from an archive, and so is that of a backup.
    Exclusive(BackupLabel, bool),
    /// A backup whose label was removed: the WAL that its manifest asks for.
    LostLabel(WalRange, Lsn),
    /// A backup whose recovery was begun, and not finished.
    RestartedBackup,
    /// A standby's files, copied or as it left them.
    Standby,
}

impl RecoveryCase {
    pub(super) fn of(
        control: &ControlFile,
        files: &CopyFiles,
        is_requested: bool,
        warnings: &mut Vec<String>,
    ) -> Self {
        if let Some(label) = files.label.clone() {
            warn_of_other_manifest(files, &label, warnings);
            return match label.method {
                BackupMethod::Streamed => Self::Backup(label),
                BackupMethod::Exclusive => Self::Exclusive(label, is_requested),
                BackupMethod::PgRewind | BackupMethod::Other(_) => Self::Rewound(label),
            };
        }
        let (start, end) = (control.backup_start_point, control.backup_end_point);
        if start != Lsn(0) || end != Lsn(0) || control.backup_end_required {
            return Self::RestartedBackup;
        }
        match (control.state, lost_label(control, files)) {
            (ClusterState::ShutDown, _) => Self::ShutDown,
            (ClusterState::InArchiveRecovery | ClusterState::ShutDownInRecovery, _) => {
                Self::Standby
            }
            (_, Some((range, end))) => {
                warnings.push(format!(
                    "backup_label was removed from this backup: recovery begins at {}, as its manifest says",
                    range.start
                ));
                Self::LostLabel(range, end)
            }
            _ if is_requested => Self::Snapshot,
            _ => Self::Crash,
        }
    }

    /// The label that was found.
    pub fn label(&self) -> Option<&BackupLabel> {
        match self {
            Self::Backup(label) | Self::Rewound(label) | Self::Exclusive(label, _) => Some(label),
            _ => None,
        }
    }

    /// True when recovery follows the rules of an archive recovery even without one.
    pub(crate) fn is_of_copy(&self) -> bool {
        !matches!(self, Self::ShutDown | Self::Crash | Self::Exclusive(_, false))
    }

    /// True when the control file alone says where recovery begins.
    pub(super) fn is_as_after_a_crash(&self) -> bool {
        matches!(self, Self::Crash | Self::Snapshot)
    }

    /// What the control file has to be for this case.
    pub(super) fn check(&self, directory: &Path, control: &ControlFile) -> Result<()> {
        let Some(label) = self.label() else { return Ok(()) };
        if let BackupMethod::Other(method) = &label.method {
            return Err(refused(directory, RecoveryCause::LabelMethod(method.clone())));
        }
        let is_of_standby = matches!(
            control.state,
            ClusterState::InArchiveRecovery | ClusterState::ShutDownInRecovery
        );
        if label.from_standby && !is_of_standby {
            return Err(refused(directory, RecoveryCause::StandbyLabel(control.state)));
        }
        Ok(())
    }

    /// When the files are consistent; `None` when they are at the end of `pg_wal`, which has to be looked for.
    pub(super) fn consistent_at(
        &self,
        control: &ControlFile,
        found: &CheckpointRecord,
    ) -> Option<ConsistentAt> {
        let redo = found.checkpoint.redo;
        let seen = control.min_recovery_point.max(redo);
        Some(match self {
            Self::ShutDown => ConsistentAt::Lsn(redo),
            Self::Crash | Self::Exclusive(_, false) => ConsistentAt::EndOfWal,
            Self::Snapshot => return None,
            Self::Backup(label) if label.from_standby => ConsistentAt::Lsn(seen),
            Self::Backup(label) | Self::Exclusive(label, true) => {
                ConsistentAt::BackupEnd { start: label.redo, not_before: seen }
            }
            Self::Rewound(_) | Self::Standby => ConsistentAt::Lsn(seen),
            Self::LostLabel(_, end) => ConsistentAt::Lsn(*end),
            Self::RestartedBackup => match control.backup_end_point {
                Lsn(0) => {
                    ConsistentAt::BackupEnd { start: control.backup_start_point, not_before: seen }
                }
                end => ConsistentAt::Lsn(end.max(seen)),
            },
        })
    }
}

/// The WAL that a manifest asks for, if the control file is of the time of its backup.
fn lost_label(control: &ControlFile, files: &CopyFiles) -> Option<(WalRange, Lsn)> {
    let manifest = files.manifest.as_ref()?;
    let is_of_cluster =
        manifest.system_identifier.is_none_or(|found| found == control.system_identifier);
    let (start, end) = (manifest.start()?, manifest.end()?.end);
    let redo = control.checkpoint.redo;
    (is_of_cluster && start.start <= redo && redo < end).then_some((start, end))
}

fn warn_of_other_manifest(files: &CopyFiles, label: &BackupLabel, warnings: &mut Vec<String>) {
    let start = files.manifest.as_ref().and_then(|manifest| manifest.start());
    if label.method == BackupMethod::Streamed
        && start.is_some_and(|start| start.start != label.redo)
    {
        warnings.push(
            "backup_manifest is of another backup than backup_label, and is passed over".into(),
        );
    }
}

impl fmt::Display for RecoveryCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ShutDown => "a cluster that was shut down",
            Self::Crash => "a cluster that was not shut down",
            Self::Snapshot => "a cluster that was not shut down, and an archive",
            Self::Backup(label) if label.from_standby => "a backup of a standby",
            Self::Backup(_) => "a backup of a primary",
            Self::Rewound(_) => "a cluster that pg_rewind was run on",
            Self::Exclusive(_, true) => "an exclusive backup",
            Self::Exclusive(..) => "a cluster that was not shut down during an exclusive backup",
            Self::LostLabel(..) => "a backup without its label",
            Self::RestartedBackup => "a backup whose recovery was begun",
            Self::Standby => "a standby's files",
        })
    }
}
