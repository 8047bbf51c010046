//! [`BlockVersions`]: the row versions that were ever on one block, as far as WAL and the page tell, each with what was done
//! to it.
//!
//! The block is followed from record to record. What a record says it does to tuples counts even where the page is not
//! known yet. Where it is known, line pointers are compared with what is known of them, so that what a record with an
//! image leaves unsaid (what it pruned) is found too.
//!
//! Invariant: versions are in the order in which they came to be; of one line pointer at most the last is open.

use std::collections::{BTreeMap, HashMap};

use pagemill_cluster::wal_history::BlockStep;
use pagemill_format::page::{LinePointerState, Page};
use pagemill_format::tuple::HeapTuple;
use pagemill_format::{BlockBytes, BlockNumber, Lsn, PgVersion, Tid, TransactionId};
use pagemill_redo::{TupleAction, TupleChange};

/// What was done to a row version, and by which record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionEvent {
    /// Where the record begins.
    pub lsn: Lsn,
    /// The record, as `Heap/HOT_UPDATE`.
    pub record: String,
    /// The transaction that wrote it; 0 when none did.
    pub xid: TransactionId,
    /// What was done.
    pub action: VersionAction,
}

/// What was done to a row version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionAction {
    /// To its tuple, or its line pointer.
    Tuple(TupleAction),
    /// The table was cut before its block.
    CutOff,
}

/// A row version.
#[derive(Debug, Clone)]
pub(super) struct Version {
    pub(super) tid: Tid,
    /// The tuple as it was last seen, if it was ever.
    pub(super) tuple: Option<Box<[u8]>>,
    pub(super) events: Vec<VersionEvent>,
    /// It is still there in the end.
    pub(super) is_there: bool,
}

impl Version {
    /// It was there before the first record that tells of it.
    pub(super) fn was_there(&self) -> bool {
        let is_beginning = |event: &VersionEvent| {
            use TupleAction::{Insert, NewVersion};
            matches!(event.action, VersionAction::Tuple(Insert | NewVersion(_)))
        };
        !self.events.first().is_some_and(is_beginning)
    }

    pub(super) fn heap_tuple(&self) -> Option<HeapTuple<'_>> {
        HeapTuple::parse(self.tuple.as_deref()?).ok()
    }

    fn is_of(&self, tuple: &[u8]) -> bool {
        let (Some(known), Ok(now)) = (self.heap_tuple(), HeapTuple::parse(tuple)) else {
            return true;
        };
        // An insertion that is taken back loses its transaction.
        known.xmin() == now.xmin() || now.xmin() == TransactionId::INVALID
    }
}

/// The row versions of one block.
#[derive(Debug, Default)]
pub(super) struct BlockVersions {
    pub(super) versions: Vec<Version>,
    /// Of each line pointer the version that is there.
    open: BTreeMap<u16, usize>,
    /// The version at a line pointer that a record updated or made by an update.
    updates: HashMap<(Lsn, u16), usize>,
    block: BlockNumber,
    /// What does not fit, if a record did not.
    pub(super) faults: Vec<String>,
}

impl BlockVersions {
    pub(super) fn new(block: BlockNumber) -> Self {
        Self { block, ..Self::default() }
    }

    /// Takes in what a record makes of the block.
    pub(super) fn step(&mut self, step: BlockStep<'_>, version: PgVersion) {
        let header = &step.record.header;
        let event = |action| VersionEvent {
            lsn: step.lsn,
            record: format!("{}/{}", header.resource_manager.name(), header.record_name(version)),
            xid: header.xid,
            action,
        };
        if step.effect.is_none() {
            for index in std::mem::take(&mut self.open).into_values() {
                self.versions[index].events.push(event(VersionAction::CutOff));
            }
            return;
        }
        let of_tuple = |action| event(VersionAction::Tuple(action));
        for TupleChange { line_pointer, action } in &step.tuples {
            self.change(*line_pointer, of_tuple(*action));
        }
        if let Some(page) = step.page {
            self.compare(Page::new(page), &of_tuple);
        }
        self.faults.extend(step.fault);
    }

    /// Takes in the page as it is in the end.
    pub(super) fn finish(&mut self, page: Option<&BlockBytes>) {
        match page {
            Some(page) => self.compare(Page::new(page), &|action| VersionEvent {
                lsn: Lsn(0),
                record: String::new(),
                xid: TransactionId::INVALID,
                action: VersionAction::Tuple(action),
            }),
            None => self.open.clear(),
        }
        for index in self.open.values() {
            self.versions[*index].is_there = true;
        }
    }

    /// The version at a line pointer that the record at this place updated, or made by an update.
    pub(super) fn updated_at(&self, lsn: Lsn, number: u16) -> Option<usize> {
        self.updates.get(&(lsn, number)).copied()
    }

    fn change(&mut self, number: u16, event: VersionEvent) {
        use TupleAction::{Dead, Insert, NewVersion, Redirect, Unused, Update};
        let VersionAction::Tuple(action) = event.action else { return };
        let index = match action {
            Insert | NewVersion(_) => self.begin(number, None),
            Dead | Unused | Redirect(_) => match self.open.remove(&number) {
                Some(index) => index,
                None => return,
            },
            _ => {
                let open = self.open.get(&number).copied();
                open.unwrap_or_else(|| self.begin(number, None))
            }
        };
        if matches!(action, NewVersion(_) | Update(_)) {
            self.updates.insert((event.lsn, number), index);
        }
        self.versions[index].events.push(event);
    }

    fn begin(&mut self, number: u16, tuple: Option<&[u8]>) -> usize {
        let tid = Tid { block: self.block, line_pointer: number };
        let tuple = tuple.map(Box::from);
        self.versions.push(Version { tid, tuple, events: Vec::new(), is_there: false });
        let index = self.versions.len() - 1;
        self.open.insert(number, index);
        index
    }

    /// Looks at all line pointers: those with a tuple, and those that had one.
    fn compare(&mut self, page: Page<'_>, event: &dyn Fn(TupleAction) -> VersionEvent) {
        let last = self.open.last_key_value().map_or(0, |(number, _)| *number);
        for number in 1..=page.line_pointer_count().max(last) {
            let lp = page.line_pointer(number);
            let ended = match lp.map(|lp| lp.state()) {
                Some(LinePointerState::Normal) => {
                    if let Some(item) = lp.and_then(|lp| page.item(lp).ok()) {
                        self.see(number, item);
                    }
                    continue;
                }
                Some(LinePointerState::Redirect) => {
                    TupleAction::Redirect(lp.map_or(0, |lp| lp.offset() as u16))
                }
                Some(LinePointerState::Dead) => TupleAction::Dead,
                Some(LinePointerState::Unused) | None => TupleAction::Unused,
            };
            if self.open.contains_key(&number) {
                self.change(number, event(ended));
            }
        }
    }

    fn see(&mut self, number: u16, item: &[u8]) {
        let open = self.open.get(&number).copied();
        match open.filter(|index| self.versions[*index].is_of(item)) {
            Some(index) => {
                let version = &mut self.versions[index];
                if version.tuple.as_deref() != Some(item) {
                    version.tuple = Some(item.into());
                }
            }
            None => {
                self.begin(number, Some(item));
            }
        }
    }
}
