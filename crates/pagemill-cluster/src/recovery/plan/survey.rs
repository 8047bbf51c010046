//! [`WalSurvey`]: all that the WAL behind a copy holds, found in one pass: from where on the copy is consistent, where
//! WAL ends and why, what can be recovered to.
//!
//! Invariant: a target does not end the pass; where it lies is told beside what lies behind it.

use std::path::PathBuf;

use pagemill_format::Lsn;
use pagemill_format::wal::RecoveryRecord;
use pagemill_io::Storage;
use pagemill_wal::{EndOfWal, WalReader};

use super::problem::RecoveryProblem;
use super::walk::{Progress, Stop};
use super::{EndedBackup, Landmark, Moment, RecoveryPlan, TransactionEnd};
use crate::error::Result;

/// What the WAL holds from the beginning of a recovery to its end.
#[derive(Debug, Clone)]
pub struct WalSurvey {
    /// Records that a recovery to the end replays.
    pub records: u64,
    /// From where on the files are consistent; `None` when WAL ends before.
    pub consistent_at: Option<Lsn>,
    /// Where WAL ends, and why; `None` where none is needed, since the cluster was shut down.
    pub end: Option<EndOfWal>,
    /// Where the last record begins: what a server's log calls where redo is done.
    pub last_record: Option<Lsn>,
    /// Where the last record ends.
    pub last_lsn: Lsn,
    /// The timeline there.
    pub timeline: u32,
    /// The places that were given a name.
    pub restore_points: Vec<RestorePoint>,
    /// Transactions that commit where a recovery can stop.
    pub commits: u64,
    /// The earliest and the latest time of these.
    pub commit_times: Option<(Moment, Moment)>,
    /// Where the plan's target lies.
    pub stop: Option<Stop>,
    /// Where `full_page_writes` is off first.
    pub full_page_writes_off: Option<Lsn>,
    /// A backup that began before redo does, and ended behind that, where the control file alone says where redo begins.
    pub earlier_backup: Option<EndedBackup>,
    /// Files that no server reads, and that WAL was taken from.
    pub partial_files: Vec<PathBuf>,
    /// Why the recovery is not what was wanted.
    pub problems: Vec<RecoveryProblem>,
}

/// A place that was given a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestorePoint {
    /// Its name, in whatever encoding it was given.
    pub name: String,
    /// Where its record begins.
    pub lsn: Lsn,
    /// When it was given.
    pub time: Moment,
    /// A recovery can stop there.
    pub is_in_reach: bool,
}

impl WalSurvey {
    pub(super) fn of(storage: &Storage, plan: &RecoveryPlan) -> Result<Self> {
        let mut reader = WalReader::along(storage, &plan.source, plan.start);
        let mut progress = Progress::new(plan);
        let mut found = Self {
            records: 0,
            consistent_at: None,
            end: None,
            last_record: None,
            last_lsn: plan.start,
            timeline: progress.timeline,
            restore_points: Vec::new(),
            commits: 0,
            commit_times: None,
            stop: None,
            full_page_writes_off: None,
            earlier_backup: None,
            partial_files: Vec::new(),
            problems: Vec::new(),
        };
        // Of a cluster that was shut down no server looks at what lies behind the checkpoint.
        if !plan.is_clean() {
            while let Some(record) = reader.next_record()? {
                let landmark = Landmark::of(&record, plan.source.version())?;
                // A target before a record or after it: the survey goes on either way.
                progress.step(plan, record.place(), landmark.as_ref())?;
                if progress.replayed_to != record.end {
                    progress.step(plan, record.place(), landmark.as_ref())?;
                }
                found.records += 1;
                found.last_record = Some(record.lsn);
                let is_in_reach = progress.consistency.reached().is_some();
                found.add(landmark.as_ref(), record.lsn, is_in_reach);
            }
            progress.ended(plan);
            found.end = reader.end().cloned();
        }
        // What lies behind the target hinders no recovery to it.
        let end = found.end.as_ref().filter(|_| progress.stop.is_none());
        found.problems = RecoveryProblem::all(plan, &progress, end);
        found.partial_files = reader.partial_files().to_vec();
        found.consistent_at = progress.consistency.reached();
        found.last_lsn = progress.replayed_to;
        found.timeline = progress.timeline;
        found.stop = progress.stop;
        found.full_page_writes_off = progress.full_page_writes_off;
        found.earlier_backup = progress.ended_backups.earlier;
        Ok(found)
    }

    fn add(&mut self, landmark: Option<&Landmark>, lsn: Lsn, is_in_reach: bool) {
        match landmark {
            Some(Landmark::Recovery(RecoveryRecord::RestorePoint(time, name))) => {
                let name = String::from_utf8_lossy(name).into_owned();
                let time = Moment(*time);
                self.restore_points.push(RestorePoint { name, lsn, time, is_in_reach });
            }
            Some(Landmark::Transaction(TransactionEnd::Commit(_, time))) if is_in_reach => {
                let time = Moment(*time);
                let (first, last) = self.commit_times.unwrap_or((time, time));
                self.commit_times = Some((first.min(time), last.max(time)));
                self.commits += 1;
            }
            _ => {}
        }
    }
}
