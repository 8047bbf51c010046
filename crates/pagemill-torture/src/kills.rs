//! The built program killed at a random moment of a load (`SIGKILL`), and what a server then finds.
//!
//! Invariant: the moment follows from the seed as a share of the time that a whole load takes; on another machine, or in
//! another run, it meets another call, so a failure can be met again only by trying the same kind many times.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pagemill_sim::seed::Random;

use crate::ground::{DATABASE, Ground};
use crate::judge::{Found, Judge, Seen};
use crate::kind::{KINDS, Kind};
use crate::room;

/// What a kill left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Killed {
    /// What the files said before a server started.
    pub found: Found,
    /// What the server found.
    pub seen: Seen,
}

/// Kills loads of a built program.
#[derive(Debug)]
pub struct Killer<'a> {
    ground: &'a Ground,
    program: PathBuf,
    random: Random,
}

impl<'a> Killer<'a> {
    /// Kills loads of the program at a path, at moments that follow from a seed.
    pub fn new(ground: &'a Ground, program: &Path, seed: u64) -> Self {
        Self { ground, program: program.to_owned(), random: Random::new(seed) }
    }

    /// Kills a load of a kind chosen by chance, and has a server judge.
    ///
    /// # Errors
    /// With the kind and the moment.
    pub fn kill(&mut self) -> Result<Killed> {
        let kind = KINDS[self.random.below(KINDS.len() as u64) as usize];
        let whole = self.time_of_a_load(&kind)?;
        // Half of them in the last third, where the decision is.
        let thousandth = match self.random.below(2) {
            0 => self.random.below(1000),
            _ => 660 + self.random.below(360),
        };
        let moment = whole.mul_f64(thousandth as f64 / 1000.0);
        self.kill_at(&kind, moment)
            .with_context(|| format!("{} killed after {moment:?} of {whole:?}", kind.name))
    }

    fn time_of_a_load(&self, kind: &Kind) -> Result<Duration> {
        let room = room::new("pagemill-kill")?;
        let data = room.path().join("data");
        self.ground.copy(&data)?;
        let start = Instant::now();
        let status = self.start_load(&data, kind)?.wait()?;
        ensure!(status.success(), "the load of {} ended with {status}", kind.name);
        Ok(start.elapsed())
    }

    fn start_load(&self, data: &Path, kind: &Kind) -> Result<Child> {
        let mut load = Command::new(&self.program);
        load.args(["load", "-d", DATABASE, "-t", kind.name, "-D"]).arg(data).args(kind.flags());
        load.arg(self.ground.file(kind, "new")).env_remove("PGDATA").stderr(Stdio::null());
        load.spawn().with_context(|| self.program.display().to_string())
    }

    fn kill_at(&self, kind: &Kind, moment: Duration) -> Result<Killed> {
        let room = room::new("pagemill-kill")?;
        let data = room.path().join("data");
        self.ground.copy(&data)?;
        let mut load = self.start_load(&data, kind)?;
        std::thread::sleep(moment);
        load.kill()?;
        load.wait()?;
        let judge = Judge::new(self.ground, *kind)?;
        let found = judge.read(&data)?;
        let seen = judge.serve(room.path())?;
        ensure!(
            matches!(found, Found::InProduction) || found == Found::Clean(seen),
            "the reader had {found:?}, the server {seen:?}"
        );
        Ok(Killed { found, seen })
    }
}
