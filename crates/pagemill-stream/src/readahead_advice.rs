//! What the kernel is told of blocks that lie far ahead in the order of a scan: the strategies of
//! [`Readahead`] beside the kernel's own.
//!
//! With a distance of four blocks, and `n` the place of a block in the scan's order:
//!
//! ```text
//! n                  0  1  2  3 | 4  5  6  7 | 8  9 10 11 | 12 13 14 15
//! every-page         4  5  6  7   8  9 10 11  12 13 14 15   16 …
//! window                          8  9 10 11                16 …
//! double-window      8  9 10 11   8  9 10 11  16 17 18 19   16 …
//! ```
//!
//! Why a window ahead helps: a mirror serves one sequential reader from one disk. Two places read at
//! once, a window apart, are served by two.
//!
//! Places count in the order of the scan and not in block numbers, so that a backward scan and one that
//! wraps round are read ahead as one that begins at block 0.
//!
//! Neighbours that are named for one run are named in one call.
//!
//! Invariants: only blocks that the scan will want are named; each once, but for `double-window`, whose
//! pattern is its own; advice never changes what is read.

use pagemill_format::BlockNumber;
use pagemill_io::{ForkFiles, Readahead};

use crate::block_queue::BlockQueue;

/// The advice of one stream.
#[derive(Debug)]
pub(crate) struct ReadaheadAdvice {
    strategy: Readahead,
    distance: u64,
    /// The place of the next block in the scan's order.
    place: u64,
}

impl ReadaheadAdvice {
    pub(crate) fn new(strategy: Readahead, distance: u32) -> Self {
        Self { strategy, distance: u64::from(distance.max(1)), place: 0 }
    }

    /// True when there is nothing to say ever.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self.strategy, Readahead::None | Readahead::Auto)
    }

    /// Says what there is to say before the next `count` blocks are read, which `blocks` has just handed
    /// out.
    pub(crate) fn before_reading<I: Iterator<Item = BlockNumber>>(
        &mut self,
        count: u32,
        blocks: &mut BlockQueue<I>,
        files: &ForkFiles,
    ) {
        if self.is_silent() {
            return;
        }
        let end = self.place + u64::from(count);
        let mut named = Named::default();
        while self.place < end {
            let ahead = self.distance_at(self.place);
            // Blocks of this run were taken from the queue: it begins at `end`.
            let from_end = (self.place + ahead).checked_sub(end);
            self.place += 1;
            let Some(from_end) = from_end.filter(|_| ahead > 0) else { continue };
            let wanted = usize::try_from(from_end).ok().and_then(|ahead| blocks.peek(ahead));
            if let Some(block) = wanted.filter(|block| files.contiguous(*block, 1) == 1) {
                named.add(block, files);
            }
        }
        named.tell(files);
    }

    /// How far ahead the block to be named at this place is; 0 for none.
    fn distance_at(&self, place: u64) -> u64 {
        let odd = (place / self.distance) % 2 == 1;
        match (self.strategy, odd) {
            (Readahead::EveryPage, _) | (Readahead::Window | Readahead::DoubleWindow, true) => {
                self.distance
            }
            (Readahead::DoubleWindow, false) => 2 * self.distance,
            (Readahead::Window, false) | (Readahead::None | Readahead::Auto, _) => 0,
        }
    }
}

/// Neighbours to be named in one call.
#[derive(Debug, Default)]
struct Named {
    first: BlockNumber,
    len: u32,
}

impl Named {
    fn add(&mut self, block: BlockNumber, files: &ForkFiles) {
        let follows = self.len > 0 && self.first.0.checked_add(self.len) == Some(block.0);
        if follows && files.contiguous(self.first, self.len + 1) > self.len {
            self.len += 1;
            return;
        }
        self.tell(files);
        *self = Self { first: block, len: 1 };
    }

    fn tell(&self, files: &ForkFiles) {
        if self.len > 0 {
            // The read itself will tell what is wrong with the file.
            let _ = files.advise(self.first, self.len, pagemill_io::Advice::WillNeed);
        }
    }
}
