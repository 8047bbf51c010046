//! Why a recovery is not what was wanted of it, each in one line.
//!
//! A server refuses most of it, too; of WAL that goes on behind its end a server says nothing, and recovers less.

use std::fmt;

use pagemill_format::Lsn;
use pagemill_format::wal::SegmentName;
use pagemill_wal::{EndOfWal, Finding};

use super::walk::Progress;
use super::{ConsistentAt, EndedBackup, RecoveryPlan};

/// Why a server would refuse the end of a recovery, or ought to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryProblem {
    /// WAL ends before the files are consistent.
    NotConsistent {
        /// Where it ends.
        end: Lsn,
        /// What is there.
        reason: Finding,
        /// When they would be.
        rule: ConsistentAt,
    },
    /// The files are a backup's, whose label was removed, and recovery does not begin where it ought to.
    LostLabel {
        /// The backup.
        backup: EndedBackup,
        /// Where redo begins.
        redo: Lsn,
    },
    /// The same, and no backup ends in the WAL that there is.
    LostLabelAndEnd {
        /// Where redo begins.
        redo: Lsn,
        /// Where it ends.
        end: Lsn,
    },
    /// The target comes before the files are consistent.
    TargetTooEarly {
        /// The target.
        target: String,
        /// Where the recovery would stop.
        stop: Lsn,
        /// From where on the files are consistent, if WAL comes that far.
        consistent_at: Option<Lsn>,
    },
    /// WAL ends before the target.
    TargetNotMet {
        /// The target.
        target: String,
        /// Where WAL ends.
        end: Lsn,
        /// What is there.
        reason: Finding,
    },
    /// Segments are missing, and others follow.
    MissingSegments {
        /// Where WAL ends.
        end: Lsn,
        /// Which are missing.
        segments: Vec<SegmentName>,
    },
    /// WAL ends in a segment, and a later one is whole.
    DamagedWal {
        /// Where WAL ends.
        end: Lsn,
        /// What is there.
        reason: Finding,
        /// The segment that is whole.
        segment_behind: SegmentName,
    },
}

impl RecoveryProblem {
    /// What is wrong with a recovery that came this far; `end` where it is for that that it came no further.
    pub(super) fn all(
        plan: &RecoveryPlan,
        progress: &Progress,
        end: Option<&EndOfWal>,
    ) -> Vec<Self> {
        let mut problems = Vec::new();
        let consistent_at = progress.consistency.reached();
        problems.extend(progress.ended_backups.problem(plan, progress.replayed_to));
        if let Some(end) = end {
            problems.extend(Self::of_wal(end));
        }
        if let (None, Some(end)) = (consistent_at, end) {
            let (reason, rule) = (end.reason.clone(), plan.consistent);
            problems.push(Self::NotConsistent { end: end.lsn, reason, rule });
        }
        let Some(target) = plan.target.as_ref().map(|target| target.place.to_string()) else {
            return problems;
        };
        match (progress.stop, end) {
            (None, Some(end)) if consistent_at.is_some() => {
                let reason = end.reason.clone();
                problems.push(Self::TargetNotMet { target, end: end.lsn, reason });
            }
            (Some(stop), _) if consistent_at.is_none_or(|lsn| stop.lsn < lsn) => {
                let stop = stop.lsn;
                problems.push(Self::TargetTooEarly { target, stop, consistent_at });
            }
            _ => {}
        }
        problems
    }

    fn of_wal(end: &EndOfWal) -> Option<Self> {
        let (lsn, reason) = (end.lsn, end.reason.clone());
        match (end.missing.is_empty(), end.segment_behind) {
            (false, _) => Some(Self::MissingSegments { end: lsn, segments: end.missing.clone() }),
            (true, Some(segment_behind)) => {
                Some(Self::DamagedWal { end: lsn, reason, segment_behind })
            }
            (true, None) => None,
        }
    }

    /// True for WAL that goes on behind its end, or is too short for the files or begins too late for them: who has no
    /// other may go on with it.
    pub fn is_of_wal(&self) -> bool {
        matches!(
            self,
            Self::MissingSegments { .. }
                | Self::DamagedWal { .. }
                | Self::NotConsistent { .. }
                | Self::LostLabel { .. }
                | Self::LostLabelAndEnd { .. }
        )
    }
}

impl fmt::Display for RecoveryProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConsistent { end, reason, rule: ConsistentAt::BackupEnd { start, .. } } => {
                write!(
                    f,
                    "WAL ends at {end} ({reason}), before the end of the backup that began at {start}: the copy cannot be \
                 made consistent with it"
                )
            }
            Self::NotConsistent { end, reason, rule } => {
                write!(f, "WAL ends at {end} ({reason}), but the files are consistent only {rule}")
            }
            Self::LostLabel { backup: EndedBackup { start, end }, redo } => write!(
                f,
                "backup_label was removed from this backup: its end at {end} says that recovery begins at {start}, and \
                 without the label it begins at {redo} and leaves changes out: put the label back, which the archive has \
                 as a file *.backup"
            ),
            Self::LostLabelAndEnd { redo, end } => write!(
                f,
                "backup_label was removed from this backup, and no backup that began at {redo} ends in its WAL, which \
                 goes to {end}: recovery may begin too late or end too early"
            ),
            Self::TargetTooEarly { target, stop, consistent_at: Some(at) } => write!(
                f,
                "the target {target} is at {stop}, but the files are consistent only from {at} on: take an older copy"
            ),
            Self::TargetTooEarly { target, stop, consistent_at: None } => {
                write!(f, "the target {target} is at {stop}, before the files are consistent")
            }
            Self::TargetNotMet { target, end, reason } => {
                write!(f, "the target {target} was not met: WAL ends at {end} ({reason})")
            }
            Self::MissingSegments { end, segments } => {
                write!(f, "WAL ends at {end}: {} missing, and WAL goes on behind", Named(segments))
            }
            Self::DamagedWal { end, reason, segment_behind } => write!(
                f,
                "WAL is damaged at {end} ({reason}): segment {segment_behind} behind it is whole, so WAL was not cut there"
            ),
        }
    }
}

/// Segments by name; of many the first and the last.
struct Named<'a>(&'a [SegmentName]);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("no segment is"),
            [only] => write!(f, "segment {only} is"),
            [first, .., last] => {
                write!(f, "{} segments from {first} to {last} are", self.0.len())
            }
        }
    }
}
