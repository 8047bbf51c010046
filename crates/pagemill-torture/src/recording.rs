//! One change, recorded call by call.
//!
//! Invariant: the same job on the same ground makes the same calls, so that a number of a call means the same in
//! the next run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use pagemill_io::Storage;
use pagemill_sim::{Loss, PowerCutFileSystem, WriteFault};

use crate::load_fixture::copy_directory;
use crate::postmaster::name_a_dead_process;
use crate::scratch;

/// The file whose change decides.
const CONTROL: &str = "global/pg_control";

/// What is done to a data directory through a storage.
pub type Job<'a> = &'a dyn Fn(&Storage, &Path) -> pagemill_engine::Result<()>;

/// A job that was recorded, and its directories.
#[derive(Debug)]
pub struct Recording {
    room: tempfile::TempDir,
    files: PowerCutFileSystem,
    /// What came of it.
    pub outcome: pagemill_engine::Result<()>,
}

impl Recording {
    /// Does something to a copy of a data directory, with something going wrong at a call.
    ///
    /// # Errors
    /// When it cannot be copied. What the job says is in the outcome.
    pub fn over(original: &Path, job: Job<'_>, fault: Option<(usize, WriteFault)>) -> Result<Self> {
        let room = scratch::new("pagemill-cut")?;
        let data = room.path().join("data");
        copy_directory(original, &data)?;
        let files = PowerCutFileSystem::record(&data, &room.path().join("before"))?;
        if let Some((call, fault)) = fault {
            files.fail(call, fault);
        }
        let storage = Storage::new(Arc::new(files.clone()));
        let outcome = job(&storage, &data);
        Ok(Self { room, files, outcome })
    }

    /// A job that is cut off just after its decision: nothing can be written from there.
    ///
    /// # Errors
    /// When it makes no decision, or the directory cannot be copied.
    pub fn cut_off(original: &Path, job: Job<'_>) -> Result<Self> {
        let whole = Self::over(original, job, None)?;
        let decided = *whole.control_writes().first().context("no decision")? + 2;
        let cut = Self::over(original, job, Some((decided, WriteFault::ReadOnlyFromHere)))?;
        name_a_dead_process(&cut.data())?;
        Ok(cut)
    }

    /// How many calls were made.
    pub fn calls(&self) -> usize {
        self.files.calls()
    }

    /// A call in words.
    pub fn describe(&self, call: usize) -> String {
        self.files.describe(call)
    }

    /// The directory that was changed.
    pub fn data(&self) -> PathBuf {
        self.room.path().join("data")
    }

    /// Calls that write the control file: the first says "in production", the second "shut down".
    pub fn control_writes(&self) -> Vec<usize> {
        let is_write = |call: &usize| {
            let words = self.describe(*call);
            words.contains(": write ") && words.contains(CONTROL)
        };
        (0..self.calls()).filter(is_write).collect()
    }

    /// Makes the data directory as it could be after a power cut just before a call, when everybody who ran then is
    /// gone.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn image(&self, call: usize, loss: Loss, into: &Path) -> Result<()> {
        self.files.image(call, loss, into)?;
        name_a_dead_process(into)
    }
}
