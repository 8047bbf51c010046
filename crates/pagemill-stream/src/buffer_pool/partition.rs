//! A part of the table of pages: the slots of its blocks, its frames, and its part of the clock.
//!
//! The clock of the pool is that of its partitions one behind the other, so a partition that came to
//! have more frames than others also loses more of them.
//!
//! Invariants: `slots[k]` is `Resident(f)` exactly when `frames[f].key` is `k`; a frame owns its page,
//! and its usage count is at most [`MAX_USAGE_COUNT`](super::strategy::MAX_USAGE_COUNT).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use super::PageKey;
use super::page_memory::{PageMemory, PinnedPage};
use super::pending::Pending;
use super::strategy::Strategy;
use super::sync::SharedArc;

/// One part of the table.
#[derive(Default)]
pub(super) struct Partition {
    slots: HashMap<PageKey, Slot, BuildHasherDefault<AlreadyMixed>>,
    frames: Vec<Frame>,
    /// The frame looked at next when one must give way.
    hand: usize,
    pub(super) hits: u64,
    pub(super) misses: u64,
}

enum Slot {
    Resident(usize),
    /// Being loaded; with what those wait on who want it meanwhile, once there are any.
    Loading(Option<SharedArc<Pending>>),
}

impl Slot {
    fn into_pending(self) -> Option<SharedArc<Pending>> {
        match self {
            Self::Resident(_) => None,
            Self::Loading(pending) => pending,
        }
    }
}

struct Frame {
    key: PageKey,
    page: PinnedPage,
    usage: u8,
}

impl Frame {
    fn use_page(&mut self, strategy: &Strategy<'_>) -> PinnedPage {
        self.usage = strategy.used(self.usage);
        self.page.clone()
    }
}

/// What became of a search.
pub(super) enum Lookup {
    Here(PinnedPage),
    /// Somebody else is loading it.
    Elsewhere(SharedArc<Pending>),
    /// The searcher is to load it now, and to say here how that ended.
    Missing,
}

/// What the hand came by on its way to the end of a partition.
pub(super) enum Passed {
    Victim(PageMemory),
    /// No victim, but pages that will be one when they are not used again.
    Used,
    /// Nothing that is not pinned.
    Pinned,
}

impl Partition {
    /// Looks for a page; where it is missing, its load begins with this.
    pub(super) fn find_or_begin(&mut self, key: PageKey, strategy: &Strategy<'_>) -> Lookup {
        match self.slots.get_mut(&key) {
            Some(Slot::Resident(frame)) => {
                self.hits += 1;
                Lookup::Here(self.frames[*frame].use_page(strategy))
            }
            Some(Slot::Loading(pending)) => {
                Lookup::Elsewhere(pending.get_or_insert_default().clone())
            }
            None => {
                self.slots.insert(key, Slot::Loading(None));
                self.misses += 1;
                Lookup::Missing
            }
        }
    }

    /// The page, if it is here.
    pub(super) fn find(&mut self, key: PageKey, strategy: &Strategy<'_>) -> Option<PinnedPage> {
        let Some(Slot::Resident(frame)) = self.slots.get(&key) else { return None };
        self.hits += 1;
        Some(self.frames[*frame].use_page(strategy))
    }

    pub(super) fn contains(&self, key: PageKey) -> bool {
        matches!(self.slots.get(&key), Some(Slot::Resident(_)))
    }

    /// The load of a block has come to a page. Returns what others wait on, who are to be told.
    pub(super) fn install(&mut self, key: PageKey, page: PinnedPage) -> Option<SharedArc<Pending>> {
        let before = self.slots.insert(key, Slot::Resident(self.frames.len()));
        self.frames.push(Frame { key, page, usage: 1 });
        before.and_then(Slot::into_pending)
    }

    /// The load of a block has failed. Returns what others wait on, who are to be told.
    pub(super) fn abandon(&mut self, key: PageKey) -> Option<SharedArc<Pending>> {
        self.slots.remove(&key).and_then(Slot::into_pending)
    }

    /// Moves the hand on to a victim, or to the end of this partition.
    pub(super) fn sweep(&mut self) -> Passed {
        let mut passed = Passed::Pinned;
        while let Some(frame) = self.frames.get_mut(self.hand) {
            if frame.page.is_only_owner() {
                passed = Passed::Used;
                match frame.usage.checked_sub(1) {
                    Some(usage) => frame.usage = usage,
                    None => {
                        if let Some(memory) = self.remove(self.hand) {
                            return Passed::Victim(memory);
                        }
                    }
                }
            }
            self.hand += 1;
        }
        self.hand = 0;
        passed
    }

    /// The memory of a page that is not pinned, however often it was used.
    pub(super) fn take_any(&mut self) -> Option<PageMemory> {
        let unpinned = self.frames.iter_mut().position(|frame| frame.page.is_only_owner());
        unpinned.and_then(|frame| self.remove(frame))
    }

    /// The memory of a page, if that is neither pinned nor used more than once.
    pub(super) fn take_seldom_used(&mut self, key: PageKey) -> Option<PageMemory> {
        let Some(Slot::Resident(frame)) = self.slots.get(&key) else { return None };
        let index = *frame;
        let frame = &mut self.frames[index];
        if frame.usage > 1 || !frame.page.is_only_owner() {
            return None;
        }
        self.remove(index)
    }

    /// Takes a page that has no other owner out of its frame; the last frame moves to its place.
    fn remove(&mut self, index: usize) -> Option<PageMemory> {
        let removed = self.frames.swap_remove(index);
        self.slots.remove(&removed.key);
        if let Some(moved) = self.frames.get(index) {
            self.slots.insert(moved.key, Slot::Resident(index));
        }
        removed.page.into_memory()
    }

    #[cfg(test)]
    pub(super) fn resident(&self) -> usize {
        assert_eq!(self.frames.len(), self.slots.len(), "a slot without an end to its load");
        for (index, frame) in self.frames.iter().enumerate() {
            assert!(matches!(self.slots.get(&frame.key), Some(Slot::Resident(at)) if *at == index));
        }
        self.frames.len()
    }
}

impl Hash for PageKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.mixed());
    }
}

/// Takes a key's own mixture for its hash.
#[derive(Default)]
pub(super) struct AlreadyMixed(u64);

impl Hasher for AlreadyMixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, mixed: u64) {
        self.0 = mixed;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }
}
