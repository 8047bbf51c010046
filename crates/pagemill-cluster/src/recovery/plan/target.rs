//! Where a recovery is to stop, and whether a record is that place.
//!
//! The rules are a server's: an LSN stops at the first record that begins there or behind, exclusive before it and
//! inclusive after it; a transaction is met by its own end alone; a time stops before the first commit or abort that
//! is later, whatever came before and comes after, since times of commits do not ascend; a name after the first
//! restore point that has it.
//!
//! Source: `check_recovery_target_xid`, `recoveryStopsBefore` and `recoveryStopsAfter` in `src/backend/access/transam/xlogrecovery.c`
//! (14: `xlog.c`), PostgreSQL 14 to 18.

use std::fmt;
use std::str::FromStr;

use pagemill_format::wal::{Commit, Record, RecoveryRecord, ResourceManager};
use pagemill_format::{Lsn, PgVersion, TransactionId};
use pagemill_types::input::datetime::iso_timestamptz;
use pagemill_wal::{PlainEnd, WalRecord};

use super::moment::Moment;
use crate::error::Result;

/// What a recovery is to stop at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryTarget {
    /// The place.
    pub place: TargetPlace,
    /// What is met belongs to what is recovered; not asked for names and consistency.
    pub inclusive: bool,
}

/// A place in WAL, by one of its marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetPlace {
    /// An LSN.
    Lsn(Lsn),
    /// The end of a transaction.
    Transaction(TransactionId),
    /// A moment: microseconds since 2000-01-01 UTC.
    Time(i64),
    /// A restore point.
    Name(String),
    /// The first moment that the files are consistent.
    Consistent,
}

/// What WAL has at a place that a recovery can stop at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionEnd {
    /// A commit: the transaction, and microseconds since 2000-01-01 UTC.
    Commit(TransactionId, i64),
    /// An abort.
    Abort(TransactionId, i64),
}

/// What the walk over WAL takes from a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Landmark {
    /// A transaction ends.
    Transaction(TransactionEnd),
    /// A record that steers the recovery.
    Recovery(RecoveryRecord),
}

impl Landmark {
    /// What a record is to a recovery; `None` for most.
    ///
    /// # Errors
    /// A record whose parts do not fit together.
    pub fn of(record: &WalRecord<'_>, version: PgVersion) -> Result<Option<Self>> {
        let header = &record.header;
        let is_end = |kind: u8| {
            use ResourceManager as R;
            [R::XACT_COMMIT, R::XACT_ABORT, R::XACT_COMMIT_PREPARED, R::XACT_ABORT_PREPARED]
                .contains(&(kind & 0x70))
        };
        match header.resource_manager {
            ResourceManager::XLOG => {
                let parsed: Record<'_> = record.parse()?;
                let found = RecoveryRecord::parse(parsed.main_data, header.kind(), version)?;
                Ok(found.map(Self::Recovery))
            }
            ResourceManager::TRANSACTION if is_end(header.kind()) => {
                let parsed = record.parse()?;
                let end = Commit::parse(parsed.main_data, header.info, version)?;
                let xid = end.prepared.map_or(header.xid, |(xid, _)| xid);
                let is_commit = matches!(
                    header.kind() & 0x70,
                    ResourceManager::XACT_COMMIT | ResourceManager::XACT_COMMIT_PREPARED
                );
                let end = match is_commit {
                    true => TransactionEnd::Commit(xid, end.time),
                    false => TransactionEnd::Abort(xid, end.time),
                };
                Ok(Some(Self::Transaction(end)))
            }
            _ => Ok(None),
        }
    }
}

impl From<PlainEnd> for TransactionEnd {
    fn from(end: PlainEnd) -> Self {
        match end.is_commit {
            true => Self::Commit(end.xid, end.time),
            false => Self::Abort(end.xid, end.time),
        }
    }
}

impl TransactionEnd {
    fn xid(self) -> TransactionId {
        match self {
            Self::Commit(xid, _) | Self::Abort(xid, _) => xid,
        }
    }

    /// When: microseconds since 2000-01-01 UTC.
    pub fn time(self) -> i64 {
        match self {
            Self::Commit(_, time) | Self::Abort(_, time) => time,
        }
    }
}

impl RecoveryTarget {
    /// True when recovery stops before the record that begins at `lsn`.
    pub(super) fn is_before(&self, lsn: Lsn, landmark: Option<&Landmark>) -> bool {
        let end = match landmark {
            Some(Landmark::Transaction(end)) => Some(*end),
            _ => None,
        };
        match (&self.place, end) {
            (TargetPlace::Lsn(target), _) => !self.inclusive && lsn >= *target,
            (TargetPlace::Transaction(xid), Some(end)) => !self.inclusive && end.xid() == *xid,
            (TargetPlace::Time(time), Some(end)) => match self.inclusive {
                true => end.time() > *time,
                false => end.time() >= *time,
            },
            _ => false,
        }
    }

