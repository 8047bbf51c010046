//! The memory of pages: where it comes from, and a page that is in use.
//!
//! Memory is taken from the system in slabs of a megabyte as pages are first needed, because a page
//! allocated alone, and aligned, would cost half as much again. It goes back with the pool.
//!
//! Invariants: a [`PageMemory`] is the one owner of its bytes, and their count of owners is made with
//! them and kept when they change hands, so that a load allocates nothing; `taken` pages were ever made, at most the capacity; those in `free` belong to nobody.

use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut};

use pagemill_format::{BLOCK_SIZE, BlockBytes};
use pagemill_sys::AlignedPart;

use super::sync::{Mutex, SharedArc, lock};

/// Pages taken from the system at a time.
const SLAB_PAGES: usize = 128;

type Bytes = AlignedPart<BLOCK_SIZE>;

/// The memory of one page, aligned for direct I/O, owned by whoever has it.
pub(super) struct PageMemory(SharedArc<Bytes>);

impl Deref for PageMemory {
    type Target = BlockBytes;

    #[inline]
    fn deref(&self) -> &BlockBytes {
        &self.0
    }
}

impl DerefMut for PageMemory {
    #[inline]
    fn deref_mut(&mut self) -> &mut BlockBytes {
        SharedArc::get_mut(&mut self.0).expect(ONE_OWNER) // infallible: ONE_OWNER
    }
}

/// Why memory can be changed.
const ONE_OWNER: &str = "it is made as the one owner, or of a page found to have no other";

/// A page that stays where it is as long as this value, or a clone of it, exists.
#[derive(Debug, Clone)]
pub struct PinnedPage {
    memory: SharedArc<Bytes>,
}

impl PinnedPage {
    pub(super) fn new(memory: PageMemory) -> Self {
        Self { memory: memory.0 }
    }

    /// True when there is no other clone.
    pub(super) fn is_only_owner(&mut self) -> bool {
        SharedArc::get_mut(&mut self.memory).is_some()
    }

    /// The memory, when there is no other clone.
    pub(super) fn into_memory(mut self) -> Option<PageMemory> {
        self.is_only_owner().then_some(PageMemory(self.memory))
    }
}

impl Deref for PinnedPage {
    type Target = BlockBytes;

    #[inline]
    fn deref(&self) -> &BlockBytes {
        &self.memory
    }
}

/// Memory that belongs to no page.
pub(super) struct MemorySource {
    capacity: NonZeroUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    free: Vec<PageMemory>,
    /// How many pages' memory was ever taken from the system.
    taken: usize,
}

impl MemorySource {
    pub(super) fn new(capacity: NonZeroUsize) -> Self {
        Self { capacity, state: Mutex::new(State::default()) }
    }

    /// Memory of arbitrary contents; `None` when all of it is given away.
    pub(super) fn take(&self) -> Option<PageMemory> {
        let mut state = lock(&self.state);
        if state.free.is_empty() {
            let slab = SLAB_PAGES.min(self.capacity.get() - state.taken);
            state.taken += slab;
            let parts = Bytes::zeroed(slab).into_iter().rev();
            state.free.extend(parts.map(|part| PageMemory(SharedArc::new(part))));
        }
        state.free.pop()
    }

    pub(super) fn give_back(&self, memory: PageMemory) {
        lock(&self.state).free.push(memory);
    }

    /// Pages whose memory is free, and pages whose memory was ever taken.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.free.len(), state.taken)
    }
}
