//! What is done to databases and cut short: made by the two strategies that are logged, and dropped.
//!
//! Invariant: one thread copies, so that every run makes the same calls.

use pagemill_engine::clone::database::CloneStrategy;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabaseKind {
    /// The kind's name.
    pub name: &'static str,
    /// How a database is made; `None` when one is dropped.
    pub strategy: Option<CloneStrategy>,
}

/// All of them.
pub const DATABASE_KINDS: [DatabaseKind; 3] = [
    DatabaseKind { name: "clone_wal_log", strategy: Some(CloneStrategy::WalLog) },
    DatabaseKind { name: "clone_file_copy", strategy: Some(CloneStrategy::FileCopy) },
    DatabaseKind { name: "drop", strategy: None },
];
