//! All processes of a server, stopped where they are: to look at its files as a snapshot would find them, or to end them at
//! once, as a power cut would.
//!
//! Each process of a server has a session of its own, so the postmaster's group is not enough. Must hold: the postmaster is
//! stopped first, so that there are no new processes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pagemill_server::{Postmaster, Shutdown};
use rustix::process::{Pid, Signal, kill_process};

/// The longest processes may take to stop or to end.
const PATIENCE: Duration = Duration::from_secs(300);
/// The line of `postmaster.pid` with the key and the number of its shared memory, from 0.
const MEMORY_LINE: usize = 6;

/// The processes of a server, which stand still.
#[derive(Debug)]
pub(crate) struct Frozen(Vec<Pid>);

impl Frozen {
    /// Stops those of this server.
    pub(crate) fn freeze(postmaster: &Postmaster) -> Result<Self> {
        let first = i32::try_from(postmaster.id()).ok().and_then(Pid::from_raw);
        let first = first.context("no process")?;
        let mut all = vec![first];
        stop_where_it_is(first)?;
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let pid = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
            if let Some(pid) = pid.filter(|pid| parent_of(*pid) == Some(first))
                && stop_where_it_is(pid)?
            {
                all.push(pid);
            }
        }
        Ok(Self(all))
    }

    /// Lets them go on, the postmaster last: until then those that have ended are still there.
    pub(crate) fn thaw(self) -> Result<()> {
        let wake = |pid: &Pid| kill_process(*pid, Signal::CONT);
        self.0.iter().rev().try_for_each(wake).context("a frozen process is gone")
    }

    /// Ends them all at once: none can say a last word.
    pub(crate) fn kill(self, postmaster: Postmaster, data: &Path) -> Result<()> {
        let lock_file = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
        for pid in &self.0 {
            kill_process(*pid, Signal::KILL).context("a frozen process is gone")?;
        }
        postmaster.stop(Shutdown::Kill)?;
        self.0.iter().try_for_each(|pid| wait_for(*pid, "ZX"))?;
        remove_shared_memory(&lock_file);
        Ok(())
    }
}

/// False when it has ended by itself.
fn stop_where_it_is(pid: Pid) -> Result<bool> {
    if kill_process(pid, Signal::STOP).is_err() {
        return Ok(false);
    }
    wait_for(pid, "TZX")?;
    Ok(true)
}

/// Waits until a process is in one of these states, or gone.
fn wait_for(pid: Pid, states: &str) -> Result<()> {
    let begin = Instant::now();
    while about(pid).is_some_and(|(state, _)| !states.contains(state)) {
        ensure!(begin.elapsed() < PATIENCE, "process {pid:?} does not stop within {PATIENCE:?}");
        std::thread::yield_now();
    }
    Ok(())
}

/// What `/proc` says behind a process's name: its state, and its parent.
fn about(pid: Pid) -> Option<(char, Option<Pid>)> {
    let text = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let mut words = text.rsplit_once(')')?.1.split_whitespace();
    let state = words.next()?.chars().next()?;
    Some((state, words.next()?.parse().ok().and_then(Pid::from_raw)))
}

fn parent_of(pid: Pid) -> Option<Pid> {
    about(pid).and_then(|(_, parent)| parent)
}

/// Removes the small segment of shared memory that a lock file names: nobody else will, as no server starts on this
/// directory again.
fn remove_shared_memory(lock_file: &str) {
    let line = lock_file.lines().nth(MEMORY_LINE).unwrap_or_default();
    if let Some(id) = line.split_whitespace().nth(1) {
        let _ = Command::new("ipcrm").args(["-m", id]).stderr(Stdio::null()).status();
    }
}
