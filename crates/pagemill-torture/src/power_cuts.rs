//! Power cuts: one moment of one change, and what the loss left of the unsynced, judged.
//!
//! Invariants: before the control file is written no image has the change, and once it was synced every image has;
//! a case is repeated by its kind, call and loss.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use pagemill_sim::Loss;

use crate::case::{Case, Event};
use crate::recording::Recording;
use crate::scratch;
use crate::trial::{ImageState, Seen, Trial};

/// All power cuts of one change.
#[derive(Debug)]
pub struct PowerCuts<T> {
    trial: T,
    recording: Recording,
    /// The call that writes "in production", and the one that writes "shut down".
    flip: (usize, usize),
    room: tempfile::TempDir,
}

impl<T: Trial> PowerCuts<T> {
    /// Makes the change, and records it.
    ///
    /// # Errors
    /// When it fails.
    pub fn new(trial: T) -> Result<Self> {
        let mut recording = trial.record(None)?;
        let outcome = std::mem::replace(&mut recording.outcome, Ok(()));
        outcome.with_context(|| trial.kind())?;
        let writes = recording.control_writes();
        let flip: [usize; 2] = writes.try_into().map_err(|writes| {
            anyhow::anyhow!("the control file is to be written twice, not at {writes:?}")
        })?;
        let room = scratch::new("pagemill-image")?;
        Ok(Self { trial, recording, flip: flip.into(), room })
    }

    /// How many calls there are to cut before.
    pub fn calls(&self) -> usize {
        self.recording.calls()
    }

    /// The calls around the decision, where most can go wrong: from just before the control file is first written to
    /// just after it is synced.
    pub fn decision(&self) -> std::ops::RangeInclusive<usize> {
        self.flip.0..=self.flip.0 + 2
    }

    /// Judges one image by Pagemill's reader, and if it is clean by the next change too.
    ///
    /// # Errors
    /// With the command that repeats it.
    pub fn read(&self, call: usize, loss: Loss, and_again: bool) -> Result<ImageState> {
        let image = self.image(call, loss)?;
        let judged = || {
            let found = self.trial.read(&image)?;
            ensure!(self.fits(call, found), "{found:?} at this moment");
            if let ImageState::Clean(seen) = found
                && and_again
            {
                self.trial.again(&image, seen)?;
            }
            Ok(found)
        };
        let outcome = judged().with_context(|| self.repeat(call, loss, false));
        self.clear()?;
        outcome
    }

    /// Judges one image by a server.
    ///
    /// # Errors
    /// With the command that repeats it.
    pub fn serve(&self, call: usize, loss: Loss) -> Result<Seen> {
        let image = self.image(call, loss)?;
        let judged = || {
            let found = self.trial.read(&image)?;
            let seen = self.trial.serve(&self.root())?;
            ensure!(self.fits(call, ImageState::Clean(seen)), "{seen:?} at this moment");
            ensure!(
                matches!(found, ImageState::InProduction) || found == ImageState::Clean(seen),
                "the reader had {found:?}, the server {seen:?}"
            );
            Ok(seen)
        };
        let outcome = judged().with_context(|| self.repeat(call, loss, true));
        self.clear()?;
        outcome
    }

    /// Lets the next change of a clean image be cut off too, just after its decision, with the WAL of the first one
    /// behind its own, and has a server finish it. `None` when the image is not clean.
    ///
    /// # Errors
    /// With the command that repeats the image.
    pub fn serve_second(&self, call: usize, loss: Loss) -> Result<Option<()>> {
        let image = self.image(call, loss)?;
        let judged = || {
            let ImageState::Clean(seen) = self.trial.read(&image)? else { return Ok(None) };
            self.trial.cut_off_again(&image, seen).map(Some)
        };
        let again = || format!("a second change cut off after {}", self.repeat(call, loss, false));
        let outcome = judged().with_context(again);
        self.clear()?;
        outcome
    }

    /// True when an image may be so: the decision is the write of the control file, and its sync makes it last.
    fn fits(&self, call: usize, found: ImageState) -> bool {
        let (flip, back) = self.flip;
        let (before, after) = (call <= flip, call >= flip + 2);
        match found {
            ImageState::Clean(Seen::Old) => !after,
            ImageState::InProduction => !before && call < back + 2,
            ImageState::Clean(Seen::New) => !before,
        }
    }

    fn root(&self) -> PathBuf {
        self.room.path().join("cluster")
    }

    fn image(&self, call: usize, loss: Loss) -> Result<PathBuf> {
        let root = self.root();
        std::fs::create_dir(&root)?;
        let image = root.join("data");
        self.recording.image(call, loss, &image)?;
        Ok(image)
    }

    fn clear(&self) -> Result<()> {
        Ok(std::fs::remove_dir_all(self.root())?)
    }

    fn repeat(&self, call: usize, loss: Loss, server: bool) -> String {
        let event = Event::PowerCut(loss);
        let case = Case {
            major: self.trial.install().major,
            kind: self.trial.kind(),
            call,
            event,
            server,
        };
        format!("{}\n  {}", case, self.recording.describe(call))
    }

    /// Where a single image is left to be looked at.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn keep(&self, call: usize, loss: Loss, into: &Path) -> Result<()> {
        self.recording.image(call, loss, into)
    }
}
