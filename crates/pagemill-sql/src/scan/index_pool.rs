//! Indexes that are open for searches, kept between one statement and the next with the pages that were read of them.
//!
//! Invariants: one is used by one thread at a time; none is kept of files that change.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pagemill_engine::IndexLookup;
use pagemill_format::Oid;

/// Of one index so many are kept: half a MiB each at most.
const MOST_OF_ONE: usize = 4;
/// So many in all.
const MOST: usize = 64;

/// Open indexes that nobody uses at the moment.
#[derive(Default)]
pub(crate) struct IndexPool(Mutex<HashMap<Oid, Vec<IndexLookup>>>);

impl IndexPool {
    /// One of this index, if there is one.
    pub(super) fn take(&self, index: Oid) -> Option<IndexLookup> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&index)?.pop()
    }

    /// Keeps one for others, where there is room.
    pub(super) fn put(&self, index: Oid, lookup: IndexLookup) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = kept.values().map(Vec::len).sum();
        let of_index = kept.entry(index).or_default();
        if all < MOST && of_index.len() < MOST_OF_ONE {
            of_index.push(lookup);
        }
    }
}
