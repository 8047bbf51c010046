//! Why a cluster cannot be changed: its state, its lock, rows of its catalogs.
//!
//! Invariant: each says what the cluster is or holds, and no flag; the command adds what to do.

use std::io;

/// Why a row of a catalog cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogRowCause {
    /// The page does not have it any more.
    #[error("a row of a catalog lost its line pointer")]
    LostLinePointer,
    /// It is shorter than the columns that its catalog begins with.
    #[error("a row of a catalog ends before its columns do")]
    EndsEarly,
    /// It is longer than a page.
    #[error("a row of a catalog finds no room on an empty page")]
    NoRoom,
    /// A value of it lies in a TOAST table.
    #[error("a row of a catalog that has to be copied has a value in a TOAST table")]
    ToastedValue,
}

/// Why a cluster is in no state to be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateCause {
    /// It was not shut down.
    #[error(
        "the cluster's state is \"{0}\", not \"shut down\": start PostgreSQL on it and stop it"
    )]
    NotShutDown(String),
    /// A server would begin with a recovery.
    #[error("there is a {0}: start PostgreSQL on it first, and stop it")]
    RecoveryFile(&'static str),
    /// Transactions were prepared and wait for their end.
    #[error(
        "{0} prepared transactions are waiting, which may hold locks: COMMIT or ROLLBACK PREPARED them first"
    )]
    PreparedTransactions(usize),
    /// Too few transaction numbers are left before the wraparound.
    #[error("transaction numbers are running out: VACUUM the databases first")]
    Wraparound,
}

/// Why the right to change a cluster cannot be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockCause {
    /// Something makes the lock file again and again.
    #[error("it comes back each time it is removed: a server may be starting, try again")]
    ComesBack,
    /// A starting server would take this process for one that is gone.
    #[error(
        "a server that starts would not see that this process is at work, as it is of another account than the \
         directory ({0}): run it as the owner of the directory"
    )]
    NotSeen(io::Error),
    /// Children of a server that was killed are at work.
    #[error(
        "process {pid} is gone, but others of its server still use shared memory segment {segment}: stop them first"
    )]
    SharedMemory {
        /// The server that is gone.
        pid: i32,
        /// The segment's number.
        segment: u32,
    },
}
