//! Which values a TOAST table has already, so that no new one gets the number of another.
//!
//! Numbers come from the cluster's counter, which wraps round after four thousand million: a new number may be that of
//! a value long there.
//!
//! Source: `toast_save_datum` in `src/backend/access/common/toast_internals.c`, `GetNewOidWithIndex` in
//! `src/backend/catalog/catalog.c`, PostgreSQL 14 to 18.

use pagemill_cluster::change::OidCounter;
use pagemill_format::{Error, Oid};

/// The numbers of the values of one TOAST table.
#[derive(Debug, Default)]
pub(super) struct UsedIds {
    sorted: Vec<Oid>,
}

impl UsedIds {
    /// Takes numbers in any order, some of them several times.
    pub(super) fn new(mut ids: Vec<Oid>) -> Self {
        ids.sort_unstable();
        ids.dedup();
        Self { sorted: ids }
    }

    /// The next number that no value has.
    ///
    /// # Errors
    /// When all have been tried.
    pub(super) fn next_unused(&self, oids: &OidCounter) -> Result<Oid, Error> {
        for _ in 0..=self.sorted.len() {
            let taken = oids.take();
            if self.sorted.binary_search(&taken).is_err() {
                return Ok(taken);
            }
        }
        Err(Error::limit("the TOAST table has no number left for another value"))
    }
}
