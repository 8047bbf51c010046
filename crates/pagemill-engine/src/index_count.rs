//! Counting rows in the order of an index: every entry is looked up as an index scan does, and what
//! the entries of a heap page find there is worked out once for the whole page.
//!
//! So a random look at the heap costs a look into a small table, and each heap page is read once,
//! as long as the memory given holds 80 bytes for each of them.
//!
//! Invariant: a row is counted when its entry leads to a visible tuple, and never without an entry.

use std::collections::HashSet;

use pagemill_cluster::hot_chain::{ChainVisibility, PageVisibility, visible_member};
use pagemill_cluster::page_check::{PageCheck, check_page};
use pagemill_cluster::{Cluster, ClusterLog};
use pagemill_format::page::Page;
use pagemill_format::{BLOCK_SIZE, BlockNumber, Tid};
use pagemill_io::ForkFiles;
use pagemill_stream::ReadStreamOptions;

use crate::damage::{DamageLog, damage_of};
use crate::error::Result;
use crate::fork_pages::ForkReading;
use crate::fork_slots::{SlotState, Slots};
use crate::index_scan::IndexScan;
use crate::page_scan::BlockLocation;
use crate::progress::Progress;

/// Memory of a slot: what is seen on a page, and what finds it.
const SLOT_BYTES: usize = size_of::<PageVisibility>() + 16;

/// The heap as the entries of an index see it.
pub(crate) struct HeapSights<'a> {
    cluster: &'a Cluster,
    files: &'a ForkFiles,
    log: ClusterLog,
    slots: Slots,
    sights: Vec<PageVisibility>,
    reading: ReadStreamOptions,
    progress: &'a Progress,
    /// Blocks whose damage was reported.
    reported: HashSet<BlockNumber>,
}

impl<'a> HeapSights<'a> {
    /// What fits into so many bytes.
    pub(crate) fn new(reading: ForkReading<'a>, bytes: usize) -> Self {
        let ForkReading { cluster, files, options: reading, progress } = reading;
        let slots = Slots::new(files.blocks(), bytes / SLOT_BYTES);
        let sights = vec![PageVisibility::LOST; slots.count()];
        let log = ClusterLog::new(cluster.clone());
        let reported = HashSet::new();
        Self { cluster, files, log, slots, sights, reading, progress, reported }
    }

    /// Pages asked for whose sight was known, and pages read.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.slots.counts()
    }

    /// Counts the rows of all entries of a scan.
    ///
    /// # Errors
    /// On damage, unless it is to be skipped.
    pub(crate) fn count(&mut self, scan: &mut IndexScan, damage: &mut DamageLog) -> Result<u64> {
        let mut rows = 0;
        loop {
            self.slots.begin_round();
            if !scan.advance(damage, |block| self.slots.want(block))? {
                return Ok(rows + scan.rows());
            }
            self.read_wanted(scan);
            for entry in scan.batch().entries() {
                rows += match self.look(entry.tid) {
                    ChainVisibility::Row => 1,
                    ChainVisibility::Nothing => 0,
                    ChainVisibility::Fault => self.look_closer(entry.tid, damage)?,
                };
            }
        }
    }

    fn read_wanted(&mut self, scan: &mut IndexScan) {
        let Self { cluster, files, log, slots, sights, reading, progress, .. } = self;
        let before = slots.counts().1;
        let check = PageCheck { cluster, files };
        let worth = |block| scan.is_worth_reading(block);
        slots.read_wanted(files, *reading, worth, |slot, block, bytes| {
            sights[slot] = match check.check_or_read_again(block, bytes, None, &mut None) {
                Ok(bytes) => PageVisibility::of(Page::new(bytes), block, log),
                Err(_) => PageVisibility::LOST,
            };
        });
        progress.add_pages(slots.counts().1 - before);
    }

    #[inline]
    fn look(&self, tid: Tid) -> ChainVisibility {
        match self.slots.find(tid.block) {
            Some((slot, SlotState::Read)) => self.sights[slot].at(tid.line_pointer),
            _ => ChainVisibility::Fault,
        }
    }

    /// Tells what is wrong where an entry leads; the rows that are there after all.
    #[cold]
    fn look_closer(&mut self, tid: Tid, damage: &mut DamageLog) -> Result<u64> {
        let Self { cluster, files, log, .. } = self;
        let mut bytes = Box::new([0; BLOCK_SIZE]);
        let read = files.read_block(tid.block, &mut bytes).map_err(pagemill_cluster::Error::from);
        if let Err(error) = read.and_then(|()| check_page(cluster, files, tid.block, &bytes)) {
            if self.reported.insert(tid.block) {
                damage.report(damage_of(error)?)?;
            }
            return Ok(0);
        }
        match visible_member(Page::new(&bytes), tid.block, tid.line_pointer, log) {
            Ok(member) => Ok(u64::from(member.is_some())),
            Err((number, fault)) => {
                damage.report(BlockLocation::new(files, tid.block).tuple_damage(number, fault)?)?;
                Ok(0)
            }
        }
    }
}
