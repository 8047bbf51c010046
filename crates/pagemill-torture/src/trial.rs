//! What is cut short: a change of a data directory, and what has to hold afterwards.
//!
//! Invariant: the same trial on the same ground makes the same calls, so that a number of a call means the same in the
//! next run.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use pagemill_sim::WriteFault;
use pagemill_testkit::PgInstall;

use crate::recording::Recording;

/// Which side of the change a data directory is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// That before it.
    Old,
    /// That after it.
    New,
}

/// What an image was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImageState {
    /// The control file says "shut down".
    Clean(Seen),
    /// It says "in production": a server's recovery decides.
    InProduction,
}

/// A change that can be made, cut short and judged any number of times.
pub trait Trial {
    /// The kind by its name.
    fn kind(&self) -> &'static str;

    /// The installation whose servers judge.
    fn install(&self) -> &PgInstall;

    /// The data directory before it, which is only read.
    fn original(&self) -> PathBuf;

    /// Makes the change in a copy, with something going wrong at a call.
    ///
    /// # Errors
    /// When the ground cannot be copied. What the change says is in the outcome.
    fn record(&self, fault: Option<(usize, WriteFault)>) -> Result<Recording>;

    /// The built program making the change.
    fn command(&self, program: &Path, data: &Path) -> Command;

    /// What Pagemill's reader finds.
    ///
    /// # Errors
    /// When it is neither the one side nor the other, or cannot be read.
    fn read(&self, data: &Path) -> Result<ImageState>;

    /// Makes the next change in a clean cluster: it works, and nothing is left of the first one.
    ///
    /// # Errors
    /// When it is not so.
    fn again(&self, data: &Path, seen: Seen) -> Result<()>;

    /// What a server finds, after its recovery where one is needed: all is sound, also after a crash of this server,
    /// and the next change works, for Pagemill and for a server. `root` has the data directory as `data`.
    ///
    /// # Errors
    /// When it is not so.
    fn serve(&self, root: &Path) -> Result<Seen>;

    /// Makes the next change in a copy of a clean cluster, up to just after the decision, and has a server finish it.
    ///
    /// # Errors
    /// When the server has not all of it.
    fn cut_off_again(&self, data: &Path, seen: Seen) -> Result<()>;
}
