//! A load under way, and those who wait for it.
//!
//! The page is handed to the waiting threads directly. It would not do to let them look for it: it might
//! have given way again before they come to it, and then the block would be read twice.
//!
//! Invariant: the outcome is set once, after the block's slot says the same, and never changes.

use super::page_memory::PinnedPage;
use super::sync::{Condvar, Mutex, lock, wait};

/// A load under way.
#[derive(Default)]
pub(super) struct Pending {
    outcome: Mutex<Option<LoadResult>>,
    known: Condvar,
}

enum LoadResult {
    Loaded(PinnedPage),
    Failed,
}

impl Pending {
    /// Waits for the outcome: the page, or `None` when the load failed.
    pub(super) fn wait(&self) -> Option<PinnedPage> {
        let mut outcome = lock(&self.outcome);
        loop {
            match &*outcome {
                None => outcome = wait(&self.known, outcome),
                Some(LoadResult::Loaded(page)) => return Some(page.clone()),
                Some(LoadResult::Failed) => return None,
            }
        }
    }

    /// Tells everyone who waits.
    pub(super) fn finish(&self, page: Option<PinnedPage>) {
        *lock(&self.outcome) = Some(page.map_or(LoadResult::Failed, LoadResult::Loaded));
        self.known.notify_all();
    }
}
