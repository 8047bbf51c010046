//! Two rows with one key of a unique index, as COPY reports them: of all such rows the first of the input, of its indexes the
//! oldest, and those of DEFERRABLE constraints last.
//!
//! Source: `ExecInsertIndexTuples` in `src/backend/executor/execIndexing.c`, which takes the indexes of a row in the order of
//! their oids, and `CopyFromErrorCallback` in `src/backend/commands/copyfrom.c`, PostgreSQL 14 to 18. No context is
//! printed for a constraint that is asked after the last row.

use std::fmt;

use pagemill_format::{Oid, Tid};

use super::index::{IndexPlan, TakenKey};
use super::row_lines::InputLine;

/// A row whose key another row has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateKey {
    /// The index.
    pub index: String,
    /// Its columns and their values: `(a, b)=(1, x)`.
    pub key: String,
    /// Where the row lay in the input: known of rows that go to one table, unless the constraint is DEFERRABLE.
    pub place: Option<InputLine>,
}

impl fmt::Display for DuplicateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, key, place } = self;
        if let Some(place) = place {
            write!(f, "{}: ", place.input)?;
        }
        write!(f, "duplicate key value violates unique constraint \"{index}\"")?;
        write!(f, "\nDETAIL:  Key {key} already exists.")?;
        match place {
            Some(InputLine { relation, line, .. }) => {
                write!(f, "\nCONTEXT:  COPY {relation}, line {line}")
            }
            None => Ok(()),
        }
    }
}

impl std::error::Error for DuplicateKey {}

/// The first of the rows with taken keys, over all indexes of a table.
#[derive(Debug, Default)]
pub(super) struct FirstTaken<'p> {
    found: Option<(&'p IndexPlan, TakenKey)>,
}

impl<'p> FirstTaken<'p> {
    /// True once there is one.
    pub(super) fn is_some(&self) -> bool {
        self.found.is_some()
    }

    /// Adds that of an index.
    pub(super) fn add(&mut self, plan: &'p IndexPlan, taken: Option<TakenKey>) {
        let Some(taken) = taken else { return };
        let is_first = |(other, before): &(&IndexPlan, TakenKey)| {
            rank(plan, taken.row) < rank(other, before.row)
        };
        if self.found.as_ref().is_none_or(is_first) {
            self.found = Some((plan, taken));
        }
    }

    /// What is to be reported; `place` tells where a row lay.
    pub(super) fn report(
        self,
        place: impl FnOnce(Tid) -> Option<InputLine>,
    ) -> Option<DuplicateKey> {
        let (plan, TakenKey { row, key }) = self.found?;
        let place = if plan.immediate { place(row) } else { None };
        Some(DuplicateKey { index: plan.name(), key, place })
    }
}

/// Rows lie in the order of the input.
fn rank(plan: &IndexPlan, row: Tid) -> (bool, Tid, Oid) {
    (!plan.immediate, row, plan.class.oid)
}
