//! The wish that a run ends early, seen by everything that takes long.
//!
//! Clones are the same wish. Invariant: once asked for, it stays so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// Whether somebody wants the end of the run.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    own: Arc<AtomicBool>,
    signals: Option<&'static AtomicBool>,
}

impl Cancel {
    /// Nobody does, until [`cancel`](Self::cancel) is called or `signals` is set.
    pub fn watching(signals: &'static AtomicBool) -> Self {
        Self { own: Arc::default(), signals: Some(signals) }
    }

    /// Asks for the end of the run.
    pub fn cancel(&self) {
        self.own.store(true, Ordering::Relaxed);
    }

    /// True when it was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.own.load(Ordering::Relaxed)
            || self.signals.is_some_and(|signals| signals.load(Ordering::Relaxed))
    }

    /// For long work, with `?`.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when it was asked for.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Interrupted) } else { Ok(()) }
    }
}
