//! [`RecoveryWalk`]: the records that a recovery replays, in order, up to the target or the end of WAL.
//!
//! Invariants: every record that is handed out is to be replayed; after the last one [`finish`](RecoveryWalk::finish)
//! says where the recovery ended, or why a server would not have accepted that end.
//!
//! Source: `PerformWalRecovery` and `ApplyWalRecord` in `src/backend/access/transam/xlogrecovery.c`
//! (14: `StartupXLOG` in `xlog.c`), PostgreSQL 14 to 18.

use pagemill_format::Lsn;
use pagemill_format::wal::RecoveryRecord;
use pagemill_io::Storage;
use pagemill_wal::{
    EndOfWal, PlainRecords, Portion, RecordPlace, WalIndexBuilder, WalReader, WalRecord,
};

use super::consistency::Consistency;
use super::lost_label::{EndedBackup, EndedBackups};
use super::problem::RecoveryProblem;
use super::{Landmark, MINIMAL, RecoveryPlan, RecoveryTarget, TargetPlace, TransactionEnd};
use crate::error::{Error, Result};
use crate::refusal::Refusal;

/// The records to be replayed.
#[derive(Debug)]
pub struct RecoveryWalk<'p> {
    plan: &'p RecoveryPlan,
    reader: WalReader,
    progress: Progress,
}

/// Where and why a recovery ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryEnd {
    /// Where the last record that was replayed ends.
    pub lsn: Lsn,
    /// The timeline there.
    pub timeline: u32,
    /// From where on the files were consistent.
    pub consistent_at: Lsn,
    /// The target that was met; `None` at the end of WAL.
    pub stop: Option<Stop>,
    /// The end of WAL, where that is why the recovery ended.
    pub end_of_wal: Option<EndOfWal>,
    /// What is wrong with the WAL, and was accepted.
    pub problems: Vec<RecoveryProblem>,
}

/// A target that was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    /// The record that was met; for consistency, the last one that was replayed.
    pub record: Lsn,
    /// Where the last record that is replayed ends.
    pub lsn: Lsn,
    /// The record that was met is not replayed.
    pub is_before: bool,
    /// The transaction's end that was met, if it was one.
    pub transaction: Option<TransactionEnd>,
}

/// What is to be done with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Replay it.
    Replay,
    /// Stop before it.
    StopBefore,
    /// Replay it, then stop.
    StopAfter,
}

/// How far a recovery has come.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) consistency: Consistency,
    pub(super) timeline: u32,
    /// Where the last record that was replayed ends.
    pub(super) replayed_to: Lsn,
    pub(super) stop: Option<Stop>,
    /// Where `full_page_writes` was switched off first.
    pub(super) full_page_writes_off: Option<Lsn>,
    pub(super) ended_backups: EndedBackups,
    is_over: bool,
}

impl Progress {
    pub(super) fn new(plan: &RecoveryPlan) -> Self {
        let checkpoint = &plan.checkpoint;
        let off = (!checkpoint.full_page_writes).then_some(plan.checkpoint_location);
        Self {
            consistency: Consistency::new(plan.consistent, plan.start),
            timeline: checkpoint.timeline,
            replayed_to: plan.start,
            stop: None,
            full_page_writes_off: off,
            ended_backups: EndedBackups::default(),
            is_over: plan.is_clean(),
        }
    }

    /// Looks at the next record: what is to be done with it, when the plan's target is still to be met.
    pub(super) fn step(
        &mut self,
        plan: &RecoveryPlan,
        record: RecordPlace,
        landmark: Option<&Landmark>,
    ) -> Result<Step> {
        let target = plan.target.as_ref().filter(|_| self.stop.is_none());
        let is_consistent = self.consistency.reached().is_some();
        if target.is_some_and(|t| stops_before(t, is_consistent, record.lsn, landmark)) {
            self.stop_at(record.lsn, true, landmark);
            return Ok(Step::StopBefore);
        }
        self.replay(plan, record, landmark)?;
        let is_consistent = self.consistency.reached().is_some();
        let is_met = |t: &RecoveryTarget| {
            t.is_after(record.lsn, landmark) || t.place == TargetPlace::Consistent && is_consistent
        };
        if target.is_some_and(is_met) {
            self.stop_at(record.lsn, false, landmark);
            return Ok(Step::StopAfter);
        }
        Ok(Step::Replay)
    }

