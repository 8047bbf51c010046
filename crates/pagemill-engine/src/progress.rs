//! What a caller and a running operation share: how far it is, and the wish that it stop.
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
