//! The blocks a stream was asked for and did not begin yet, in their order, and how they fall into
//! runs.
//!
//! A *run* is what one read can fetch: neighbours in one segment, in ascending or in descending order.
//!
//! Invariants: blocks come out in the order of the iterator, each once; the iterator is asked for no
//! more than was looked at, and never again after its end; a run lies in one segment, and where it has
//! more than one block none of them is lost.

use std::collections::VecDeque;
use std::iter::Fuse;

use pagemill_format::{BlockNumber, SEGMENT_BLOCKS};
use pagemill_io::ForkFiles;

/// Consecutive blocks of one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockRun {
    /// The lowest block.
    pub(crate) first: BlockNumber,
    pub(crate) len: u32,
    /// True when the highest block is wanted first.
    pub(crate) descending: bool,
}

impl BlockRun {
    /// The block handed out as the `index`th, from 0.
    pub(crate) fn block(&self, index: u32) -> BlockNumber {
        BlockNumber(self.first.0.saturating_add(self.place(index)))
    }

    /// Where the block handed out as the `index`th lies in the run.
    pub(crate) fn place(&self, index: u32) -> u32 {
        if self.descending { self.len.saturating_sub(1).saturating_sub(index) } else { index }
    }

    /// True when this run goes on where `earlier` ended.
    pub(crate) fn follows(&self, earlier: &Self) -> bool {
        let after = earlier.first.0.checked_add(earlier.len);
        let before = self.first.0.checked_add(self.len);
        (after == Some(self.first.0) && !self.descending)
            || (before == Some(earlier.first.0) && (self.descending || self.len == 1))
    }
}

/// Blocks to come.
#[derive(Debug)]
pub(crate) struct BlockQueue<I: Iterator<Item = BlockNumber>> {
    blocks: Fuse<I>,
    seen: VecDeque<BlockNumber>,
}

impl<I: Iterator<Item = BlockNumber>> BlockQueue<I> {
    pub(crate) fn new(blocks: impl IntoIterator<IntoIter = I>) -> Self {
        Self { blocks: blocks.into_iter().fuse(), seen: VecDeque::new() }
    }

    /// The block `ahead` places after the next one; `None` past the end.
    pub(crate) fn peek(&mut self, ahead: usize) -> Option<BlockNumber> {
        while self.seen.len() <= ahead {
            let block = self.blocks.next()?;
            self.seen.push_back(block);
        }
        self.seen.get(ahead).copied()
    }

    /// Takes the next run, of at most `most` blocks.
    pub(crate) fn next_run(&mut self, files: &ForkFiles, most: u32) -> Option<BlockRun> {
        let first = self.peek(0)?;
        self.seen.pop_front();
        let run = BlockRun { first, len: 1, descending: false };
        if most <= 1 {
            return Some(run);
        }
        let Some(second) = self.peek(0) else { return Some(run) };
        Some(if first.0.checked_add(1) == Some(second.0) {
            self.ascend(files, run, most)
        } else if second.0.checked_add(1) == Some(first.0) {
            self.descend(files, run, most)
        } else {
            run
        })
    }

    fn ascend(&mut self, files: &ForkFiles, mut run: BlockRun, most: u32) -> BlockRun {
        let most = files.contiguous(run.first, most);
        while run.len < most && self.peek(0).map(|block| block.0) == Some(run.first.0 + run.len) {
            self.seen.pop_front();
            run.len += 1;
        }
        run
    }

    fn descend(&mut self, files: &ForkFiles, mut run: BlockRun, most: u32) -> BlockRun {
        if files.contiguous(run.first, 1) == 0 {
            return run;
        }
        while run.len < most
            && !run.first.0.is_multiple_of(SEGMENT_BLOCKS)
            && self.peek(0).map(|block| block.0) == Some(run.first.0 - 1)
        {
            self.seen.pop_front();
            run = BlockRun {
                first: BlockNumber(run.first.0 - 1),
                len: run.len + 1,
                descending: true,
            };
        }
        run
    }
}
