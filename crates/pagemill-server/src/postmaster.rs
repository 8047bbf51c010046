//! The process of a server: waited for until it is ready, found where somebody else started it, stopped.
//!
//! `pg_ctl` looks ten times a second, and tests start and stop servers many hundred times. Here the files are looked at more
//! often, and the end of a process is waited for. The lines of `postmaster.pid` are those of `src/include/utils/pidfile.h`, the
//! signals those of `src/backend/postmaster/postmaster.c`; both hold for 14 to 18.
//!
//! Invariants: when a stop returns, the process is gone, and with it its memory and its locks; no process is sent a signal but
//! one's own child, or one that stands in the data directory, as every server does (`ChangeToDataDir`).

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::IsCanceled;
use crate::error::{Error, Result};

/// The longest a server may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(300);
/// The longest it may take to end at once.
const AT_ONCE: Duration = Duration::from_secs(10);
/// When it is told once more to do so.
const AGAIN: Duration = Duration::from_millis(100);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);
/// The line of `postmaster.pid` with the server's state, from 0, and the states in which it can be asked.
const STATE_LINE: usize = 7;
const STATES: [&str; 2] = ["ready", "standby"];
/// Lines of a log that are told.
const TOLD_LINES: usize = 3;

/// How a server is made to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Transactions are rolled back and a shutdown checkpoint is written.
    Fast,
    /// Without a checkpoint: recovery at the next start.
    Immediate,
    /// By SIGKILL: the kernel ends it, and its children see that it is gone.
    Kill,
}

impl Shutdown {
    fn signal(self) -> Signal {
        match self {
            Self::Fast => Signal::INT,
            Self::Immediate => Signal::QUIT,
            Self::Kill => Signal::KILL,
        }
    }
}

/// A server that runs. Dropped, it is shut down at once if this process started it.
#[derive(Debug)]
pub struct Postmaster {
    pid: Pid,
    /// `None` where somebody else started it.
    child: Option<Child>,
    data: PathBuf,
    log: PathBuf,
}

impl Postmaster {
    /// Starts one, and waits until it accepts connections. What it says is appended to `log`.
    pub(crate) fn start(
        mut server: Command,
        data: &Path,
        log: &Path,
        is_canceled: IsCanceled<'_>,
    ) -> Result<Self> {
        let said = File::options().append(true).create(true).open(log).map_err(Error::file(log))?;
        server.stdout(said.try_clone().map_err(Error::file(log))?).stderr(said);
        let child = server.spawn().map_err(Error::system("postgres"))?;
        let pid = Pid::from_child(&child);
        let mut postmaster = Self { pid, child: Some(child), data: data.into(), log: log.into() };
        postmaster.wait_until_ready(is_canceled)?;
        Ok(postmaster)
    }

    /// The server that `postmaster.pid` names.
    pub(crate) fn found(data: &Path, log: &Path) -> Result<Self> {
        let text = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
        let pid = text.lines().next().and_then(|line| line.parse().ok()).and_then(Pid::from_raw);
        let pid = pid.filter(|pid| stands_in(*pid, data));
        let pid = pid.ok_or_else(|| Error::NotRunning { data: data.into() })?;
        Ok(Self { pid, child: None, data: data.into(), log: log.into() })
    }

