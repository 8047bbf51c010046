//! OIDs for new relation files and for values in TOAST tables, from the counter of `pg_control`.
//!
//! Invariant: a number is handed out once; after the last comes the first that is not reserved for initdb.
//!
//! Source: `GetNewObjectId` in `src/backend/access/transam/varsup.c`, PostgreSQL 14 to 18.

use std::sync::atomic::{AtomicU32, Ordering};

use pagemill_format::Oid;

use crate::database::FIRST_NORMAL_OID;

/// The counter of a change, for all its threads.
#[derive(Debug)]
pub struct OidCounter {
    next: AtomicU32,
}

impl OidCounter {
    /// Goes on from the next number of `pg_control`.
    pub(super) fn new(next: Oid) -> Self {
        Self { next: AtomicU32::new(next.0.max(FIRST_NORMAL_OID.0)) }
    }

    /// The next number. Whether something has it already is for the caller to ask.
    pub fn take(&self) -> Oid {
        let taken = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
            Some(next.checked_add(1).unwrap_or(FIRST_NORMAL_OID.0))
        });
        // Infallible: the update never declines.
        Oid(taken.unwrap_or_else(|next| next))
    }

    /// What the next one will be.
    pub fn peek(&self) -> Oid {
        Oid(self.next.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_last_number_comes_the_first_that_is_free() {
        let counter = OidCounter::new(Oid(u32::MAX));
        assert_eq!(counter.take(), Oid(u32::MAX));
        assert_eq!(counter.take(), FIRST_NORMAL_OID);
        assert_eq!(OidCounter::new(Oid(3)).peek(), FIRST_NORMAL_OID);
    }
}
