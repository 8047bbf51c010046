//! [`Cuts`]: which entries of a fork, of those in runs, count no more, since it was truncated or removed.
//!
//! Invariant: an entry counts unless a cut after it, in WAL, took its block away.

use pagemill_format::BlockNumber;

/// Truncations of a fork that has entries in runs, without those that a later one makes needless.
///
/// Invariant: ascending by run, and by the blocks that were left; so there are no more than runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::index) struct Cuts(Vec<Cut>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    /// Entries of the runs before this one are older.
    next_run: u32,
    /// Blocks that were left; those of a removed file are 0.
    blocks: u32,
}

impl Cuts {
    /// Takes in that the fork is left with so many blocks, before the run of this number is written.
    pub(in crate::index) fn add(&mut self, blocks: u32, next_run: u32) {
        if next_run == 0 {
            return;
        }
        while self.0.last().is_some_and(|last| last.blocks >= blocks) {
            self.0.pop();
        }
        if self.0.last().is_none_or(|last| last.next_run < next_run) {
            self.0.push(Cut { next_run, blocks });
        }
    }

    /// True when an entry of a block in this run counts.
    pub(super) fn keep(&self, run: u32, block: BlockNumber) -> bool {
        let later = self.0.partition_point(|cut| cut.next_run <= run);
        self.0.get(later).is_none_or(|cut| block.0 < cut.blocks)
    }

    /// What they take in memory, in bytes.
    pub(in crate::index) fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<Cut>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_counts_until_its_block_is_cut_off() {
        let mut cuts = Cuts::default();
        cuts.add(0, 0);
        assert_eq!(cuts, Cuts::default());
        cuts.add(9, 1);
        cuts.add(5, 2);
        cuts.add(7, 4);
        cuts.add(8, 4);
        let kept = |run| (0..10).filter(|block| cuts.keep(run, BlockNumber(*block))).count();
        assert_eq!((0..6).map(kept).collect::<Vec<_>>(), [5, 5, 7, 7, 10, 10]);
        cuts.add(6, 6);
        assert_eq!((cuts.keep(5, BlockNumber(6)), cuts.keep(1, BlockNumber(4))), (false, true));
        assert_eq!(cuts.0.len(), 2);
        cuts.add(0, 7);
        assert_eq!(cuts.0, [Cut { next_run: 7, blocks: 0 }]);
    }
}
