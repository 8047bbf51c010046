//! Why a recovery cannot be planned: what the label, the control file, the histories and the first records of WAL say does
//! not go together.
//!
//! Source of most: `InitWalRecovery` in `src/backend/access/transam/xlogrecovery.c` (14: `StartupXLOG` in `xlog.c`), which
//! stops for the same.

use pagemill_format::Lsn;
use pagemill_format::control::ClusterState;
use pagemill_wal::{EndOfWal, Finding};

/// Why a recovery cannot begin, or not lead to what is asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecoveryCause {
    /// A label of a kind that is not known.
    #[error("backup_label has the method {0:?}, which no server writes")]
    LabelMethod(String),
    /// A label of a standby's backup beside the control file of another cluster.
    #[error(
        "backup_label is that of a standby's backup, but the control file is of a cluster \"{0}\": they are not of the \
         same backup"
    )]
    StandbyLabel(ClusterState),
    /// WAL that only a crash recovery can be made from.
    #[error(
        "WAL was written with wal_level=minimal, which lacks changes that only a crash recovery can do without"
    )]
    MinimalWal,
    /// An archive that is a file.
    #[error("no directory: name the one that holds the segments")]
    ArchiveIsNoDirectory,
    /// A timeline without a history.
    #[error("timeline {timeline} does not exist: no {history}")]
    NoTimeline {
        /// The timeline that was asked for.
        timeline: u32,
        /// The name of its history's file.
        history: String,
    },
    /// A timeline that the last checkpoint is not on.
    #[error(
        "timeline {timeline} is no child of this cluster's: its last checkpoint is at {checkpoint} on timeline {own}, and \
         the history of timeline {timeline} {}",
        match .left_at { Some(lsn) => format!("left it at {lsn}"), None => "never was on it".to_owned() }
    )]
    OtherTimeline {
        /// The timeline that is followed.
        timeline: u32,
        /// The last checkpoint.
        checkpoint: Lsn,
        /// Its timeline.
        own: u32,
        /// Where the followed timeline left that one, if it ever was on it.
        left_at: Option<Lsn>,
    },
    /// A timeline that lacks what the files have in them.
    #[error(
        "timeline {timeline} does not contain {seen} on timeline {of}, which the files have seen"
    )]
    TimelineTooShort {
        /// The timeline that is followed.
        timeline: u32,
        /// What the files are known to have in them.
        seen: Lsn,
        /// The timeline of that.
        of: u32,
    },
    /// Another checkpoint than the one that the copy begins with.
    #[error(
        "the checkpoint record at {checkpoint} says that replay begins at {found}, and not at {expected}: the WAL is not \
         that of this copy, or its label is another's"
    )]
    OtherRedo {
        /// Where the record is.
        checkpoint: Lsn,
        /// Where it has replay begin.
        found: Lsn,
        /// Where the label or the control file has it begin.
        expected: Lsn,
    },
    /// A checkpoint that cannot be one.
    #[error("the checkpoint record at {checkpoint} has replay begin at {found}")]
    WrongRedo {
        /// Where the record is.
        checkpoint: Lsn,
        /// Where it has replay begin.
        found: Lsn,
    },
    /// No record where the last checkpoint should be.
    #[error("no checkpoint record at {checkpoint}: {found}")]
    NoCheckpoint {
        /// Where it should be.
        checkpoint: Lsn,
        /// What is there.
        found: Finding,
    },
    /// Another record there.
    #[error("no checkpoint record at {checkpoint}: there is {found}")]
    OtherRecord {
        /// Where the checkpoint should be.
        checkpoint: Lsn,
        /// The record, as it is named.
        found: String,
    },
    /// No record where replay should begin.
    #[error("no WAL at {redo}, where replay begins: {found}")]
    NoRedo {
        /// Where replay should begin.
        redo: Lsn,
        /// What is there.
        found: Finding,
    },
    /// Another record there than the one that says a checkpoint begins (17 and later).
    #[error("{0}, where a checkpoint should begin")]
    NoCheckpointBegin(String),
    /// No checkpoint that a lost label could have named.
    #[error("no checkpoint that begins at {redo}: {end}")]
    NoCheckpointFor {
        /// Where it should begin.
        redo: Lsn,
        /// Where WAL ends.
        end: Box<EndOfWal>,
    },
}
