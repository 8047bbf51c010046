//! A block that its claimant is to load: the memory for it, and the duty to say how it ended.
//!
//! A claim that is dropped, by an early return or a panic too, is a load that failed.
//!
//! Invariant: `memory` is there until the claim is completed or dropped.

use std::ops::{Deref, DerefMut};

use pagemill_format::BlockBytes;

use super::page_memory::{PageMemory, PinnedPage};
use super::partition::Partition;
use super::strategy::Strategy;
use super::{BufferPool, NoUnpinnedBuffers, PageKey};

/// The right, and the duty, to load a block.
///
/// Dereferences to the bytes that are to be loaded, arbitrary at first. They become a page with
/// [`complete`](Self::complete); dropped, the claim leaves no trace, and who waits loads again.
pub(super) struct Claim<'a> {
    pool: &'a BufferPool,
    key: PageKey,
    memory: Option<PageMemory>,
}

impl<'a> Claim<'a> {
    /// A claim of a block whose slot says that it is being loaded.
    pub(super) fn begin(
        pool: &'a BufferPool,
        key: PageKey,
        strategy: &mut Strategy<'_>,
    ) -> Result<Self, NoUnpinnedBuffers> {
        match pool.take_memory(key, strategy) {
            Ok(memory) => Ok(Self { pool, key, memory: Some(memory) }),
            Err(error) => {
                pool.abandon(key, |partition| partition.misses -= 1);
                Err(error)
            }
        }
    }

    /// The bytes are loaded: they become the block's page, which is what everybody gets who waits.
    pub(super) fn complete(mut self) -> PinnedPage {
        let memory = self.memory.take().expect(LOADING); // infallible: LOADING
        let page = PinnedPage::new(memory);
        let pin = page.clone();
        let install = |partition: &mut Partition| partition.install(self.key, pin);
        if let Some(pending) = self.pool.in_partition(self.key, install) {
            pending.finish(Some(page.clone()));
        }
        page
    }
}

/// Why a claim always has memory.
const LOADING: &str = "only completing or dropping takes the memory, and both end the claim";

impl Deref for Claim<'_> {
    type Target = BlockBytes;

    fn deref(&self) -> &BlockBytes {
        self.memory.as_ref().expect(LOADING) // infallible: LOADING
    }
}

impl DerefMut for Claim<'_> {
    fn deref_mut(&mut self) -> &mut BlockBytes {
        self.memory.as_mut().expect(LOADING) // infallible: LOADING
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else { return };
        // In this order: who wakes up finds the block free, and memory to load it to.
        self.pool.memory.give_back(memory);
        self.pool.abandon(self.key, |_| {});
    }
}
