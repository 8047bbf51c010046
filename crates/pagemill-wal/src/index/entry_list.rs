//! [`EntryList`]: the entries of one fork in memory, pruned as they pile up.
//!
//! They come in the order of the WAL. When there are as many new ones as old ones, the new ones are sorted by block and merged
//! into the old ones, and those that a later one of their block makes needless are forgotten. Sorting takes room of its own, so
//! there is a limit to how many are let pile up.
//!
//! Invariant: those before `sorted` are sorted by block and then by LSN, and no block has an entry before one that brings
//! its whole page.

use pagemill_format::BlockNumber;

use super::entry::Entry;

/// Entries that are let pile up before they are pruned.
const PRUNE_AT: usize = 1 << 14;

/// Entries of one fork.
#[derive(Debug, Clone, Default)]
pub(super) struct EntryList {
    entries: Vec<Entry>,
    sorted: usize,
}

impl EntryList {
    /// Bytes that sorting takes for each new entry: its copy, and its share of the places of blocks.
    pub(super) const SORTING_BYTES: usize = Entry::BYTES + 2 * size_of::<u32>();

    /// Adds entries, in the order of the WAL. At most `most_new` of them are let pile up.
    pub(super) fn append(&mut self, entries: &[Entry], most_new: usize) {
        let room = self.entries.capacity() - self.entries.len();
        if room < entries.len() {
            // Doubling would leave half of it empty, where every byte is counted.
            let quarter = self.entries.len() / 4;
            self.entries.reserve_exact(entries.len().max(quarter).max(4));
        }
        self.entries.extend_from_slice(entries);
        let new = self.entries.len() - self.sorted;
        if new >= PRUNE_AT.max(self.sorted).min(most_new) {
            self.prune();
        }
    }

    /// Forgets entries of blocks from this one on.
    pub(super) fn truncate(&mut self, blocks: u32) {
        self.prune();
        let kept = self.entries.partition_point(|entry| entry.block.0 < blocks);
        self.entries.truncate(kept);
        self.sorted = kept;
    }

    /// Sorted and pruned, in as little room as that takes.
    pub(super) fn finish(&mut self) {
        self.prune();
        self.entries.shrink_to_fit();
    }

    /// All of them, of which nothing is left here.
    pub(super) fn take(&mut self) -> Vec<Entry> {
        self.prune();
        std::mem::take(self).entries
    }

    /// What they take in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() * Entry::BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All of them, once they are [finished](Self::finish).
    pub(super) fn sorted(&self) -> &[Entry] {
        debug_assert_eq!(
            self.sorted,
            self.entries.len(),
            "entries are sorted before they are read"
        );
        &self.entries
    }

    /// Sorts the new ones, and merges them into the old ones.
    fn prune(&mut self) {
        if self.sorted == self.entries.len() {
            return;
        }
        let mut new = sorted_by_block(&self.entries[self.sorted..]);
        forget_needless(&mut new);
        if self.sorted == 0 {
            self.entries = new;
        } else {
            self.entries.truncate(self.sorted);
            merge(&mut self.entries, &new);
        }
        self.sorted = self.entries.len();
    }
}

/// Merges sorted new entries into sorted old ones, from the end to the beginning, so that no more room is needed than both
/// take.
fn merge(entries: &mut Vec<Entry>, new: &[Entry]) {
    let (mut old, mut write) = (entries.len(), entries.len() + new.len());
    entries.extend_from_slice(new);
    for chain in new.chunk_by(|one, next| one.block == next.block).rev() {
        let block = chain[0].block;
        while old > 0 && entries[old - 1].block > block {
            (old, write) = (old - 1, write - 1);
            entries[write] = entries[old];
        }
        write -= chain.len();
        entries[write..write + chain.len()].copy_from_slice(chain);
        if chain[0].kind().is_whole_page() {
            while old > 0 && entries[old - 1].block == block {
                old -= 1;
            }
        }
    }
    if old < write {
        entries.copy_within(write.., old);
        entries.truncate(entries.len() - (write - old));
    }
}

/// Forgets entries before the last one of their block that brings the whole page.
fn forget_needless(entries: &mut Vec<Entry>) {
    let mut kept = 0;
    for at in 0..entries.len() {
        let entry = entries[at];
        if entry.kind().is_whole_page() {
            while kept > 0 && entries[kept - 1].block == entry.block {
                kept -= 1;
            }
        }
        entries[kept] = entry;
        kept += 1;
    }
    entries.truncate(kept);
}

/// Entries in the order of the WAL, sorted by block. Where blocks lie close together they are counted and put in their
/// places, which takes a fraction of the time of comparing.
fn sorted_by_block(entries: &[Entry]) -> Vec<Entry> {
    let blocks = entries.iter().map(|entry| entry.block.0);
    let (Some(first), Some(last)) = (blocks.clone().min(), blocks.max()) else {
        return Vec::new();
    };
    let mut sorted = entries.to_vec();
    let range = (last - first) as usize;
    if range / 2 > entries.len() {
        sorted.sort_by_key(|entry| entry.block);
        return sorted;
    }
    let mut places = vec![0_u32; range + 2];
    let number = |entry: &Entry| (entry.block.0 - first) as usize;
    entries.iter().for_each(|entry| places[number(entry) + 1] += 1);
    for at in 1..places.len() {
        places[at] += places[at - 1];
    }
    for entry in entries {
        let place = &mut places[number(entry)];
        sorted[*place as usize] = *entry;
        *place += 1;
    }
    sorted
}

/// Where the entries of blocks from this one on begin.
pub(super) fn first_from(entries: &[Entry], block: BlockNumber) -> usize {
    entries.partition_point(|entry| entry.block < block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::EntryKind::{Delta, Image, Init};
    use pagemill_format::Lsn;

    #[test]
    fn a_block_that_is_touched_again_and_again_takes_no_more_room() {
        let mut list = EntryList::default();
        for lsn in 0..10 * PRUNE_AT as u64 {
            let kind = if lsn % 100 == 0 { Init } else { Delta };
            list.append(&[Entry::new(BlockNumber(1), Lsn(8 * lsn), kind)], usize::MAX);
            assert!(list.entries.len() <= PRUNE_AT + 100);
        }
        list.finish();
        assert_eq!(list.sorted().len(), 10 * PRUNE_AT - (10 * PRUNE_AT - 1) / 100 * 100);
    }

    #[test]
    fn entries_are_sorted_by_block_and_lsn_whether_blocks_lie_close_or_far_apart() {
        for (stride, most_new) in [(1, 7), (1, usize::MAX), (100_000, 7), (100_000, usize::MAX)] {
            let entry = |number: u32| {
                let block = BlockNumber(5 + number * 7919 % 64 * stride);
                let kind = if number.is_multiple_of(31) { Image } else { Delta };
                Entry::new(block, Lsn(u64::from(number) * 8), kind)
            };
            let entries: Vec<Entry> = (0..1000).map(entry).collect();
            let last_whole = |block| {
                let mut of_block = entries.iter().rev().filter(|entry| entry.block == block);
                of_block.find(|entry| entry.kind() == Image).map_or(Lsn(0), |entry| entry.lsn())
            };
            let is_needed = |entry: &&Entry| entry.lsn() >= last_whole(entry.block);
            let mut expected: Vec<Entry> = entries.iter().filter(is_needed).copied().collect();
            expected.sort_by_key(|entry| (entry.block, entry.lsn()));
            let mut list = EntryList::default();
            entries.chunks(3).for_each(|some| list.append(some, most_new));
            list.finish();
            assert_eq!(list.sorted(), expected, "stride {stride}, at most {most_new}");
        }
    }
}
