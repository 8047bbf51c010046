//! How a page is asked for: as one that may be wanted again, or by a scan that passes by.
//!
//! A large scan uses each page once. With a ring it reuses the memory of the pages it has left
//! behind, so that it neither drives others' pages out of the pool nor leaves the processor's cache.
//! Source: `GetBufferFromRing` in `src/backend/storage/buffer/freelist.c`, PostgreSQL 15.

use std::num::NonZeroUsize;

use super::PageKey;

/// The ring of a bulk read in PostgreSQL: 256 kB.
pub const BULK_READ_RING_PAGES: NonZeroUsize = NonZeroUsize::new(32).unwrap(); // infallible: 32 is not 0

/// How a page is asked for.
#[derive(Debug)]
pub enum Strategy<'r> {
    /// Each use makes the page stay longer.
    Normal,
    /// A scan passes by, which reuses the pages of its ring.
    Ring(&'r mut Ring),
}

impl Strategy<'_> {
    /// The usage count of a page that had `count` before this use.
    pub(super) fn used(&self, count: u8) -> u8 {
        match self {
            Self::Normal => count.saturating_add(1).min(MAX_USAGE_COUNT),
            Self::Ring(_) => count.max(1),
        }
    }

    pub(super) fn ring(&mut self) -> Option<&mut Ring> {
        match self {
            Self::Normal => None,
            Self::Ring(ring) => Some(ring),
        }
    }
}

/// The most rounds of the clock a page outlives unused. `BM_MAX_USAGE_COUNT` in
/// `src/include/storage/buf_internals.h`, PostgreSQL 15.
pub(super) const MAX_USAGE_COUNT: u8 = 5;

/// The pages one scan loaded last.
///
/// A page in it can have given way, or have been pinned or used by others meanwhile; then the scan gets
/// other memory, and the page is theirs.
#[derive(Debug)]
pub struct Ring {
    size: NonZeroUsize,
    keys: Vec<PageKey>,
    /// Where the next page goes: to the place of the oldest, once there are `size`.
    next: usize,
}

impl Ring {
    pub(super) fn new(size: NonZeroUsize) -> Self {
        Self { size, keys: Vec::new(), next: 0 }
    }

    /// The page whose memory comes next.
    pub(super) fn oldest(&self) -> Option<PageKey> {
        self.keys.get(self.next).copied()
    }

    /// Takes note of a page that is loaded into the oldest one's memory, or into other.
    pub(super) fn put(&mut self, key: PageKey) {
        match self.keys.get_mut(self.next) {
            Some(oldest) => *oldest = key,
            None => self.keys.push(key),
        }
        self.next = (self.next + 1) % self.size.get();
    }
}
