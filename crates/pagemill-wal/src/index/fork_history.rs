//! [`ForkHistory`]: which records changed which blocks of one fork, and what became of its file.
//!
//! A record that brings a block's whole page makes all before it forgotten, for that block: what is kept begins, for
//! each block, at its last image or initialization, or where there is none at the first record of all.
//!
//! Entries are in memory, or all in a temporary file when those of all forks do not fit there: either way the answers are the
//! same.
//!
//! Truncations, removals and growth are taken in as they come, in the order of the WAL, into a rule that says what is
//! true afterwards whatever the file on disk is: a file of n blocks ends up with n blocks, but at least
//! [`least_blocks`](ForkHistory::least_blocks), which records have put there, and at most
//! [`most_blocks`](ForkHistory::most_blocks), which a truncation left. What lies in the file from
//! [`base_blocks`](ForkHistory::base_blocks) on is of the time before a truncation, and counts no more.
//!
//! Sources: `XLogReadBufferExtended` in `src/backend/access/transam/xlogutils.c`, `smgr_redo` in
//! `src/backend/catalog/storage.c`, PostgreSQL 14 to 18.

use std::borrow::Cow;
use std::ops::Range;

use pagemill_format::BlockNumber;

use super::entry::{Entry, first_without_image};
use super::entry_list::{EntryList, first_from};
use super::spill::{Cuts, SpilledFork};
use crate::error::Result;

/// What became of a fork's file as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileLife {
    /// It is there if the file is.
    #[default]
    Unchanged,
    /// It was made, or one that was there was kept.
    Created,
    /// It was removed.
    Dropped,
}

/// What WAL did to one fork.
#[derive(Debug, Clone)]
pub struct ForkHistory {
    entries: EntryList,
    /// Which entries count of those that are in runs of a [`Spill`](super::spill::Spill).
    cuts: Cuts,
    /// The entries, where they are in a file.
    spilled: Option<SpilledFork>,
    least_blocks: u32,
    most_blocks: u32,
    base_blocks: u32,
    life: FileLife,
}

impl Default for ForkHistory {
    fn default() -> Self {
        Self {
            entries: EntryList::default(),
            cuts: Cuts::default(),
            spilled: None,
            least_blocks: 0,
            most_blocks: u32::MAX,
            base_blocks: u32::MAX,
            life: FileLife::Unchanged,
        }
    }
}