    /// True when recovery stops after the record that begins at `lsn`.
    pub(super) fn is_after(&self, lsn: Lsn, landmark: Option<&Landmark>) -> bool {
        match (&self.place, landmark) {
            (TargetPlace::Name(name), Some(Landmark::Recovery(record))) => {
                matches!(record, RecoveryRecord::RestorePoint(_, found) if found == name.as_bytes())
            }
            (TargetPlace::Lsn(target), _) => self.inclusive && lsn >= *target,
            (TargetPlace::Transaction(xid), Some(Landmark::Transaction(end))) => {
                self.inclusive && end.xid() == *xid
            }
            _ => false,
        }
    }
}

/// `lsn:0/16B3748`, `xid:4711` (of 64 bits, the low 32 count), `time:2026-03-01 10:00:00+00`, `name:before_update`, `consistent`.
impl FromStr for TargetPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "consistent" {
            return Ok(Self::Consistent);
        }
        let (kind, value) = text.split_once(':').unwrap_or((text, ""));
        let place = match kind {
            "lsn" => value.parse().ok().map(Self::Lsn),
            // With the epoch, as `pg_current_xact_id` prints it, or without; records have the low half.
            "xid" => {
                value.parse::<u64>().ok().map(|xid| Self::Transaction(TransactionId(xid as u32)))
            }
            "time" => iso_timestamptz(value).map(Self::Time),
            "name" if !value.is_empty() && value.len() < 64 => Some(Self::Name(value.into())),
            _ => None,
        };
        place.ok_or_else(|| {
            "lsn:0/16B3748, xid:4711, \"time:2026-03-01 10:00:00+00\", name:RESTORE_POINT or consistent \
             is wanted"
                .into()
        })
    }
}

impl fmt::Display for TargetPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lsn(lsn) => write!(f, "lsn:{lsn}"),
            Self::Transaction(xid) => write!(f, "xid:{}", xid.0),
            Self::Time(time) => write!(f, "time:{}", Moment(*time)),
            Self::Name(name) => write!(f, "name:{name}"),
            Self::Consistent => f.write_str("consistent"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str, inclusive: bool) -> RecoveryTarget {
        RecoveryTarget { place: text.parse().unwrap(), inclusive }
    }

    fn commit(xid: u32, time: &str) -> Landmark {
        let time = iso_timestamptz(time).unwrap();
        Landmark::Transaction(TransactionEnd::Commit(TransactionId(xid), time))
    }

    #[test]
    fn targets_are_read_from_text_and_shown_as_text() {
        for text in
            ["lsn:0/16B3748", "xid:4711", "time:2026-03-01 10:00:00+00", "name:x", "consistent"]
        {
            assert_eq!(text.parse::<TargetPlace>().unwrap().to_string(), text);
        }
        let zoned: TargetPlace = "time:2026-03-01T12:00:00.5+02".parse().unwrap();
        assert_eq!(zoned.to_string(), "time:2026-03-01 10:00:00.5+00");
        let with_epoch: TargetPlace = "xid:4294968024".parse().unwrap();
        assert_eq!(with_epoch, TargetPlace::Transaction(TransactionId(728)));
        for wrong in [
            "",
            "lsn:",
            "lsn:5",
            "xid:x",
            "xid:18446744073709551616",
            "time:noon",
            "name:",
            "now",
            "oid:5",
        ] {
            assert!(wrong.parse::<TargetPlace>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_lsn_stops_at_the_first_record_that_begins_there_or_behind() {
        let (before, after) = (target("lsn:0/100", false), target("lsn:0/100", true));
        assert!(!before.is_before(Lsn(0xF8), None) && !after.is_after(Lsn(0xF8), None));
        assert!(before.is_before(Lsn(0x100), None) && after.is_after(Lsn(0x108), None));
        assert!(!before.is_after(Lsn(0x100), None) && !after.is_before(Lsn(0x108), None));
    }

    #[test]
    fn a_time_stops_before_the_first_transaction_that_is_later() {
        let time = "time:2026-03-01 10:00:00";
        let (early, same, late) =
            ("2026-03-01 09:00:00", "2026-03-01 10:00:00", "2026-03-01 10:00:01");
        let stops = |inclusive, at| target(time, inclusive).is_before(Lsn(8), Some(&commit(7, at)));
        assert_eq!([early, same, late].map(|at| stops(true, at)), [false, false, true]);
        assert_eq!([early, same, late].map(|at| stops(false, at)), [false, true, true]);
        assert!(!target(time, true).is_before(Lsn(8), None), "other records have no time");
    }

    #[test]
    fn a_transaction_is_met_by_its_own_end_and_a_name_by_its_restore_point() {
        let found = commit(7, "2026-03-01");
        assert!(target("xid:7", true).is_after(Lsn(8), Some(&found)));
        assert!(target("xid:7", false).is_before(Lsn(8), Some(&found)));
        assert!(!target("xid:6", true).is_after(Lsn(8), Some(&found)));
        let point = Landmark::Recovery(RecoveryRecord::RestorePoint(0, b"x".to_vec()));
        assert!(target("name:x", true).is_after(Lsn(8), Some(&point)));
        assert!(!target("name:y", true).is_after(Lsn(8), Some(&point)));
    }
}
