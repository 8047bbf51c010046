//! When replay has made the files of a copy agree with each other, and how far it has come towards that.
//!
//! Source: `CheckRecoveryConsistency` and `xlogrecovery_redo` in `src/backend/access/transam/xlogrecovery.c`
//! (14: `xlog.c`), PostgreSQL 14 to 18.

use std::fmt;

use pagemill_format::Lsn;
use pagemill_format::wal::RecoveryRecord;

/// When the files are consistent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsistentAt {
    /// When all WAL is replayed: after a crash.
    EndOfWal,
    /// When replay has come this far.
    Lsn(Lsn),
    /// When the end of the backup that began at `start` is replayed, and all before `not_before`.
    BackupEnd {
        /// Where the backup began.
        start: Lsn,
        /// What the files had seen before.
        not_before: Lsn,
    },
}

impl fmt::Display for ConsistentAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndOfWal => f.write_str("at the end of WAL"),
            Self::Lsn(lsn) => write!(f, "at {lsn}"),
            Self::BackupEnd { start, .. } => {
                write!(f, "at the end of the backup that began at {start}")
            }
        }
    }
}

/// How far replay has come towards consistency.
#[derive(Debug, Clone)]
pub(super) struct Consistency {
    rule: ConsistentAt,
    has_backup_ended: bool,
    reached: Option<Lsn>,
}

impl Consistency {
    /// Replay has come to `start`.
    pub(super) fn new(rule: ConsistentAt, start: Lsn) -> Self {
        let mut consistency = Self { rule, has_backup_ended: false, reached: None };
        consistency.has_replayed(start);
        consistency
    }

    /// Where it was reached.
    pub(super) fn reached(&self) -> Option<Lsn> {
        self.reached
    }

    /// True when the end of a backup is still to come.
    pub(super) fn awaits_backup_end(&self) -> bool {
        matches!(self.rule, ConsistentAt::BackupEnd { .. }) && !self.has_backup_ended
    }

    /// A record was replayed, which ends at `end`.
    pub(super) fn replayed(&mut self, record: Option<&RecoveryRecord>, end: Lsn) {
        if let (Some(RecoveryRecord::BackupEnd(of)), ConsistentAt::BackupEnd { start, .. }) =
            (record, self.rule)
        {
            self.has_backup_ended |= *of == start;
        }
        self.has_replayed(end);
    }

    /// All WAL there is was replayed.
    pub(super) fn ended(&mut self, end: Lsn) {
        if self.rule == ConsistentAt::EndOfWal {
            self.reached.get_or_insert(end);
        }
    }

    fn has_replayed(&mut self, end: Lsn) {
        let is_reached = match self.rule {
            ConsistentAt::EndOfWal => false,
            ConsistentAt::Lsn(lsn) => end >= lsn,
            ConsistentAt::BackupEnd { not_before, .. } => {
                self.has_backup_ended && end >= not_before
            }
        };
        if is_reached {
            self.reached.get_or_insert(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_another_backup_does_not_make_this_one_consistent() {
        let rule = ConsistentAt::BackupEnd { start: Lsn(8), not_before: Lsn(0) };
        let mut consistency = Consistency::new(rule, Lsn(8));
        consistency.replayed(Some(&RecoveryRecord::BackupEnd(Lsn(16))), Lsn(64));
        assert!(consistency.awaits_backup_end() && consistency.reached().is_none());
        consistency.replayed(Some(&RecoveryRecord::BackupEnd(Lsn(8))), Lsn(96));
        consistency.replayed(None, Lsn(128));
        assert_eq!(
            (consistency.awaits_backup_end(), consistency.reached()),
            (false, Some(Lsn(96)))
        );
    }

    #[test]
    fn a_place_is_reached_where_a_record_ends_there_or_behind() {
        let mut consistency = Consistency::new(ConsistentAt::Lsn(Lsn(100)), Lsn(8));
        consistency.replayed(None, Lsn(96));
        assert_eq!(consistency.reached(), None);
        consistency.replayed(None, Lsn(128));
        assert_eq!(consistency.reached(), Some(Lsn(128)));
        assert_eq!(Consistency::new(ConsistentAt::Lsn(Lsn(8)), Lsn(8)).reached(), Some(Lsn(8)));
    }

    #[test]
    fn after_a_crash_the_end_of_wal_is_the_first_consistent_place() {
        let mut consistency = Consistency::new(ConsistentAt::EndOfWal, Lsn(8));
        consistency.replayed(None, Lsn(96));
        assert_eq!(consistency.reached(), None);
        consistency.ended(Lsn(96));
        assert_eq!(consistency.reached(), Some(Lsn(96)));
    }
}
