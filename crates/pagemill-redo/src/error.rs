//! The one error of this crate: which record could not be applied, to which of its blocks, and why not.
//!
//! What lies above knows the file and the block's place in it, and adds them.

use pagemill_format::wal::ResourceManager;
use pagemill_format::{ErrorKind, Lsn};

/// Result with this crate's [`RedoError`].
pub type Result<T, E = RedoError> = std::result::Result<T, E>;

/// A record that cannot be applied to a page.
#[derive(Debug, thiserror::Error)]
#[error("{operation} at {start}, block reference {reference}: {cause}")]
pub struct RedoError {
    /// The resource manager of the record.
    pub manager: ResourceManager,
    /// The manager and its record by name, as `pg_waldump` has them: `Heap INSERT`.
    pub operation: String,
    /// Where the record begins.
    pub start: Lsn,
    /// The number of the block reference.
    pub reference: u8,
    /// What does not fit, in the record or in the page.
    #[source]
    pub cause: pagemill_format::Error,
}

impl RedoError {
    /// True when nothing is damaged: the records of this manager are not understood here.
    pub fn is_unsupported(&self) -> bool {
        matches!(self.cause.kind(), ErrorKind::Unsupported { .. })
    }
}
