//! What was written, sent to the device little by little.
//!
//! Why: the page cache would keep it all until the sync at the end, which then waits for everything at once; or
//! the kernel would run into its limit of changed pages, and hold up whoever writes. Here each stretch of 8 MiB
//! is sent on its way when it is complete, and a writer that gets [`FAR`] stretches ahead of the device waits for
//! it. So the final sync is short, and at most so much is changed and not written at any time.
//!
//! Invariant: nothing here is needed for a right result, nor makes anything durable; yet a failure is one of the
//! job, since the kernel may not tell it a second time.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use pagemill_format::{BLOCK_SIZE, BlockNumber};
use pagemill_io::{Caching, Result, WritableFork, WriteBack};

/// Blocks of a stretch (8 MiB).
const STRETCH: u32 = 1024;
/// Stretches on their way before the oldest is waited for (32 MiB).
const FAR: usize = 4;
/// Stretches that are not complete, kept in mind at most: where several streams share a stretch, none of them
/// completes it.
const MOST_BEGUN: usize = 8;

/// What one stream has written lately.
#[derive(Debug)]
pub(crate) struct SteadyWriteBack {
    fork: Arc<WritableFork>,
    /// Blocks written in each stretch that is not complete.
    begun: BTreeMap<u32, u32>,
    /// Stretches on their way.
    on_their_way: VecDeque<u32>,
}

impl SteadyWriteBack {
    pub(crate) fn new(fork: Arc<WritableFork>) -> Self {
        Self { fork, begun: BTreeMap::new(), on_their_way: VecDeque::new() }
    }

    /// Takes note of blocks that were written.
    pub(crate) fn written(&mut self, blocks: Range<u32>) -> Result<()> {
        if self.fork.how().caching == Caching::Direct {
            return Ok(());
        }
        let mut block = blocks.start;
        while block < blocks.end {
            let count = (STRETCH - block % STRETCH).min(blocks.end - block);
            self.add(block / STRETCH, count)?;
            block += count;
        }
        Ok(())
    }

    fn add(&mut self, stretch: u32, count: u32) -> Result<()> {
        let written = self.begun.entry(stretch).or_default();
        *written = written.saturating_add(count);
        if *written >= STRETCH {
            self.begun.remove(&stretch);
            return self.send(stretch);
        }
        if self.begun.len() > MOST_BEGUN {
            // Shared with others, or pages that come in random order: whatever is there by now.
            if let Some((stretch, _)) = self.begun.pop_first() {
                return self.send(stretch);
            }
        }
        Ok(())
    }

    fn send(&mut self, stretch: u32) -> Result<()> {
        self.write_back(stretch, WriteBack::Begin)?;
        self.on_their_way.push_back(stretch);
        match self.on_their_way.len() > FAR {
            true => self
                .on_their_way
                .pop_front()
                .map_or(Ok(()), |oldest| self.write_back(oldest, WriteBack::Wait)),
            false => Ok(()),
        }
    }

    fn write_back(&self, stretch: u32, how: WriteBack) -> Result<()> {
        let (file, offset) = self.fork.file(BlockNumber(stretch.saturating_mul(STRETCH)))?;
        file.write_back(offset..offset + u64::from(STRETCH) * BLOCK_SIZE as u64, how)
    }
}
