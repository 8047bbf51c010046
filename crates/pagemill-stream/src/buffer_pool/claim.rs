//! A block that its claimant is to load: the memory for it, and the duty to say how it ended.
//!
//! A claim owns its memory, so an operation in flight can own the claim: nothing has to outlive
//! anything. One that is dropped, by an early return or a panic too, is a load that failed.
//!
//! Invariant: `memory` is there until the claim is completed or dropped.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use pagemill_format::{BlockBytes, BlockNumber};

use super::page_memory::{PageMemory, PinnedPage};
use super::partition::Partition;
use super::pending::Pending;
use super::strategy::Strategy;
use super::sync::SharedArc;
use super::{BufferPool, NoUnpinnedBuffers, PageKey};

/// What a block was when it was claimed.
#[derive(Debug)]
pub enum Claimed {
    /// In the pool, and pinned now.
    Here(PinnedPage),
    /// Missing: the caller loads it, while everyone else who wants it waits.
    Missing(Claim),
    /// Being loaded by somebody else.
    Elsewhere(Elsewhere),
}

/// The right, and the duty, to load a block.
///
/// Dereferences to the bytes that are to be loaded, arbitrary at first. They become a page with
/// [`complete`](Self::complete); dropped, the claim leaves no trace, and who waits loads again.
pub struct Claim<P: Deref<Target = BufferPool> = Arc<BufferPool>> {
    pool: P,
    key: PageKey,
    memory: Option<PageMemory>,
}

impl<P: Deref<Target = BufferPool>> Claim<P> {
    /// A claim of a block whose slot says that it is being loaded.
    pub(super) fn begin(
        pool: P,
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

    /// The block.
    pub fn block(&self) -> BlockNumber {
        self.key.block
    }

    /// The bytes are loaded: they become the block's page, which is what everybody gets who waits.
    pub fn complete(mut self) -> PinnedPage {
        let memory = self.memory.take().expect(LOADING); // infallible: LOADING
        let page = PinnedPage::new(memory);
        let pin = page.clone();
        let install = |partition: &mut Partition| partition.install(self.key, pin);
        if let Some(pending) = self.pool.in_partition(self.key, install) {
            pending.finish(Some(page.clone()));
        }
        page
    }

    /// As [`complete`](Self::complete), with bytes that were loaded elsewhere and are copied.
    pub fn complete_with(mut self, bytes: &BlockBytes) -> PinnedPage {
        self.copy_from_slice(bytes);
        self.complete()
    }

    /// The load failed. Says in words what dropping the claim does.
    pub fn fail(self) {}
}

/// Why a claim always has memory.
const LOADING: &str = "only completing or dropping takes the memory, and both end the claim";

impl<P: Deref<Target = BufferPool>> Deref for Claim<P> {
    type Target = BlockBytes;

    fn deref(&self) -> &BlockBytes {
        self.memory.as_ref().expect(LOADING) // infallible: LOADING
    }
}

impl<P: Deref<Target = BufferPool>> DerefMut for Claim<P> {
    fn deref_mut(&mut self) -> &mut BlockBytes {
        self.memory.as_mut().expect(LOADING) // infallible: LOADING
    }
}

impl<P: Deref<Target = BufferPool>> Drop for Claim<P> {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else { return };
        // In this order: who wakes up finds the block free, and memory to load it to.
        self.pool.memory.give_back(memory);
        self.pool.abandon(self.key, |_| {});
    }
}

impl<P: Deref<Target = BufferPool>> std::fmt::Debug for Claim<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claim").field("key", &self.key).finish_non_exhaustive()
    }
}

/// A block that somebody else is loading. From the end of that load on, its page is pinned as long as
/// this value exists.
pub struct Elsewhere {
    pool: Arc<BufferPool>,
    pending: SharedArc<Pending>,
}

impl Elsewhere {
    pub(super) fn new(pool: Arc<BufferPool>, pending: SharedArc<Pending>) -> Self {
        Self { pool, pending }
    }

    /// Waits for the page; `None` when its load failed, and the block is to be claimed anew.
    ///
    /// Own claims are to be completed or dropped before.
    pub fn wait(self) -> Option<PinnedPage> {
        self.pool.wait(&self.pending)
    }
}

impl std::fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Elsewhere").finish_non_exhaustive()
    }
}