    /// Looks at records in a row, and says how many of them are to be replayed.
    fn step_over(&mut self, plan: &RecoveryPlan, records: &PlainRecords) -> Result<usize> {
        let mut ends = records.ends().iter().peekable();
        for (number, place) in records.places().iter().enumerate() {
            let end = ends.next_if(|end| end.record == number);
            let landmark = end.map(|end| Landmark::Transaction(TransactionEnd::from(*end)));
            let step = self.step(plan, *place, landmark.as_ref())?;
            if step != Step::Replay {
                self.is_over = true;
                return Ok(number + usize::from(step == Step::StopAfter));
            }
        }
        Ok(records.places().len())
    }

    /// WAL has no more records.
    pub(super) fn ended(&mut self, plan: &RecoveryPlan) {
        self.consistency.ended(self.replayed_to);
        let wants_consistency =
            plan.target.as_ref().is_some_and(|t| t.place == TargetPlace::Consistent);
        if wants_consistency && self.stop.is_none() && self.consistency.reached().is_some() {
            self.stop_at(self.replayed_to, false, None);
        }
    }

    fn stop_at(&mut self, record: Lsn, is_before: bool, landmark: Option<&Landmark>) {
        let transaction = match landmark {
            Some(Landmark::Transaction(end)) => Some(*end),
            _ => None,
        };
        self.stop = Some(Stop { record, lsn: self.replayed_to, is_before, transaction });
    }

    fn replay(
        &mut self,
        plan: &RecoveryPlan,
        record: RecordPlace,
        landmark: Option<&Landmark>,
    ) -> Result<()> {
        let steering = match landmark {
            Some(Landmark::Recovery(steering)) => Some(steering),
            _ => None,
        };
        if let Some(steering) = steering {
            self.check(plan, record.lsn, steering)?;
        }
        self.replayed_to = record.end;
        self.consistency.replayed(steering, record.end);
        Ok(())
    }

