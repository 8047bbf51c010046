//! One load, recorded call by call.
//!
//! Invariant: the same kind on the same ground makes the same calls, so that a number of a call means the same in
//! the next run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use pagemill_io::Storage;
use pagemill_sim::{Loss, PowerCutFileSystem, WriteFault};

use crate::ground::{Ground, copy_directory};
use crate::kind::Kind;
use crate::postmaster::name_a_dead_process;
use crate::room;
use crate::work::load_rows;

/// The file whose change decides.
const CONTROL: &str = "global/pg_control";

/// A load that was recorded, and its directories.
#[derive(Debug)]
pub struct Recording {
    room: tempfile::TempDir,
    files: PowerCutFileSystem,
    /// What came of the load.
    pub outcome: pagemill_engine::Result<()>,
}

impl Recording {
    /// Loads the new rows of a kind, with something going wrong at a call.
    ///
    /// # Errors
    /// When the ground cannot be copied. What the load says is in the outcome.
    pub fn new(ground: &Ground, kind: &Kind, fault: Option<(usize, WriteFault)>) -> Result<Self> {
        Self::over(&ground.data(), kind, &ground.file(kind, "new"), fault)
    }

    /// Loads a file into a copy of a data directory, with something going wrong at a call.
    ///
    /// # Errors
    /// When it cannot be copied. What the load says is in the outcome.
    pub fn over(
        original: &Path,
        kind: &Kind,
        file: &Path,
        fault: Option<(usize, WriteFault)>,
    ) -> Result<Self> {
        let room = room::new("pagemill-cut")?;
        let data = room.path().join("data");
        copy_directory(original, &data)?;
        let files = PowerCutFileSystem::record(&data, &room.path().join("before"))?;
        if let Some((call, fault)) = fault {
            files.fail(call, fault);
        }
        let storage = Storage::new(Arc::new(files.clone()));
        let outcome = load_rows(&storage, &data, kind, file).map(|_| ());
        Ok(Self { room, files, outcome })
    }

    /// A load that succeeded.
    ///
    /// # Errors
    /// When it did not.
    pub fn succeeded(ground: &Ground, kind: &Kind) -> Result<Self> {
        let recording = Self::new(ground, kind, None)?;
        match recording.outcome {
            Ok(()) => Ok(recording),
            Err(error) => Err(error).with_context(|| format!("loading {}", kind.name)),
        }
    }

    /// How many calls were made.
    pub fn calls(&self) -> usize {
        self.files.calls()
    }

    /// A call in words.
    pub fn describe(&self, call: usize) -> String {
        self.files.describe(call)
    }

    /// The directory that was loaded into.
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
