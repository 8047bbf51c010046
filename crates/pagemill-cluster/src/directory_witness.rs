//! Whether a data directory is still as it was opened, for who reads it for long.
//!
//! A server that starts writes `postmaster.pid` before it changes anything, and `pg_control` before it is up; so does a change of ours.
//! Other files in the place of those that were opened come with a `pg_control` of their own.
//!
//! Invariant: a directory that a server has changed is known by one of both, also once that server is gone again: its shutdown is
//! in `pg_control`. What does not change them (a file that is overwritten or removed by hand) is not seen.
//!
//! Source: `CreateDataDirLockFile` before `LocalProcessControlFile` in `PostmasterMain`, and `UpdateControlFile` in `StartupXLOG`,
//! PostgreSQL 14 to 18.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pagemill_io::{FileState, Identity, Result as IoResult, Storage};

use crate::directory_state::SMALL_FILE_LIMIT;
use crate::lock_file::LockFile;

/// Below the data directory.
const CONTROL: &str = "global/pg_control";

/// What a data directory is known by.
#[derive(Debug)]
pub struct DirectoryWitness {
    storage: Storage,
    path: PathBuf,
    lock: PathBuf,
    control: PathBuf,
    seen: Seen,
    opened: Instant,
    /// When it was checked last and found the same: milliseconds after `opened`.
    checked: AtomicU64,
    /// What `pg_control` was then, where a change after that is sure to show in it; the contents need not be read again to know.
    state: Option<FileState>,
}

/// What was checked so long ago is not checked again before work begins.
const MOMENT: Duration = Duration::from_millis(20);
/// Clocks of file systems may stand still for so long.
const TICK: Duration = Duration::from_secs(1);

/// What is looked at.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    /// `postmaster.pid`: a server that crashed leaves one behind.
    lock: Option<Vec<u8>>,
    control: Vec<u8>,
    /// That of `pg_control`, where there is one: other files can say the same.
    identity: Option<Identity>,
}

/// How a data directory is no longer what was opened.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryChange {
    /// A server runs on it.
    #[error("a server was started on it (process {pid})")]
    Started {
        /// The process.
        pid: i32,
    },
    /// Its control file says something else.
    #[error("its control file has changed")]
    Control,
    /// Its control file is another file.
    #[error("other files are in its place")]
    Replaced,
    /// It cannot be told.
    #[error("whether it has changed cannot be told: {0}")]
    Unknown(#[from] pagemill_io::Error),
}

impl DirectoryWitness {
    /// Looks at a directory, which is opened only then.
    ///
    /// # Errors
    /// When its control file cannot be read.
    pub fn read(storage: &Storage, path: &Path) -> IoResult<Self> {
        let (lock, control) = (path.join(LockFile::NAME), path.join(CONTROL));
        let state = storage.state(&control).ok().filter(|state| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.is_ok_and(|now| state.changed + TICK < now)
        });
        let seen = Seen::read(storage, path)?;
        let (storage, path) = (storage.clone(), path.to_owned());
        let (opened, checked) = (Instant::now(), AtomicU64::new(0));
        Ok(Self { storage, path, lock, control, seen, opened, checked, state })
    }

    /// True where nothing has to be read to know that there is still no lock file, and the same control file.
    fn is_untouched(&self) -> bool {
        let is_absent = |lock: IoResult<FileState>| lock.is_err_and(|error| error.is_not_found());
        self.state.is_some()
            && self.seen.lock.is_none()
            && is_absent(self.storage.state(&self.lock))
            && self.storage.state(&self.control).ok() == self.state
    }

    /// Checks, unless that was done a moment ago: for who checks again before it believes anything, and would rather not work in vain.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn check_lately(&self) -> Result<(), DirectoryChange> {
        let checked = Duration::from_millis(self.checked.load(Ordering::Relaxed));
        match self.opened.elapsed() < checked + MOMENT {
            true => Ok(()),
            false => self.check(),
        }
    }

    /// # Errors
    /// When the directory is no longer what was looked at, or that cannot be told.
    pub fn check(&self) -> Result<(), DirectoryChange> {
        let now = self.opened.elapsed();
        self.compare()?;
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        self.checked.fetch_max(now, Ordering::Relaxed);
        Ok(())
    }

    fn compare(&self) -> Result<(), DirectoryChange> {
        if self.is_untouched() {
            return Ok(());
        }
        let now = match Seen::read(&self.storage, &self.path) {
            Err(error) if error.is_not_found() => return Err(DirectoryChange::Replaced),
            now => now?,
        };
        if now.lock != self.seen.lock
            && let Some(pid) = self.server()?
        {
            return Err(DirectoryChange::Started { pid });
        }
        if now.identity != self.seen.identity {
            return Err(DirectoryChange::Replaced);
        }
        if now.control != self.seen.control {
            return Err(DirectoryChange::Control);
        }
        Ok(())
    }

    /// The server that runs on it now.
    fn server(&self) -> IoResult<Option<i32>> {
        match LockFile::read(&self.storage, &self.path) {
            Ok(lock) => {
                let lock = lock.filter(|lock| lock.is_of(&self.storage, &self.path));
                Ok(lock.map(|lock| lock.pid))
            }
            Err(crate::Error::Io(error)) => Err(error),
            // It is there, and nothing else is known of it.
            Err(_) => Ok(None),
        }
    }
}

