//! The order in which a sequential scan takes the blocks of a fork: up or down, from any block on, and
//! round to where it began.
//!
//! ```text
//! present 0..4, 8..12     forward                      backward
//!   from the beginning    0 1 2 3 8 9 10 11            11 10 9 8 3 2 1 0
//!   from block 9          9 10 11 0 1 2 3 8            9 8 3 2 1 0 11 10
//!   from block 5 (lost)   8 9 10 11 0 1 2 3            3 2 1 0 11 10 9 8
//! ```
//!
//! A scan that goes up and round is PostgreSQL's synchronized scan (`heapam.c`, PostgreSQL 14 to 18);
//! one that goes down is its backward scan. Where PostgreSQL combines both, it begins one block below
//! the start block; here the block that was named comes first in either direction.
//!
//! Invariants: every present block comes exactly once; the [rank](ScanOrder::rank) of the blocks
//! that come only grows.

use std::ops::Range;

use pagemill_format::BlockNumber;

/// Where a scan begins and in which direction it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ScanOrder {
    /// Down, from higher blocks to lower ones.
    pub backward: bool,
    /// The block to begin with; `None` for the first in the direction of the scan.
    pub start: Option<BlockNumber>,
}

impl ScanOrder {
    /// Up from this block, and round.
    pub fn from_block(start: BlockNumber) -> Self {
        Self { backward: false, start: Some(start) }
    }

    /// True for the order that blocks have in the file.
    pub fn is_plain(self) -> bool {
        !self.backward && self.start.is_none_or(|start| start.0 == 0)
    }

    /// The place of a block in the order: of two blocks the one with the lower rank comes first.
    pub fn rank(self, block: BlockNumber) -> u64 {
        // A block on the far side of the start comes after every block on the near side.
        const ROUND: u64 = 1 << 32;
        let (block, last) = (u64::from(block.0), u64::from(u32::MAX));
        match (self.backward, self.start.map(|start| u64::from(start.0))) {
            (false, None) => block,
            (false, Some(start)) => {
                if block >= start {
                    block
                } else {
                    block + ROUND
                }
            }
            (true, None) => last - block,
            (true, Some(start)) => last - block + if block <= start { 0 } else { ROUND },
        }
    }

    /// Cuts and turns ranges of blocks, given in ascending order, into the order of the scan. Each of
    /// them is then to be read in the direction of the scan.
    pub fn arrange(self, present: &[Range<u32>]) -> Vec<Range<u32>> {
        // The first leg goes from the start to the end in the direction of the scan, the second from
        // the other end to the start.
        let cut = match self.start {
            None => 0,
            Some(start) if self.backward => start.0.saturating_add(1),
            Some(start) => start.0,
        };
        let below = present.iter().map(|range| range.start..range.end.min(cut));
        let above = present.iter().map(|range| range.start.max(cut)..range.end);
        let mut ordered: Vec<Range<u32>> = match self.backward {
            false => above.chain(below).collect(),
            true => below.rev().chain(above.rev()).collect(),
        };
        ordered.retain(|range| !range.is_empty());
        ordered
    }

    /// The blocks of a range in the direction of the scan.
    pub fn blocks(self, range: Range<u32>) -> DirectedBlocks {
        self.blocks_of(std::iter::once(range))
    }

    /// The blocks of several ranges, each in the direction of the scan, one range after the other.
    pub fn blocks_of(self, ranges: impl IntoIterator<Item = Range<u32>>) -> DirectedBlocks {
        let later: Vec<Range<u32>> = ranges.into_iter().collect();
        DirectedBlocks { left: 0..0, later: later.into_iter(), backward: self.backward }
    }
}

/// The blocks of ranges, up or down.
#[derive(Debug, Clone)]
pub struct DirectedBlocks {
    left: Range<u32>,
    later: std::vec::IntoIter<Range<u32>>,
    backward: bool,
}

impl Iterator for DirectedBlocks {
    type Item = BlockNumber;

    #[inline]
    fn next(&mut self) -> Option<BlockNumber> {
        loop {
            let next = if self.backward { self.left.next_back() } else { self.left.next() };
            match next {
                Some(block) => return Some(BlockNumber(block)),
                None => self.left = self.later.next()?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn order(backward: bool, start: impl Into<Option<u32>>) -> ScanOrder {
        ScanOrder { backward, start: start.into().map(BlockNumber) }
    }

    fn scanned(order: ScanOrder, present: &[Range<u32>]) -> Vec<u32> {
        order.blocks_of(order.arrange(present)).map(|block| block.0).collect()
    }

    #[test]
    fn a_scan_goes_up_or_down_and_round() {
        let present = [0..4, 8..12];
        for (order, expected) in [
            (order(false, None), [0, 1, 2, 3, 8, 9, 10, 11]),
            (order(true, None), [11, 10, 9, 8, 3, 2, 1, 0]),
            (order(false, 9), [9, 10, 11, 0, 1, 2, 3, 8]),
            (order(true, 9), [9, 8, 3, 2, 1, 0, 11, 10]),
            (order(false, 5), [8, 9, 10, 11, 0, 1, 2, 3]),
            (order(true, 5), [3, 2, 1, 0, 11, 10, 9, 8]),
            (order(false, 12), [0, 1, 2, 3, 8, 9, 10, 11]),
            (order(true, u32::MAX), [11, 10, 9, 8, 3, 2, 1, 0]),
        ] {
            assert_eq!(scanned(order, &present), expected, "{order:?}");
        }
    }

    #[test]
    fn the_highest_block_numbers_are_no_exception() {
        let (last, present) = (u32::MAX - 1, [0..1, u32::MAX - 2..u32::MAX]);
        assert_eq!(scanned(order(true, last), &present), [last, last - 1, 0]);
        assert_eq!(scanned(order(false, last), &present), [last, 0, last - 1]);
        assert_eq!(scanned(order(true, 0), &present), [0, last, last - 1]);
    }

    #[test]
    fn only_the_order_of_the_file_is_plain() {
        assert!(order(false, None).is_plain() && order(false, 0).is_plain());
        assert!(!order(true, None).is_plain() && !order(false, 1).is_plain());
    }

    /// Asks of every block number in turn, step by step, whether it is present.
    fn naive(backward: bool, start: Option<u32>, end: u32, present: &[Range<u32>]) -> Vec<u32> {
        let mut at = start.unwrap_or(if backward { end - 1 } else { 0 });
        let mut found = Vec::new();
        for _ in 0..end {
            if present.iter().any(|range| range.contains(&at)) {
                found.push(at);
            }
            at = match backward {
                true => at.checked_sub(1).unwrap_or(end - 1),
                false => (at + 1) % end,
            };
        }
        found
    }

    proptest! {
        #[test]
        fn every_present_block_comes_once_in_the_order_of_a_walk_round_the_file(
            lens in prop::collection::vec((0u32..5, 1u32..20), 1..6),
            backward: bool, start in prop::option::of(0u32..1000),
        ) {
            let (mut present, mut end) = (Vec::new(), 0);
            for (gap, len) in lens {
                present.push(end + gap..end + gap + len);
                end += gap + len;
            }
            let start = start.map(|start| start % end);
            let order = order(backward, start);
            let found = scanned(order, &present);
            prop_assert_eq!(&found, &naive(backward, start, end, &present));
            let ranks: Vec<u64> = found.iter().map(|n| order.rank(BlockNumber(*n))).collect();
            prop_assert!(ranks.is_sorted_by(|one, next| one < next));
        }
    }
}
