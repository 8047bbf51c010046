//! What a caller and a running operation share: how far it is, what it met, and the wish that it stop.
//!
//! Invariant: an operation looks at the wish before every page, so it ends within the work of one page of the moment the
//! wish is made known, but for a system call or a value that is under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, Result};

/// The progress of an operation, and the means to cancel it. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    shared: Arc<Shared>,
    met: Arc<Met>,
}

/// What scans of tables met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScanCounts {
    /// Blocks that were read into buffers.
    pub blocks_read: u64,
    /// Blocks that were looked at where the system maps them.
    pub blocks_mapped: u64,
    /// Tuples that are visible.
    pub tuples_alive: u64,
    /// Tuples that are not: deleted, replaced, or never committed.
    pub tuples_dead: u64,
}

#[derive(Debug, Default)]
struct Met {
    blocks_read: AtomicU64,
    blocks_mapped: AtomicU64,
    tuples_alive: AtomicU64,
    tuples_dead: AtomicU64,
}

#[derive(Debug, Default)]
struct Shared {
    pages: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress {
    /// Pages scanned so far.
    pub fn pages(&self) -> u64 {
        self.shared.pages.load(Ordering::Relaxed)
    }

    /// Ends the operations that report here with [`Error::Cancelled`], from any thread.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// True once it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Relaxed)
    }

    /// For a part of the operation: cancelled with it, and of its pages, with counts of its own.
    #[must_use]
    pub fn of_part(&self) -> Self {
        Self { shared: self.shared.clone(), met: Arc::default() }
    }

    /// What was met so far; of a scan that is still under way, up to the last read.
    pub fn counts(&self) -> ScanCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ScanCounts {
            blocks_read: of(&self.met.blocks_read),
            blocks_mapped: of(&self.met.blocks_mapped),
            tuples_alive: of(&self.met.tuples_alive),
            tuples_dead: of(&self.met.tuples_dead),
        }
    }

    /// Adds what was met.
    pub(crate) fn add_counts(&self, counts: ScanCounts) {
        let add = |counter: &AtomicU64, by| _ = counter.fetch_add(by, Ordering::Relaxed);
        add(&self.met.blocks_read, counts.blocks_read);
        add(&self.met.blocks_mapped, counts.blocks_mapped);
        add(&self.met.tuples_alive, counts.tuples_alive);
        add(&self.met.tuples_dead, counts.tuples_dead);
    }

    pub(crate) fn add_pages(&self, pages: u64) {
        self.shared.pages.fetch_add(pages, Ordering::Relaxed);
    }

    /// # Errors
    /// [`Error::Cancelled`] once it was cancelled.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}
