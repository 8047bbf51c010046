//! The process of a server: started, waited for, stopped.
//!
//! `pg_ctl` looks ten times a second, and the tests start and stop servers many hundred times. Here the files are
//! looked at more often, and the end of a process is waited for. The words of `postmaster.pid` are those of
//! `pidfile.h`, the signals those of `postmaster.c`; both hold for 14 to 18.
//!
//! Must hold: when a stop returns, the process is gone, and with it its memory and its locks.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::account::Account;

/// The longest a server may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(300);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);
/// The line of `postmaster.pid` with the server's state, from 0, and the states in which it can be asked.
const STATE_LINE: usize = 7;
const STATES: [&str; 2] = ["ready", "standby"];

/// The line with the key and the number of its shared memory, from 0.
const MEMORY_LINE: usize = 6;

/// A server that runs.
#[derive(Debug)]
pub(crate) struct Postmaster {
    pid: Pid,
    /// `None` where somebody else started it.
    child: Option<Child>,
    lock_file: PathBuf,
}

impl Postmaster {
    /// Starts a server in a process group of its own, so that Ctrl-C is no business of it, and waits until it accepts
    /// connections. What it says is appended to `log`.
    pub(crate) fn start(
        mut server: Command,
        account: Account,
        data: &Path,
        log: &Path,
    ) -> Result<Self> {
        let said = File::options().append(true).create(true).open(log)?;
        account.own(log)?;
        server.stdout(said.try_clone()?).stderr(said).stdin(Stdio::null()).process_group(0);
        let child = server.spawn().with_context(|| format!("starting {server:?}"))?;
        let pid = Pid::from_child(&child);
        let mut postmaster = Self { pid, child: Some(child), lock_file: lock_file(data) };
        if let Err(error) = postmaster.wait_until_ready() {
            // It has ended already, or is told to.
            let _ = postmaster.stop(Signal::QUIT);
            return Err(error);
        }
        Ok(postmaster)
    }

    /// The server that `postmaster.pid` names.
    pub(crate) fn found(data: &Path) -> Result<Self> {
        let lock_file = lock_file(data);
        let text = fs::read_to_string(&lock_file).context("no server runs")?;
        let number = text.lines().next().and_then(|line| line.parse().ok());
        let pid = number.and_then(Pid::from_raw).context("no process in postmaster.pid")?;
        Ok(Self { pid, child: None, lock_file })
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let begin = Instant::now();
        while !self.is_ready() {
            if let Some(status) = self.child.as_mut().and_then(|child| child.try_wait().transpose())
            {
                bail!("the server ended with {}", status?);
            }
            if begin.elapsed() > PATIENCE {
                bail!("the server does not accept connections after {PATIENCE:?}");
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// A file that an earlier server left names another process.
    fn is_ready(&self) -> bool {
        let text = fs::read_to_string(&self.lock_file).unwrap_or_default();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.first() == Some(&&*self.pid.as_raw_nonzero().to_string())
            && lines.get(STATE_LINE).is_some_and(|state| STATES.contains(state))
    }

    /// Sends a signal that ends it, and waits for its end.
    pub(crate) fn stop(mut self, signal: Signal) -> Result<()> {
        let begin = Instant::now();
        kill_process(self.pid, signal).context("the server is gone")?;
        while !self.has_ended()? {
            if begin.elapsed() > PATIENCE {
                bail!("the server does not end within {PATIENCE:?}");
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Ends all its processes at once, as a power cut would: none of them can say a last word. Each has a session of its
    /// own, so the postmaster's group is not enough.
    pub(crate) fn kill_all(self) -> Result<()> {
        let all = self.freeze()?;
        let memory = fs::read_to_string(&self.lock_file).unwrap_or_default();
        for pid in &all {
            kill_process(*pid, Signal::KILL).context("a frozen process is gone")?;
        }
        let begin = Instant::now();
        let mut child = self.child;
        while child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
            || all.iter().any(|pid| state_of(*pid).is_some_and(|state| !"ZX".contains(state)))
        {
            if begin.elapsed() > PATIENCE {
                bail!("the killed processes do not end within {PATIENCE:?}");
            }
            std::thread::sleep(PAUSE);
        }
        remove_shared_memory(&memory);
        Ok(())
    }

    /// Stops all its processes where they are, the postmaster first, so that there will be no new ones.
    pub(crate) fn freeze(&self) -> Result<Vec<Pid>> {
        let mut all = vec![self.pid];
        stop_where_it_is(self.pid)?;
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let pid = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
            if let Some(pid) = pid.filter(|pid| parent_of(*pid) == Some(self.pid)) {
                stop_where_it_is(pid)?;
                all.push(pid);
            }
        }
        Ok(all)
    }

    fn has_ended(&mut self) -> Result<bool> {
        match &mut self.child {
            Some(child) => Ok(child.try_wait()?.is_some()),
            None => Ok(!self.lock_file.exists()),
        }
    }
}

/// Lets processes that were frozen go on.
pub(crate) fn thaw(processes: &[Pid]) -> Result<()> {
    let wake = |pid: &Pid| kill_process(*pid, Signal::CONT);
    processes.iter().try_for_each(wake).context("a frozen process is gone")
}

fn stop_where_it_is(pid: Pid) -> Result<()> {
    if kill_process(pid, Signal::STOP).is_err() {
        // It ended by itself.
        return Ok(());
    }
    let begin = Instant::now();
    while state_of(pid).is_some_and(|state| !"TZX".contains(state)) {
        if begin.elapsed() > PATIENCE {
            bail!("process {pid:?} does not stop within {PATIENCE:?}");
        }
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

fn state_of(pid: Pid) -> Option<char> {
    about(pid).map(|(state, _)| state)
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

fn lock_file(data: &Path) -> PathBuf {
    data.join("postmaster.pid")
}