impl Seen {
    /// The lock file first, so that a server that is just being started is found by one of both.
    fn read(storage: &Storage, path: &Path) -> IoResult<Self> {
        let lock = match storage.read_file(&path.join(LockFile::NAME), SMALL_FILE_LIMIT) {
            Ok(lock) => Some(lock),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let file = path.join(CONTROL);
        let identity = storage.identity(&file).ok();
        Ok(Self { lock, control: storage.read_file(&file, SMALL_FILE_LIMIT)?, identity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("global")).unwrap();
        std::fs::write(directory.path().join("global/pg_control"), "one").unwrap();
        directory
    }

    /// The state of a file that was not written just now is trusted, and tells every change after it.
    #[test]
    fn what_is_old_is_not_read_again_and_its_changes_are_seen() {
        let directory = directory();
        let control = directory.path().join(CONTROL);
        let mut witness = DirectoryWitness::read(&Storage::real(), directory.path()).unwrap();
        assert!(witness.state.is_none(), "it was written just now");
        witness.state = Storage::real().state(&control).ok();
        assert!(witness.is_untouched());
        witness.check().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        std::fs::write(&control, "two").unwrap();
        assert!(!witness.is_untouched());
        assert!(matches!(witness.check(), Err(DirectoryChange::Control)));
        witness.state = Storage::real().state(&control).ok();
        std::fs::write(directory.path().join("postmaster.pid"), "1").unwrap();
        assert!(!witness.is_untouched());
    }

    #[test]
    fn a_server_other_contents_and_other_files_are_seen() {
        let directory = directory();
        let control = directory.path().join("global/pg_control");
        let lock = directory.path().join("postmaster.pid");
        // Of a server that crashed, whose number another process has by now.
        let own = std::process::id();
        std::fs::write(&lock, format!("{own}\n{}\n1", directory.path().display())).unwrap();
        let witness = DirectoryWitness::read(&Storage::real(), directory.path()).unwrap();
        witness.check().unwrap();
        std::fs::write(&lock, format!("{own}\n{}\n2", directory.path().display())).unwrap();
        let found = witness.check().unwrap_err();
        assert!(matches!(found, DirectoryChange::Started { pid } if pid == own as i32), "{found}");
        std::fs::write(&lock, "1\n/proc\n").unwrap();
        witness.check().unwrap();
        std::fs::remove_file(&lock).unwrap();
        witness.check().unwrap();
        std::fs::write(&control, "two").unwrap();
        assert!(matches!(witness.check(), Err(DirectoryChange::Control)));
        std::fs::write(&control, "one").unwrap();
        witness.check().unwrap();
        // The old one stays, so that its number is not given to the new one.
        std::fs::rename(&control, directory.path().join("old")).unwrap();
        assert!(matches!(witness.check(), Err(DirectoryChange::Replaced)));
        std::fs::write(&control, "one").unwrap();
        assert!(matches!(witness.check(), Err(DirectoryChange::Replaced)));
    }
}