    /// What a server stops at with an error.
    fn check(&mut self, plan: &RecoveryPlan, lsn: Lsn, record: &RecoveryRecord) -> Result<()> {
        match record {
            RecoveryRecord::Checkpoint(checkpoint, true) => {
                if self.consistency.awaits_backup_end() {
                    return Err(Error::refused(Refusal::BackupCanceled(lsn)));
                }
                let (from, to) = (checkpoint.previous_timeline, checkpoint.timeline);
                self.switch(plan, lsn, TimelineSwitch { from, to })
            }
            RecoveryRecord::EndOfRecovery(to, from) => {
                self.switch(plan, lsn, TimelineSwitch { from: *from, to: *to })
            }
            RecoveryRecord::WalLevel(MINIMAL) if plan.is_archive_recovery => {
                Err(Error::refused(Refusal::MinimalWal(lsn)))
            }
            RecoveryRecord::BackupEnd(start) => {
                self.ended_backups.add(plan, EndedBackup { start: *start, end: lsn });
                Ok(())
            }
            RecoveryRecord::FullPageWrites(false) => {
                self.full_page_writes_off.get_or_insert(lsn);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn switch(&mut self, plan: &RecoveryPlan, lsn: Lsn, switch: TimelineSwitch) -> Result<()> {
        let TimelineSwitch { from, to } = switch;
        if to == self.timeline {
            return Ok(());
        }
        let is_on_the_way = plan.source.history().is_none_or(|history| history.part(to).is_some());
        if from != self.timeline || to < self.timeline || !is_on_the_way {
            let along = self.timeline;
            return Err(Error::refused(Refusal::StrayTimeline { lsn, from, to, along }));
        }
        self.timeline = to;
        Ok(())
    }
}

/// A timeline that goes on from another, as a record says.
#[derive(Debug, Clone, Copy)]
struct TimelineSwitch {
    from: u32,
    to: u32,
}

fn stops_before(
    target: &RecoveryTarget,
    is_consistent: bool,
    lsn: Lsn,
    landmark: Option<&Landmark>,
) -> bool {
    target.is_before(lsn, landmark) || target.place == TargetPlace::Consistent && is_consistent
}

impl<'p> RecoveryWalk<'p> {
    pub(super) fn new(storage: &Storage, plan: &'p RecoveryPlan) -> Self {
        let reader = WalReader::along(storage, &plan.source, plan.start);
        Self { plan, reader, progress: Progress::new(plan) }
    }

    /// The next record to be replayed; `None` at the target or the end of WAL.
    ///
    /// # Errors
    /// What a server stops at; files that cannot be read.
    pub fn next_record(&mut self) -> Result<Option<WalRecord<'_>>> {
        if self.progress.is_over {
            return Ok(None);
        }
        let Some(record) = self.reader.next_record()? else {
            self.progress.is_over = true;
            self.progress.ended(self.plan);
            return Ok(None);
        };
        let landmark = Landmark::of(&record, self.plan.version)?;
        match self.progress.step(self.plan, record.place(), landmark.as_ref())? {
            Step::Replay => Ok(Some(record)),
            Step::StopAfter => {
                self.progress.is_over = true;
                Ok(Some(record))
            }
            Step::StopBefore => {
                self.progress.is_over = true;
                Ok(None)
            }
        }
    }

    /// Takes all records that are to be replayed into an index. They are those of [`next_record`](Self::next_record), read
    /// by all cores.
    ///
    /// # Errors
    /// As [`next_record`](Self::next_record); a record that cannot be understood, and changes files.
    pub fn index(&mut self, builder: &mut WalIndexBuilder) -> Result<()> {
        while !self.progress.is_over {
            match self.reader.next_portion()? {
                None => {
                    self.progress.is_over = true;
                    self.progress.ended(self.plan);
                }
                Some(Portion::One(record)) => {
                    let landmark = Landmark::of(&record, self.plan.version)?;
                    let step = self.progress.step(self.plan, record.place(), landmark.as_ref())?;
                    self.progress.is_over = step != Step::Replay;
                    if step != Step::StopBefore {
                        builder.add(&record)?;
                    }
                }
                Some(Portion::Plain(records)) => {
                    let replayed = self.progress.step_over(self.plan, records)?;
                    builder.add_plain(records, replayed)?;
                }
            }
        }
        Ok(())
    }

    /// From where on the files are consistent, once replay has come there.
    pub fn consistent_at(&self) -> Option<Lsn> {
        self.progress.consistency.reached()
    }

    /// Where and why the recovery ended. What is left of the WAL is read for that, if there is something left.
    ///
    /// # Errors
    /// Refused: a target that was not met, or before the files are consistent; WAL that ends before that, or goes on
    /// behind its end, so that it was damaged, unless `accepts_bad_wal`.
    pub fn finish(mut self, accepts_bad_wal: bool) -> Result<RecoveryEnd> {
        while self.next_record()?.is_some() {}
        let (plan, progress) = (self.plan, &self.progress);
        let end = match progress.stop {
            Some(_) => None,
            None => self.reader.end(),
        };
        let problems = RecoveryProblem::all(plan, progress, end);
        let is_refused = |problem: &&RecoveryProblem| !(accepts_bad_wal && problem.is_of_wal());
        if let Some(problem) = problems.iter().find(is_refused) {
            return Err(Error::refused(Refusal::Recovery(problem.clone())));
        }
        let consistent_at = progress.consistency.reached().unwrap_or(progress.replayed_to);
        Ok(RecoveryEnd {
            lsn: progress.replayed_to,
            timeline: progress.timeline,
            consistent_at,
            stop: progress.stop,
            end_of_wal: end.cloned(),
            problems,
        })
    }
}
