//! The built program killed at a random moment of a change (`SIGKILL`), and what a server then finds.
//!
//! Invariant: the moment follows from the seed as a share of the time that a whole change takes; on another machine, or in
//! another run, it meets another call, so a failure can be met again only by trying the same kind many times.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pagemill_sim::seed::Random;

use crate::load_fixture::copy_directory;
use crate::scratch;
use crate::trial::{ImageState, Seen, Trial};

/// What a kill left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Killed {
    /// What the files said before a server started.
    pub found: ImageState,
    /// What the server found.
    pub seen: Seen,
}

/// Kills changes that a built program makes.
#[derive(Debug)]
pub struct Killer<T> {
    trials: Vec<T>,
    program: PathBuf,
    random: Random,
}

impl<T: Trial> Killer<T> {
    /// Kills the program at a path in these changes, at moments that follow from a seed.
    pub fn new(trials: Vec<T>, program: &Path, seed: u64) -> Self {
        Self { trials, program: program.to_owned(), random: Random::new(seed) }
    }

    /// Kills a change of a kind chosen by chance, and has a server judge.
    ///
    /// # Errors
    /// With the kind and the moment.
    pub fn kill(&mut self) -> Result<Killed> {
        let number = self.random.below(self.trials.len() as u64) as usize;
        let whole = self.time_of_a_whole(number)?;
        // Half of them in the last third, where the decision is.
        let thousandth = match self.random.below(2) {
            0 => self.random.below(1000),
            _ => 660 + self.random.below(360),
        };
        let moment = whole.mul_f64(thousandth as f64 / 1000.0);
        let trial = &self.trials[number];
        self.kill_at(trial, moment)
            .with_context(|| format!("{} killed after {moment:?} of {whole:?}", trial.kind()))
    }

    fn time_of_a_whole(&self, number: usize) -> Result<Duration> {
        let trial = &self.trials[number];
        let room = scratch::new("pagemill-kill")?;
        let data = room.path().join("data");
        copy_directory(&trial.original(), &data)?;
        let start = Instant::now();
        let status = self.start(&data, trial)?.wait()?;
        ensure!(status.success(), "{} ended with {status}", trial.kind());
        Ok(start.elapsed())
    }

    fn start(&self, data: &Path, trial: &T) -> Result<Child> {
        let mut command = trial.command(&self.program, data);
        command.env_remove("PGDATA").stderr(Stdio::null());
        command.spawn().with_context(|| self.program.display().to_string())
    }

    fn kill_at(&self, trial: &T, moment: Duration) -> Result<Killed> {
        let room = scratch::new("pagemill-kill")?;
        let data = room.path().join("data");
        copy_directory(&trial.original(), &data)?;
        let mut running = self.start(&data, trial)?;
        std::thread::sleep(moment);
        running.kill()?;
        running.wait()?;
        let found = trial.read(&data)?;
        let seen = trial.serve(room.path())?;
        ensure!(
            matches!(found, ImageState::InProduction) || found == ImageState::Clean(seen),
            "the reader had {found:?}, the server {seen:?}"
        );
        Ok(Killed { found, seen })
    }
}
