//! `postmaster.pid`: which process says that it runs on a data directory, and whether that can be.
//!
//! Source: `CreateLockFile` in `src/backend/utils/init/miscinit.c`, PostgreSQL 14 to 18.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use pagemill_io::Storage;

use crate::directory_state::SMALL_FILE_LIMIT;
use crate::error::Result;

/// What `postmaster.pid` tells; a server that crashed leaves one behind that names nobody who lives.
#[derive(Debug)]
pub(crate) struct LockFile {
    pub(crate) pid: i32,
    /// The data directory of that server; not there in a file that was caught half written.
    pub(crate) directory: Option<PathBuf>,
    /// The shared memory segment of that server.
    pub(crate) shared_memory: Option<u32>,
}

impl LockFile {
    pub(crate) const NAME: &str = "postmaster.pid";
    /// What it is called until it is written: a server that finds it empty does not start.
    pub(crate) const TEMPORARY: &str = "postmaster.pid.new";

    /// What the file tells of a process that lives; where the files are not this machine's, that is nobody here.
    pub(crate) fn read(storage: &Storage, path: &Path) -> Result<Option<Self>> {
        if !storage.capabilities().of_this_machine {
            return Ok(None);
        }
        Ok(Self::read_any(storage, path)?.filter(Self::is_alive))
    }

    /// What the file tells, of whatever process; `None` where there is none, or none that names a process.
    pub(crate) fn read_any(storage: &Storage, path: &Path) -> Result<Option<Self>> {
        let contents = match storage.read_file(&path.join(Self::NAME), SMALL_FILE_LIMIT) {
            Ok(contents) => contents,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let lines: Vec<_> = contents.split(|&b| b == b'\n').map(<[u8]>::trim_ascii).collect();
        let text = |line: usize| lines.get(line).and_then(|line| std::str::from_utf8(line).ok());
        // A negative one is that of a server in single-user mode.
        let pid = text(0).and_then(|line| line.parse::<i32>().ok()?.checked_abs());
        let directory = lines.get(1).filter(|line| !line.is_empty());
        let directory = directory.map(|line| PathBuf::from(OsStr::from_bytes(line)));
        let shared_memory = text(6).and_then(|keys| keys.split_whitespace().nth(1)?.parse().ok());
        Ok(pid.map(|pid| Self { pid, directory, shared_memory }))
    }

    pub(crate) fn is_alive(&self) -> bool {
        is_alive(self.pid)
    }

    /// True when it names the process that asks: what it was written by had the same number and is gone, or it
    /// was this process.
    pub(crate) fn is_this_process(&self) -> bool {
        u32::try_from(self.pid) == Ok(std::process::id())
    }

    /// True unless it is certain that the server runs on another directory, of which this is a
    /// copy. Paths do not tell: links and mounts give one directory several.
    pub(crate) fn is_of(&self, storage: &Storage, opened: &Path) -> bool {
        let Some(named) = &self.directory else { return true };
        match (storage.identity(named), storage.identity(opened)) {
            (Ok(named), Ok(opened)) => named == opened,
            (Err(error), Ok(_)) => !error.is_not_found(),
            (_, Err(_)) => true,
        }
    }
}

fn is_alive(pid: i32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let Some(pid) = Pid::from_raw(pid) else { return false };
    // Only "no such process" says that nobody is there; "not permitted" says somebody is.
    test_kill_process(pid) != Err(rustix::io::Errno::SRCH) && !has_ended(pid)
}

/// True for a process that has ended and was not reaped by its parent: it keeps its number, takes signals, and does
/// nothing any more. Where the system cannot tell, it has not.
fn has_ended(pid: rustix::process::Pid) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let Ok(process) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else {
        return false;
    };
    let mut ended = [PollFd::new(&process, PollFlags::IN)];
    poll(&mut ended, Some(&Timespec::default())) == Ok(1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Cluster, OpenOptions};

    fn open(path: &Path) -> String {
        match Cluster::open(Storage::real(), path, OpenOptions::default()) {
            Ok(_) => panic!("opened"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_live_process_in_the_lock_file_is_a_running_server() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("global")).unwrap();
        std::fs::write(dir.path().join("PG_VERSION"), "15\n").unwrap();
        let pid = std::process::id();
        let linked = dir.path().join("global/..");
        // The path itself, another path to it, and a file caught half written.
        for line in [
            format!("{}\n", dir.path().display()),
            format!("{}\n", linked.display()),
            String::new(),
        ] {
            let lock = format!("{pid}\n{line}");
            std::fs::write(dir.path().join("postmaster.pid"), lock).unwrap();
            assert!(open(dir.path()).contains("a server is running"));
        }
    }

    #[test]
    fn the_lock_file_of_another_directory_or_of_nobody_is_no_running_server() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(dir.path().join("global")).unwrap();
        std::fs::write(dir.path().join("PG_VERSION"), "15\n").unwrap();
        let (pid, own) = (std::process::id(), dir.path().display().to_string());
        let other = other.path().display().to_string();
        for lock in [
            format!("{pid}\n{other}\n"),
            format!("{pid}\n{other}/gone\n"),
            format!("{}\n{own}\n", i32::MIN),
            format!("x\n{own}\n"),
            String::new(),
        ] {
            std::fs::write(dir.path().join("postmaster.pid"), lock).unwrap();
            assert!(open(dir.path()).contains("no global/pg_control"));
        }
    }

    /// A server that was killed, and whose parent did not wait for it, was called a running one: it can still be sent
    /// signals.
    #[test]
    fn a_process_that_ended_and_was_not_reaped_is_no_running_server() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("global")).unwrap();
        std::fs::write(dir.path().join("PG_VERSION"), "15\n").unwrap();
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let lock = format!("{}\n{}\n", child.id(), dir.path().display());
        std::fs::write(dir.path().join("postmaster.pid"), lock).unwrap();
        assert!(open(dir.path()).contains("a server is running"));
        child.kill().unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        let is_told = || open(dir.path()).contains("no global/pg_control");
        while !is_told() && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(is_told(), "{}", open(dir.path()));
        child.wait().unwrap();
    }
}
