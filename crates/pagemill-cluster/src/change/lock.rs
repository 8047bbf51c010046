//! The right to change a cluster: a `postmaster.pid` that a starting server respects, and a lock that other processes
//! of this kind respect.
//!
//! A server that finds `postmaster.pid` asks whether the process named there lives, and if so does not start; one that
//! names nobody, or one that the server's account may not signal, is removed and replaced. The number is written negative, as a server in single-user mode does: `pg_ctl`
//! then neither stops nor reloads the process as if it were a server. Two processes that both found the same stale file
//! could each remove what the other has just made, so the cluster's `PG_VERSION` is locked first.
//!
//! A server also refuses to start when it finds the file empty. So it is written under another name and linked to its
//! own: a process killed at any moment, or a power cut, leaves a whole file or none.
//!
//! Invariant: while a [`ClusterLock`] lives, the file names this process; when it is dropped, the file is removed. A
//! killed process leaves it behind, and it stands in nobody's way.
//!
//! Source: `CreateLockFile` in `src/backend/utils/init/miscinit.c`, PostgreSQL 14 to 18.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use pagemill_io::{ErrorKind, HeldLock, Storage};

use crate::data_directory::{LockFile, read_version};
use crate::error::{Error, Result};

/// How often a stale file is removed before it is taken for something else.
const TRIES: usize = 3;

/// Where Linux lists shared memory segments: their number and how many processes are attached.
const SHARED_MEMORY: &str = "/proc/sysvipc/shm";
/// More than a list of all that a system can have in use.
const LIST_BYTES: usize = 1 << 20;

/// The right to change one cluster.
#[derive(Debug)]
pub struct ClusterLock {
    storage: Storage,
    directory: PathBuf,
    file: PathBuf,
    _held: HeldLock,
}

impl ClusterLock {
    /// Takes the right to change the data directory at `directory`.
    ///
    /// # Errors
    /// When a server or another process that changes it is there, when it is no data directory, or when nothing can be
    /// written there.
    pub fn take(storage: &Storage, directory: &Path) -> Result<Self> {
        read_version(storage, directory)?;
        let file = directory.join(LockFile::NAME);
        let held = storage.try_lock(&directory.join("PG_VERSION"))?;
        let Some(held) = held else { return Err(Error::BeingChanged { path: directory.into() }) };
        be_seen_by_owner(directory)?;
        let temporary = directory.join(LockFile::TEMPORARY);
        let storage = &storage.clone().with_modes_of(directory);
        for _ in 0..TRIES {
            match storage.create_file(&file, &temporary, contents(directory).as_bytes()) {
                Ok(()) => {
                    let (storage, directory) = (storage.clone(), directory.to_owned());
                    return Ok(Self { storage, directory, file, _held: held });
                }
                Err(error) if matches!(error.kind(), ErrorKind::Exists) => {
                    remove_if_stale(storage, directory, &file)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::refused(format!(
            "{}: it comes back each time it is removed: a server may be starting, try again",
            file.display()
        )))
    }

    /// The data directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for ClusterLock {
    fn drop(&mut self) {
        // What stays behind names a process that is gone, and stands in nobody's way.
        let _ = self.storage.remove(&self.file);
    }
}

/// Lets the account of the server see that this process lives. A starting server asks with `kill(pid, 0)`, and takes a
/// process that it may not signal for one that is not of its cluster: the superuser's would stand in nobody's way. With
/// the owner of the directory as real user the question is answered; what this process may do stays as it is.
///
/// The answer is given for the thread that the process began with, so that one has to take the lock.
fn be_seen_by_owner(directory: &Path) -> Result<()> {
    let Ok(found) = rustix::fs::stat(directory) else { return Ok(()) };
    let owner = rustix::process::Uid::from_raw(found.st_uid);
    let keep = rustix::process::geteuid();
    if owner == keep {
        return Ok(());
    }
    rustix::thread::set_thread_res_uid(owner, keep, owner).map_err(|error| {
        Error::refused(format!(
            "{}: a server that starts would not see that this process is at work, as it is of another account than \
             the directory ({error}): run it as the owner of the directory",
            directory.display()
        ))
    })
}

/// The lines of `postmaster.pid` up to the address that is listened on; those of the shared memory are left out, as there is none.
fn contents(directory: &Path) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    format!("-{}\n{}\n{now}\n0\n\n\n", std::process::id(), directory.display())
}

/// Removes the file of a process that is gone and has left no child behind.
fn remove_if_stale(storage: &Storage, directory: &Path, file: &Path) -> Result<()> {
    let Some(found) = LockFile::read_any(storage, directory)? else { return Ok(()) };
    if found.is_alive() && !found.is_this_process() {
        return Err(Error::Running { path: file.into(), pid: found.pid });
    }
    if let Some(segment) = found.shared_memory
        && attached(storage, segment) > 0
    {
        return Err(Error::refused(format!(
            "{}: process {} is gone, but others of its server still use shared memory segment {segment}: \
             stop them first",
            file.display(),
            found.pid
        )));
    }
    Ok(storage.remove_if_there(file)?)
}

/// How many processes are attached to a shared memory segment, as far as the system tells.
fn attached(storage: &Storage, segment: u32) -> u64 {
    // The system does not tell how long it is.
    let mut listed = vec![0; LIST_BYTES];
    let file = storage.open(Path::new(SHARED_MEMORY));
    let read = file.ok().and_then(|file| storage.read_fully_at(&*file, &mut listed, 0).ok());
    let listed = String::from_utf8_lossy(listed.get(..read.unwrap_or(0)).unwrap_or_default());
    let mut lines = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let Some(header) = lines.next() else { return 0 };
    let column = |name| header.iter().position(|&title| title == name);
    let (Some(id), Some(count)) = (column("shmid"), column("nattch")) else { return 0 };
    let number = |line: &[&str], at: usize| line.get(at).and_then(|text| text.parse().ok());
    let found = lines.find(|line| number(line, id) == Some(u64::from(segment)));
    found.and_then(|line| number(&line, count)).unwrap_or(0)
}
