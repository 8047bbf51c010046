//! What a server has done since its start, counted.
//!
//! Invariant: a statement that began is running, or counted under exactly one of the ways to end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use pagemill_sql::{SqlState, StatementError};

/// `index_corrupted`; what else is damaged is `data_corrupted`.
const INDEX_CORRUPTED: SqlState = SqlState("XX002");

/// How a statement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementEnd {
    /// With its last row.
    Done,
    /// In an error.
    Failed,
    /// Nobody asked for its other rows.
    Left,
}

impl StatementEnd {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Done, Self::Failed, Self::Left];

    /// As it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Left => "left",
        }
    }
}

/// A number that grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// So many more.
    pub fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    /// How many there were.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What was counted.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Clients that were let in.
    pub connections: Count,
    /// Clients that were told why they are not.
    pub refusals: Count,
    /// Statements that began.
    pub statements: Count,
    ended: [Count; StatementEnd::ALL.len()],
    /// Rows that statements gave.
    pub rows: Count,
    /// Bytes that went to clients which were let in.
    pub sent_bytes: Count,
    /// Pages of tables that statements scanned.
    pub pages: Count,
    /// Damage that was met: left out of an answer, or the end of a statement.
    pub damage: Count,
    errors: Mutex<BTreeMap<&'static str, u64>>,
}

impl Metrics {
    /// A statement has ended, after so many pages.
    pub fn end(&self, outcome: StatementEnd, pages: u64) {
        self.ended[outcome as usize].add(1);
        self.pages.add(pages);
    }

    /// How many statements have ended so.
    pub fn ended(&self, outcome: StatementEnd) -> u64 {
        self.ended[outcome as usize].get()
    }

    /// A client was told an error.
    pub fn error(&self, error: &StatementError) {
        if error.state == SqlState::DATA_CORRUPTED || error.state == INDEX_CORRUPTED {
            self.damage.add(1);
        }
        let class = error.state.0.get(..2).unwrap_or(error.state.0);
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        *errors.entry(class).or_default() += 1;
    }

    /// Errors by the class of their SQLSTATE.
    pub fn errors(&self) -> BTreeMap<&'static str, u64> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_by_class_and_damage_beside() {
        let metrics = Metrics::default();
        for state in ["42P01", "42601", "XX001", "XX002", "XX000", "57014"] {
            metrics.error(&StatementError::new(SqlState(state), "x"));
        }
        let found: Vec<_> = metrics.errors().into_iter().collect();
        assert_eq!(found, [("42", 2), ("57", 1), ("XX", 3)]);
        assert_eq!(metrics.damage.get(), 2);
        metrics.end(StatementEnd::Left, 3);
        metrics.end(StatementEnd::Done, 4);
        let ended = StatementEnd::ALL.map(|outcome| metrics.ended(outcome));
        assert_eq!((ended, metrics.pages.get()), ([1, 0, 1], 7));
    }
}