    /// The number of its first process, the parent of all others.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Whether it is gone.
    ///
    /// # Errors
    /// The system's.
    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.is_end_clean()?.is_some())
    }

    /// Has it end, and waits for that.
    ///
    /// # Errors
    /// When it does not, or, of a fast shutdown, when it had ended before or did so uncleanly.
    pub fn stop(mut self, shutdown: Shutdown) -> Result<()> {
        self.signal(shutdown);
        match self.wait(PATIENCE)? {
            None => Err(Error::NotStopped { seconds: PATIENCE.as_secs() }),
            Some(false) if shutdown == Shutdown::Fast => Err(Error::Ended { said: self.said() }),
            Some(_) => Ok(()),
        }
    }

    fn wait_until_ready(&mut self, is_canceled: IsCanceled<'_>) -> Result<()> {
        let begin = Instant::now();
        let lock_file = self.data.join("postmaster.pid");
        while !is_ready(&fs::read_to_string(&lock_file).unwrap_or_default(), self.id()) {
            if self.has_ended()? || begin.elapsed() > PATIENCE {
                return Err(Error::NotStarted { said: self.said() });
            }
            if is_canceled() {
                return Err(Error::Canceled);
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn signal(&self, shutdown: Shutdown) {
        // One that has ended cannot be signalled, and needs not.
        let _ = kill_process(self.pid, shutdown.signal());
    }

    /// Waits for its end: whether that was a clean one. `None` when it has not ended.
    fn wait(&mut self, longest: Duration) -> Result<Option<bool>> {
        let begin = Instant::now();
        loop {
            let end = self.is_end_clean()?;
            if end.is_some() || begin.elapsed() > longest {
                return Ok(end);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// How somebody else's child ended is not known.
    fn is_end_clean(&mut self) -> Result<Option<bool>> {
        match &mut self.child {
            Some(child) => {
                let status = child.try_wait().map_err(Error::system("postgres"))?;
                Ok(status.map(|status| status.success()))
            }
            None => Ok((!stands_in(self.pid, &self.data)).then_some(true)),
        }
    }

    fn said(&self) -> String {
        last_lines(&String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()))
    }
}

impl Drop for Postmaster {
    fn drop(&mut self) {
        if self.child.is_none() || matches!(self.has_ended(), Ok(true)) {
            return;
        }
        let begin = Instant::now();
        while begin.elapsed() < AT_ONCE {
            // One that has just begun may not listen yet.
            self.signal(Shutdown::Immediate);
            if matches!(self.wait(AGAIN), Ok(Some(_))) {
                return;
            }
        }
        self.signal(Shutdown::Kill);
        let _ = self.wait(AT_ONCE);
    }
}

/// Whether `postmaster.pid` says that this process takes connections. A file that an earlier server left names another.
fn is_ready(text: &str, pid: u32) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.first() == Some(&&*pid.to_string())
        && lines.get(STATE_LINE).is_some_and(|state| STATES.contains(state))
}

/// Whether a process lives and has this directory as its own. One that is ending has none any more, nor open files.
fn stands_in(pid: Pid, directory: &Path) -> bool {
    let own = fs::read_link(format!("/proc/{}/cwd", pid.as_raw_nonzero()));
    own.is_ok_and(|own| directory.canonicalize().is_ok_and(|directory| own == directory))
}

/// The end of what a program said.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(TOLD_LINES);
    let told = lines.get(from..).unwrap_or_default().join("; ");
    if told.is_empty() { "it said nothing".into() } else { told }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_ready_when_its_file_says_so_and_names_it() {
        let text = |status: &str| format!("7\n/d\n1\n5432\n/s\n\n  1 2\n{status}\n");
        assert!(is_ready(&text("ready   "), 7));
        assert!(is_ready(&text("standby "), 7));
        assert!(!is_ready(&text("ready   "), 8));
        assert!(!is_ready(&text("starting"), 7));
        assert!(!is_ready("7\n", 7));
        assert!(!is_ready("", 7));
    }

    #[test]
    fn of_a_log_the_end_is_told() {
        assert_eq!(last_lines("a\nb\n\nc\nd\n"), "b; c; d");
        assert_eq!(last_lines("\n"), "it said nothing");
    }

    #[test]
    fn a_process_that_a_stale_file_names_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("postmaster.pid"), format!("{}\n", std::process::id())).unwrap();
        let outcome = Postmaster::found(dir.path(), dir.path());
        assert!(matches!(outcome, Err(Error::NotRunning { .. })), "{outcome:?}");
    }
}
