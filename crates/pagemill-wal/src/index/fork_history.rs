//! [`ForkHistory`]: which records changed which blocks of one fork, and what became of its file.
//!
//! A record that brings a block's whole page makes all before it forgotten, for that block: what is kept begins, for
//! each block, at its last image or initialization, or where there is none at the first record of all.
//!
//! Truncations, removals and growth are taken in as they come, in the order of the WAL, into a rule that says what is
//! true afterwards whatever the file on disk is: a file of n blocks ends up with n blocks, but at least
//! [`least_blocks`](ForkHistory::least_blocks), which records have put there, and at most
//! [`most_blocks`](ForkHistory::most_blocks), which a truncation left. What lies in the file from
//! [`base_blocks`](ForkHistory::base_blocks) on is of the time before a truncation, and counts no more.
//!
//! Invariant: after [`finish`](ForkHistory::finish) entries are sorted by block and then by LSN.
//!
//! Sources: `XLogReadBufferExtended` in `src/backend/access/transam/xlogutils.c`, `smgr_redo` in
//! `src/backend/catalog/storage.c`, PostgreSQL 14 to 18.

use std::ops::Range;

use pagemill_format::wal::RelFileLocator;
use pagemill_format::{BlockNumber, Fork, Lsn};

/// Entries of a fork that are let pile up before they are pruned.
const PRUNE_AT: usize = 1 << 14;

/// A fork of a relation, as WAL names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ForkKey {
    /// The relation's files.
    pub locator: RelFileLocator,
    /// The fork.
    pub fork: Fork,
}

/// What a record does to one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// It changes the page that is there.
    Delta,
    /// The same, but with a record that never brings an image, whatever the settings are.
    DeltaWithoutImage,
    /// It brings the page as it is afterwards.
    Image,
    /// It makes the page anew.
    Init,
}

impl EntryKind {
    const ALL: [Self; 4] = [Self::Delta, Self::DeltaWithoutImage, Self::Image, Self::Init];

    /// True when the page before it does not matter.
    pub fn is_whole_page(self) -> bool {
        matches!(self, Self::Image | Self::Init)
    }
}

/// One record that changed one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The block.
    pub block: BlockNumber,
    /// Where the record begins, a multiple of 8, so that the lowest bits have room for its kind.
    lsn_and_kind: u64,
}

impl Entry {
    const KIND_BITS: u64 = 3;

    pub(crate) fn new(block: BlockNumber, lsn: Lsn, kind: EntryKind) -> Self {
        Self { block, lsn_and_kind: lsn.0 & !Self::KIND_BITS | kind as u64 }
    }

    /// Where the record begins.
    pub fn lsn(self) -> Lsn {
        Lsn(self.lsn_and_kind & !Self::KIND_BITS)
    }

    /// What the record does to the block.
    pub fn kind(self) -> EntryKind {
        EntryKind::ALL[(self.lsn_and_kind & Self::KIND_BITS) as usize]
    }
}

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
    entries: Vec<Entry>,
    prune_at: usize,
    least_blocks: u32,
    most_blocks: u32,
    base_blocks: u32,
    life: FileLife,
}

impl Default for ForkHistory {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            prune_at: PRUNE_AT,
            least_blocks: 0,
            most_blocks: u32::MAX,
            base_blocks: u32::MAX,
            life: FileLife::Unchanged,
        }
    }
}

impl ForkHistory {
    /// The records that a block's page is to be redone by, in the order of the WAL.
    pub fn entries_of(&self, block: BlockNumber) -> &[Entry] {
        let from = self.first_entry_from(block);
        let rest = self.entries.get(from..).unwrap_or_default();
        let len = rest.partition_point(|entry| entry.block == block);
        &rest[..len]
    }

    /// The entries of all blocks, sorted by block and then by LSN.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The first block from `block` on that has an entry.
    pub fn next_touched(&self, block: BlockNumber) -> Option<BlockNumber> {
        self.entries.get(self.first_entry_from(block)).map(|entry| entry.block)
    }