impl ForkHistory {
    /// The records that a block's page is to be redone by, in the order of the WAL.
    ///
    /// # Errors
    /// A temporary file that cannot be read; more entries than fit in memory.
    pub fn entries_of(&self, block: BlockNumber) -> Result<Cow<'_, [Entry]>> {
        if let Some(spilled) = &self.spilled {
            return Ok(spilled.entries_of(block)?.into());
        }
        let all = self.entries.sorted();
        let rest = &all[first_from(all, block)..];
        let len = rest.partition_point(|entry| entry.block == block);
        Ok(rest[..len].into())
    }

    /// The entries of all blocks, sorted by block and then by LSN, also where they do not fit in memory.
    ///
    /// # Errors
    /// A temporary file that cannot be read.
    pub fn entries(&self) -> Result<Cow<'_, [Entry]>> {
        match &self.spilled {
            Some(spilled) => Ok(spilled.entries()?.into()),
            None => Ok(self.entries.sorted().into()),
        }
    }

    /// The first block from `block` on that has an entry.
    ///
    /// # Errors
    /// A temporary file that cannot be read.
    pub fn next_touched(&self, block: BlockNumber) -> Result<Option<BlockNumber>> {
        match &self.spilled {
            Some(spilled) => spilled.next_touched(block),
            None => {
                let all = self.entries.sorted();
                Ok(all.get(first_from(all, block)).map(|entry| entry.block))
            }
        }
    }

    /// Sees the blocks within `range` that have entries, ascending, each as often as it has one.
    ///
    /// # Errors
    /// A temporary file that cannot be read.
    pub fn visit_touched(&self, range: Range<u32>, mut see: impl FnMut(BlockNumber)) -> Result<()> {
        if let Some(spilled) = &self.spilled {
            return spilled.visit_touched(range, &mut see);
        }
        let all = self.entries.sorted();
        let rest = &all[first_from(all, BlockNumber(range.start))..];
        let within = rest.iter().take_while(|entry| entry.block.0 < range.end);
        within.for_each(|entry| see(entry.block));
        Ok(())
    }

    /// The first change of a page that is nowhere brought whole, of the kinds that bring an image.
    pub(super) fn first_without_image(&self) -> Option<Entry> {
        match &self.spilled {
            Some(spilled) => spilled.first_without_image,
            None => first_without_image(self.entries.sorted()),
        }
    }

    /// Blocks that the fork has at least, whatever its file is.
    pub fn least_blocks(&self) -> u32 {
        self.least_blocks
    }

    /// Blocks that the fork has at most, whatever its file is.
    pub fn most_blocks(&self) -> u32 {
        self.most_blocks
    }

    /// Blocks of the file that count: later ones were cut off.
    pub fn base_blocks(&self) -> u32 {
        self.base_blocks
    }

    /// What became of the file.
    pub fn life(&self) -> FileLife {
        self.life
    }

    /// Whether the fork is there in the end, given whether its file is.
    pub fn exists(&self, file_exists: bool) -> bool {
        match self.life {
            FileLife::Unchanged => file_exists || self.least_blocks > 0,
            FileLife::Created => true,
            FileLife::Dropped => false,
        }
    }

    /// Takes in that records change blocks, in the order of the WAL. At most `most_new` of their entries wait to be sorted.
    pub(super) fn touch_all(&mut self, entries: &[Entry], most_new: usize) {
        let whole = entries.iter().filter(|entry| entry.kind().is_whole_page());
        if let Some(last) = whole.map(|entry| entry.block.0).max() {
            let blocks = last.saturating_add(1);
            self.least_blocks = self.least_blocks.max(blocks);
            self.most_blocks = self.most_blocks.max(blocks);
            if self.life == FileLife::Dropped {
                self.life = FileLife::Created;
            }
        }
        self.entries.append(entries, most_new);
    }

    /// Takes in that the file is made, or kept if it is there.
    pub(super) fn create(&mut self) {
        self.life = FileLife::Created;
    }

    /// Takes in that the fork keeps its first `blocks` blocks; entries that were written to files are in runs before this one.
    pub(super) fn truncate(&mut self, blocks: u32, next_run: u32) {
        self.least_blocks = self.least_blocks.min(blocks);
        self.most_blocks = self.most_blocks.min(blocks);
        self.base_blocks = self.base_blocks.min(blocks);
        self.entries.truncate(blocks);
        self.cuts.add(blocks, next_run);
    }

    /// Takes in that the file is removed; entries that were written to files are in runs before this one.
    pub(super) fn drop_file(&mut self, next_run: u32) {
        let mut cuts = std::mem::take(&mut self.cuts);
        cuts.add(0, next_run);
        *self = Self {
            cuts,
            least_blocks: 0,
            most_blocks: 0,
            base_blocks: 0,
            life: FileLife::Dropped,
            ..Self::default()
        };
    }

    /// A copy of the file: what is known of it but for the entries that are in runs, which are copied there.
    pub(super) fn copy(&self) -> Self {
        Self { cuts: Cuts::default(), ..self.clone() }
    }

    /// What entries take in memory, in bytes.
    pub(super) fn entry_bytes(&self) -> usize {
        self.entries.bytes()
    }

    pub(super) fn has_entries_in_memory(&self) -> bool {
        !self.entries.is_empty()
    }

    pub(super) fn cuts(&self) -> &Cuts {
        &self.cuts
    }

    /// All entries in memory, of which none are left there.
    pub(super) fn take_entries(&mut self) -> Vec<Entry> {
        self.entries.take()
    }

    /// Sorts what is in memory, and forgets what a later entry makes needless.
    pub(super) fn finish(&mut self) {
        self.entries.finish();
    }

    /// All entries are in this part of a file.
    pub(super) fn set_spilled(&mut self, spilled: SpilledFork) {
        self.spilled = Some(spilled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::EntryKind::{self, Delta, Image, Init};
    use pagemill_format::Lsn;

    fn touch(history: &mut ForkHistory, block: u32, lsn: u64, kind: EntryKind) {
        history.touch_all(&[Entry::new(BlockNumber(block), Lsn(lsn), kind)], usize::MAX);
    }

    fn history(touches: &[(u32, u64, EntryKind)]) -> ForkHistory {
        let mut history = ForkHistory::default();
        for &(block, lsn, kind) in touches {
            touch(&mut history, block, lsn, kind);
        }
        history.finish();
        history
    }

    fn lsns(history: &ForkHistory, block: u32) -> Vec<(u64, EntryKind)> {
        let entries = history.entries_of(BlockNumber(block)).unwrap();
        entries.iter().map(|entry| (entry.lsn().0, entry.kind())).collect()
    }

    #[test]
    fn what_lies_before_a_whole_page_is_forgotten_for_that_block_only() {
        let touches =
            [(7, 8, Delta), (3, 16, Delta), (7, 24, Image), (7, 32, Delta), (3, 40, Delta)];
        let history = history(&touches);
        assert_eq!(lsns(&history, 7), [(24, Image), (32, Delta)]);
        assert_eq!(lsns(&history, 3), [(16, Delta), (40, Delta)]);
        assert_eq!(lsns(&history, 5), []);
        assert_eq!(history.next_touched(BlockNumber(4)).unwrap(), Some(BlockNumber(7)));
        assert_eq!(history.next_touched(BlockNumber(8)).unwrap(), None);
        let mut touched = Vec::new();
        history.visit_touched(0..7, |block| touched.push(block.0)).unwrap();
        assert_eq!(touched, [3, 3]);
    }

    #[test]
    fn only_whole_pages_make_a_fork_longer() {
        let history = history(&[(9, 8, Delta), (4, 16, Image)]);
        assert_eq!((history.least_blocks(), history.base_blocks()), (5, u32::MAX));
        assert!(history.exists(false));
    }

    #[test]
    fn a_truncation_cuts_what_was_there_and_what_comes_after_grows_again() {
        let mut history = history(&[(9, 8, Image), (2, 16, Delta)]);
        history.truncate(4, 0);
        assert_eq!((history.least_blocks(), history.most_blocks()), (4, 4));
        touch(&mut history, 6, 24, Init);
        history.finish();
        assert_eq!((history.least_blocks(), history.most_blocks()), (7, 7));
        // Block 5 is of the file no more, even if the file still has it.
        assert_eq!(history.base_blocks(), 4);
        assert_eq!(lsns(&history, 9), []);
        assert_eq!(lsns(&history, 2), [(16, Delta)]);
    }

    #[test]
    fn a_removed_fork_can_be_made_again() {
        let mut history = history(&[(0, 8, Image)]);
        history.drop_file(0);
        assert!(!history.exists(true) && history.entries().unwrap().is_empty());
        history.create();
        assert!(history.exists(false));
        assert_eq!((history.most_blocks(), history.base_blocks()), (0, 0));
        history.drop_file(0);
        touch(&mut history, 0, 16, Init);
        assert!(history.exists(false));
        assert_eq!(history.most_blocks(), 1);
    }
}
