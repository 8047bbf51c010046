//! That a sync failed, remembered for as long as the storage lives.
//!
//! Why: when the kernel cannot write a changed page back, it tells the next sync, and may then take the page
//! for clean. A second sync finds nothing to do and succeeds, and the data is gone. So the first failure
//! is the last word: every later sync of the same storage fails too, of whatever file, since a job that has
//! lost one of its writes must not be finished.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::error::{Error, ErrorKind, Result};

/// The first sync that failed, if one did.
#[derive(Debug, Default)]
pub(crate) struct FailedSync(OnceLock<(PathBuf, String)>);

impl FailedSync {
    /// Makes sure that none failed before a sync of `path` is tried.
    pub(crate) fn check(&self, path: &Path) -> Result<()> {
        let Some((failed, reason)) = self.0.get() else { return Ok(()) };
        let kind = ErrorKind::SyncFailedBefore { path: failed.clone(), reason: reason.clone() };
        Err(Error::new(kind, path))
    }

    /// Takes note of a failure.
    pub(crate) fn record(&self, error: &io::Error, path: &Path) -> Error {
        let reason = error.to_string();
        // Of two threads that fail at once, either is the first.
        let _ = self.0.set((path.to_owned(), reason.clone()));
        Error::new(ErrorKind::SyncFailed { reason }, path)
    }
}