    /// The blocks within `range` that have entries, ascending, each as often as it has one.
    pub fn touched_within(&self, range: Range<u32>) -> impl Iterator<Item = BlockNumber> + '_ {
        let from = self.first_entry_from(BlockNumber(range.start));
        let to = self.first_entry_from(BlockNumber(range.end));
        self.entries.get(from..to).unwrap_or_default().iter().map(|entry| entry.block)
    }

    /// The first change of a page that is nowhere brought whole, of the kinds that bring an image.
    pub(super) fn first_without_image(&self) -> Option<Entry> {
        let chains = self.entries.chunk_by(|one, next| one.block == next.block);
        let mut bare = chains.filter(|chain| !chain.iter().any(|e| e.kind().is_whole_page()));
        bare.find_map(|chain| chain.iter().find(|entry| entry.kind() == EntryKind::Delta).copied())
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

    /// Takes in that records change blocks, in the order of the WAL.
    pub(crate) fn touch_all(&mut self, entries: &[Entry]) {
        let whole = entries.iter().filter(|entry| entry.kind().is_whole_page());
        if let Some(last) = whole.map(|entry| entry.block.0).max() {
            let blocks = last.saturating_add(1);
            self.least_blocks = self.least_blocks.max(blocks);
            self.most_blocks = self.most_blocks.max(blocks);
            if self.life == FileLife::Dropped {
                self.life = FileLife::Created;
            }
        }
        self.entries.extend_from_slice(entries);
        if self.entries.len() >= self.prune_at {
            self.prune();
            self.prune_at = PRUNE_AT.max(2 * self.entries.len());
        }
    }

    /// Takes in that the file is made, or kept if it is there.
    pub(crate) fn create(&mut self) {
        self.life = FileLife::Created;
    }

    /// Takes in that the fork keeps its first `blocks` blocks.
    pub(crate) fn truncate(&mut self, blocks: u32) {
        self.least_blocks = self.least_blocks.min(blocks);
        self.most_blocks = self.most_blocks.min(blocks);
        self.base_blocks = self.base_blocks.min(blocks);
        self.entries.retain(|entry| entry.block.0 < blocks);
    }

    /// Takes in that the file is removed.
    pub(crate) fn drop_file(&mut self) {
        *self = Self {
            least_blocks: 0,
            most_blocks: 0,
            base_blocks: 0,
            life: FileLife::Dropped,
            ..Self::default()
        };
    }

    /// Sorts what is left, for good.
    pub(crate) fn finish(&mut self) {
        self.prune();
        self.entries.shrink_to_fit();
    }

    /// Sorts the entries, and forgets those that a later one of their block makes needless.
    fn prune(&mut self) {
        sort_by_block(&mut self.entries);
        let mut kept = 0;
        for at in 0..self.entries.len() {
            let entry = self.entries[at];
            if entry.kind().is_whole_page() {
                while kept > 0 && self.entries[kept - 1].block == entry.block {
                    kept -= 1;
                }
            }
            self.entries[kept] = entry;
            kept += 1;
        }
        self.entries.truncate(kept);
    }

    fn first_entry_from(&self, block: BlockNumber) -> usize {
        self.entries.partition_point(|entry| entry.block < block)
    }
}

/// Sorts entries by block and LSN. They come sorted up to some place, and from there on in the order of the WAL, so that
/// those of a block are in order already: where blocks lie close together they are counted and put in their places,
/// which takes a fraction of the time of comparing.
fn sort_by_block(entries: &mut Vec<Entry>) {
    let blocks = entries.iter().map(|entry| entry.block.0);
    let (Some(first), Some(last)) = (blocks.clone().min(), blocks.max()) else { return };
    let range = (last - first) as usize;
    if range / 2 > entries.len() {
        return entries.sort_unstable();
    }
    let mut places = vec![0_u32; range + 2];
    let number = |entry: &Entry| (entry.block.0 - first) as usize;
    entries.iter().for_each(|entry| places[number(entry) + 1] += 1);
    for at in 1..places.len() {
        places[at] += places[at - 1];
    }
    let mut sorted = vec![Entry { block: BlockNumber(0), lsn_and_kind: 0 }; entries.len()];
    for entry in entries.iter() {
        let place = &mut places[number(entry)];
        sorted[*place as usize] = *entry;
        *place += 1;
    }
    *entries = sorted;
}

#[cfg(test)]
mod tests {
    use super::*;
    use EntryKind::{Delta, Image, Init};

    fn touch(history: &mut ForkHistory, block: u32, lsn: u64, kind: EntryKind) {
        history.touch_all(&[Entry::new(BlockNumber(block), Lsn(lsn), kind)]);
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
        let entries = history.entries_of(BlockNumber(block)).iter();
        entries.map(|entry| (entry.lsn().0, entry.kind())).collect()
    }

    #[test]
    fn what_lies_before_a_whole_page_is_forgotten_for_that_block_only() {
        let touches =
            [(7, 8, Delta), (3, 16, Delta), (7, 24, Image), (7, 32, Delta), (3, 40, Delta)];
        let history = history(&touches);
        assert_eq!(lsns(&history, 7), [(24, Image), (32, Delta)]);
        assert_eq!(lsns(&history, 3), [(16, Delta), (40, Delta)]);
        assert_eq!(lsns(&history, 5), []);
        assert_eq!(history.next_touched(BlockNumber(4)), Some(BlockNumber(7)));
        assert_eq!(history.next_touched(BlockNumber(8)), None);
        let touched: Vec<_> = history.touched_within(0..7).map(|block| block.0).collect();
        assert_eq!(touched, [3, 3]);
    }

    #[test]
    fn a_block_that_is_touched_again_and_again_takes_no_more_room() {
        let mut history = ForkHistory::default();
        for lsn in 0..10 * PRUNE_AT as u64 {
            let kind = if lsn % 100 == 0 { Init } else { Delta };
            touch(&mut history, 1, 8 * lsn, kind);
            assert!(history.entries.len() <= PRUNE_AT);
        }
        history.finish();
        assert_eq!(lsns(&history, 1).len(), 10 * PRUNE_AT - (10 * PRUNE_AT - 1) / 100 * 100);
    }

    #[test]
    fn entries_are_sorted_by_block_and_lsn_whether_blocks_lie_close_or_far_apart() {
        for stride in [1, 100_000] {
            let mut entries: Vec<Entry> = (0..1000_u32)
                .map(|number| {
                    let block = BlockNumber(5 + number * 7919 % 64 * stride);
                    Entry::new(block, Lsn(u64::from(number) * 8), Delta)
                })
                .collect();
            let mut expected = entries.clone();
            expected.sort();
            sort_by_block(&mut entries);
            assert_eq!(entries, expected);
        }
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
        history.truncate(4);
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
        history.drop_file();
        assert!(!history.exists(true) && history.entries().is_empty());
        history.create();
        assert!(history.exists(false));
        assert_eq!((history.most_blocks(), history.base_blocks()), (0, 0));
        history.drop_file();
        touch(&mut history, 0, 16, Init);
        assert!(history.exists(false));
        assert_eq!(history.most_blocks(), 1);
    }
}
